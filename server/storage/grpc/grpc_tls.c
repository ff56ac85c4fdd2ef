/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS of the connections to etcd, on which this process is the client.
 *
 * Invariant: every operation here begins with an empty error queue. OpenSSL has one queue for each
 * thread, and would take an old entry for the error of the next operation.
 *
 * With TLS 1.3 our side has finished the handshake before the peer has checked our certificate. So
 * the peer's refusal arrives as an alert at the first read, where errors are checked for it as
 * well.
 */
#include "server/storage/grpc/grpc_tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/cleanup.h"
#include "server/tls/pem.h"
#include "server/tls/reasons.h"

struct hfd_grpc_tls {
        SSL_CTX *ctx; /* owned */
};

static const unsigned char alpn_h2[] = "\x02h2";

/* HF_E_INVALID, with OpenSSL's reason. Leaves the error queue empty. */
static int refuse_file(const char *what, const char *fix, struct hf_status *reterr_status) {
        const char *reason = hfd_tls_reason(ERR_peek_last_error());

        ERR_clear_error();
        return hf_fail(reterr_status, HF_E_INVALID, "%s (%s): %s", what,
                       reason ? reason : "OpenSSL gives no reason", fix);
}

static int load_client(SSL_CTX *ctx, const char *cert_pem, const char *key_pem,
                       struct hf_status *reterr_status) {
        if (!hfd_pem_use_chain(ctx, cert_pem))
                return refuse_file("the client certificate for etcd is not usable",
                                   "give a PEM file that begins with the client's certificate",
                                   reterr_status);
        if (!hfd_pem_use_key(ctx, key_pem) || SSL_CTX_check_private_key(ctx) != 1)
                return refuse_file("the client key for etcd is not usable",
                                   "give the unencrypted private key of the client certificate",
                                   reterr_status);
        return 0;
}

static int load_credentials(SSL_CTX *ctx, const char *ca_pem, const char *cert_pem,
                            const char *key_pem, struct hf_status *reterr_status) {
        if (!cert_pem != !key_pem)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "etcd needs the client certificate and its key, or neither");
        if (ca_pem && !hfd_pem_trust(ctx, ca_pem, false))
                return refuse_file("the CA of etcd is not usable",
                                   "give one or more CA certificates in PEM form", reterr_status);
        if (!ca_pem && SSL_CTX_set_default_verify_paths(ctx) != 1)
                return refuse_file("the system's CAs are not usable", "give the CA of etcd",
                                   reterr_status);
        return cert_pem ? load_client(ctx, cert_pem, key_pem, reterr_status) : 0;
}

HF__CLEANUP_DEFINE(tls_cleanup, struct hfd_grpc_tls *, hfd_grpc_tls_free)

int hfd_grpc_tls_new(const char *ca_pem, const char *cert_pem, const char *key_pem,
                     struct hfd_grpc_tls **ret_tls, struct hf_status *reterr_status) {
        HF__CLEANUP(tls_cleanup) struct hfd_grpc_tls *tls = calloc(1, sizeof *tls);

        if (!tls)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        ERR_clear_error();
        tls->ctx = SSL_CTX_new(TLS_client_method());
        if (!tls->ctx)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        SSL_CTX_set_min_proto_version(tls->ctx, TLS1_2_VERSION);
        SSL_CTX_set_options(tls->ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
        /* Connections live long, so it is not worth while to resume sessions. */
        SSL_CTX_set_session_cache_mode(tls->ctx, SSL_SESS_CACHE_OFF);
        /* Unsent bytes are copied (io.c), so a repeated write passes another address. */
        SSL_CTX_set_mode(tls->ctx,
                         SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        /* One read of the socket takes as many bytes as OpenSSL's buffer has room for; otherwise
         * each record would need two reads. */
        SSL_CTX_set_read_ahead(tls->ctx, 1);
        SSL_CTX_set_verify(tls->ctx, SSL_VERIFY_PEER, NULL);
        (void)SSL_CTX_set_alpn_protos(tls->ctx, alpn_h2, sizeof alpn_h2 - 1);
        int r = load_credentials(tls->ctx, ca_pem, cert_pem, key_pem, reterr_status);
        if (r != 0)
                return r;
        *ret_tls = HF__TAKE(tls);
        return 0;
}

struct hfd_grpc_tls *hfd_grpc_tls_free(struct hfd_grpc_tls *tls) {
        if (tls)
                SSL_CTX_free(tls->ctx);
        free(tls);
        return NULL;
}

static bool is_address(const char *host) {
        unsigned char address[sizeof(struct in6_addr)];

        return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

/* Requires the host in the server's certificate. Sends it by SNI if it is a name, because RFC 6066
 * admits no addresses there. */
static bool set_host(SSL *ssl, const char *host) {
        if (is_address(host))
                return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
        return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

struct ssl_st *hfd_grpc_tls_open(const struct hfd_grpc_tls *tls, int fd, const char *host) {
        SSL *ssl;

        ERR_clear_error();
        ssl = SSL_new(tls->ctx);
        if (!ssl || SSL_set_fd(ssl, fd) != 1 || !set_host(ssl, host)) {
                SSL_free(ssl);
                ERR_clear_error();
                return NULL;
        }
        SSL_set_connect_state(ssl);
        return ssl;
}

void hfd_grpc_tls_close(struct ssl_st *session) { SSL_free(session); }

/* Whether the alert says that the peer refuses our certificate, or wants one. */
static bool is_certificate_alert(int reason) {
        switch (reason) {
        case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        case SSL_R_SSLV3_ALERT_NO_CERTIFICATE:
        case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
        case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
        case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
        case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
        case SSL_R_TLSV1_ALERT_UNKNOWN_CA: return true;
        default: return false;
        }
}

/* Returns the error of a failed operation; see grpc_tls.h. system_error: errno after it. */
static int classify_failure(SSL *ssl, int ok, int system_error, struct hf_status *reterr_status) {
        unsigned long code = ERR_peek_error();
        long verdict = SSL_get_verify_result(ssl);
        int error = SSL_get_error(ssl, ok);

        if (error == SSL_ERROR_WANT_READ)
                return -EAGAIN;
        if (error == SSL_ERROR_WANT_WRITE)
                return -EINPROGRESS;
        ERR_clear_error();
        const char *reason = hfd_tls_reason(code);
        if (verdict != X509_V_OK)
                return hf_fail(reterr_status, HF_E_UNAUTHORIZED, "the server's certificate: %s",
                               X509_verify_cert_error_string(verdict));
        if (error == SSL_ERROR_SSL && is_certificate_alert(ERR_GET_REASON(code)))
                return hf_fail(reterr_status, HF_E_UNAUTHORIZED, "the server says: %s", reason);
        if (error == SSL_ERROR_SSL && reason)
                return hf_fail(reterr_status, HF_E_UNAVAILABLE, "%s", reason);
        return hf_fail(reterr_status, HF_E_UNAVAILABLE, "%s",
                       system_error != 0 ? strerror(system_error) : "the connection was closed");
}

int hfd_grpc_tls_handshake(struct ssl_st *session, struct hf_status *reterr_status) {
        const unsigned char *name = NULL;
        unsigned n = 0;
        int ok;

        ERR_clear_error();
        errno = 0;
        ok = SSL_do_handshake(session);
        if (ok != 1)
                return classify_failure(session, ok, errno, reterr_status);
        /* gRPC needs HTTP/2, on which the two sides of TLS agree by ALPN. */
        SSL_get0_alpn_selected(session, &name, &n);
        if (n != 2 || memcmp(name, "h2", 2) != 0)
                return hf_fail(reterr_status, HF_E_UNAVAILABLE, "the server speaks no HTTP/2");
        return 0;
}

int hfd_grpc_tls_read(struct ssl_st *session, void *data, size_t n, size_t *ret_n,
                      struct hf_status *reterr_status) {
        int ok;

        ERR_clear_error();
        errno = 0;
        ok = SSL_read_ex(session, data, n, ret_n);
        return ok == 1 ? 0 : classify_failure(session, ok, errno, reterr_status);
}

int hfd_grpc_tls_write(struct ssl_st *session, const void *data, size_t n, size_t *ret_n,
                       struct hf_status *reterr_status) {
        int ok;

        ERR_clear_error();
        errno = 0;
        ok = SSL_write_ex(session, data, n, ret_n);
        return ok == 1 ? 0 : classify_failure(session, ok, errno, reterr_status);
}
