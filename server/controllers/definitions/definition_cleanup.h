/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The controller that deletes the objects of a CustomResourceDefinition that is being deleted, and
 * then removes the definition's finalizer. Runs on the leader.
 */
#include <holdfast/leader.h>

#define HFD_DEFINITION_CLEANUP "custom-resource-cleanup"

/*
 * hf_controller.run; ctx is the struct hfd_controller_context, which is borrowed. Thread: the
 * term's thread for this controller. Blocks until the term drains or aborts.
 */
int hfd_definition_cleanup_run(struct hf_term *term, void *ctx);
