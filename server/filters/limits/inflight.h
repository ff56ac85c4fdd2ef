/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Counts the requests in progress, so that a shutdown can wait for them. The priority levels
 * (priority.h) limit how many may run at a time. A shutdown does not wait for watches.
 *
 * Lock: one mutex guards all. The refusing state and the count are read and changed under it
 * together. So once hfd_inflight_refuse has returned, no request is admitted, and the count
 * includes those that were admitted before and that a shutdown waits for. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/host.h>

struct hfd_inflight;

/* The count's record of one request. Only the request's worker uses it. Initially zero. */
struct hfd_inflight_place {
        bool admitted; /* the server admitted the request */
        bool counted;  /* a shutdown waits for it */
};

/* host is borrowed. 0 or -errno. */
int hfd_inflight_new(const struct hf_host *host, struct hfd_inflight **ret_inflight);
/* No other thread may use it, and hfd_inflight_count must be 0. Accepts NULL, returns NULL. */
struct hfd_inflight *hfd_inflight_free(struct hfd_inflight *inflight);

/*
 * Admits a request. wait: a shutdown waits for it. place is zero, and records the result. False:
 * the server is shutting down, and the caller must refuse the request.
 */
bool hfd_inflight_admit(struct hfd_inflight *inflight, bool wait, struct hfd_inflight_place *place);
/* The request no longer makes a shutdown wait. Harmless if it was not counted or not admitted, and
 * if it was released before. */
void hfd_inflight_release(struct hfd_inflight *inflight, struct hfd_inflight_place *place);

/* From now on no request is admitted. This cannot be undone. */
void hfd_inflight_refuse(struct hfd_inflight *inflight);
/* The number of requests in progress that a shutdown waits for. */
size_t hfd_inflight_count(struct hfd_inflight *inflight);
/* Blocks until hfd_inflight_count is 0, then returns 0. HF_E_TIMEOUT: deadline, a time of the boot
 * clock, has passed. */
int hfd_inflight_wait(struct hfd_inflight *inflight, hf_nsec deadline);
