/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector of dead identity Leases: deletes the Lease of an instance that has ended without
 * deleting it, once the Lease has not been renewed for its recorded duration.
 *
 * Invariant: a Lease is dead only if this process has seen no new renewTime for the whole duration
 * on its own boot clock. Clocks of two machines are never compared. So a new leader waits a full
 * duration before it deletes anything. The delete names uid and resourceVersion, so a Lease that is
 * renewed in between is kept.
 *
 * Threads. The observations are one entry per Lease, in key order. `mu` guards the index; the
 * fields of an entry are changed only by the worker that has its key, and no two workers have one
 * key at a time.
 */
#include "server/controllers/lease_collector.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/reconciler.h>

#include "base/json.h"
#include "base/thread.h"
#include "client/key_index.h"
#include "server/controllers/controller_context.h"
#include "server/controllers/object_client.h"

#define N_WORKERS        8
#define MAX_OBSERVATIONS 16384 /* at a time; further Leases are tried again until there is room */
/* Added to the duration, so that a timer that fires a little early does not check too early. */
#define MARGIN (50 * HF_NSEC_PER_MSEC)

static const struct hf_resource leases = {"coordination.k8s.io", "v1", "leases"};

struct observation {
        struct hf__keyed keyed; /* its key is text */
        char renewed[40];       /* renewTime, as the Lease has it */
        /* boot time at which this renewTime was first seen; 0 = not seen yet */
        hf_nsec at;
        char text[];
};

struct collector {
        struct hfd_controller_context *context; /* borrowed */
        pthread_mutex_t mu;
        struct hf__key_index observations; /* owns its entries; guarded by mu */
};

/* Returns the key's entry, and adds one if there is none. NULL = out of memory, or too many
 * entries. */
static struct observation *observation_of(struct collector *collector, const char *key) {
        size_t n = strlen(key) + 1;

        (void)pthread_mutex_lock(&collector->mu);
        struct observation *seen =
                (struct observation *)hf__key_index_find(&collector->observations, key);
        if (!seen && collector->observations.n < MAX_OBSERVATIONS) {
                seen = calloc(1, sizeof *seen + n);
                if (seen) {
                        memcpy(seen->text, key, n);
                        seen->keyed.key = seen->text;
                        if (hf__key_index_insert(&collector->observations, &seen->keyed) != 0) {
                                free(seen);
                                seen = NULL;
                        }
                }
        }
        (void)pthread_mutex_unlock(&collector->mu);
        return seen;
}

static void forget_observation(struct collector *collector, const char *key) {
        (void)pthread_mutex_lock(&collector->mu);
        struct hf__keyed *seen = hf__key_index_find(&collector->observations, key);
        if (seen)
                hf__key_index_remove(&collector->observations, key);
        (void)pthread_mutex_unlock(&collector->mu);
        free(seen);
}

static int delete_lease(struct hf_term *term, const struct hf__json *lease, const char *ns,
                        const char *name) {
        const struct hfd_object_client_delete_options options =
                {.uid = hf__json_string(lease, "metadata.uid"),
                 .resource_version = hf__json_string(lease, "metadata.resourceVersion")};
        int r = hfd_object_client_delete(term, &leases, ns, name, &options);

        if (r == 0)
                hf_log(&hf_term_host(term)->log, HF_LOG_NOTICE, HFD_LEASE_COLLECTOR,
                       "deleted the identity Lease %s/%s of an instance that has ended", ns, name);
        return hfd_object_client_ignore_stale(r); /* deleted by its owner, or renewed */
}

/* Compares the Lease with the last observation. Deletes it, or sets when to check it again. */
static int check_lease(struct collector *collector, struct hf_term *term, const char *key,
                       const struct hf__json *lease, hf_nsec *ret_again) {
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        hf_nsec now = hf_now(hf_host_clock(hf_term_host(term)));
        const char *renewed = hf__json_string(lease, "spec.renewTime");
        int64_t seconds = 0;
        struct observation *seen = observation_of(collector, key);

        if (!seen)
                return -ENOMEM;
        if (!hf__json_i64(lease, "spec.leaseDurationSeconds", &seconds) || seconds <= 0 ||
            seconds > 86400)
                seconds = HFD_IDENTITY_SECONDS;
        hf_nsec duration = seconds * HF_NSEC_PER_SEC;
        if (seen->at == 0 || strcmp(seen->renewed, renewed ? renewed : "") != 0) {
                seen->at = now;
                (void)snprintf(seen->renewed, sizeof seen->renewed, "%s", renewed ? renewed : "");
        }
        if (now < seen->at + duration) {
                *ret_again = seen->at + duration - now + MARGIN;
                return 0;
        }
        int r = hf_key_split(key, ns, name);
        return r != 0 ? r : delete_lease(term, lease, ns, name);
}

static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct collector *collector = ctx;
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        struct hf__json *lease;

        int r = hf_key_split(key, ns, name);
        if (r == 0)
                r = hfd_object_client_get_cached(collector->context->identity_leases, ns, name,
                                                 &lease);
        if (r == HF_E_NOT_FOUND)
                forget_observation(collector, key);
        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        r = check_lease(collector, term, key, lease, ret_again);
        hf__json_free(lease);
        return r;
}

int hfd_lease_collector_run(struct hf_term *term, void *ctx) {
        struct collector collector = {.context = ctx};
        const struct hf_reconciler_source source = {.informer = collector.context->identity_leases};
        const struct hf_reconciler reconciler = {
                .size = sizeof reconciler,
                .name = HFD_LEASE_COLLECTOR,
                .sources = &source,
                .n_sources = 1,
                .n_workers = N_WORKERS,
                .reconcile = reconcile,
                .ctx = &collector,
        };
        assert(source.informer); /* controllers.c has created it */
        int r = hf__mutex_init(&collector.mu);
        if (r != 0)
                return r;
        r = hf_reconciler_run(&reconciler, term);
        while (collector.observations.n > 0)
                free(collector.observations.items[--collector.observations.n]);
        hf__key_index_done(&collector.observations);
        (void)pthread_mutex_destroy(&collector.mu);
        return r;
}
