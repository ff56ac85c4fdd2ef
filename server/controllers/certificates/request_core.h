/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Decisions about a CertificateSigningRequest. Pure. Thread: any. */
#include <stdint.h>

struct hf__json;

/* The signer that this server serves itself: certificates for clients of its API. */
#define HFD_CLIENT_SIGNER "kubernetes.io/kube-apiserver-client"

#define HFD_REQUEST_SECONDS_MIN 600
#define HFD_REQUEST_SECONDS_MAX (INT64_C(365) * 24 * 3600) /* also when none are asked for */
#define HFD_REQUEST_USAGES_MAX  8
#define HFD_REQUEST_WHY_MAX     160

enum hfd_request_step {
        HFD_REQUEST_NOTHING, /* of another signer, not approved, or already decided */
        HFD_REQUEST_SIGN,
        HFD_REQUEST_FAIL /* it asks for what the signer never gives */
};
/* Decides the next step. With HFD_REQUEST_FAIL, why is the reason. */
enum hfd_request_step hfd_request_next(const struct hf__json *request,
                                       char why[HFD_REQUEST_WHY_MAX]);
/* How long the certificate is to be valid. */
int64_t hfd_request_seconds(const struct hf__json *request);
/* Adds the condition Failed. now: a metav1.Time. 0 or -ENOMEM. */
int hfd_request_fail(struct hf__json *request, const char *why, const char *now);

#define HFD_REQUEST_KEPT INT64_MAX /* for ever */
/*
 * The seconds until the request is deleted; 0 or less = now. Denied, failed and issued ones are
 * kept for an hour, and not longer than the certificate is valid; those that wait for a day.
 * valid_until: of the certificate, in seconds since 1970; 0 = there is none, or it cannot be read.
 */
int64_t hfd_request_time_left(const struct hf__json *request, int64_t now, int64_t valid_until);
