/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What HTTP/1.1 (h1.c) and HTTP/2 (h2.c) implement and a connection calls: bytes that were read go
 * in, bytes to be written come out. A protocol never touches the socket.
 *
 * Threads: the connection's worker only. None of the functions may free the connection; they set
 * its `dead` or `ending` instead, which the connection looks at after each of them.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/clock.h>

struct hfd_connection;
struct hfd_http_request;

struct hfd_protocol {
        /* Makes connection->protocol_state. 0 or -ENOMEM. */
        int (*open)(struct hfd_connection *connection);
        /* Takes all n bytes. Not 0: the connection ends after the pending output was sent. */
        int (*input)(struct hfd_connection *connection, const char *data, size_t n);
        bool (*wants_input)(const struct hfd_connection *connection);
        /* Puts up to HFD_OUT_SPACE + HFD_OUT_SLACK bytes to send into out; 0 = nothing now. */
        size_t (*fill)(struct hfd_connection *connection, char *out);
        /* The response of a request on this connection has changed. */
        void (*response_changed)(struct hfd_connection *connection,
                                 struct hfd_http_request *request);
        /* Nothing more will be sent: the connection may end. */
        bool (*finished)(const struct hfd_connection *connection);
        /* Announces the end to the peer and finishes the requests under way. */
        void (*drain)(struct hfd_connection *connection);
        /* Looks at the time limits; called once a second. */
        void (*tick)(struct hfd_connection *connection, hf_nsec now);
        /* Detaches the requests and frees protocol_state. */
        void (*close)(struct hfd_connection *connection);
};
