/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Decisions about a CertificateSigningRequest. Pure. Thread: any. */
#include <stdint.h>

struct hf__json;

/* The only signer that this server implements: it issues certificates for clients of the API. */
#define HFD_CLIENT_SIGNER "kubernetes.io/kube-apiserver-client"

#define HFD_REQUEST_SECONDS_MIN 600
#define HFD_REQUEST_SECONDS_MAX (INT64_C(365) * 24 * 3600) /* also the default */
#define HFD_REQUEST_USAGES_MAX  8 /* more than the three different ones that the signer allows */
#define HFD_REQUEST_WHY_MAX     160

enum hfd_request_step {
        /* the request has another signer, is not approved, is denied or has failed, has its
         * certificate already, or is being deleted */
        HFD_REQUEST_NOTHING,
        HFD_REQUEST_SIGN,
        HFD_REQUEST_FAIL /* it has a usage that the signer does not allow, or lacks `client auth` */
};
/* Decides the next step. With HFD_REQUEST_FAIL, why is the reason. */
enum hfd_request_step hfd_request_next(const struct hf__json *request,
                                       char why[HFD_REQUEST_WHY_MAX]);
/* How long the certificate shall be valid: what the request asks for, within the two limits above,
 * in seconds. */
int64_t hfd_request_seconds(const struct hf__json *request);
/* Adds the condition Failed. now: a metav1.Time. 0, -ENOMEM, or -EINVAL: malformed status. */
int hfd_request_fail(struct hf__json *request, const char *why, const char *now);

#define HFD_REQUEST_KEPT INT64_MAX /* for ever */
/*
 * The seconds until the request is deleted; 0 or less = now. A request that was denied or has
 * failed is kept for one hour after that. An approved request with a certificate is kept for one
 * hour after the approval, but not longer than the certificate is valid. An approved request
 * without a certificate is kept for one day after the approval, and one without any condition for
 * one day after its creation. If two of these hold, the earlier time counts. now: in seconds since
 * 1970. valid_until: when the certificate expires, in the same unit; 0 = there is no certificate,
 * or it cannot be read.
 */
int64_t hfd_request_time_left(const struct hf__json *request, int64_t now, int64_t valid_until);
