/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts requests in progress.
 *
 * Invariant: every request that was counted leaves the count exactly once, when its response is
 * finished or its client has gone (on_finished in filters.c). Without that, a shutdown would wait
 * until its deadline.
 */
#include "server/filters/limits/inflight.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/thread.h"

struct hfd_inflight {
        /* immutable after new */
        const struct hf_host *host; /* borrowed */

        /* guarded by mu */
        pthread_mutex_t mu;
        pthread_cond_t drained; /* broadcast when n_counted reaches 0, also without a shutdown */
        bool refusing;          /* never becomes false again */
        size_t n_counted;       /* requests that a shutdown waits for */
};

int hfd_inflight_new(const struct hf_host *host, struct hfd_inflight **ret_inflight) {
        struct hfd_inflight *inflight = calloc(1, sizeof *inflight);

        if (!inflight)
                return -ENOMEM;
        inflight->host = host;
        int r = hf__mutex_cond_init(&inflight->mu, &inflight->drained);
        if (r != 0) {
                free(inflight);
                return r;
        }
        *ret_inflight = inflight;
        return 0;
}

struct hfd_inflight *hfd_inflight_free(struct hfd_inflight *inflight) {
        if (!inflight)
                return NULL;
        assert(inflight->n_counted == 0);
        pthread_cond_destroy(&inflight->drained);
        pthread_mutex_destroy(&inflight->mu);
        free(inflight);
        return NULL;
}

bool hfd_inflight_admit(struct hfd_inflight *inflight, bool wait,
                        struct hfd_inflight_place *place) {
        assert(!place->admitted && !place->counted);
        pthread_mutex_lock(&inflight->mu);
        place->admitted = !inflight->refusing;
        place->counted = place->admitted && wait;
        if (place->counted)
                inflight->n_counted++;
        pthread_mutex_unlock(&inflight->mu);
        return place->admitted;
}

void hfd_inflight_release(struct hfd_inflight *inflight, struct hfd_inflight_place *place) {
        pthread_mutex_lock(&inflight->mu);
        if (place->counted) {
                assert(inflight->n_counted > 0);
                inflight->n_counted--;
                if (inflight->n_counted == 0)
                        pthread_cond_broadcast(&inflight->drained);
        }
        place->counted = false;
        pthread_mutex_unlock(&inflight->mu);
}

void hfd_inflight_refuse(struct hfd_inflight *inflight) {
        pthread_mutex_lock(&inflight->mu);
        inflight->refusing = true;
        pthread_mutex_unlock(&inflight->mu);
}

size_t hfd_inflight_count(struct hfd_inflight *inflight) {
        pthread_mutex_lock(&inflight->mu);
        size_t n = inflight->n_counted;
        pthread_mutex_unlock(&inflight->mu);
        return n;
}

int hfd_inflight_wait(struct hfd_inflight *inflight, hf_nsec deadline) {
        const struct hf_clock *clock = hf_host_clock(inflight->host);
        int r = 0;

        pthread_mutex_lock(&inflight->mu);
        while (inflight->n_counted > 0 && r == 0)
                r = clock->wait(clock->ctx, &inflight->drained, &inflight->mu, deadline);
        if (inflight->n_counted == 0)
                r = 0; /* the last request ended just when the deadline passed */
        pthread_mutex_unlock(&inflight->mu);
        return r;
}
