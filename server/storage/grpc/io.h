/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads and writes a connection. Every failure is reported by hfd_grpc_connection_fail. Both
 * functions move a limited number of bytes; if more could be moved at once, they set
 * channel->has_more, so that the loop comes back after it has served the other connections.
 * Private to server/storage/grpc. Thread: the channel's.
 */
#include "server/storage/grpc/grpc_connection.h"

/* Reads the bytes that have arrived, and passes them to the session. */
void hfd_grpc_io_read(struct hfd_grpc_connection *connection);
/* Sends the unsent bytes, then the session's output. */
void hfd_grpc_io_write(struct hfd_grpc_connection *connection);
