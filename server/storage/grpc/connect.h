/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Establishes a connection: look-up, TCP, TLS. Every failure is reported by
 * hfd_grpc_connection_fail. Private to server/storage/grpc. Thread: the channel's.
 */
#include "server/storage/grpc/grpc_connection.h"

/* Begins: connects to a numeric address or to localhost, or looks up another name first. */
void hfd_grpc_connect_begin(struct hfd_grpc_connection *connection);
/* The look-up has ended. */
void hfd_grpc_connect_resolved(struct hfd_grpc_connection *connection);
/* Begins to connect to the next address. error: the errno of the previous one. */
void hfd_grpc_connect_next(struct hfd_grpc_connection *connection, int error);
/* The socket is connected, or has failed. */
void hfd_grpc_connect_finish(struct hfd_grpc_connection *connection);
/* Continues TLS's handshake. */
void hfd_grpc_connect_handshake(struct hfd_grpc_connection *connection);
/* Closes the socket, if there is one. */
void hfd_grpc_connect_close(struct hfd_grpc_connection *connection);
