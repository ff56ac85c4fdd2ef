/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The leader-only controller namespace-lifecycle. It deletes the contents of namespaces that are
 * being deleted, then removes their finalizer. It also deletes objects whose namespace does not
 * exist.
 */
#include <holdfast/leader.h>

#define HFD_NAMESPACE_LIFECYCLE "namespace-lifecycle"

/* The controller's run function. context: its struct hfd_controller_context. */
int hfd_namespace_lifecycle_run(struct hf_term *term, void *context);
