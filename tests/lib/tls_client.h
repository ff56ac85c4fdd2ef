/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A blocking TLS client for a port of 127.0.0.1. Each read and write gives up after
 * TLS_CLIENT_WAIT_S seconds, so that a test fails instead of hanging.
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
 * alpn: "h2", "http/1.1" or NULL. identity NULL = no client certificate. Returns 0, or -1 on
 * failure.
 */
int tls_client_open(struct tls_client *client, uint16_t port, const char *alpn,
                    const struct x509_identity *identity, int rcvbuf);
void tls_client_close(struct tls_client *client);

/* A closed connection is not an error here; the test notices it when it reads. */
void tls_client_send(struct tls_client *client, const void *data, size_t n);
void tls_client_puts(struct tls_client *client, const char *text);

/* Reads more input. Returns false at the end of the connection. */
bool tls_client_read(struct tls_client *client);
/*
 * Reads until the input contains the text, and returns its position. NULL = the connection has
 * ended.
 */
char *tls_client_await(struct tls_client *client, const char *text);
/* Drops the first n bytes of the input. */
void tls_client_drop(struct tls_client *client, size_t n);
/* Discards input. Returns whether the server closes the connection in time. */
bool tls_client_is_closed(struct tls_client *client);
