/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up host names.
 *
 * Invariant: a resolver is in its channel's list from new to free. Its thread uses the resolver,
 * the endpoint and the mailbox, but no connection. So a connection that is freed meanwhile only
 * clears the resolver's pointer to it.
 */
#include "server/storage/grpc/resolver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/thread.h"

static int look_up_host(const struct hfd_grpc_endpoint *endpoint, int flags,
                        struct addrinfo **ret_addresses) {
        const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                       .ai_socktype = SOCK_STREAM,
                                       .ai_flags = flags | AI_NUMERICSERV};
        /* RFC 6761 6.3: localhost is the loopback address, also on a machine whose files and name
         * servers do not know it. Without a host, getaddrinfo returns just that. */
        bool local = strcasecmp(endpoint->host, "localhost") == 0;

        return getaddrinfo(local ? NULL : endpoint->host, endpoint->port, &hints, ret_addresses);
}

int hfd_grpc_resolve_numeric(const struct hfd_grpc_endpoint *endpoint,
                             struct addrinfo **ret_addresses) {
        return look_up_host(endpoint, AI_NUMERICHOST, ret_addresses) == 0 ? 0 : HF_E_NOT_FOUND;
}

static void *run_look_up(void *ctx) {
        struct hfd_grpc_resolver *resolver = ctx;
        int r = look_up_host(resolver->endpoint, 0, &resolver->addresses);

        if (r != 0) {
                resolver->addresses = NULL;
                snprintf(resolver->error, sizeof resolver->error, "cannot resolve the host: %s",
                         gai_strerror(r));
        }
        hfd_grpc_channel_post(resolver->channel, &resolver->command, HFD_GRPC_RESOLVED);
        return NULL;
}

int hfd_grpc_resolver_new(struct hfd_grpc_channel *channel,
                          const struct hfd_grpc_endpoint *endpoint,
                          struct hfd_grpc_connection *connection,
                          struct hfd_grpc_resolver **ret_resolver) {
        struct hfd_grpc_resolver *resolver = calloc(1, sizeof *resolver);
        int r;

        hfd_grpc_assert_thread(channel);
        if (!resolver)
                return -ENOMEM;
        resolver->channel = channel;
        resolver->endpoint = endpoint;
        resolver->connection = connection;
        r = hf__thread_start(channel->config.host, "hfd-resolve", run_look_up, resolver,
                             &resolver->thread);
        if (r != 0) {
                free(resolver);
                return r;
        }
        resolver->next = channel->resolvers;
        channel->resolvers = resolver;
        *ret_resolver = resolver;
        return 0;
}

void hfd_grpc_resolver_join(struct hfd_grpc_resolver *resolver) {
        if (!resolver->joined)
                (void)hf__thread_join(resolver->thread);
        resolver->joined = true;
}

void hfd_grpc_resolver_free(struct hfd_grpc_resolver *resolver) {
        struct hfd_grpc_resolver **at = &resolver->channel->resolvers;

        hfd_grpc_assert_thread(resolver->channel);
        hfd_grpc_resolver_join(resolver);
        while (*at != resolver)
                at = &(*at)->next;
        *at = resolver->next;
        if (resolver->addresses)
                freeaddrinfo(resolver->addresses);
        free(resolver);
}
