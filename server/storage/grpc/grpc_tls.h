/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * TLS of the client's side, by OpenSSL: TLS 1.2 and 1.3, HTTP/2 by ALPN. The server's certificate
 * must verify and must name the endpoint's host. Private to server/storage/grpc, except for
 * hfd_grpc_tls_new and _free.
 *
 * Threads: the settings are immutable and any thread may use them; a session belongs to one thread.
 */
#include <stddef.h>
#include <sys/types.h>

#include <holdfast/error.h>

struct hfd_grpc_tls;
struct ssl_st; /* OpenSSL's SSL: one connection's TLS */

/* PEM texts, used during the call only. ca NULL = the system's CAs; certificate and key NULL = no
 * client certificate. 0, -ENOMEM or HF_E_INVALID: the message says which text is unusable, or that
 * only one of certificate and key is given. */
int hfd_grpc_tls_new(const char *ca_pem, const char *cert_pem, const char *key_pem,
                     struct hfd_grpc_tls **ret_tls, struct hf_status *reterr_status);
/* Accepts NULL, returns NULL. No session may be left. */
struct hfd_grpc_tls *hfd_grpc_tls_free(struct hfd_grpc_tls *tls);

/* A session over the connected socket fd, with the endpoint's host; fd stays the caller's. NULL =
 * out of memory. (OpenSSL also refuses names of more than 255 bytes, but no look-up finds such a
 * host.) */
struct ssl_st *hfd_grpc_tls_open(const struct hfd_grpc_tls *tls, int fd, const char *host);
/* Accepts NULL. Sends nothing. */
void hfd_grpc_tls_close(struct ssl_st *session);

/*
 * The three below return -EAGAIN when the session waits for input, -EINPROGRESS when it waits for
 * the socket to take output, and otherwise, when the session is over: HF_E_UNAUTHORIZED (a
 * certificate was refused by one side), HF_E_UNAVAILABLE (anything else), with the reason.
 */

/* 0: the handshake is done, and the peer speaks HTTP/2. */
int hfd_grpc_tls_handshake(struct ssl_st *session, struct hf_status *reterr_status);
/* 0: *ret_n >= 1 bytes were read (written). */
int hfd_grpc_tls_read(struct ssl_st *session, void *data, size_t n, size_t *ret_n,
                      struct hf_status *reterr_status);
int hfd_grpc_tls_write(struct ssl_st *session, const void *data, size_t n, size_t *ret_n,
                       struct hf_status *reterr_status);
