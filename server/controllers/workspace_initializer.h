/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The leader-only controller workspace-initializer: initializes new workspaces until they are
 * Ready, and cleans up after deleted ones.
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
 * One step of the controller, declared for its unit test: deletes the namespace `full` if the
 * workspace with this uid owns it. *ret_gone: the workspace owns no such namespace (any more).
 * HF_E_CONFLICT: the namespace has changed meanwhile.
 */
int hfd_workspace_initializer_end_namespace(struct hfd_controller_context *context,
                                            struct hf_term *term, const char *full, const char *uid,
                                            bool *ret_gone);
