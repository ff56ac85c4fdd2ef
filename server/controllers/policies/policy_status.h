/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The controller that checks the types in the expressions of ValidatingAdmissionPolicies, and
 * writes the result to their status. Runs on the leader.
 */
#include <holdfast/leader.h>

#define HFD_POLICY_STATUS "admission-policy-status"

/*
 * hf_controller.run; ctx is the struct hfd_controller_context, which is borrowed. Thread: the
 * term's thread for this controller. Blocks until the term drains or aborts.
 */
int hfd_policy_status_run(struct hf_term *term, void *ctx);
