/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts requests in progress.
 *
 * Invariant: every request that was admitted or entered a lane is released exactly once, when its
 * response is finished (on_finished in filters.c). A missing release would make a shutdown wait
 * until its deadline, and would occupy the lane forever.
 */
#include "server/filters/inflight.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/filters/request_metrics.h"

struct hfd_inflight {
        /* immutable after new */
        const struct hf_host *host;          /* borrowed */
        struct hfd_request_metrics *metrics; /* borrowed */
        size_t max[HFD_N_LANES];

        /* guarded by mu */
        pthread_mutex_t mu;
        pthread_cond_t drained; /* signalled when n_counted reaches 0 */
        bool refusing;          /* never becomes false again */
        size_t n_counted;       /* requests that a shutdown waits for */
        size_t n_lane[HFD_N_LANES];
};

int hfd_inflight_new(const struct hf_host *host, const size_t max[HFD_N_LANES],
                     struct hfd_request_metrics *metrics, struct hfd_inflight **ret_inflight) {
        struct hfd_inflight *inflight = calloc(1, sizeof *inflight);

        if (!inflight)
                return -ENOMEM;
        inflight->host = host;
        inflight->metrics = metrics;
        memcpy(inflight->max, max, sizeof inflight->max);
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

bool hfd_inflight_enter_lane(struct hfd_inflight *inflight, enum hfd_lane lane,
                             struct hfd_inflight_place *place) {
        assert(lane < HFD_N_LANES && place->lane == HFD_LANE_NONE);
        pthread_mutex_lock(&inflight->mu);
        bool has_room = inflight->n_lane[lane] < inflight->max[lane];
        if (has_room) {
                inflight->n_lane[lane]++;
                place->lane = lane;
        }
        /* Under the lock, so that an older count never overwrites a newer one. */
        hfd_request_metrics_inflight(inflight->metrics, lane, inflight->n_lane[lane]);
        pthread_mutex_unlock(&inflight->mu);
        return has_room;
}

static void leave_lane_locked(struct hfd_inflight *inflight, struct hfd_inflight_place *place) {
        enum hfd_lane lane = place->lane;

        if (lane == HFD_LANE_NONE)
                return;
        assert(inflight->n_lane[lane] > 0);
        inflight->n_lane[lane]--;
        hfd_request_metrics_inflight(inflight->metrics, lane, inflight->n_lane[lane]);
        place->lane = HFD_LANE_NONE;
}

void hfd_inflight_leave_lane(struct hfd_inflight *inflight, struct hfd_inflight_place *place) {
        pthread_mutex_lock(&inflight->mu);
        leave_lane_locked(inflight, place);
        pthread_mutex_unlock(&inflight->mu);
}

void hfd_inflight_release(struct hfd_inflight *inflight, struct hfd_inflight_place *place) {
        pthread_mutex_lock(&inflight->mu);
        leave_lane_locked(inflight, place);
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
