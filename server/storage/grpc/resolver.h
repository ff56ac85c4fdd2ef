/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Looks up a host name on a separate thread, because getaddrinfo blocks. Private to
 * server/storage/grpc. Thread: the channel's, for all functions.
 */
#include <netdb.h>

#include "server/storage/grpc/channel_private.h"
#include "server/storage/grpc/command.h"

struct hfd_grpc_resolver {
        struct hfd_grpc_command command; /* posted when the look-up has ended */
        struct hfd_grpc_channel *channel;
        const struct hfd_grpc_endpoint *endpoint;
        pthread_t thread;
        /* written by the thread before it posts the command */
        struct addrinfo *addresses; /* owned; NULL = none, or the connection has taken them over */
        char error[128];
        /* the channel's thread only */
        struct hfd_grpc_connection *connection; /* NULL = it was freed meanwhile */
        bool joined;
        struct hfd_grpc_resolver *next;
};

/* Reads a numeric address, or localhost, at once. 0, or HF_E_NOT_FOUND: the host must be looked up.
 * The caller frees *ret_addresses by freeaddrinfo. */
int hfd_grpc_resolve_numeric(const struct hfd_grpc_endpoint *endpoint,
                             struct addrinfo **ret_addresses);
/* Starts a look-up for the connection. 0 or -errno. */
int hfd_grpc_resolver_new(struct hfd_grpc_channel *channel,
                          const struct hfd_grpc_endpoint *endpoint,
                          struct hfd_grpc_connection *connection,
                          struct hfd_grpc_resolver **ret_resolver);
/* Waits until the look-up's thread has ended, which it does right after it has posted the
 * command. */
void hfd_grpc_resolver_join(struct hfd_grpc_resolver *resolver);
/* Joins the look-up's thread, takes the resolver out of the channel's list and frees it. Its
 * command must not be in the mailbox. */
void hfd_grpc_resolver_free(struct hfd_grpc_resolver *resolver);
