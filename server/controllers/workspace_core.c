/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machine of a workspace.
 *
 * Invariant: a step depends on the object only and on no state in memory. So a new leader continues
 * where the previous one stopped.
 */
#include "server/controllers/workspace_core.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "server/controllers/base/string_list.h"
#include "server/controllers/garbage/gc_core.h"

static bool has_finalizer(const struct hf__json *workspace, const char *finalizer) {
        return hfd_string_list_has(workspace, "metadata.finalizers", finalizer);
}

enum hfd_workspace_step hfd_workspace_next(const struct hf__json *workspace) {
        const char *phase = hf__json_string(workspace, "status.phase");
        bool has_our_finalizer = has_finalizer(workspace, HFD_WS_FINALIZER);

        if (hf__json_string(workspace, "metadata.deletionTimestamp")) {
                /* A workspace deleted with the policy Orphan leaves its namespace behind: the
                 * garbage collector first removes the owner reference from the namespace and then
                 * removes its finalizer from the workspace. Until then nothing may be deleted. */
                bool orphaning = has_finalizer(workspace, HFD_ORPHAN);
                return has_our_finalizer && !orphaning ? HFD_WS_DELETE_NAMESPACE : HFD_WS_NOTHING;
        }
        if (!has_our_finalizer)
                return HFD_WS_ADD_FINALIZER;
        if (!phase || !*phase)
                return HFD_WS_SCHEDULE;
        if (strcmp(phase, "Scheduling") == 0)
                return HFD_WS_INITIALIZE;
        if (strcmp(phase, "Initializing") != 0)
                return HFD_WS_NOTHING;
        if (hfd_string_list_has(workspace, HFD_WS_INITIALIZERS, HFD_WS_INITIALIZER))
                return HFD_WS_CREATE_NAMESPACE;
        bool all_done = hf__json_count(hf__json_path(workspace, HFD_WS_INITIALIZERS)) == 0;
        return all_done ? HFD_WS_READY : HFD_WS_NOTHING;
}

int hfd_workspace_set_phase(struct hf__json *workspace, const char *phase) {
        return hf__json_set_string(workspace, "status.phase", phase);
}

static int add_initializer(struct hf__json *workspace, const char *name) {
        if (!*name || hf__json_count(hf__json_path(workspace, HFD_WS_INITIALIZERS)) >=
                              HFD_WS_MAX_INITIALIZERS)
                return 0;
        return hf__json_add_element(workspace, HFD_WS_INITIALIZERS, name);
}

int hfd_workspace_initialize(struct hf__json *workspace, const char *const *registered, size_t n) {
        hf__json_remove(workspace, HFD_WS_INITIALIZERS);
        int r = hf__json_add_element(workspace, HFD_WS_INITIALIZERS, HFD_WS_INITIALIZER);

        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(workspace, "spec.initializers"));
             r == 0 && m; m = hf__json_next(m))
                if (hf__json_is_string(m))
                        r = add_initializer(workspace, hf__json_text(m));
        for (size_t i = 0; r == 0 && i < n; i++)
                r = add_initializer(workspace, registered[i]);
        return r != 0 ? r : hfd_workspace_set_phase(workspace, "Initializing");
}

int hfd_workspace_namespace_created(struct hf__json *workspace) {
        int r = hfd_string_list_remove(workspace, HFD_WS_INITIALIZERS, HFD_WS_INITIALIZER);

        if (r == 0 && hf__json_count(hf__json_path(workspace, HFD_WS_INITIALIZERS)) == 0)
                r = hfd_workspace_set_phase(workspace, "Ready");
        return r;
}
