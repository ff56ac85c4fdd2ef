/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Priority and fairness: finds the FlowSchema and the priority level of each request, and has the
 * levels that limit how many requests run (flow_levels.h). It keeps an index of the FlowSchemas
 * and levels (flow_index.h). After each change a thread builds a new index and replaces the old
 * one, so no request waits for a build. Until the objects are known, only the mandatory ones apply.
 *
 * Threads: any, except for new, start, stop and free. Lock: one mutex guards the pointer to the
 * current index. Lock order: none; it is never held together with another lock.
 */
#include <stdbool.h>

#include <holdfast/host.h>

#include "server/flow/flow_index.h"

struct hfd_cacher;
struct hfd_flow_control;
struct hfd_resource;

/* seats: the number that is divided among the levels. host outlives it. 0 or -errno. */
int hfd_flow_control_new(const struct hf_host *host, unsigned seats,
                         struct hfd_flow_control **ret_flow);
/* Starts the threads: one builds indexes from the cacher, and one is the timer of the levels. Call
 * it before the cacher starts, which calls hfd_flow_control_changed from then on. Accepts NULL. 0
 * or -errno; after an error the timer may run until stop or free. */
int hfd_flow_control_start(struct hfd_flow_control *flow, struct hfd_cacher *cacher);
/* Joins the threads; call it before the cacher is freed. hfd_flow_control_changed may still be
 * called. Accepts NULL, and one that was not started. Idempotent. */
void hfd_flow_control_stop(struct hfd_flow_control *flow);
/* Stops the threads and frees everything. Requires that no request is in progress and that no
 * connection is open, because its memo refers to an index (request_memo.h). Accepts NULL, returns
 * NULL. */
struct hfd_flow_control *hfd_flow_control_free(struct hfd_flow_control *flow);

/* The objects in the cacher may have changed. Never blocks. Accepts NULL. */
void hfd_flow_control_changed(struct hfd_flow_control *flow);
/* Whether the objects of the resource are FlowSchemas or priority levels. */
bool hfd_flow_control_observes(const struct hfd_resource *resource);
/* Replaces the index by that of the builder, which is freed, also on failure.
 * hfd_flow_control_new and the thread that builds indexes call it; so do tests. One call at a time.
 * 0 or -ENOMEM: the index stays, but some levels may have the new configuration
 * (hfd_flow_builder_finish). */
int hfd_flow_control_use(struct hfd_flow_control *flow, struct hfd_flow_builder *builder);
/* A new reference to the current index. NULL only if flow is NULL. */
struct hfd_flow_index *hfd_flow_control_index(struct hfd_flow_control *flow);
/* The levels, for metrics, /debug and the shutdown; valid as long as flow. */
struct hfd_flow_levels *hfd_flow_control_levels(struct hfd_flow_control *flow);
/* How many objects of a resource the cache has; also 0 if the resource is not known, or flow does
 * not run. Thread: any; takes the cacher's lock. Accepts NULL. */
size_t hfd_flow_control_objects(struct hfd_flow_control *flow, const char *group,
                                const char *version, const char *resource);
/* Whether index, of which the caller has a reference, is the current one. Takes no lock. */
bool hfd_flow_control_has(const struct hfd_flow_control *flow, const struct hfd_flow_index *index);
