/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS with OpenSSL: TLS 1.2 and 1.3, with forward secrecy only. There are no session tickets,
 * because they would save little, and there is no renegotiation.
 *
 * Invariant: a client certificate that does not verify does not end the handshake, unless it
 * exceeds the limits below, or its key is of an unusual kind. The failure is recorded, and the
 * filters respond with 401 unless the request has a token; after an aborted handshake the user
 * would not see the reason. So code that reads the names of a certificate must check first that
 * hfd_http_request_peer returns the kind HFD_PEER_VERIFIED. The kind in struct hfd_origin is not
 * enough: `refused` has the failure.
 *
 * OpenSSL's error queue belongs to the thread, and a stale entry would be reported as the error of
 * the next operation. hfd_tls_new leaves the queue empty; connection.c clears it before each
 * operation on a connection.
 */
#include "server/http/connection/tls.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/cleanup.h"
#include "server/http/request/origin.h"
#include "server/tls/pem.h"
#include "server/tls/readable_name.h"
#include "server/tls/reasons.h"

#define MAX_ORGANISATIONS 64 /* of a certificate; each one is a group of the user */
/* Limits for the certificates of a client: how many, their bytes, and the size of an RSA key and of
 * its exponent. */
#define MAX_CHAIN             8
#define MAX_CHAIN_BYTES       (32 << 10)
#define MAX_RSA_BITS          8192
#define MAX_RSA_EXPONENT_BITS 31 /* as in Go */

/* Returns HF_E_INVALID with OpenSSL's reason and the remedy in the message. Empties the error
 * queue. */
static int fail_tls(struct hf_status *reterr_status, const char *what, const char *fix) {
        const char *reason = hfd_tls_reason(ERR_peek_last_error());

        ERR_clear_error();
        return hf_fail(reterr_status, HF_E_INVALID, "%s (%s): %s", what,
                       reason ? reason : "OpenSSL gives no reason", fix);
}

static int load_key(SSL_CTX *ctx, const char *key_pem, struct hf_status *reterr_status) {
        if (!hfd_pem_use_key(ctx, key_pem))
                return fail_tls(reterr_status, "the server key is not usable",
                                "give an unencrypted private key in PEM form");
        if (SSL_CTX_check_private_key(ctx) != 1)
                return fail_tls(reterr_status,
                                "the server key does not belong to the server certificate",
                                "give the key and the certificate of one pair");
        return 0;
}

/* The time of a signature check is in proportion to the length of the exponent, which OpenSSL
 * limits for large keys only. An even exponent, and 1, belong to no key. */
static bool is_exponent_cheap(const EVP_PKEY *key) {
        BIGNUM *e = NULL;
        bool is_cheap;

        if (EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &e) != 1)
                return false;
        is_cheap = BN_num_bits(e) <= MAX_RSA_EXPONENT_BITS && BN_is_odd(e) && !BN_is_one(e) &&
                   !BN_is_negative(e);
        BN_free(e);
        return is_cheap;
}

/* Whether checking a signature by this certificate's key is cheap. False also if the key is not
 * readable or of another kind than RSA, EC, Ed25519 and Ed448. */
static bool is_key_cheap(X509 *cert) {
        const EVP_PKEY *key = X509_get0_pubkey(cert);

        if (!key)
                return false;
        switch (EVP_PKEY_get_base_id(key)) {
        case EVP_PKEY_RSA:
        case EVP_PKEY_RSA_PSS:
                return EVP_PKEY_get_bits(key) <= MAX_RSA_BITS && is_exponent_cheap(key);
        case EVP_PKEY_EC:
        case EVP_PKEY_ED25519:
        case EVP_PKEY_ED448: return true;
        default: return false;
        }
}

/* Whether the extended usages of the certificate allow that of a client, as in Go: also if there
 * are none, or any is allowed. */
static bool is_for_clients(X509 *cert) {
        return (X509_get_extended_key_usage(cert) & (XKU_SSL_CLIENT | XKU_ANYEKU)) != 0;
}

/* A callback of X509_verify_cert. Of the client's own certificate OpenSSL also asks for the usage
 * digitalSignature or keyAgreement. Go does not, and the documentation of Kubernetes makes
 * certificates with neither. Nor does OpenSSL know that the extended usage "any" allows clients. In
 * Go it does, in the certificates of CAs, too. */
static int check_usage(int ok, X509_STORE_CTX *store) {
        X509 *cert = X509_STORE_CTX_get_current_cert(store);

        if (ok || X509_STORE_CTX_get_error(store) != X509_V_ERR_INVALID_PURPOSE ||
            !is_for_clients(cert))
                return ok;
        /* 1: the basic constraints say that it is a CA, and its key may sign certificates. */
        if (X509_STORE_CTX_get_error_depth(store) > 0 && X509_check_ca(cert) != 1)
                return ok;
        X509_STORE_CTX_set_error(store, X509_V_OK);
        return 1;
}

/*
 * Verifies the client's certificates, in place of OpenSSL's own call of X509_verify_cert. The
 * client is a stranger until then, and each certificate that it sends may cost a signature check,
 * so their number and their keys are limited first. Verification ends at the first failure.
 *
 * Returns 0, which ends the handshake, only for too many certificates, or for a key that is not
 * cheap: if the handshake went on, TLS would check a signature with the client's key, which may be
 * the expensive one.
 */
static int verify_client(X509_STORE_CTX *store, void *ctx) {
        SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
        STACK_OF(X509) *chain = X509_STORE_CTX_get0_untrusted(store);
        bool *bad_cert = SSL_get_app_data(ssl);

        X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_CHAIN_TOO_LONG);
        if (sk_X509_num(chain) > MAX_CHAIN)
                return 0;
        for (int i = 0; i < sk_X509_num(chain); i++)
                if (!is_key_cheap(sk_X509_value(chain, i)))
                        return 0;
        X509_STORE_CTX_set_error(store, X509_V_OK);
        X509_STORE_CTX_set_verify_cb(store, check_usage);
        if (X509_verify_cert(store) != 1)
                *bad_cert = true;
        return 1; /* see the head of this file */
}

static int load_client_ca(SSL_CTX *ctx, const char *client_ca_pem,
                          struct hf_status *reterr_status) {
        if (!hfd_pem_trust(ctx, client_ca_pem, true))
                return fail_tls(reterr_status, "the client CA is not usable",
                                "give one or more CA certificates in PEM form");
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
        SSL_CTX_set_verify_depth(ctx, MAX_CHAIN);
        SSL_CTX_set_max_cert_list(ctx, MAX_CHAIN_BYTES);
        SSL_CTX_set_cert_verify_callback(ctx, verify_client, NULL);
        return 0;
}

/* Chooses the protocol by ALPN. A client that offers neither protocol is refused. For a client
 * without ALPN this is not called, and it gets HTTP/1.1. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n_out,
                           const unsigned char *in, unsigned n_in, void *ctx) {
        static const unsigned char ours[] = "\x02h2\x08http/1.1";

        if (SSL_select_next_proto((unsigned char **)out, n_out, ours, sizeof ours - 1, in, n_in) !=
            OPENSSL_NPN_NEGOTIATED)
                return SSL_TLSEXT_ERR_ALERT_FATAL;
        return SSL_TLSEXT_ERR_OK;
}

HF__CLEANUP_DEFINE(ctx_cleanup, SSL_CTX *, SSL_CTX_free)

int hfd_tls_new(const char *cert_pem, const char *key_pem, const char *client_ca_pem,
                SSL_CTX **ret_ctx, struct hf_status *reterr_status) {
        ERR_clear_error();
        HF__CLEANUP(ctx_cleanup) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
        if (!ctx)
                return hf_fail(reterr_status, -ENOMEM, "cannot set up TLS: out of memory");
        SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
        SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
                                         SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                         SSL_OP_IGNORE_UNEXPECTED_EOF);
        SSL_CTX_set_num_tickets(ctx, 0);
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
        /* MOVING_WRITE_BUFFER, because a write is repeated from another address: the worker copies
         * unsent bytes out of its shared buffer. RELEASE_BUFFERS keeps a stranger's connection
         * small; see hfd_tls_keep_buffers. */
        SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        SSL_CTX_set_read_ahead(ctx, 1); /* one read of the socket may get several records */
        SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
        if (SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
                return fail_tls(reterr_status, "OpenSSL does not accept the cipher list",
                                "allow ECDHE with AES-GCM or ChaCha20");
        if (!hfd_pem_use_chain(ctx, cert_pem))
                return fail_tls(reterr_status, "the server certificate is not usable",
                                "give a PEM file that begins with the server's certificate");
        int r = load_key(ctx, key_pem, reterr_status);
        if (r == 0 && client_ca_pem)
                r = load_client_ca(ctx, client_ca_pem, reterr_status);
        if (r != 0)
                return r;
        *ret_ctx = HF__TAKE(ctx);
        return 0;
}

int hfd_tls_check_pair(const char *cert_pem, const char *key_pem, struct hf_status *reterr_status) {
        SSL_CTX *ctx = NULL;
        int r = hfd_tls_new(cert_pem, key_pem, NULL, &ctx, reterr_status);

        SSL_CTX_free(ctx);
        return r;
}

int hfd_tls_check_client_ca(const char *client_ca_pem, struct hf_status *reterr_status) {
        ERR_clear_error();
        SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
        if (!ctx)
                return hf_fail(reterr_status, -ENOMEM, "cannot set up TLS: out of memory");
        int r = load_client_ca(ctx, client_ca_pem, reterr_status);
        SSL_CTX_free(ctx);
        return r;
}

SSL *hfd_tls_accept(SSL_CTX *ctx, int fd, bool *bad_cert) {
        SSL *ssl = SSL_new(ctx);

        assert(bad_cert && !*bad_cert);
        if (!ssl || SSL_set_fd(ssl, fd) != 1) {
                SSL_free(ssl);
                ERR_clear_error();
                return NULL;
        }
        SSL_set_app_data(ssl, bad_cert);
        SSL_set_accept_state(ssl);
        return ssl;
}

void hfd_tls_clear_errors(void) {
        if (ERR_peek_error() != 0)
                ERR_clear_error();
}

void hfd_tls_keep_buffers(SSL *ssl, bool keep) {
        if (keep)
                (void)SSL_clear_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
        else
                (void)SSL_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
}

void hfd_tls_free_buffers(SSL *ssl) {
        if (!SSL_has_pending(ssl))
                (void)SSL_free_buffers(ssl); /* does nothing if they contain part of a record */
}

bool hfd_tls_is_h2(SSL *ssl) {
        const unsigned char *name = NULL;
        unsigned n = 0;

        SSL_get0_alpn_selected(ssl, &name, &n);
        return n == 2 && memcmp(name, "h2", 2) == 0;
}

/* Returns the entry at index as UTF-8. NULL: out of memory, or the entry is malformed, empty or
 * contains a NUL, where a C string would end and might name another user. */
static char *entry_text(X509_NAME *name, int index) {
        unsigned char *utf8 = NULL;
        int n = ASN1_STRING_to_UTF8(&utf8,
                                    X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index)));
        char *text = n > 0 && !memchr(utf8, 0, (size_t)n) ? strndup((char *)utf8, (size_t)n) : NULL;

        OPENSSL_free(utf8);
        return text;
}

/* Of several common names the last one counts, as in Go's library: other programs that look at the
 * certificate must see the same user. */
static char *common_name_of(X509_NAME *subject) {
        int last = -1, at;

        while ((at = X509_NAME_get_index_by_NID(subject, NID_commonName, last)) >= 0)
                last = at;
        return last >= 0 ? entry_text(subject, last) : NULL;
}

/* Organisations above the limit may be dropped, because server/auth refuses a user with so many
 * groups. */
static int read_organisations(X509_NAME *subject, struct hfd_origin *origin) {
        int at = -1;

        origin->organisations = calloc(MAX_ORGANISATIONS, sizeof(char *));
        if (!origin->organisations)
                return -ENOMEM;
        while ((at = X509_NAME_get_index_by_NID(subject, NID_organizationName, at)) >= 0) {
                char *text = entry_text(subject, at);

                if (!text || origin->n_organisations == MAX_ORGANISATIONS) {
                        free(text);
                        continue;
                }
                origin->organisations[origin->n_organisations++] = text;
        }
        return 0;
}

/* False: there are several uids, or one that is not usable. */
static bool read_uid(X509_NAME *subject, struct hfd_origin *origin) {
        /* 1.3.6.1.4.1.57683.2, of the Cloud Native Computing Foundation, in its DER encoding */
        static const unsigned char uid_oid[] = {0x2b, 6, 1, 4, 1, 0x83, 0xc2, 0x53, 2};

        for (int i = 0; i < X509_NAME_entry_count(subject); i++) {
                const X509_NAME_ENTRY *entry = X509_NAME_get_entry(subject, i);
                const ASN1_OBJECT *kind = X509_NAME_ENTRY_get_object(entry);

                if (OBJ_length(kind) != sizeof uid_oid ||
                    memcmp(OBJ_get0_data(kind), uid_oid, sizeof uid_oid) != 0)
                        continue;
                if (origin->uid)
                        return false;
                origin->uid = entry_text(subject, i);
                if (!origin->uid)
                        return false;
        }
        return true;
}

static int read_fingerprint(X509 *cert, struct hfd_origin *origin) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned n = 0;

        if (X509_digest(cert, EVP_sha256(), digest, &n) != 1)
                return -ENOMEM;
        origin->fingerprint = malloc(2 * n + 1);
        if (!origin->fingerprint)
                return -ENOMEM;
        for (unsigned i = 0; i < n; i++)
                (void)snprintf(origin->fingerprint + 2 * i, 3, "%02x", digest[i]);
        return 0;
}

static int64_t end_of(const X509 *cert) {
        struct tm tm;

        return ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) == 1 ? timegm(&tm) : 0;
}

/* When the first certificate to expire does so, in seconds since 1970. chain: as it was verified;
 * NULL: only cert counts. A time that is not readable counts as 0, which is long past. */
static int64_t find_expiry(STACK_OF(X509) * chain, const X509 *cert) {
        int64_t expires = end_of(cert);

        for (int i = 0; i < sk_X509_num(chain); i++) {
                int64_t end = end_of(sk_X509_value(chain, i));
                expires = end < expires ? end : expires;
        }
        return expires;
}

int hfd_tls_peer(SSL *ssl, bool bad_cert, struct hfd_origin *origin) {
        X509 *cert = SSL_get0_peer_certificate(ssl);

        assert(origin->kind == HFD_PEER_NONE && !origin->organisations);
        if (!cert)
                return 0;
        X509_NAME *subject = X509_get_subject_name(cert);
        bool usable = true;
        origin->common_name = common_name_of(subject);
        int r = read_organisations(subject, origin);
        if (r == 0)
                r = read_fingerprint(cert, origin);
        /* Programs in Go, such as kube-apiserver, refuse a certificate whose subject they cannot
         * read. */
        if (!hfd_readable_name(subject))
                usable = false;
        /* As in Kubernetes, the uid counts only if the certificate has a common name: without one
         * it names no user. */
        if (r == 0 && origin->common_name && !read_uid(subject, origin))
                usable = false;
        origin->kind = usable ? HFD_PEER_VERIFIED : HFD_PEER_BAD;
        atomic_store(&origin->refused, bad_cert);
        origin->expires = find_expiry(SSL_get0_verified_chain(ssl), cert);
        return r;
}

/* As in the handshake, except for the limits, which the certificates have kept there. */
int hfd_tls_verify_again(SSL *ssl, SSL_CTX *tls, int64_t *ret_expires) {
        X509_STORE_CTX *store = X509_STORE_CTX_new();
        X509 *cert = SSL_get0_peer_certificate(ssl);
        int r = -ENOMEM;

        if (store &&
            X509_STORE_CTX_init(store, SSL_CTX_get_cert_store(tls), cert,
                                SSL_get_peer_cert_chain(ssl)) == 1 &&
            X509_STORE_CTX_set_default(store, "ssl_client") == 1) {
                X509_STORE_CTX_set_depth(store, MAX_CHAIN);
                X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(store),
                                                 SSL_get_security_level(ssl));
                X509_STORE_CTX_set_verify_cb(store, check_usage);
                if (X509_verify_cert(store) == 1)
                        r = 0;
                else if (X509_STORE_CTX_get_error(store) != X509_V_ERR_OUT_OF_MEM)
                        r = HF_E_UNAUTHORIZED;
        }
        if (r == 0)
                *ret_expires = find_expiry(X509_STORE_CTX_get0_chain(store), cert);
        X509_STORE_CTX_free(store);
        ERR_clear_error();
        return r;
}
