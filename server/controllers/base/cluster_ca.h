/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What controllers need of the server's certificates and of its CA. The server implements these
 * functions (server/certificates/cluster_ca.h), because controllers are clients of the API and know
 * nothing of X.509.
 *
 * Thread: any. The functions may block on files, and take no lock that a request needs.
 */
#include <stddef.h>
#include <stdint.h>

#include <holdfast/error.h>

/* A certificate to issue. All texts are borrowed. */
struct hfd_signing {
        const char *request; /* a certificate request in PEM form */
        size_t n_request;
        /* Names of Kubernetes' key usages. Only "digital signature" and "key encipherment" count;
         * each certificate is for client authentication. */
        const char *const *usages;
        size_t n_usages;
        int64_t now;     /* seconds since 1970 */
        int64_t seconds; /* how long it is valid at most; it never outlives the CA */
};

struct hfd_cluster_ca_functions {
        /* The certificates by which clients recognise this server, as PEM text that the caller
         * frees; "" = nothing is published yet. NULL: out of memory. */
        char *(*root)(void *ctx);
        /*
         * Issues a certificate that this server accepts from clients. *ret_pem is PEM text that the
         * caller frees. HF_E_NOT_FOUND: this server has no key of the CA of its clients, and the
         * message says why. HF_E_INVALID: the request can never be signed, and the message says
         * why. HF_E_UNAVAILABLE: the CA has expired or cannot be used. -errno.
         */
        int (*sign)(void *ctx, const struct hfd_signing *signing, char **ret_pem,
                    struct hf_status *reterr_status);
        /* When the first certificate of a PEM text expires, in seconds since 1970; 0 = it cannot be
         * read. Pure. */
        int64_t (*valid_until)(const char *pem);
        void *ctx;
};
