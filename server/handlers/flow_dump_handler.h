/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * GET /debug/api_priority_and_fairness/: dump_priority_levels, dump_queues and dump_requests, as in
 * kube-apiserver (flow/flow_dump.h). Thread: any.
 */
#include "server/http/router.h"

struct hfd_flow_control;
struct hfd_flow_dump_handler;
struct hf_host;

/* Adds the paths to the router. flow and host outlive the handler, which outlives all requests. 0,
 * -ENOMEM, or an error of hfd_router_add. */
int hfd_flow_dump_handler_new(const struct hf_host *host, struct hfd_flow_control *flow,
                              struct hfd_router *router,
                              struct hfd_flow_dump_handler **ret_handler);
/* Requires that no request is in progress. Accepts NULL, returns NULL. */
struct hfd_flow_dump_handler *hfd_flow_dump_handler_free(struct hfd_flow_dump_handler *handler);
