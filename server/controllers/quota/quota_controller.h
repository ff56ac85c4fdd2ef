/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The controller resourcequota. Keeps the status of ResourceQuotas correct: status.hard equals
 * spec.hard, and status.used is what the namespace uses. Runs on the leader.
 */
#include <holdfast/leader.h>

#define HFD_RESOURCE_QUOTA "resourcequota"

/*
 * hf_controller.run; ctx is the struct hfd_controller_context, which is borrowed. Thread: the
 * term's thread for this controller. Blocks until the term drains or aborts.
 */
int hfd_quota_controller_run(struct hf_term *term, void *ctx);
