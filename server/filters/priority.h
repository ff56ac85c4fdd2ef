/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Priority and fairness: which FlowSchema and which priority level a request has. */
#include "server/filters/request_context.h"
#include "server/flow/flow_control.h"

/*
 * Names the schema and the level in headers of the response, as kube-apiserver does, also if the
 * request is refused later. user: after impersonation. flow NULL = there are none. Thread: worker,
 * before the response.
 */
void hfd_priority_filter(struct hfd_request_context *context, struct hfd_flow_control *flow,
                         const struct hfd_user *user);
