/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes texts of certificates: for people, for comparison, and for clients.
 *
 * Invariants:
 *
 *  - No function leaves an entry in OpenSSL's error queue (see pki_cert.c).
 *  - All texts are printable ASCII, because another program may have made the certificate.
 */
#include "server/auth/pki/pki_cert.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>

#include "server/auth/pki/pki_x509.h"
#include "server/tls/pem.h"

/* Appends n bytes in hexadecimal, as many as fit. */
static void add_hex(char *text, size_t size, const unsigned char *bytes, size_t n) {
        size_t at = strlen(text);

        for (size_t i = 0; i < n && at + 3 <= size; i++, at += 2)
                (void)snprintf(text + at, size - at, "%02x", bytes[i]);
}

static bool set_fingerprint(X509 *cert, char text[HFD_PKI_FINGERPRINT_MAX]) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned n = 0;

        if (X509_digest(cert, EVP_sha256(), digest, &n) != 1)
                return false;
        (void)snprintf(text, HFD_PKI_FINGERPRINT_MAX, "sha256:");
        add_hex(text, HFD_PKI_FINGERPRINT_MAX, digest, n);
        return true;
}

bool hfd_pki_fingerprint(const char *cert_pem, char text[HFD_PKI_FINGERPRINT_MAX]) {
        X509 *cert = hfd_pem_read_cert(cert_pem);
        bool ok = cert && set_fingerprint(cert, text);

        X509_free(cert);
        ERR_clear_error();
        return ok;
}

static void set_key_id(const ASN1_OCTET_STRING *id, char text[64]) {
        text[0] = '\0';
        if (id)
                add_hex(text, 64, ASN1_STRING_get0_data(id), (size_t)ASN1_STRING_length(id));
}

static bool set_name(const X509_NAME *name, char *text, size_t size) {
        BIO *bio = BIO_new(BIO_s_mem());
        char *data = NULL;
        /* The flags escape everything that is not printable ASCII. */
        bool ok = bio && X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253) >= 0;
        long n = ok ? BIO_get_mem_data(bio, &data) : 0;

        (void)snprintf(text, size, "%.*s", (int)n, n > 0 ? data : "");
        BIO_free(bio);
        return ok;
}

/* A space becomes '?' too, so that one name cannot look like two. */
static void add_name(char *text, size_t size, const char *name, size_t n) {
        size_t at = strlen(text);

        if (at > 0 && at + 3 < size)
                at += (size_t)snprintf(text + at, size - at, ", ");
        for (size_t i = 0; i < n && at + 1 < size; i++)
                text[at++] = name[i] > 0x20 && name[i] < 0x7f ? name[i] : '?';
        text[at] = '\0';
}

static void set_names(X509 *cert, char *text, size_t size) {
        GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
        char address[INET6_ADDRSTRLEN];

        text[0] = '\0';
        for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
                int type = 0;
                const ASN1_STRING *value =
                        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
                if (type == GEN_DNS)
                        add_name(text, size, (const char *)ASN1_STRING_get0_data(value),
                                 (size_t)ASN1_STRING_length(value));
                else if (type == GEN_IPADD &&
                         (ASN1_STRING_length(value) == 4 || ASN1_STRING_length(value) == 16) &&
                         inet_ntop(ASN1_STRING_length(value) == 4 ? AF_INET : AF_INET6,
                                   ASN1_STRING_get0_data(value), address, sizeof address))
                        add_name(text, size, address, strlen(address));
        }
        GENERAL_NAMES_free(names);
}

int hfd_pki_describe(const char *ca_pem, const char *cert_pem,
                     struct hfd_pki_description *ret_description) {
        struct hfd_pki_description description = {.valid_until = hfd_pki_valid_until(cert_pem)};
        X509 *ca = hfd_pem_read_cert(ca_pem), *cert = hfd_pem_read_cert(cert_pem);
        int r = ca && cert ? 0 : HF_E_INVALID;

        if (r == 0 &&
            (!set_fingerprint(cert, description.fingerprint) ||
             !set_name(X509_get_subject_name(cert), description.subject,
                       sizeof description.subject) ||
             !set_name(X509_get_issuer_name(cert), description.issuer, sizeof description.issuer)))
                r = -ENOMEM;
        if (r == 0) {
                set_names(cert, description.names, sizeof description.names);
                set_key_id(X509_get0_subject_key_id(cert), description.key_id);
                set_key_id(X509_get0_authority_key_id(cert), description.issuer_key_id);
                description.from_ca = X509_check_issued(ca, cert) == X509_V_OK &&
                                      X509_verify(cert, X509_get0_pubkey(ca)) == 1;
                *ret_description = description;
        }
        X509_free(ca);
        X509_free(cert);
        ERR_clear_error();
        return r;
}

int hfd_pki_certificates(const char *pem, char **ret_pem) {
        BIO *bio = BIO_new(BIO_s_mem());
        int r = bio && hfd_pem_write_certs(pem, bio) ? hfd_pki_x509_text(bio, ret_pem) : -ENOMEM;

        BIO_free(bio);
        ERR_clear_error();
        return r;
}
