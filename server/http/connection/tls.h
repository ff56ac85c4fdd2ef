/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * TLS settings and the client certificate. One immutable context holds one set of certificates; a
 * reload creates a new one. It is reference counted by OpenSSL.
 *
 * Threads: any for hfd_tls_new and the two checks, the connection's worker for the others. No lock.
 */
#include <stdbool.h>

#include <openssl/ssl.h>

#include <holdfast/error.h>

struct hfd_origin;

/* client_ca_pem may be NULL: no client certificate is requested. 0, -ENOMEM, or HF_E_INVALID with a
 * message that names the certificate, the key, the client CA or the cipher list. The caller owns
 * the context. */
int hfd_tls_new(const char *cert_pem, const char *key_pem, const char *client_ca_pem,
                SSL_CTX **ret_ctx, struct hf_status *reterr_status);
/* Whether hfd_tls_new would accept a certificate with its key, or a client CA. Results as there. */
int hfd_tls_check_pair(const char *cert_pem, const char *key_pem, struct hf_status *reterr_status);
int hfd_tls_check_client_ca(const char *client_ca_pem, struct hf_status *reterr_status);
/* Creates a server-side TLS object on fd. The caller still owns fd. *bad_cert must outlive it and
 * becomes true when the peer's certificate does not verify. NULL = out of memory. */
SSL *hfd_tls_accept(SSL_CTX *ctx, int fd, bool *bad_cert);
/* Empties OpenSSL's error queue of this thread. */
void hfd_tls_clear_errors(void);
/* OpenSSL has a buffer of 17 KB for reads and another one for writes. It allocates a buffer when it
 * needs one. keep false, which is the default: OpenSSL frees a buffer once it is empty. keep true:
 * OpenSSL keeps the buffers until hfd_tls_free_buffers, which is for connections that may be idle;
 * the next read or write allocates its buffer again. */
void hfd_tls_keep_buffers(SSL *ssl, bool keep);
void hfd_tls_free_buffers(SSL *ssl);
/* Whether ALPN chose HTTP/2. Call after the handshake. */
bool hfd_tls_is_h2(SSL *ssl);
/* Records the names of the client certificate, if there is one, in origin, also if it did not
 * verify (bad_cert). Call once, after the handshake. 0 or -ENOMEM. */
int hfd_tls_peer(SSL *ssl, bool bad_cert, struct hfd_origin *origin);
/* Whether the client certificate verifies by the client CA of these settings. Call it only after a
 * handshake with a certificate. 0, and *ret_expires is as in struct hfd_client_cert, of the chain
 * that verifies now; HF_E_UNAUTHORIZED; or -ENOMEM. */
int hfd_tls_verify_again(SSL *ssl, SSL_CTX *tls, int64_t *ret_expires);
