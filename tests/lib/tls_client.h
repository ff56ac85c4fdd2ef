/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A blocking TLS client for a port of 127.0.0.1. The process must ignore SIGPIPE, which OpenSSL
 * raises when it writes to a closed connection; http_fixture.h does so. A system call that waits
 * for the server gives up after TLS_CLIENT_WAIT_S seconds, so that a test fails instead of hanging.
 * Thread: one at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "x509_identity.h"

#define TLS_CLIENT_WAIT_S 20

struct tls_client {
        int fd;
        SSL_CTX *ctx;
        SSL *ssl;
        char *in; /* the input that was not dropped yet; NUL-terminated */
        size_t n_in;
};

/*
 * Opens a TCP connection without TLS. Returns the descriptor, or -1 if it was refused. rcvbuf 0 =
 * the default.
 */
int tls_client_dial(uint16_t port, int rcvbuf);

/*
 * alpn: "h2", "http/1.1" or NULL. identity NULL = no client certificate. Returns 0, or -1: the
 * server refused the connection or the handshake failed. Call tls_client_close in both cases.
 */
int tls_client_open(struct tls_client *client, uint16_t port, const char *alpn,
                    const struct x509_identity *identity, int rcvbuf);
void tls_client_close(struct tls_client *client);

/* These give up without an error if the connection is closed, or if the server does not read for
 * TLS_CLIENT_WAIT_S. The test notices it when it reads. */
void tls_client_send(struct tls_client *client, const void *data, size_t n);
void tls_client_puts(struct tls_client *client, const char *text);

/* Reads more input. Returns false if none came: the connection has ended or failed, or nothing has
 * arrived for TLS_CLIENT_WAIT_S. Then tls_client_is_closed tells which. */
bool tls_client_read(struct tls_client *client);
/* Reads until the input contains the text, and returns its position, which is valid until the next
 * drop. NULL: tls_client_read returned false. */
char *tls_client_await(struct tls_client *client, const char *text);
/* Drops the first n bytes of the input. */
void tls_client_drop(struct tls_client *client, size_t n);
/* Discards all input until tls_client_read returns false. Returns whether the connection has ended
 * or failed; false: it is still open. */
bool tls_client_is_closed(struct tls_client *client);
