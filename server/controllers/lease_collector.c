/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector of expired identity Leases. An instance that crashes leaves its Lease behind. The
 * collector deletes a Lease that has not been renewed for its recorded duration, or for
 * HFD_IDENTITY_SECONDS if the recorded one is invalid or too long.
 *
 * Invariant: a Lease counts as expired only if this term has seen no new renewTime for the whole
 * duration on this machine's boot clock. Clocks of two machines are never compared. So a new leader
 * waits a full duration before it deletes anything. The delete has uid and resourceVersion as
 * preconditions, so a Lease that is renewed in between is kept.
 *
 * Threads. There is one observation per Lease. `mu` guards the index of observations. Only the
 * worker that processes the key of an observation uses and frees it, and the queue gives a key to
 * one worker at a time. The observations that remain are freed when the workers have ended.
 */
#include "server/controllers/lease_collector.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/thread.h"
#include "client/key_index.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/instances/identity.h"

#define N_WORKERS        8     /* a worker mostly waits for responses */
#define MAX_OBSERVATIONS 16384 /* the check of a further Lease fails and is tried again later */
/* The longest duration of a Lease that is believed. Any client that may write Leases chooses the
 * duration, and a huge one would keep the Lease for ever. HFD_IDENTITY_SECONDS replaces a longer
 * duration. */
#define DURATION_MAX 86400 /* seconds */
/* Added to the delay of the next check: a check just before the expiry would be wasted. */
#define MARGIN (50 * HF_NSEC_PER_MSEC)

static const struct hf_resource leases = {"coordination.k8s.io", "v1", "leases"};

struct observation {
        struct hf__keyed keyed; /* its key is key_text */
        char renew_time[40];    /* renewTime, as the Lease has it */
        /* time of the boot clock at which renew_time was first seen; 0 = never */
        hf_nsec first_seen;
        char key_text[];
};

struct collector {
        struct hfd_controller_context *context; /* borrowed */
        pthread_mutex_t mu;
        struct hf__key_index observations; /* owns its entries; guarded by mu */
};

/*
 * Returns the observation of a key; adds an empty one if there is none. NULL = out of memory, or
 * MAX_OBSERVATIONS is reached.
 */
static struct observation *get_observation(struct collector *collector, const char *key) {
        size_t n = strlen(key) + 1;

        (void)pthread_mutex_lock(&collector->mu);
        struct observation *observation =
                (struct observation *)hf__key_index_find(&collector->observations, key);
        if (!observation && collector->observations.n < MAX_OBSERVATIONS) {
                observation = calloc(1, sizeof *observation + n);
                if (observation) {
                        memcpy(observation->key_text, key, n);
                        observation->keyed.key = observation->key_text;
                        if (hf__key_index_insert(&collector->observations, &observation->keyed) !=
                            0) {
                                free(observation);
                                observation = NULL;
                        }
                }
        }
        (void)pthread_mutex_unlock(&collector->mu);
        return observation;
}

static void forget_observation(struct collector *collector, const char *key) {
        (void)pthread_mutex_lock(&collector->mu);
        struct hf__keyed *observation = hf__key_index_find(&collector->observations, key);
        if (observation)
                hf__key_index_remove(&collector->observations, key);
        (void)pthread_mutex_unlock(&collector->mu);
        free(observation);
}

static int delete_lease(struct hf_term *term, const struct hf__json *lease, const char *ns,
                        const char *name) {
        const struct hfd_object_client_delete_options options =
                {.uid = hf__json_string(lease, "metadata.uid"),
                 .resource_version = hf__json_string(lease, "metadata.resourceVersion")};
        int r = hfd_object_client_delete(term, &leases, ns, name, &options);

        if (r == 0)
                hf_log(&hf_term_host(term)->log, HF_LOG_NOTICE, HFD_LEASE_COLLECTOR,
                       "deleted the identity Lease %s/%s, which its instance no longer renews", ns,
                       name);
        /* Stale: meanwhile the instance has renewed the Lease, or a client has deleted it. */
        return hfd_object_client_ignore_stale(r);
}

/*
 * Compares the Lease with the last observation. Deletes it if it has expired; otherwise sets the
 * delay of the next check.
 */
static int check_lease(struct collector *collector, struct hf_term *term, const char *key,
                       const struct hf__json *lease, hf_nsec *ret_again) {
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        hf_nsec now = hf_now(hf_host_clock(hf_term_host(term)));
        const char *renew_time = hf__json_string(lease, "spec.renewTime");
        int64_t seconds = 0;
        struct observation *observation = get_observation(collector, key);

        if (!observation)
                return -ENOMEM;
        if (!hf__json_i64(lease, "spec.leaseDurationSeconds", &seconds) || seconds <= 0 ||
            seconds > DURATION_MAX)
                seconds = HFD_IDENTITY_SECONDS;
        hf_nsec duration = seconds * HF_NSEC_PER_SEC;
        if (observation->first_seen == 0 ||
            strcmp(observation->renew_time, renew_time ? renew_time : "") != 0) {
                observation->first_seen = now;
                (void)snprintf(observation->renew_time, sizeof observation->renew_time, "%s",
                               renew_time ? renew_time : "");
        }
        if (now < observation->first_seen + duration) {
                *ret_again = observation->first_seen + duration - now + MARGIN;
                return 0;
        }
        int r = hf_key_split(key, ns, name);
        return r != 0 ? r : delete_lease(term, lease, ns, name);
}

static int reconcile_lease(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
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
        const struct hfd_reconcile_loop loop = {
                .name = HFD_LEASE_COLLECTOR,
                .n_workers = N_WORKERS,
                .reconcile = reconcile_lease,
                .ctx = &collector,
                .sources = {{collector.context->identity_leases}},
        };

        int r = hf__mutex_init(&collector.mu);
        if (r != 0)
                return r;
        r = hfd_reconcile_loop_run(&loop, term);
        hf__key_index_free_items(&collector.observations);
        (void)pthread_mutex_destroy(&collector.mu);
        return r;
}
