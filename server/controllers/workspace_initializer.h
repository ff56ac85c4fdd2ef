/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The leader-only controller workspace-initializer: takes workspaces from their creation to Ready,
 * and through their deletion.
 */
#include <holdfast/leader.h>

#define HFD_WORKSPACE_INITIALIZER "workspace-initializer"

/* The label of a ConfigMap in kube-system that registers an initializer for new workspaces; its
 * value is the initializer's name. */
#define HFD_INITIALIZER_LABEL "tenancy.holdfast.dev/initializer"

/* The controller's run function. context: its struct hfd_controller_context. */
int hfd_workspace_initializer_run(struct hf_term *term, void *context);
