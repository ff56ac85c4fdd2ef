/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * HTTP/2 on a connection, by nghttp2's client session. Private to server/storage/grpc. Thread: the
 * channel's.
 *
 * Functions that return int: 0 or an error of nghttp2. After an error the connection must end. Only
 * after an error of hfd_grpc_session_submit it may go on with its other calls.
 */
#include "server/storage/grpc/grpc_connection.h"

/* Creates connection->session and submits our SETTINGS. */
int hfd_grpc_session_new(struct hfd_grpc_connection *connection);
/* Submits the stream's request. NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE: the connection's stream ids
 * are used up. */
int hfd_grpc_session_submit(struct hfd_grpc_connection *connection, struct hfd_grpc_stream *stream);
/* The stream has a new message to send. */
void hfd_grpc_session_resume(struct hfd_grpc_connection *connection,
                             struct hfd_grpc_stream *stream);
/* Resets the stream. No callback refers to it afterwards. */
void hfd_grpc_session_reset(struct hfd_grpc_connection *connection, struct hfd_grpc_stream *stream);
int hfd_grpc_session_ping(struct hfd_grpc_connection *connection);
/* Handles received bytes; ends streams. */
int hfd_grpc_session_input(struct hfd_grpc_connection *connection, const char *data, size_t n);
/* Fills the channel's output buffer. *ret_n = 0: there is nothing to send. */
int hfd_grpc_session_fill(struct hfd_grpc_connection *connection, size_t *ret_n);
/* Whether the session has ended: it expects no more input and has no more output. */
bool hfd_grpc_session_is_over(const struct hfd_grpc_connection *connection);
