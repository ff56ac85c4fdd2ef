/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The health checks of the process itself. Hooks, electors and the bootstrap have their own.
 *
 *      ping        healthz, livez, readyz    always passes: the server responds
 *      etcd        healthz, readyz           the store responded within STORE_STALE_AFTER
 *      store-watch healthz, readyz           the cache is not far behind the store
 *      store-room  healthz, readyz           the store has not refused a write for lack of room
 *      crd-informer-synced  readyz           the custom resources that were defined are served
 *      informer-sync        readyz           the roles and the configuration of admission are known
 *      shutdown    readyz                    the shutdown has not begun
 *
 * Invariants. A check runs on an HTTP worker and must not block. Names are those of kube-apiserver
 * where it has the same check, because probes depend on them.
 */
#include "server/health_checks.h"

#include <stdatomic.h>
#include <stdio.h>

#include <holdfast/health.h>

#include "server/cacher/feed/kind_feed.h"
#include "server/server.h"

/* The store counts as unreachable when it has sent no reply or event for this time. */
#define STORE_STALE_AFTER (10 * HF_NSEC_PER_SEC)
/* Longer than storage/watch_lag.c usually needs to open a hanging watch on another member. */
#define WATCH_LATE_AFTER (5 * HF_NSEC_PER_SEC)
/* A refusal counts for this time, unless a put succeeds. Within this time the instance tries
 * several times to renew its identity Lease (controllers/instances/identity_lease.c), so a store
 * that is still full refuses a write again before the last refusal stops counting. */
#define FULL_FOR (30 * HF_NSEC_PER_SEC)

static bool check_ping(void *ctx, char *reason, size_t max_reason) {
        (void)ctx;
        (void)reason;
        (void)max_reason;
        return true;
}

static bool check_store(void *ctx, char *reason, size_t max_reason) {
        struct hfd_server *server = ctx;
        hf_nsec heard_at = hfd_cacher_last_store_contact(server->cacher); /* 0 = never */
        hf_nsec age = hfd_server_now(server) - heard_at;
        bool fresh = heard_at != 0 && age < STORE_STALE_AFTER;

        if (heard_at == 0)
                (void)snprintf(reason, max_reason, "etcd has not answered yet");
        else if (!fresh)
                (void)snprintf(reason, max_reason, "etcd has not answered for %lld s",
                               (long long)(age / HF_NSEC_PER_SEC));
        return fresh;
}

/* If the cache is behind, the watches of clients are late. Reads that need a newer state than the
 * cache has go to the store, or fail if the client has named a revision. */
static bool check_store_watch(void *ctx, char *reason, size_t max_reason) {
        struct hfd_server *server = ctx;
        hf_nsec time;
        uint64_t revisions = hfd_cacher_lag(server->cacher, &time);

        if (time < WATCH_LATE_AFTER)
                return true;
        (void)snprintf(reason, max_reason,
                       "the cache has been behind etcd for %lld s, now by %llu revisions",
                       (long long)(time / HF_NSEC_PER_SEC), (unsigned long long)revisions);
        return false;
}

/* Reads are still served, but most clients write, and no client can renew its Lease. */
static bool check_store_room(void *ctx, char *reason, size_t max_reason) {
        struct hfd_server *server = ctx;
        hf_nsec refused_at = hfd_cacher_store_full(server->cacher); /* 0 = never */
        hf_nsec age = hfd_server_now(server) - refused_at;

        if (refused_at == 0 || age >= FULL_FOR)
                return true;
        (void)snprintf(reason, max_reason,
                       "the store is full: %lld s ago it had no room for a write",
                       (long long)(age / HF_NSEC_PER_SEC));
        return false;
}

static bool check_definitions(void *ctx, char *reason, size_t max_reason) {
        struct hfd_server *server = ctx;
        bool synced = hfd_kind_feed_synced(server->kind_feed);

        if (!synced)
                (void)snprintf(reason, max_reason, "the definitions are being read");
        return synced;
}

/* Until the roles are known, RBAC allows nothing. Until the configuration of admission is known,
 * writes of clients are refused, except those of Leases. */
static bool check_configuration(void *ctx, char *reason, size_t max_reason) {
        struct hfd_server *server = ctx;
        bool knows_roles = hfd_authorizer_knows_roles(server->authorizer),
             is_ready = atomic_load(&server->admission.ready);

        if (!knows_roles)
                (void)snprintf(reason, max_reason, "the roles are being read");
        else if (!is_ready)
                (void)snprintf(reason, max_reason, "the configuration of admission is being read");
        return knows_roles && is_ready;
}

static bool check_shutdown(void *ctx, char *reason, size_t max_reason) {
        struct hfd_server *server = ctx;
        bool stopping = hfd_lifecycle_signalled(&server->lifecycle, HFD_SHUTDOWN_INITIATED);

        if (stopping)
                (void)snprintf(reason, max_reason, "process is shutting down");
        return !stopping;
}

int hfd_health_checks_add(struct hfd_server *server) {
        struct hf_health *health = server->host.health;
        int r = hf_health_add(health, "ping", HF_HEALTHZ | HF_LIVEZ | HF_READYZ, check_ping,
                              server);

        /* Not in livez: restarting this process does not help when etcd is unreachable. */
        if (r == 0)
                r = hf_health_add(health, "etcd", HF_HEALTHZ | HF_READYZ, check_store, server);
        if (r == 0)
                r = hf_health_add(health, "store-watch", HF_HEALTHZ | HF_READYZ, check_store_watch,
                                  server);
        if (r == 0)
                r = hf_health_add(health, "store-room", HF_HEALTHZ | HF_READYZ, check_store_room,
                                  server);
        if (r == 0)
                r = hf_health_add(health, "crd-informer-synced", HF_READYZ, check_definitions,
                                  server);
        if (r == 0)
                r = hf_health_add(health, "informer-sync", HF_READYZ, check_configuration, server);
        if (r == 0)
                r = hf_health_add(health, "shutdown", HF_READYZ, check_shutdown, server);
        return r;
}
