/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The interface between a connection and its protocol, HTTP/1.1 (h1.c) or HTTP/2 (h2.c). The
 * connection passes on the bytes that it has read and gets the bytes to write. A protocol never
 * uses the socket.
 *
 * Threads: the connection's worker only. None of the functions may free the connection; they set
 * its `dead` or `ending` instead, which the connection checks after each call.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/clock.h>

struct hfd_connection;
struct hfd_http_request;

struct hfd_protocol {
        /* Creates connection->protocol_state. 0 or -ENOMEM. */
        int (*open)(struct hfd_connection *connection);
        /* Consumes all n bytes. If it does not return 0, the connection ends when the pending
         * output has been sent. */
        int (*input)(struct hfd_connection *connection, const char *data, size_t n);
        /* Whether the connection should read more input now. */
        bool (*wants_input)(const struct hfd_connection *connection);
        /* Writes up to HFD_OUT_SPACE + HFD_OUT_SLACK bytes to out and returns their number; 0 =
         * there is nothing to send now. */
        size_t (*fill)(struct hfd_connection *connection, char *out);
        /* The response of a request on this connection has changed. */
        void (*response_changed)(struct hfd_connection *connection,
                                 struct hfd_http_request *request);
        /* Whether nothing more will be sent, so that the connection may end. */
        bool (*finished)(const struct hfd_connection *connection);
        /* Tells the peer that the connection will close: GOAWAY, or "connection: close". Requests
         * in progress are still completed. */
        void (*drain)(struct hfd_connection *connection);
        /* Enforces the time limits; called about once a second. */
        void (*tick)(struct hfd_connection *connection, hf_nsec now);
        /* Detaches the requests and frees protocol_state. */
        void (*close)(struct hfd_connection *connection);
};
