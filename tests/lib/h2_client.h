/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A blocking HTTP/2 client for tests of the server: nghttp2's session over a TLS connection to a
 * port of 127.0.0.1. Its output is sent at once, its input is read when a function waits. Asserts
 * instead of handling errors. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

#include "tls_client.h"

#define H2_CLIENT_MAX_STREAMS 300

struct h2_client_stream {
        int code; /* the status of the response */
        char *body;
        size_t n;
        const char *upload; /* the rest of the request's body, which is still to be sent */
        size_t n_upload;
        bool upload_stalls; /* the body is never sent */
        bool closed;
        uint32_t error_code; /* of the closed stream */
};

struct h2_client {
        struct tls_client tls;
        nghttp2_session *session;
        struct h2_client_stream streams[H2_CLIENT_MAX_STREAMS]; /* by (id - 1) / 2 */
        /* the last streams that the first and the latest GOAWAY named; -1 = none has come */
        int32_t goaway_first, goaway_last;
};

/*
 * window: the flow-control window of each stream; the connection then has HTTP/2's default. 0 =
 * streams and connection have large windows. rcvbuf: see tls_client_open.
 */
struct h2_client *h2_client_open(uint16_t port, uint32_t window, int rcvbuf);
void h2_client_close(struct h2_client *client);

/* Sends what the session has to send. */
void h2_client_flush(struct h2_client *client);
/* Reads once and passes the input to the session. Returns false when tls_client_read does. */
bool h2_client_iteration(struct h2_client *client);

nghttp2_nv h2_client_header(const char *name, const char *value);
/* Sends a request and returns the id of its stream. body NULL = none; borrowed until it was
 * sent. */
int32_t h2_client_ask_with(struct h2_client *client, const char *method, const char *path,
                           const nghttp2_nv *headers, size_t n_headers, const char *body, size_t n);
int32_t h2_client_ask(struct h2_client *client, const char *method, const char *path,
                      const char *body);

struct h2_client_stream *h2_client_stream_of(struct h2_client *client, int32_t id);
/* Waits until the stream is closed. The test fails if h2_client_iteration returns false before. */
struct h2_client_stream *h2_client_await(struct h2_client *client, int32_t id);
