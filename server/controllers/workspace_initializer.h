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

/*
 * hf_controller.run; ctx is the struct hfd_controller_context, which is borrowed. Thread: the
 * term's thread for this controller. Blocks until the term drains or aborts.
 */
int hfd_workspace_initializer_run(struct hf_term *term, void *ctx);

/*
 * One step of the controller, declared for its unit test. Starts the deletion of the namespace
 * ns_name if the workspace with this uid owns it. *ret_gone: the workspace owns no namespace of
 * that name. HF_E_CONFLICT: another client has changed the namespace. Thread: any. Blocks until the
 * API has responded, or the term's abort token has fired.
 */
int hfd_workspace_initializer_delete_namespace(struct hfd_controller_context *context,
                                               struct hf_term *term, const char *ns_name,
                                               const char *uid, bool *ret_gone);
