/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All priority levels of the server: divides its seats among them, lets them borrow from each other
 * every 10 s, and refuses requests that have waited too long. A level whose configuration was
 * deleted keeps its share while requests are in it.
 *
 * Thread: any, except for new, start, stop and free. It has one thread, a timer. Lock: one mutex
 * for the list of levels, which no request takes in order to enter or leave a level. Lock order:
 * this mutex, then the mutex of a level, then the mutex of the timer.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/host.h>

#include "server/flow/flow_level_spec.h"

struct hfd_flow_level;
struct hfd_flow_levels;

/*
 * The most memory that waiting requests may keep together, mostly as bodies. A request that would
 * exceed it is refused. Small requests may exceed it by the reserve. Otherwise a user who sends
 * large bodies could have the Lease renewals of all other users refused, however fair the queues
 * are.
 */
#define HFD_FLOW_WAITING_BYTES ((size_t)64 << 20)
#define HFD_FLOW_SMALL_BYTES   ((size_t)16 << 10) /* a small request keeps at most this */
#define HFD_FLOW_SMALL_RESERVE ((size_t)16 << 20)
#define HFD_FLOW_PERIOD        (10 * HF_NSEC_PER_SEC)

/* seats: the number that is divided among the levels. host outlives it. 0 or -errno. */
int hfd_flow_levels_new(const struct hf_host *host, unsigned seats,
                        struct hfd_flow_levels **ret_levels);
/* Starts the timer. 0 or -errno. */
int hfd_flow_levels_start(struct hfd_flow_levels *levels);
/* Joins the timer. Afterwards no wait ends at its deadline. Idempotent. Accepts NULL. */
void hfd_flow_levels_stop(struct hfd_flow_levels *levels);
/* Stops the timer and frees everything. Requires that no level has requests and that no index
 * exists. Accepts NULL, returns NULL. */
struct hfd_flow_levels *hfd_flow_levels_free(struct hfd_flow_levels *levels);

/*
 * The n levels of specs, n > 0, are the configured ones from now on: makes those that are new, and
 * changes the others while requests run and wait in them. Fills in ret_levels with a reference for
 * each spec. 0 or -errno: no reference was made; either nothing has changed, or some levels were
 * changed, and the others count as deleted until a later call reaches them.
 */
int hfd_flow_levels_apply(struct hfd_flow_levels *levels, const struct hfd_flow_level_spec *specs,
                          size_t n, struct hfd_flow_level **ret_levels);
/* Ends a period: removes deleted levels that nothing uses any more, and adjusts the limits. The
 * timer calls it; so do tests. */
void hfd_flow_levels_end_period(struct hfd_flow_levels *levels, hf_nsec now);
/* Refuses the requests whose deadline has passed. Returns the earliest deadline that is left;
 * HF_NSEC_NEVER = none. */
hf_nsec hfd_flow_levels_expire(struct hfd_flow_levels *levels, hf_nsec now);

/* The server shuts down: no request waits longer than until this deadline, neither those that wait
 * now nor those that come later. Call it once. */
void hfd_flow_levels_hurry(struct hfd_flow_levels *levels, hf_nsec deadline);
/* That deadline; HF_NSEC_NEVER = there is none. */
hf_nsec hfd_flow_levels_last_deadline(const struct hfd_flow_levels *levels);
/* A place begins to wait until this deadline: makes the timer look at that time. */
void hfd_flow_levels_expect(struct hfd_flow_levels *levels, hf_nsec deadline);
/* A place that keeps this memory begins to wait. False: the limit is reached, and the place must
 * not wait. When a wait ends, free_bytes gives the memory back. */
bool hfd_flow_levels_take_bytes(struct hfd_flow_levels *levels, size_t bytes);
void hfd_flow_levels_free_bytes(struct hfd_flow_levels *levels, size_t bytes);

/* Calls fn for each level, in the order of their names, with the mutex of the list and that of the
 * level locked. A deleted level without requests is left out. quiescing: its configuration was
 * deleted. */
void hfd_flow_levels_each(struct hfd_flow_levels *levels,
                          void (*fn)(void *ctx, struct hfd_flow_level *level, bool quiescing),
                          void *ctx);
/* The fair fraction (core/borrowing.h) of the last adjustment; for metrics. */
double hfd_flow_levels_fraction(struct hfd_flow_levels *levels);
