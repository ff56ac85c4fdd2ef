/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificate requests with OpenSSL.
 *
 * Invariants:
 *
 *  - No function leaves an entry in OpenSSL's error queue (see pki_cert.c).
 *  - Of a request only the subject, the key and the alternative names reach the certificate. A
 *    request decides neither about usages nor about the lifetime, and its certificate is never that
 *    of a CA.
 *  - A certificate gives no name, group or uid that the approver of its request could not see.
 *    Approvers read requests with Go's libraries.
 *  - Code here reads an organisation as server/http/connection/tls.c does. Otherwise a request
 *    could hide the group that its certificate gives.
 */
#include "server/auth/pki/pki_request.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "server/auth/pki/pki_names.h"
#include "server/auth/pki/pki_x509.h"
#include "server/tls/pem.h"
#include "server/tls/readable_name.h"

/* As in Go's library, which refuses shorter keys and longer exponents. */
#define MIN_RSA_BITS      1024
#define MAX_EXPONENT_BITS 31
#define DEPTH_MAX         16         /* of elements within others */
#define BACKDATE          300        /* seconds; the clocks of other machines may be behind */
#define SHORT             (8 * 3600) /* seconds; BACKDATE does not reduce a shorter lifetime */

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void bio_cleanup(BIO **bio) { BIO_free(*bio); }
static void cert_cleanup(X509 **cert) { X509_free(*cert); }
static void key_cleanup(EVP_PKEY **key) { EVP_PKEY_free(*key); }
static void name_cleanup(X509_NAME **name) { X509_NAME_free(*name); }
static void request_cleanup(X509_REQ **request) { X509_REQ_free(*request); }

/* ---- reading ---- */

/* One block of a PEM text, as OpenSSL returns it. */
struct block {
        char *name, *header;
        unsigned char *data;
        long n;
};

static void block_cleanup(struct block *block) {
        OPENSSL_free(block->name);
        OPENSSL_free(block->header);
        OPENSSL_free(block->data);
}

static BIO *open_text(const char *pem, size_t n) {
        return n <= INT_MAX ? BIO_new_mem_buf(pem, (int)n) : NULL;
}

/* Whether one of the errors in OpenSSL's queue is a lack of memory. Clears the queue, so a function
 * calls this before it returns even where the answer does not matter. Because all functions do so,
 * the queue has only errors of the function that calls this. */
static bool ran_out_of_memory(void) {
        bool found = false;

        for (unsigned long error = ERR_get_error(); error != 0; error = ERR_get_error())
                found = found || ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE;
        return found;
}

/* Reads the next block. False: there is none, and the error queue says why. PEM_read_bio adds no
 * error if it finds no memory for what it has decoded. */
static bool read_block(BIO *bio, struct block *block) {
        if (PEM_read_bio(bio, &block->name, &block->header, &block->data, &block->n) == 1)
                return true;
        if (ERR_peek_error() == 0)
                ERR_raise(ERR_LIB_PEM, ERR_R_MALLOC_FAILURE);
        return false;
}

/* Whether n bytes are elements in DER, as far as their forms and lengths tell. OpenSSL reads other
 * encodings, too. Go's library reads none of them: it refuses the request, or skips the attribute.
 */
static bool is_der(const unsigned char *at, long n, int depth) {
        for (const unsigned char *end = at + n; at < end; at += n) {
                const unsigned char *begin = at;
                int tag, class, form = ASN1_get_object(&at, &n, &tag, &class, (long)(end - at));
                bool constructed = form & V_ASN1_CONSTRUCTED;

                /* 0x80: it is malformed; 1: its length is not definite */
                if (form & 0x81 || ASN1_object_size(constructed, (int)n, tag) != at - begin + n)
                        return false;
                /* Refuses a text in parts, and a set or sequence that is not marked as constructed.
                 * OpenSSL reads such a set, too, although its content was not looked at here. */
                if (class == V_ASN1_UNIVERSAL &&
                    constructed != (tag == V_ASN1_SEQUENCE || tag == V_ASN1_SET))
                        return false;
                /* OpenSSL also reads a list of attributes (tag [0]) that is not constructed. */
                if (class == V_ASN1_CONTEXT_SPECIFIC && !constructed && depth == DEPTH_MAX - 2)
                        return false;
                if (constructed && (depth == 0 || !is_der(at, n, depth - 1)))
                        return false;
        }
        return true;
}

/* Whether a line ends here, perhaps after white space, as Go reads lines. *ret_end: its line feed,
 * or the end of the text. */
static bool ends_line(const char *at, const char *end, const char **ret_end) {
        while (at < end && (*at == ' ' || *at == '\t'))
                at++;
        if (end - at >= 2 && at[0] == '\r' && at[1] == '\n')
                at++;
        *ret_end = at;
        return at == end || *at == '\n';
}

/* Whether the rest of a line is the label of a request, after "-----BEGIN " or "-----END ". */
static bool is_label(const char *at, const char *end, const char **ret_end) {
        static const char label[] = PEM_STRING_X509_REQ "-----";
        size_t n = strlen(label);

        return (size_t)(end - at) >= n && memcmp(at, label, n) == 0 &&
               ends_line(at + n, end, ret_end);
}

/*
 * Finds the base64 of the request. It must be the first block, and as in Kubernetes, text around it
 * is ignored. Go's library skips a block that it cannot read, and reads the next one. OpenSSL can
 * read some of these: with lines in front of the base64, for example, or with a first line that
 * begins in the middle of a very long one. So a block is accepted only in the form that all
 * versions of both read.
 */
static bool find_request(const char *pem, size_t n, const char **ret_text, size_t *ret_n) {
        static const char begin[] = "-----BEGIN ", last[] = "\n-----END ";
        const char *end = pem + n, *first = memmem(pem, n, begin, strlen(begin)), *text, *after;

        if (!first || (first > pem && first[-1] != '\n') ||
            !is_label(first + strlen(begin), end, &text))
                return false;
        *ret_text = text;
        text = memmem(text, (size_t)(end - text), last, strlen(last));
        if (!text || !is_label(text + strlen(last), end, &after))
                return false;
        *ret_n = (size_t)(text - *ret_text);
        return true;
}

/* NULL: *ret_fault is the reason, or NULL if memory ran out. Empties the error queue. */
static X509_REQ *parse_request(const char *pem, size_t n, const char **ret_fault) {
        HF__CLEANUP(hf__free_cleanup) char *der = NULL;
        X509_REQ *request = NULL;
        const char *text;
        size_t n_text, n_der;

        *ret_fault = "PEM block type must be CERTIFICATE REQUEST";
        int r = n <= INT_MAX && find_request(pem, n, &text, &n_text)
                        ? hf__base64_decode(text, n_text, &der, &n_der)
                        : HF_E_INVALID;
        if (r == 0) {
                const unsigned char *begin = (const unsigned char *)der, *at = begin;
                request = d2i_X509_REQ(NULL, &at, (long)n_der);
                *ret_fault = "asn1: structure error: it is not a certificate request";
                bool is_whole = at == begin + n_der;
                if (request && (!is_whole || !is_der(begin, (long)n_der, DEPTH_MAX))) {
                        X509_REQ_free(request);
                        request = NULL;
                        *ret_fault = is_whole ? "asn1: syntax error: the request is not in DER"
                                              : "asn1: syntax error: trailing data";
                }
        }
        if ((ran_out_of_memory() || r == -ENOMEM) && !request)
                *ret_fault = NULL;
        return request;
}

/* Whether the curve is one that Go's libraries accept, by its name. */
static bool is_usual_curve(EVP_PKEY *key) {
        static const char *const usual[] = {SN_secp224r1, SN_X9_62_prime256v1, SN_secp384r1,
                                            SN_secp521r1};
        char name[32];
        int has_parameters = 0;

        if (EVP_PKEY_get_int_param(key, OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS,
                                   &has_parameters) != 1 ||
            has_parameters || EVP_PKEY_get_group_name(key, name, sizeof name, NULL) != 1)
                return false;
        for (size_t i = 0; i < COUNT(usual); i++)
                if (strcmp(name, usual[i]) == 0)
                        return true;
        return false;
}

/* Whether the EC key of the request is an uncompressed point. Go's libraries read no other form. */
static bool is_whole_point(X509_REQ *request) {
        const unsigned char *point = NULL;
        int n = 0;

        return X509_PUBKEY_get0_param(NULL, &point, &n, NULL, X509_REQ_get_X509_PUBKEY(request)) ==
                       1 &&
               n > 0 && point[0] == POINT_CONVERSION_UNCOMPRESSED;
}

/* Why an EC key is not accepted; "" = it is. */
static const char *ec_fault(X509_REQ *request, EVP_PKEY *key) {
        if (!is_usual_curve(key))
                return "x509: unsupported elliptic curve";
        return is_whole_point(request) ? "" : "ecdsa: invalid uncompressed public key";
}

/* Why an RSA key is not accepted; "" = it is. An exponent that is too large makes the verification
 * slow. */
static const char *rsa_fault(EVP_PKEY *key) {
        BIGNUM *exponent = NULL;
        const char *fault = "";

        if (EVP_PKEY_get_bits(key) < MIN_RSA_BITS)
                return "crypto/rsa: the key is insecure: it has less than 1024 bits";
        if (EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &exponent) != 1)
                return "x509: invalid RSA public exponent";
        if (BN_num_bits(exponent) > MAX_EXPONENT_BITS)
                fault = "crypto/rsa: public exponent too large";
        else if (BN_num_bits(exponent) < 2)
                fault = "crypto/rsa: public exponent too small or negative";
        else if (!BN_is_odd(exponent))
                fault = "crypto/rsa: public exponent is even";
        BN_free(exponent);
        return fault;
}

/* Why a signature by that key or algorithm is not accepted; "" = it may be verified. Only RSA, EC
 * and Ed25519 keys are accepted, as in Go's library: some others make the verification slow. */
static const char *algorithm_fault(X509_REQ *request, EVP_PKEY *key) {
        int digest = NID_undef;

        (void)OBJ_find_sigid_algs(X509_REQ_get_signature_nid(request), &digest, NULL);
        if (digest == NID_md5)
                return "x509: cannot verify signature: insecure algorithm MD5-RSA";
        if (EVP_PKEY_is_a(key, "RSA"))
                return rsa_fault(key);
        if (EVP_PKEY_is_a(key, "EC"))
                return ec_fault(request, key);
        return EVP_PKEY_is_a(key, "ED25519")
                       ? ""
                       : "x509: cannot verify signature: algorithm unimplemented";
}

static const char *signature_fault(EVP_PKEY *key) {
        if (EVP_PKEY_is_a(key, "EC"))
                return "x509: ECDSA verification failure";
        return EVP_PKEY_is_a(key, "RSA") ? "crypto/rsa: verification error"
                                         : "x509: Ed25519 verification failure";
}

/* Why the names of the subject are not accepted; "" = they are. Go's libraries show one common name
 * only, and no string of an unusual type. */
static const char *subject_fault(const X509_REQ *request) {
        const X509_NAME *subject = X509_REQ_get_subject_name(request);
        size_t n_names = 0;

        for (int i = 0; i < X509_NAME_entry_count(subject); i++) {
                const X509_NAME_ENTRY *entry = X509_NAME_get_entry(subject, i);
                int kind = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
                if (kind != NID_commonName && kind != NID_organizationName)
                        continue;
                if (!hfd_readable_string(X509_NAME_ENTRY_get_data(entry)))
                        return "x509: unsupported string type in the subject";
                n_names += kind == NID_commonName;
        }
        return n_names > 1 ? "x509: the subject has more than one common name" : "";
}

const char *hfd_pki_request_fault(const char *pem, size_t n) {
        const char *fault;
        HF__CLEANUP(request_cleanup) X509_REQ *request = parse_request(pem, n, &fault);

        if (!request)
                return fault;
        EVP_PKEY *key = X509_REQ_get0_pubkey(request);
        fault = key ? algorithm_fault(request, key)
                    : "x509: cannot verify signature: algorithm unimplemented";
        if (!*fault)
                fault = hfd_pki_names_fault(request);
        if (!*fault && X509_REQ_verify(request, key) != 1)
                fault = signature_fault(key);
        return ran_out_of_memory() && *fault ? NULL : fault;
}

const char *hfd_pki_request_subject_fault(const char *pem, size_t n) {
        const char *fault;
        HF__CLEANUP(request_cleanup) X509_REQ *request = parse_request(pem, n, &fault);

        if (request)
                fault = subject_fault(request);
        return ran_out_of_memory() && (!fault || *fault) ? NULL : fault;
}

int hfd_pki_request_in(const char *pem, size_t n, const char *organisation) {
        const char *fault;
        HF__CLEANUP(request_cleanup) X509_REQ *request = parse_request(pem, n, &fault);
        X509_NAME *subject = request ? X509_REQ_get_subject_name(request) : NULL;
        size_t n_organisation = strlen(organisation);
        bool found = false;

        if (!request && !fault)
                return -ENOMEM;
        for (int at = -1;
             subject && !found &&
             (at = X509_NAME_get_index_by_NID(subject, NID_organizationName, at)) >= 0;) {
                unsigned char *utf8 = NULL;
                int n_utf8 = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(
                                                                X509_NAME_get_entry(subject, at)));
                found = n_utf8 >= 0 && (size_t)n_utf8 == n_organisation &&
                        memcmp(utf8, organisation, n_organisation) == 0;
                OPENSSL_free(utf8);
        }
        return ran_out_of_memory() && !found ? -ENOMEM : found;
}

/* Why the block is not a certificate; "" when it is. */
static const char *block_fault(const struct block *block) {
        const unsigned char *at = block->data;

        if (strcmp(block->name, PEM_STRING_X509) != 0)
                return "only CERTIFICATE PEM blocks are allowed";
        if (*block->header)
                return "no PEM block headers are permitted";
        HF__CLEANUP(cert_cleanup) X509 *cert = d2i_X509(NULL, &at, block->n);
        return cert && at == block->data + block->n ? "" : "x509: malformed certificate";
}

const char *hfd_pki_certificates_fault(const char *pem, size_t n) {
        HF__CLEANUP(bio_cleanup) BIO *bio = open_text(pem, n);
        const char *fault = "must contain at least one CERTIFICATE PEM block";

        while (bio) {
                HF__CLEANUP(block_cleanup) struct block block = {0};
                if (!read_block(bio, &block))
                        break;
                fault = block_fault(&block);
                if (*fault)
                        break;
        }
        /* A block that cannot be read ends the list, unless memory ran out: then the fault of the
         * text is unknown. ran_out_of_memory comes first in the condition, because it must empty
         * the error queue even without a bio. */
        return ran_out_of_memory() || !bio ? NULL : fault;
}

/* ---- issuing ---- */

static bool is_copied(const X509_NAME_ENTRY *entry) {
        static const int kept[] = {NID_countryName,         NID_organizationName,
                                   NID_localityName,        NID_organizationalUnitName,
                                   NID_stateOrProvinceName, NID_streetAddress,
                                   NID_postalCode,          NID_commonName,
                                   NID_serialNumber};
        int kind = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));

        for (size_t i = 0; i < COUNT(kept); i++)
                if (kept[i] == kind)
                        return hfd_readable_string(X509_NAME_ENTRY_get_data(entry));
        return false;
}

/* Copies the attributes of the subject that Kubernetes copies, as far as a program in Go can read
 * them. An approver does not see the others, one of which is the uid of the user. Builds a new
 * name: to delete the others from a copy of the subject would take quadratic time, because each
 * deletion moves and renumbers all entries behind it. */
static bool copy_subject(X509 *cert, const X509_REQ *request) {
        const X509_NAME *from = X509_REQ_get_subject_name(request);
        HF__CLEANUP(name_cleanup) X509_NAME *subject = X509_NAME_new();
        int last_set = -1;

        for (int i = 0; i < X509_NAME_entry_count(from); i++) {
                const X509_NAME_ENTRY *entry = X509_NAME_get_entry(from, i);
                if (!is_copied(entry))
                        continue;
                /* loc -1: at the end; set -1: in the RDN of the entry before, 0: as a new RDN. */
                int set = X509_NAME_ENTRY_set(entry);
                if (X509_NAME_add_entry(subject, entry, -1, set == last_set ? -1 : 0) != 1)
                        return false;
                last_set = set;
        }
        return subject && X509_set_subject_name(cert, subject) == 1;
}

static bool set_usages(X509 *cert, X509 *ca, const struct hfd_pki_issue *issue) {
        const char *key_usage = NULL;

        if (issue->digital_signature)
                key_usage = issue->key_encipherment ? "critical,digitalSignature,keyEncipherment"
                                                    : "critical,digitalSignature";
        else if (issue->key_encipherment)
                key_usage = "critical,keyEncipherment";
        return (!key_usage || hfd_pki_x509_extend(cert, ca, NID_key_usage, key_usage)) &&
               hfd_pki_x509_extend(cert, ca, NID_ext_key_usage, "clientAuth") &&
               hfd_pki_x509_extend(cert, ca, NID_basic_constraints, "critical,CA:FALSE") &&
               hfd_pki_x509_extend(cert, ca, NID_authority_key_identifier, "keyid");
}

static bool set_lifetime(X509 *cert, X509 *ca, const struct hfd_pki_issue *issue) {
        int64_t until = issue->now + issue->seconds - (issue->seconds < SHORT ? 0 : BACKDATE);

        return ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)(issue->now - BACKDATE)) &&
               ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)until) &&
               hfd_pki_x509_limit(cert, ca);
}

/* Why no certificate is issued for the request; "" = nothing speaks against it. NULL: out of
 * memory. */
static const char *issue_fault(const char *pem, size_t n) {
        const char *fault = hfd_pki_request_fault(pem, n);

        return fault && !*fault ? hfd_pki_request_subject_fault(pem, n) : fault;
}

int hfd_pki_issue(const struct hfd_pki_issue *issue, char **ret_cert_pem, const char **ret_fault) {
        const char *fault = issue_fault(issue->request_pem, issue->n_request);
        HF__CLEANUP(cert_cleanup) X509 *ca = hfd_pem_read_cert(issue->ca_cert_pem);
        HF__CLEANUP(key_cleanup) EVP_PKEY *ca_key = hfd_pem_read_key(issue->ca_key_pem);
        HF__CLEANUP(cert_cleanup) X509 *cert = X509_new();
        time_t now = (time_t)issue->now;

        assert(issue->seconds > 0);
        ERR_clear_error();
        *ret_fault = fault;
        if (!fault)
                return -ENOMEM;
        if (*fault)
                return HF_E_INVALID;
        if (!ca || !ca_key || X509_cmp_time(X509_get0_notAfter(ca), &now) <= 0)
                return HF_E_UNAVAILABLE;
        HF__CLEANUP(request_cleanup)
        X509_REQ *request = parse_request(issue->request_pem, issue->n_request, &fault);
        bool ok = cert && request && X509_set_version(cert, X509_VERSION_3) == 1 &&
                  hfd_pki_x509_set_serial(cert) && set_lifetime(cert, ca, issue) &&
                  X509_set_pubkey(cert, X509_REQ_get0_pubkey(request)) == 1 &&
                  copy_subject(cert, request) &&
                  X509_set_issuer_name(cert, X509_get_subject_name(ca)) == 1 &&
                  set_usages(cert, ca, issue) && hfd_pki_names_copy(cert, request);
        int r = ok ? hfd_pki_x509_sign(cert, ca_key, ret_cert_pem) : -EIO;
        ERR_clear_error();
        return r;
}
