/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Counts the requests in progress, to limit them per lane and to let a shutdown wait for them.
 *
 * There are three lanes: reading, mutating, and a separate one for Leases, so that heavy traffic
 * cannot delay a renewal until the leader loses its Lease. A watch enters no lane, and a shutdown
 * does not wait for it. A request leaves its lane when its response is sent, when its client has
 * left, or when its client does not read the response at once; unsent.h limits such responses. A
 * shutdown still waits for them.
 *
 * Lock: one mutex guards all counts. The refusing state and the count for the shutdown are read and
 * changed under it together. So once hfd_inflight_refuse has returned, no request is admitted, and
 * the count includes those that were admitted before. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/host.h>

#include "server/filters/lane.h"

struct hfd_inflight;
struct hfd_request_metrics;

/* The place that one request occupies. Only the request's worker uses it. Initially {.lane =
 * HFD_LANE_NONE}. */
struct hfd_inflight_place {
        bool admitted;      /* the server admitted the request */
        bool counted;       /* a shutdown waits for it */
        enum hfd_lane lane; /* the lane that it has entered; HFD_LANE_NONE = none */
};

/* max: the limit of requests in progress for each lane. metrics is borrowed. 0 or -errno. */
int hfd_inflight_new(const struct hf_host *host, const size_t max[HFD_N_LANES],
                     struct hfd_request_metrics *metrics, struct hfd_inflight **ret_inflight);
/* No other thread may use it. Accepts NULL, returns NULL. */
struct hfd_inflight *hfd_inflight_free(struct hfd_inflight *inflight);

/*
 * Admits a request. wait: a shutdown waits for it. False: the server is shutting down, and the
 * request must be refused.
 */
bool hfd_inflight_admit(struct hfd_inflight *inflight, bool wait, struct hfd_inflight_place *place);
/* Enters a lane. False: the lane is full. A request may enter one lane at most. */
bool hfd_inflight_enter_lane(struct hfd_inflight *inflight, enum hfd_lane lane,
                             struct hfd_inflight_place *place);
/* Leaves the lane: the response has begun. A shutdown still waits for its end. Harmless if the
 * request is in no lane. */
void hfd_inflight_leave_lane(struct hfd_inflight *inflight, struct hfd_inflight_place *place);
/* Leaves the lane, and no longer makes a shutdown wait. Harmless if place is empty. */
void hfd_inflight_release(struct hfd_inflight *inflight, struct hfd_inflight_place *place);

/* From now on no request is admitted. This cannot be undone. */
void hfd_inflight_refuse(struct hfd_inflight *inflight);
/* The number of requests in progress that a shutdown waits for. */
size_t hfd_inflight_count(struct hfd_inflight *inflight);
/* Blocks until that number is 0. HF_E_TIMEOUT: deadline, a time of the boot clock, has passed. */
int hfd_inflight_wait(struct hfd_inflight *inflight, hf_nsec deadline);
