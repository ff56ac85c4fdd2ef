/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peer of a connection (origin.h). A request may outlive its connection and still read the
 * peer, so each request has a reference.
 *
 * Invariant: nothing but `refused`, `expires` and `refs`, which are atomic, changes after the
 * handshake, because threads read it without a lock.
 */
#include "server/http/request/origin.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

static void put_ipv4(struct hfd_origin *origin, const void *address, in_port_t port) {
        char text[INET6_ADDRSTRLEN] = "";

        inet_ntop(AF_INET, address, text, sizeof text);
        snprintf(origin->remote, sizeof origin->remote, "%s:%u", text, ntohs(port));
}

int hfd_origin_new(const struct sockaddr_storage *address, struct hfd_origin **ret_origin) {
        struct hfd_origin *origin = calloc(1, sizeof *origin);
        const struct sockaddr_in *in = (const void *)address;
        const struct sockaddr_in6 *in6 = (const void *)address;
        char text[INET6_ADDRSTRLEN] = "";

        if (!origin)
                return -ENOMEM;
        atomic_init(&origin->refs, 1);
        if (address->ss_family == AF_INET) {
                put_ipv4(origin, &in->sin_addr, in->sin_port);
        } else if (address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
                /* an IPv4 client of a listener for both kinds of addresses */
                put_ipv4(origin, in6->sin6_addr.s6_addr + 12, in6->sin6_port);
        } else if (address->ss_family == AF_INET6) {
                inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof text);
                snprintf(origin->remote, sizeof origin->remote, "[%s]:%u", text,
                         ntohs(in6->sin6_port));
        } else {
                /* An inherited socket may be a unix socket, whose peers have no address. */
                snprintf(origin->remote, sizeof origin->remote, "local");
        }
        *ret_origin = origin;
        return 0;
}

struct hfd_origin *hfd_origin_ref(struct hfd_origin *origin) {
        assert(!origin || atomic_load_explicit(&origin->refs, memory_order_relaxed) > 0);
        if (origin)
                atomic_fetch_add_explicit(&origin->refs, 1, memory_order_relaxed);
        return origin;
}

struct hfd_origin *hfd_origin_unref(struct hfd_origin *origin) {
        int before;

        if (!origin)
                return NULL;
        /* acq_rel: the thread that frees must see what the others did before their unref. */
        before = atomic_fetch_sub_explicit(&origin->refs, 1, memory_order_acq_rel);
        assert(before > 0);
        if (before != 1)
                return NULL;
        for (size_t i = 0; i < origin->n_organisations; i++)
                free(origin->organisations[i]);
        free(origin->organisations);
        free(origin->common_name);
        free(origin->uid);
        free(origin->fingerprint);
        free(origin);
        return NULL;
}
