/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates and checks certificates with OpenSSL's X509 interface.
 *
 * Invariant: no function leaves an entry in OpenSSL's error queue. The queue belongs to the thread,
 * and the TLS code of the same thread would report an old entry as the cause of its own error.
 * Therefore every result of OpenSSL that may be an error goes through check_openssl, a parse
 * function or hfd_pki_x509_sign, all of which empty the queue.
 */
#include "server/auth/pki/pki_cert.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/cleanup.h"
#include "server/auth/pki/pki_x509.h"
#include "server/tls/pem.h"

/* After a change of the CA each client needs a new kubeconfig, so the CA is valid for long. The
 * other certificates are renewed without the user's help. */
#define CA_DAYS      3650
#define LEAF_DAYS    365
#define BACKDATE_S   (-3600L) /* the clocks of other machines may be behind */
#define MAX_DNS_NAME 253

/* Returns 0 if ok is true, otherwise error. Empties OpenSSL's error queue. */
static int check_openssl(bool ok, int error) {
        assert(error != 0);
        ERR_clear_error();
        return ok ? 0 : error;
}

static void bio_cleanup(BIO **bio) { BIO_free(*bio); }
static void cert_cleanup(X509 **cert) { X509_free(*cert); }
static void key_cleanup(EVP_PKEY **key) { EVP_PKEY_free(*key); }
static void names_cleanup(GENERAL_NAMES **names) { GENERAL_NAMES_free(*names); }

static X509 *parse_cert(const char *pem) {
        X509 *cert = hfd_pem_read_cert(pem);

        ERR_clear_error();
        return cert;
}

static EVP_PKEY *parse_key(const char *pem) {
        EVP_PKEY *key = hfd_pem_read_key(pem);

        ERR_clear_error();
        return key;
}

int hfd_pki_key_make(char **ret_key_pem) {
        HF__CLEANUP(key_cleanup) EVP_PKEY *key = EVP_EC_gen("P-256");
        /* OpenSSL overwrites the memory of this BIO when it grows and when it is freed. */
        HF__CLEANUP(bio_cleanup) BIO *bio = BIO_new(BIO_s_secmem());
        int r = check_openssl(key && bio &&
                                      PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL,
                                                                    NULL) == 1,
                              -EIO);
        return r == 0 ? hfd_pki_x509_text(bio, ret_key_pem) : r;
}

static bool add_name_entry(X509_NAME *name, const char *field, const char *value) {
        return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, (const unsigned char *)value,
                                          -1, -1, 0) == 1;
}

/* Creates an unsigned certificate, without an issuer and without extensions. NULL: an error. */
static X509 *new_cert(EVP_PKEY *key, const char *common_name, const char *organisation, int days) {
        HF__CLEANUP(cert_cleanup) X509 *cert = X509_new();
        if (!cert || X509_set_version(cert, X509_VERSION_3) != 1 ||
            !hfd_pki_x509_set_serial(cert) ||
            !X509_gmtime_adj(X509_getm_notBefore(cert), BACKDATE_S) ||
            !X509_time_adj_ex(X509_getm_notAfter(cert), days, 0, NULL) ||
            X509_set_pubkey(cert, key) != 1)
                return NULL;
        X509_NAME *subject = X509_get_subject_name(cert);
        if ((organisation && !add_name_entry(subject, "O", organisation)) ||
            !add_name_entry(subject, "CN", common_name))
                return NULL;
        X509 *made = cert;
        cert = NULL; /* the caller owns it now */
        return made;
}

/* All CAs of Holdfast have the same subject. By the subject key identifier a client that trusts two
 * of them finds the one that has issued a certificate. */
int hfd_pki_ca_make(const char *key_pem, char **ret_cert_pem) {
        HF__CLEANUP(key_cleanup) EVP_PKEY *key = parse_key(key_pem);
        if (!key)
                return HF_E_INVALID;
        HF__CLEANUP(cert_cleanup) X509 *cert = new_cert(key, "holdfast-ca", NULL, CA_DAYS);
        int r = check_openssl(
                cert && X509_set_issuer_name(cert, X509_get_subject_name(cert)) == 1 &&
                        hfd_pki_x509_extend(cert, cert, NID_basic_constraints,
                                            "critical,CA:TRUE") &&
                        hfd_pki_x509_extend(cert, cert, NID_key_usage,
                                            "critical,digitalSignature,keyCertSign,cRLSign") &&
                        hfd_pki_x509_extend(cert, cert, NID_subject_key_identifier, "hash"),
                -EIO);
        return r == 0 ? hfd_pki_x509_sign(cert, key, ret_cert_pem) : r;
}

/* Writes an IP address to bytes, in network order. Returns how many bytes it has, 4 or 16; 0: text
 * is not an IP address. */
static int address_bytes(const char *text, unsigned char bytes[16]) {
        if (inet_pton(AF_INET, text, bytes) == 1)
                return 4;
        return inet_pton(AF_INET6, text, bytes) == 1 ? 16 : 0;
}

/* Letters, digits, dots and hyphens. Wildcards are not supported. */
static bool is_dns_name(const char *text) {
        size_t n = strlen(text);
        size_t n_good =
                strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");
        return n > 0 && n <= MAX_DNS_NAME && n_good == n && text[0] != '.' && text[0] != '-';
}

/* Ignores the common name, because clients no longer check it. */
static bool cert_has_name(X509 *cert, const char *name) {
        unsigned char bytes[16];
        int n = address_bytes(name, bytes);
        if (n > 0)
                return X509_check_ip(cert, bytes, (size_t)n, 0) == 1;
        return X509_check_host(cert, name, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) == 1;
}

static bool push_name(GENERAL_NAMES *names, const char *name) {
        unsigned char bytes[16];
        int n_address = address_bytes(name, bytes);
        GENERAL_NAME *entry = GENERAL_NAME_new();
        ASN1_STRING *value = n_address > 0 ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
        bool ok = entry && value &&
                  ASN1_STRING_set(value, n_address > 0 ? (const void *)bytes : name,
                                  n_address > 0 ? n_address : (int)strlen(name)) == 1;
        if (ok) {
                GENERAL_NAME_set0_value(entry, n_address > 0 ? GEN_IPADD : GEN_DNS, value);
                value = NULL; /* entry owns it now */
                ok = sk_GENERAL_NAME_push(names, entry) > 0;
                if (ok)
                        entry = NULL; /* names owns it now */
        }
        ASN1_STRING_free(value);
        GENERAL_NAME_free(entry);
        return ok;
}

/* Adds the names of the previous certificate: several instances with different names may share the
 * certificate, and a renewal by one instance must not remove the names of the others. Then adds the
 * names that are missing. Leaves out a name that is neither a DNS name nor an IP address. */
static bool add_names(X509 *cert, const char *const *names, X509 *previous) {
        HF__CLEANUP(names_cleanup)
        GENERAL_NAMES *all =
                previous ? X509_get_ext_d2i(previous, NID_subject_alt_name, NULL, NULL) : NULL;
        bool kept = all != NULL;
        if (!all && !(all = sk_GENERAL_NAME_new_null()))
                return false;
        for (; *names; names++) {
                unsigned char bytes[16];
                if (address_bytes(*names, bytes) == 0 && !is_dns_name(*names))
                        continue;
                if (!(kept && cert_has_name(previous, *names)) && !push_name(all, *names))
                        return false;
        }
        return X509_add1_ext_i2d(cert, NID_subject_alt_name, all, 0, 0) == 1;
}

/* The usages are the least that TLS needs with an ECDSA key. A serving certificate is not valid for
 * clients, so whoever steals one cannot authenticate with it. */
int hfd_pki_leaf_make(const struct hfd_pki_leaf *leaf, char **ret_cert_pem) {
        HF__CLEANUP(cert_cleanup) X509 *ca = parse_cert(leaf->ca_cert_pem);
        HF__CLEANUP(key_cleanup) EVP_PKEY *ca_key = parse_key(leaf->ca_key_pem);
        HF__CLEANUP(key_cleanup) EVP_PKEY *key = parse_key(leaf->key_pem);
        HF__CLEANUP(cert_cleanup)
        X509 *previous = leaf->previous_pem ? parse_cert(leaf->previous_pem) : NULL;
        if (!ca || !ca_key || !key)
                return HF_E_INVALID;
        HF__CLEANUP(cert_cleanup)
        X509 *cert = new_cert(key, leaf->common_name, leaf->organisation, LEAF_DAYS);
        int r = check_openssl(cert && hfd_pki_x509_limit(cert, ca) &&
                                      X509_set_issuer_name(cert, X509_get_subject_name(ca)) == 1 &&
                                      hfd_pki_x509_extend(cert, ca, NID_basic_constraints,
                                                          "critical,CA:FALSE") &&
                                      hfd_pki_x509_extend(cert, ca, NID_key_usage,
                                                          "critical,digitalSignature") &&
                                      hfd_pki_x509_extend(cert, ca, NID_ext_key_usage,
                                                          leaf->names ? "serverAuth"
                                                                      : "clientAuth") &&
                                      hfd_pki_x509_extend(cert, ca, NID_authority_key_identifier,
                                                          "keyid") &&
                                      (!leaf->names || add_names(cert, leaf->names, previous)),
                              -EIO);
        return r == 0 ? hfd_pki_x509_sign(cert, ca_key, ret_cert_pem) : r;
}

const char *hfd_pki_key_fault(const char *key_pem) {
        HF__CLEANUP(key_cleanup) EVP_PKEY *key = parse_key(key_pem);
        return key ? "" : "it is not an unencrypted private key in PEM form";
}

const char *hfd_pki_ca_fault(const char *cert_pem, const char *key_pem) {
        HF__CLEANUP(cert_cleanup) X509 *cert = parse_cert(cert_pem);
        if (!cert)
                return "it is not a certificate in PEM form";
        if (check_openssl(X509_check_ca(cert) == 1, HF_E_INVALID) != 0)
                return "it is not a CA certificate";
        if (check_openssl(X509_cmp_current_time(X509_get0_notAfter(cert)) > 0, HF_E_INVALID) != 0)
                return "it has expired";
        HF__CLEANUP(key_cleanup) EVP_PKEY *key = key_pem ? parse_key(key_pem) : NULL;
        int r = check_openssl(!key || X509_check_private_key(cert, key) == 1, HF_E_INVALID);
        return r == 0 ? "" : "the key beside it belongs to another certificate";
}

int64_t hfd_pki_valid_until(const char *cert_pem) {
        HF__CLEANUP(cert_cleanup) X509 *cert = parse_cert(cert_pem);
        struct tm tm;

        if (!cert ||
            check_openssl(ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) == 1, HF_E_INVALID) != 0)
                return 0;
        return timegm(&tm);
}

/* HFD_PKI_RENEW is for faults that a new certificate corrects. The key is checked before the
 * issuer: if the user has mixed up two pairs, the issuer may be wrong too, and a renewal would hide
 * the mistake. */
enum hfd_pki_verdict hfd_pki_leaf_check(const char *ca_pem, const char *cert_pem,
                                        const char *key_pem, const char *const *names,
                                        const char **ret_fault) {
        HF__CLEANUP(cert_cleanup) X509 *ca = parse_cert(ca_pem);
        HF__CLEANUP(cert_cleanup) X509 *cert = parse_cert(cert_pem);
        HF__CLEANUP(key_cleanup) EVP_PKEY *key = parse_key(key_pem);
        *ret_fault = "it is not a certificate in PEM form";
        if (!ca || !cert || !key)
                return HFD_PKI_INVALID;
        *ret_fault = "the key beside it belongs to another certificate";
        if (check_openssl(X509_check_private_key(cert, key) == 1, HF_E_INVALID) != 0)
                return HFD_PKI_INVALID;
        *ret_fault = "another CA issued it";
        if (check_openssl(X509_check_issued(ca, cert) == X509_V_OK &&
                                  X509_verify(cert, X509_get0_pubkey(ca)) == 1,
                          HF_E_INVALID) != 0)
                return HFD_PKI_RENEW;
        int days = 0, seconds = 0;
        *ret_fault = "it has expired or will soon";
        if (check_openssl(ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)) == 1 &&
                                  days >= HFD_PKI_RENEW_SECONDS / 86400,
                          HF_E_INVALID) != 0)
                return HFD_PKI_RENEW;
        *ret_fault = "a name is missing from it";
        for (; names && *names; names++) {
                unsigned char bytes[16];
                if ((address_bytes(*names, bytes) > 0 || is_dns_name(*names)) &&
                    check_openssl(cert_has_name(cert, *names), HF_E_INVALID) != 0)
                        return HFD_PKI_RENEW;
        }
        *ret_fault = "";
        return HFD_PKI_USABLE;
}

int hfd_pki_names(const char *const *names, const char *ret_all[HFD_PKI_NAMES_MAX + 1],
                  struct hf_status *reterr_status) {
        static const char *const always[] = {"localhost", "127.0.0.1", "::1"};
        const size_t n_always = sizeof always / sizeof always[0];
        size_t n = 0;

        for (; n < n_always; n++)
                ret_all[n] = always[n];
        for (; names && *names; names++) {
                if (n == HFD_PKI_NAMES_MAX)
                        return hf_fail(reterr_status, HF_E_TOO_LARGE,
                                       "more than %zu names for the serving certificate",
                                       HFD_PKI_NAMES_MAX - n_always);
                ret_all[n++] = *names;
        }
        ret_all[n] = NULL;
        return 0;
}
