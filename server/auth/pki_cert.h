/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Making and judging certificates; PEM text in, PEM text out (malloc'ed, the caller's). Pure but
 * for randomness and today's date. Private to server/auth.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/error.h>

/* A new P-256 key. 0, -ENOMEM, -EIO (OpenSSL refused). */
int hfd_pki_key_make(char **ret_key_pem);

/* A self-signed CA for 10 years. key_pem that is not a key: HF_E_INVALID. */
int hfd_pki_ca_make(const char *key_pem, char **ret_cert_pem);

struct hfd_pki_leaf {
        const char *ca_cert_pem, *ca_key_pem, *key_pem;
        const char *common_name, *organisation; /* organisation may be NULL */
        const char *const *names; /* DNS names and IP addresses, NULL-terminated: a serving
                                     certificate; NULL: a client's */
        const char *previous_pem; /* a serving certificate whose names are kept; NULL = none */
};
/* A certificate for one year, never longer than the CA's own. */
int hfd_pki_leaf_make(const struct hfd_pki_leaf *leaf, char **ret_cert_pem);

/* What key_pem is not: "" when it is a private key. Static storage. */
const char *hfd_pki_key_fault(const char *key_pem);
/* What is wrong with a CA: "" when nothing is. key_pem may be NULL: then only the certificate is
 * judged. Static storage. */
const char *hfd_pki_ca_fault(const char *cert_pem, const char *key_pem);

enum hfd_pki_verdict {
        HFD_PKI_USABLE,
        HFD_PKI_RENEW,   /* expired or about to, made by another CA, or a name is missing */
        HFD_PKI_INVALID, /* not a certificate, or not of this key */
};
/* names may be NULL. *ret_fault ("" or words, static) says why it is not usable. */
enum hfd_pki_verdict hfd_pki_leaf_judge(const char *ca_pem, const char *cert_pem,
                                        const char *key_pem, const char *const *names,
                                        const char **ret_fault);
