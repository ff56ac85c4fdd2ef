/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector of dead identity Leases: an instance that ended without deleting its Lease is
 * forgotten after the recorded duration.
 *
 * What counts is how long *we* have seen no renewal (boot time of the last change of renewTime that
 * this leader observed), never the difference of two machines' clocks; so a new leader waits a full
 * duration before it deletes. The delete names uid and resourceVersion: a Lease that was renewed in
 * between stays.
 *
 * What was seen is one entry per Lease, in key order, under mu; the entry of a key is changed by
 * the worker that has the key.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/reconciler.h>

#include "base/json.h"
#include "base/thread.h"
#include "client/key_index.h"
#include "server/controllers/controllers.h"
#include "server/controllers/object_client.h"

#define MAX_SEEN                                                                                   \
        16384 /* identity Leases watched at a time; more are looked at when others are gone */
#define N_WORKERS 8

static const struct hf_resource leases = {"coordination.k8s.io", "v1", "leases"};

struct seen {
        struct hf__keyed keyed; /* its key is text */
        char renewed[40];       /* renewTime as it was written */
        hf_nsec at;             /* boot time when it last changed */
        char text[];
};

struct collector {
        struct hfd_controllers *controllers; /* borrowed */
        pthread_mutex_t mu;
        struct hf__key_index seen; /* owns its entries; guarded by mu */
};

/* The key's entry, made if there is none; NULL = out of memory, or there are too many. */
static struct seen *remember(struct collector *collector, const char *key) {
        size_t n = strlen(key) + 1;

        (void)pthread_mutex_lock(&collector->mu);
        struct seen *seen = (struct seen *)hf__key_index_find(&collector->seen, key);
        if (!seen && collector->seen.n < MAX_SEEN && (seen = calloc(1, sizeof *seen + n))) {
                memcpy(seen->text, key, n);
                seen->keyed.key = seen->text;
                if (hf__key_index_insert(&collector->seen, &seen->keyed)) {
                        free(seen);
                        seen = NULL;
                }
        }
        (void)pthread_mutex_unlock(&collector->mu);
        return seen;
}

static void forget(struct collector *collector, const char *key) {
        (void)pthread_mutex_lock(&collector->mu);
        struct hf__keyed *seen = hf__key_index_find(&collector->seen, key);
        if (seen)
                hf__key_index_remove(&collector->seen, key);
        (void)pthread_mutex_unlock(&collector->mu);
        free(seen);
}

static int delete_lease(struct hf_term *term, const struct hf__json *lease, const char *ns,
                        const char *name) {
        const struct hfd_delete what = {.uid = hf__json_string(lease, "metadata.uid"),
                                        .resource_version =
                                                hf__json_string(lease, "metadata.resourceVersion")};
        int r = hfd_object_delete(term, &leases, ns, name, &what);

        if (r == 0)
                hf_log(&hf_term_host(term)->log, HF_LOG_NOTICE, HFD_LEASE_COLLECTOR,
                       "deleted the Lease %s/%s of an instance that is gone", ns, name);
        return r == HF_E_NOT_FOUND || r == HF_E_CONFLICT ? 0 : r; /* gone, or alive after all */
}

static int look_at(struct collector *collector, struct hf_term *term, const char *key,
                   const struct hf__json *lease, hf_nsec *ret_again) {
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        hf_nsec now = hf_now(hf_host_clock(hf_term_host(term)));
        const char *renewed = hf__json_string(lease, "spec.renewTime");
        int64_t seconds = 0;
        struct seen *seen = remember(collector, key);

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
                *ret_again = seen->at + duration - now + 50 * HF_NSEC_PER_MSEC;
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
                r = hfd_object_cached(collector->controllers->identity_leases, ns, name, &lease);
        if (r == HF_E_NOT_FOUND)
                forget(collector, key);
        if (r != 0)
                return r == HF_E_NOT_FOUND ? 0 : r;
        r = look_at(collector, term, key, lease, ret_again);
        hf__json_free(lease);
        return r;
}

int hfd_run_lease_collector(struct hf_term *term, void *ctx) {
        struct collector collector = {.controllers = ctx};
        const struct hf_reconciler_source source = {.informer =
                                                            collector.controllers->identity_leases};
        const struct hf_reconciler reconciler = {
                .size = sizeof reconciler,
                .name = HFD_LEASE_COLLECTOR,
                .sources = &source,
                .n_sources = 1,
                .n_workers = N_WORKERS,
                .reconcile = reconcile,
                .ctx = &collector,
        };
        int r = hf__mutex_init(&collector.mu);

        if (r != 0)
                return r;
        r = hf_reconciler_run(&reconciler, term);
        while (collector.seen.n > 0)
                free(collector.seen.items[--collector.seen.n]);
        hf__key_index_done(&collector.seen);
        (void)pthread_mutex_destroy(&collector.mu);
        return r;
}
