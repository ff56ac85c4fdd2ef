/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A server that speaks just enough HTTP/2 over TLS to test a client. It reads frames but never the
 * header blocks. The first byte of a request's body selects the response:
 *
 *      e  responds 200 with the body
 *      t  the same, then trailers: grpc-status 0, grpc-message "a%20b"
 *      o  responds with trailers only: grpc-status 5
 *      s  responds 200 with the body and leaves the stream open
 *      l  a number follows: responds 200 with that many bytes, then the trailers of t, in as few
 *         segments as possible
 *      g  responds 200 with the body and sends GOAWAY: streams under way go on, later ones are
 *         ignored
 *      n  never responds
 *      r  resets the stream
 *      d  sends nothing more on the whole connection, which stays open
 *      c  closes the connection
 *
 * Asserts instead of handling errors.
 */
#include "loopback_server.h"
#include "x509_identity.h"

struct h2_echo_server {
        struct loopback_server base;
        struct x509_identity identity; /* self-signed, for "localhost" */
        struct ssl_ctx_st *tls;
};

void h2_echo_server_start(struct h2_echo_server *server);
void h2_echo_server_stop(struct h2_echo_server *server);
