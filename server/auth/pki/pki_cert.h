/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Creates and checks certificates. Input and output are PEM texts; output is malloc'ed and owned by
 * the caller, who overwrites keys before freeing them. Apart from random numbers and the current
 * time, results depend on the arguments only. Private to server/auth, except for the expiry, the
 * fingerprint, the description and hfd_pki_certificates, which server/certificates and server/pki
 * use too.
 *
 * Threads: any, no lock.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/error.h>

/* Creates a P-256 key. 0, -ENOMEM or -EIO (OpenSSL failed). */
int hfd_pki_key_make(char **ret_key_pem);

/* Creates a self-signed CA certificate for 10 years. 0, -ENOMEM, -EIO, or HF_E_INVALID: key_pem is
 * not a key. */
int hfd_pki_ca_make(const char *key_pem, char **ret_cert_pem);

/* Names that are wanted for a serving certificate, with the three that it always has. The names
 * kept from a previous certificate (previous_pem) do not count. */
#define HFD_PKI_NAMES_MAX 64
/* The names of a serving certificate: localhost, 127.0.0.1 and ::1, for clients on the same
 * machine, then the names that are given. names ends with NULL, or is NULL. ret_all ends with NULL
 * and borrows the texts. 0 or HF_E_TOO_LARGE. */
int hfd_pki_names(const char *const *names, const char *ret_all[HFD_PKI_NAMES_MAX + 1],
                  struct hf_status *reterr_status);

/* Describes a certificate to create. All texts are borrowed. */
struct hfd_pki_leaf {
        const char *ca_cert_pem, *ca_key_pem, *key_pem;
        const char *common_name, *organisation; /* organisation may be NULL */
        /* DNS names and IP addresses, NULL-terminated: for a serving certificate. NULL: for a
         * client certificate. */
        const char *const *names;
        const char *previous_pem; /* a serving certificate whose names are kept; NULL = none */
};
/* Creates a certificate for one year, or until the CA expires if that is sooner. 0, -ENOMEM, -EIO,
 * or HF_E_INVALID: the CA or a key cannot be parsed. */
int hfd_pki_leaf_make(const struct hfd_pki_leaf *leaf, char **ret_cert_pem);

/* Why key_pem is not usable as a private key; "" when it is. Static storage. */
const char *hfd_pki_key_fault(const char *key_pem);
/* Why a CA is not usable; "" when it is. Static storage. key_pem NULL, or a key that cannot be
 * parsed (hfd_pki_key_fault tells): only the certificate is checked. */
const char *hfd_pki_ca_fault(const char *cert_pem, const char *key_pem);

/* Returns when the first certificate of a PEM text expires, in seconds since 1970 UTC; 0 = it
 * cannot be read. Pure. */
int64_t hfd_pki_valid_until(const char *cert_pem);
/* Generated serving and admin certificates in a directory are renewed when they remain valid for
 * less than this. The CA is not renewed. */
#define HFD_PKI_RENEW_SECONDS (INT64_C(30) * 24 * 3600)

#define HFD_PKI_FINGERPRINT_MAX 72 /* bytes, with the NUL */
/* Identifies a certificate: "sha256:" and the digest of its DER form, which openssl x509
 * -fingerprint -sha256 computes too. Here it is in lower-case hexadecimal without colons. False:
 * cert_pem is not a certificate. Pure. */
bool hfd_pki_fingerprint(const char *cert_pem, char text[HFD_PKI_FINGERPRINT_MAX]);

/* A certificate in a form for people. All texts are printable ASCII, and cut to fit. */
struct hfd_pki_description {
        char subject[256], issuer[256]; /* as RFC 2253: CN=holdfast-admin,O=system:masters */
        char names[2048];               /* DNS names and IP addresses, with ", " between them */
        char fingerprint[HFD_PKI_FINGERPRINT_MAX];
        char key_id[64], issuer_key_id[64]; /* hexadecimal; "" = not given */
        int64_t valid_until;                /* as hfd_pki_valid_until */
        bool from_ca;                       /* the CA has issued it; both may have expired */
};
/* Describes the first certificate of a PEM text. 0, -ENOMEM, or HF_E_INVALID: ca_pem or cert_pem is
 * not a certificate. */
int hfd_pki_describe(const char *ca_pem, const char *cert_pem,
                     struct hfd_pki_description *ret_description);

/* Copies the certificates of a PEM text and nothing else, because whoever gives a certificate may
 * have its key in the same file. The text must have a certificate. 0 or -ENOMEM. */
int hfd_pki_certificates(const char *pem, char **ret_pem);

enum hfd_pki_verdict {
        HFD_PKI_USABLE,
        HFD_PKI_RENEW,   /* expires within 30 days, another CA issued it, or a name is missing */
        HFD_PKI_INVALID, /* not a certificate, or of another key: the user must decide */
};
/* Checks a certificate that the CA should have issued. names: the DNS names and IP addresses that
 * it must have, and perhaps other texts, which are ignored; NULL = none. *ret_fault: why the
 * certificate is not usable, or ""; static storage. */
enum hfd_pki_verdict hfd_pki_leaf_check(const char *ca_pem, const char *cert_pem,
                                        const char *key_pem, const char *const *names,
                                        const char **ret_fault);
