/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The leader-only controller namespace-lifecycle. It deletes the contents of namespaces that are
 * being deleted, then removes their finalizer. It also deletes objects whose namespace does not
 * exist.
 */
#include <holdfast/leader.h>

#define HFD_NAMESPACE_LIFECYCLE "namespace-lifecycle"

/*
 * hf_controller.run; ctx is the struct hfd_controller_context, which is borrowed. Thread: the
 * term's thread for this controller. Blocks until the term drains or aborts.
 */
int hfd_namespace_lifecycle_run(struct hf_term *term, void *ctx);
