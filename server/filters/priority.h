/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Priority and fairness: which FlowSchema and which priority level a request has, and its seats in
 * that level (flow/flow_level.h).
 *
 * A request needs seats from the time when it is complete until its response is sent, or until its
 * client does not read the response at once; unsent.h limits such responses. While it waits for
 * seats, its body is in memory; flow_levels.h limits how much memory such bodies take.
 */
#include "server/filters/request_context.h"
#include "server/flow/flow_control.h"

/*
 * Finds the schema and the level of the request, and keeps them in the context. Names both, if
 * they are stored, in headers of the response, as kube-apiserver does, also if the request is
 * refused later. user: after impersonation. flow NULL = there are no priority levels. Thread:
 * worker, before the response.
 */
void hfd_priority_filter(struct hfd_request_context *context, struct hfd_flow_control *flow,
                         const struct hfd_user *user);
/* The complete request enters its level; without levels it executes. See hfd_flow_level_enter.
 * Thread: worker. */
enum hfd_verdict hfd_priority_enter(struct hfd_request_context *context,
                                    const struct hfd_flow_owner *owner, unsigned *ret_retry_after);
/* Responds with 429, in the words of kube-apiserver. Thread: worker. */
void hfd_priority_refuse(struct hfd_request_context *context, unsigned retry_after);

/* The context that a place belongs to. */
struct hfd_request_context *hfd_priority_context(struct hfd_flow_place *place);
/* For struct hfd_flow_owner. */
void hfd_priority_describe(const struct hfd_flow_place *place, struct hfd_flow_description *ret);
