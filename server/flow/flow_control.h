/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Priority and fairness: finds the FlowSchema and the priority level of each request. It keeps an
 * index of those objects (flow_index.h). After each change a thread builds a new index and replaces
 * the old one, so a request never waits.
 *
 * Threads: any, except for new, start, stop and free. Lock: one mutex guards the pointer to the
 * current index.
 */
#include <stdbool.h>

#include <holdfast/host.h>

#include "server/flow/flow_index.h"

struct hfd_cacher;
struct hfd_flow_control;
struct hfd_resource;

/* host outlives it. 0 or -errno. */
int hfd_flow_control_new(const struct hf_host *host, struct hfd_flow_control **ret_flow);
/* Starts the thread that builds indexes from the cacher. Accepts NULL. 0 or -errno. */
int hfd_flow_control_start(struct hfd_flow_control *flow, struct hfd_cacher *cacher);
/* Joins the thread; call it before the cacher is freed. hfd_flow_control_changed may still be
 * called. Accepts NULL, and one that was not started. Idempotent. */
void hfd_flow_control_stop(struct hfd_flow_control *flow);
/* Stops. Accepts NULL, returns NULL. */
struct hfd_flow_control *hfd_flow_control_free(struct hfd_flow_control *flow);

/* The objects in the cacher may have changed. Never blocks. Accepts NULL. */
void hfd_flow_control_changed(struct hfd_flow_control *flow);
/* Whether the objects of the resource are FlowSchemas or priority levels. */
bool hfd_flow_control_observes(const struct hfd_resource *resource);
/* A reference to the current index. NULL: there is none yet. */
struct hfd_flow_index *hfd_flow_control_index(struct hfd_flow_control *flow);
/* Whether index, of which the caller has a reference, is the current one. Takes no lock. */
bool hfd_flow_control_has(const struct hfd_flow_control *flow, const struct hfd_flow_index *index);
