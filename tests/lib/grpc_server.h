/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A server that speaks just enough HTTP/2 in clear text to test a gRPC client with what a real etcd
 * does not do on request. It reads frames but never the header blocks. The first byte of a call's
 * first message selects the response:
 *
 *      e  the same message, and trailers with status 0
 *      p  the same, one byte in each DATA frame
 *      o  trailers only: status 5, text "a b" (percent-encoded)
 *      b  the same message, and no trailers
 *      2  the message twice, and trailers
 *      h  half of the message, and trailers
 *      z  an empty message, and trailers
 *      x  a message that says it is compressed, and trailers
 *      1  an informational response (103), and then nothing
 *      w  a page of text with the HTTP status 502, as from a proxy
 *      l  the prefix of a message of 4 GB
 *      r  resets the stream: REFUSED_STREAM
 *      i  resets the stream: INTERNAL_ERROR
 *      g  GOAWAY: no stream was processed; then nothing
 *      G  GOAWAY after this stream, whose message is returned, with trailers
 *      n  nothing
 *      d  nothing from now on, on the whole connection, not even to a PING
 *      c  closes the connection
 *      C  resets the connection
 *      s  the same message; the stream stays, and each later message is returned too
 *      S  the same message; the stream stays, and later messages are ignored
 *      H  nothing until a later call of the connection asks for it
 *      k  the header block of the last H, and then as e
 *      m  a message on the stream of the last H, and then as e
 *      3  the same message twice in one piece; the stream stays
 *      t  trailers with status 0, and then resets the stream: INTERNAL_ERROR
 *      j  a header block, and then resets the stream: INTERNAL_ERROR
 *      v  resets the stream: NO_ERROR
 *      P  as e, and then a PING
 *
 * A message of more than 1 KiB, with its prefix, is never complete. Asserts instead of handling
 * errors.
 */
#include <stdatomic.h>

#include "loopback_server.h"

struct grpc_server {
        struct loopback_server base;
        bool opens_no_window; /* set before the start: large requests do not get through */
        atomic_int n_pings, n_messages, n_resets; /* n_resets: of streams, by the client */
        atomic_bool holds;                        /* it reads nothing for now */
        atomic_int n_data;                        /* bytes of all messages, in part or whole */
        atomic_int n_acks;                        /* responses of the client to PINGs */
        atomic_int n_closed;                      /* connections */
};

void grpc_server_start(struct grpc_server *server);
void grpc_server_stop(struct grpc_server *server);
