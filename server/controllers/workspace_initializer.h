/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The leader-only controller workspace-initializer: takes workspaces from their creation to Ready,
 * and through their deletion.
 */
#include <stdbool.h>

#include <holdfast/leader.h>

struct hfd_controller_context;

#define HFD_WORKSPACE_INITIALIZER "workspace-initializer"

/* The label of a ConfigMap in kube-system that registers an initializer for new workspaces; its
 * value is the initializer's name. */
#define HFD_INITIALIZER_LABEL "tenancy.holdfast.dev/initializer"

/* The controller's run function. context: its struct hfd_controller_context. */
int hfd_workspace_initializer_run(struct hf_term *term, void *context);

/*
 * A step of that function, declared for its unit test: deletes the namespace `full` if the
 * workspace with this uid owns it. *ret_gone: no such namespace of the workspace exists any more.
 * HF_E_CONFLICT: the namespace has changed meanwhile.
 */
int hfd_workspace_initializer_end_namespace(struct hfd_controller_context *context,
                                            struct hf_term *term, const char *full, const char *uid,
                                            bool *ret_gone);
