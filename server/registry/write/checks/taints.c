/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives a new node the taint of a node that is not ready; and a pod, when it is created and when it
 * is updated, the tolerations that all pods have.
 *
 * Invariants, as in Kubernetes: taints and tolerations that are added here have no owner in
 * managedFields, and a pod that gets a toleration in an update gets a new generation.
 */
#include "server/registry/write/checks/taints.h"

#include <string.h>

#include "base/json.h"
#include "server/quota/usage.h"
#include "server/registry/write/reply.h"
#include "server/resources/meta.h"
#include "server/resources/workloads/workloads.h"

static bool is_node(const struct hfd_resource *resource) {
        return !*resource->group && strcmp(resource->plural, "nodes") == 0;
}

static int tolerate_taints(struct hfd_write *w) {
        bool changed = false;
        int r = hfd_pod_default_tolerations(hf__json_get(w->object, "spec"), &changed);

        return r == 0 && changed && w->old
                       ? hfd_meta_set_generation(w->request->resource, w->object, w->old, false)
                       : r;
}

bool hfd_write_taint(struct hfd_write *w) {
        const struct hfd_resource *resource = w->request->resource;
        int r = 0;

        if (w->request->subresource != HFD_SUB_NONE)
                return true;
        if (hfd_quota_kind(resource->group, resource->plural) == HFD_QUOTA_PODS)
                r = tolerate_taints(w);
        else if (w->created && is_node(resource))
                r = hfd_node_taint_new(w->object);
        if (r != 0)
                hfd_write_reply_no_memory(w);
        return r == 0;
}
