/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * TLS settings: one immutable context per set of certificates; a reload makes a new one. Thread:
 * any (contexts are reference counted by OpenSSL).
 */
#include <stdbool.h>

#include <openssl/ssl.h>

#include <holdfast/error.h>

struct hfd_origin;

/* client_ca_pem may be NULL. 0, -ENOMEM, HF_E_INVALID with a message that names the part. */
int hfd_tls_new(const char *cert_pem, const char *key_pem, const char *client_ca_pem,
                SSL_CTX **ret_ctx, struct hf_status *reterr_status);
/* A server-side TLS object on fd. *bad_cert is set when the peer's certificate does not verify.
 * NULL = out of memory. */
SSL *hfd_tls_accept(SSL_CTX *ctx, int fd, bool *bad_cert);
bool hfd_tls_is_h2(SSL *ssl); /* after the handshake */
/* Records the client certificate's names in origin. 0 or -ENOMEM. */
int hfd_tls_peer(SSL *ssl, bool bad_cert, struct hfd_origin *origin);
