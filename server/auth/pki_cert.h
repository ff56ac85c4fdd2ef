/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Creates and checks certificates. Input is PEM text; output is PEM text, malloc'ed and owned by
 * the caller. Apart from random numbers and the current time, results depend on the arguments only.
 * Private to server/auth.
 *
 * Threads: any, no lock.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/error.h>

/* Creates a P-256 key. 0, -ENOMEM or -EIO (OpenSSL failed). */
int hfd_pki_key_make(char **ret_key_pem);

/* Creates a self-signed CA certificate for 10 years. 0, -ENOMEM, -EIO, or HF_E_INVALID: key_pem is
 * not a key. */
int hfd_pki_ca_make(const char *key_pem, char **ret_cert_pem);

/* Describes a certificate to create. All texts are borrowed. */
struct hfd_pki_leaf {
        const char *ca_cert_pem, *ca_key_pem, *key_pem;
        const char *common_name, *organisation; /* organisation may be NULL */
        /* DNS names and IP addresses, NULL-terminated: for a serving certificate. NULL: for a
         * client certificate. */
        const char *const *names;
        const char *previous_pem; /* a serving certificate whose names are kept; NULL = none */
};
/* Creates a certificate for one year, or until the CA expires if that is sooner. 0, -ENOMEM, -EIO
 * or HF_E_INVALID. */
int hfd_pki_leaf_make(const struct hfd_pki_leaf *leaf, char **ret_cert_pem);

/* Why key_pem is not usable as a private key; "" when it is. Static storage. */
const char *hfd_pki_key_fault(const char *key_pem);
/* Why a CA is not usable; "" when it is. key_pem may be NULL: then only the certificate is checked.
 * Static storage. */
const char *hfd_pki_ca_fault(const char *cert_pem, const char *key_pem);

enum hfd_pki_verdict {
        HFD_PKI_USABLE,
        HFD_PKI_RENEW,   /* expires within 30 days, another CA issued it, or a name is missing */
        HFD_PKI_INVALID, /* not a certificate, or of another key: the user must decide */
};
/* Checks a certificate that the CA should have issued. names may be NULL. *ret_fault is the reason
 * why it is not usable, or "". Static storage. */
enum hfd_pki_verdict hfd_pki_leaf_check(const char *ca_pem, const char *cert_pem,
                                        const char *key_pem, const char *const *names,
                                        const char **ret_fault);
