/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads and writes a connection. Every failure is reported by hfd_grpc_connection_fail. What a
 * connection leaves for the next iteration is noted in channel->has_more. Private to
 * server/storage/grpc. Thread: the channel's.
 */
#include "server/storage/grpc/connection.h"

/* Reads what has arrived, and passes it to the session. */
void hfd_grpc_io_read(struct hfd_grpc_connection *connection);
/* Sends what is unsent and what the session has to say. */
void hfd_grpc_io_write(struct hfd_grpc_connection *connection);
