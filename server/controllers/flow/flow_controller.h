/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The controller flow-control: keeps the FlowSchemas and PriorityLevelConfigurations that every
 * server has, and the condition Dangling of all FlowSchemas. Runs on the leader.
 */
#include <holdfast/leader.h>

#define HFD_FLOW_CONTROLLER "flow-control"

/*
 * hf_controller.run; ctx is the struct hfd_controller_context, which is borrowed. Thread: the
 * term's thread for this controller. Blocks until the term drains or aborts.
 */
int hfd_flow_controller_run(struct hf_term *term, void *ctx);
