/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces (tenancy.holdfast.dev). Every new Workspace gets the finalizer below. So a deleted
 * Workspace remains until the controller workspace-initializer has deleted its Namespace.
 */
#include "base/json.h"
#include "server/resources/parts.h"
#include "server/resources/strategies/strategies.h"

#define FINALIZER                                                                                  \
        "tenancy.holdfast.dev/workspace" /* equal to the one in controllers/workspace_core.h */

bool hfd_workspace_decode(struct hf__json *object, char *reason, size_t max_reason) {
        return hfd_part_is_object(object, "spec", "Workspace", reason, max_reason) &&
               hfd_part_is_object(object, "status", "Workspace", reason, max_reason);
}

int hfd_workspace_prepare(struct hf__json *object, const struct hf__json *old) {
        struct hf__json *list = hf__json_path(object, "metadata.finalizers");

        if (old || hfd_part_list_has(list, FINALIZER))
                return 0;
        if (!hf__json_is_array(list)) {
                int r = hf__json_set(object, "metadata.finalizers", hf__json_array());
                if (r != 0)
                        return r;
                list = hf__json_path(object, "metadata.finalizers");
        }
        return hf__json_append_string(list, FINALIZER);
}
