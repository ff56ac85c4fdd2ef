/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives pods the tolerations that all pods have, when they are created and when they are updated.
 * As in Kubernetes, they have no owner in managedFields, and count for the generation.
 */
#include "server/registry/write/checks/pod_tolerations.h"

#include "base/json.h"
#include "server/quota/usage.h"
#include "server/registry/write/reply.h"
#include "server/resources/meta.h"
#include "server/resources/workloads/workloads.h"

bool hfd_write_tolerate(struct hfd_write *w) {
        const struct hfd_resource *resource = w->request->resource;
        bool changed = false;

        if (w->request->subresource != HFD_SUB_NONE ||
            hfd_quota_kind(resource->group, resource->plural) != HFD_QUOTA_PODS)
                return true;
        int r = hfd_pod_default_tolerations(hf__json_get(w->object, "spec"), &changed);
        if (r == 0 && changed && w->old)
                r = hfd_meta_set_generation(resource, w->object, w->old);
        if (r != 0)
                hfd_write_reply_no_memory(w);
        return r == 0;
}
