/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema and the strategy of Workspaces (tenancy.holdfast.dev). A Workspace is a tenant with a
 * Namespace of its own, which the controller workspace-initializer makes.
 *
 * Invariant: every new Workspace gets the finalizer below, so a deleted Workspace remains until the
 * controller has deleted its Namespace, unless the Workspace was deleted with the policy Orphan.
 */
#include "base/json.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

/* The controller removes this finalizer: it must be equal to HFD_WS_FINALIZER in
 * server/controllers/workspace_core.h. */
#define FINALIZER "tenancy.holdfast.dev/workspace"

#define TENANCY "dev.holdfast.tenancy.v1alpha1."

/* Spec and status keep fields that they do not declare (preserve_unknown), because initializers of
 * other vendors may use their own. The kind has no protobuf form (hfd_protobuf_has_form), so the
 * fields have no numbers. */
static const struct hfd_schema_field part_fields[] = {
        {"initializers", &hfd_schema_list_of_texts,
         "Names of controllers that must act before the workspace is Ready."},
        {"phase", &hfd_schema_text, "The phase of the workspace."},
};
static const struct hfd_schema spec_schema = {HFD_STRUCT(TENANCY "WorkspaceSpec", part_fields),
                                              .preserve_unknown = true,
                                              .description = "The desired state of a workspace."};
static const struct hfd_schema status_schema = {HFD_STRUCT(TENANCY "WorkspaceStatus", part_fields),
                                                .preserve_unknown = true,
                                                .description =
                                                        "The observed state of a workspace."};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &spec_schema, "The desired state."},
        {"status", &status_schema, "The observed state."},
};
const struct hfd_schema hfd_workspace_schema =
        {HFD_STRUCT(TENANCY "Workspace", fields),
         .description = "Workspace is a tenant. Each has a namespace of its own."};

int hfd_workspace_prepare(struct hf__json *object, const struct hf__json *old) {
        return old ? 0 : hf__json_add_element(object, "metadata.finalizers", FINALIZER);
}
