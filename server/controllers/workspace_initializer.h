/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The leader-only controller workspace-initializer: initializes new workspaces until they are
 * Ready, and deletes the namespaces of deleted ones.
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
 * One step of the controller, declared for its unit test. Starts the deletion of the namespace
 * ns_name if the workspace with this uid owns it. *ret_gone: the workspace owns no namespace of
 * that name. HF_E_CONFLICT: another client has changed the namespace.
 */
int hfd_workspace_initializer_delete_namespace(struct hfd_controller_context *context,
                                               struct hf_term *term, const char *ns_name,
                                               const char *uid, bool *ret_gone);
