/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A blocking TLS client of a port of the loopback. Each read and write ends after TLS_CLIENT_WAIT_S
 * seconds, so that a test fails instead of hanging.
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
        char *in; /* what was read and not yet dropped; NUL-terminated */
        size_t n_in;
};

/* A TCP connection alone; -1 = refused. rcvbuf 0 = the default. */
int tls_client_dial(uint16_t port, int rcvbuf);

/* alpn: "h2", "http/1.1" or NULL. identity NULL = no certificate. 0 = connected, else -1. */
int tls_client_open(struct tls_client *client, uint16_t port, const char *alpn,
                    const struct x509_identity *identity, int rcvbuf);
void tls_client_close(struct tls_client *client);

/* A server that has closed the connection is not an error here: the test sees it when it reads. */
void tls_client_send(struct tls_client *client, const void *data, size_t n);
void tls_client_puts(struct tls_client *client, const char *text);

/* Reads once more; false at the end of the connection. */
bool tls_client_read(struct tls_client *client);
/* Reads until the text is there, and returns its place; NULL = the connection has ended. */
char *tls_client_await(struct tls_client *client, const char *text);
/* Drops the first n bytes that were read. */
void tls_client_drop(struct tls_client *client, size_t n);
/* Drops all that comes; whether the server closes the connection in time. */
bool tls_client_is_closed(struct tls_client *client);
