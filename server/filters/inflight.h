/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Counts the requests in progress: limits them for each lane, and lets a shutdown wait for them.
 *
 * There are three lanes: reading, mutating, and one of its own for Leases, so that heavy traffic
 * never costs a leader its Lease. A watch occupies no place in a lane, and a shutdown does not wait
 * for it.
 *
 * Lock: one mutex guards all counts. The refusing state and the count for the shutdown are read and
 * changed under it together, so that after hfd_inflight_refuse no request is admitted uncounted.
 * Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/host.h>

#include "server/filters/lane.h"

struct hfd_inflight;
struct hfd_request_metrics;

/* What one request holds. Used only by the owner of the request; empty = {.lane =
 * HFD_LANE_NONE}. */
struct hfd_inflight_place {
        bool admitted;      /* the server admitted the request */
        bool counted;       /* a shutdown waits for it */
        enum hfd_lane lane; /* HFD_LANE_NONE = none */
};

/* max: the limit of requests in progress for each lane. metrics are borrowed. */
int hfd_inflight_new(const struct hf_host *host, const size_t max[HFD_N_LANES],
                     struct hfd_request_metrics *metrics, struct hfd_inflight **ret_inflight);
struct hfd_inflight *hfd_inflight_free(struct hfd_inflight *inflight);

/* Admits a request, unless the server shuts down: then false. wait: a shutdown waits for it. */
bool hfd_inflight_admit(struct hfd_inflight *inflight, bool wait, struct hfd_inflight_place *place);
/* Takes a place in a lane. False: the lane is full. */
bool hfd_inflight_take(struct hfd_inflight *inflight, enum hfd_lane lane,
                       struct hfd_inflight_place *place);
/* Releases everything that place holds. */
void hfd_inflight_leave(struct hfd_inflight *inflight, struct hfd_inflight_place *place);

/* From now on nothing is admitted. */
void hfd_inflight_refuse(struct hfd_inflight *inflight);
/* The number of requests in progress that a shutdown waits for. */
size_t hfd_inflight_n(struct hfd_inflight *inflight);
/* Blocks until that number is 0, or until boot time deadline: HF_E_TIMEOUT. */
int hfd_inflight_wait(struct hfd_inflight *inflight, hf_nsec deadline);
