/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An HTTP/1.1 server whose response depends on the path, for tests of the HTTP engine:
 *
 *      /ok          200, "hello"                  /early       103, then 201 with "x"
 *      /echo        200, the request's body       /big         200, 1 MiB of zeros
 *      /head        200, the request's head       /trailers    200 in chunks, then gRPC trailers
 *      /busy        429 with Retry-After,         /stream      200 in chunks, without an end
 *                   a fence, and gRPC status      /never       no response
 *      /cut         closes the connection         /cut-body    closes it within the body
 *      /cut-second  closes the connection and counts the request
 */
#include <stdatomic.h>

#include "loopback_server.h"

struct http1_server {
        struct loopback_server base;
        atomic_int n_cut; /* requests for /cut-second that were received */
};

/* Listens on a free port of 127.0.0.1. */
void http1_server_start(struct http1_server *server);
void http1_server_stop(struct http1_server *server);
