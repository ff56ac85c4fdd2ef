/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the parts of an object that a write must not change. A request to a subresource changes
 * only the part of that subresource, and for some kinds metadata. A request to the object itself
 * changes neither its status nor spec.finalizers, if the kind has subresources for them.
 *
 * Invariant: what a write must not change comes from the stored object, whatever the client sends.
 * The client is not told, as in Kubernetes: it sends the whole object that it has read.
 */
#include "server/registry/write/patches/merge_parts.h"

#include <errno.h>

#include "base/json.h"
#include "server/quota/usage.h"
#include "server/registry/write/admit.h"
#include "server/resources/meta.h"

/*
 * Replaces the part of object at path by a copy of that of `from`. If `from` has no such part,
 * removes it from object. 0 or -ENOMEM.
 */
static int replace_part(struct hf__json *object, const char *path, const struct hf__json *from) {
        const struct hf__json *part = hf__json_path(from, path);
        struct hf__json *copy;

        if (!part || hf__json_is_null(part)) {
                hf__json_remove(object, path);
                return 0;
        }
        copy = hf__json_dup(part);
        return copy ? hf__json_set(object, path, copy) : -ENOMEM;
}

/* Copies the part from w->object to merged, a copy of the stored object. 0 or -ENOMEM. */
static int merge_part(const struct hfd_write *w, struct hf__json *merged) {
        enum hfd_subresource part = w->request->subresource;
        const struct hfd_part_rules *rules = hfd_resource_part_rules(w->request->resource, part);

        if (rules)
                return rules->merge(part, merged, w->object);
        return replace_part(merged, part == HFD_SUB_STATUS ? "status" : "spec.finalizers",
                            w->object);
}

/*
 * For the subresources whose requests do not change metadata (subresources_write_meta is false, as
 * for custom resources), and for those with rules (struct hfd_part_rules), which decide about
 * metadata themselves: makes w->object a copy of old in which only the part is from the client. 0
 * or -ENOMEM.
 */
static int merge_subresource(struct hfd_write *w, const struct hf__json *old) {
        struct hf__json *merged = hf__json_dup(old);
        bool applies = w->request->verb == HFD_PATCH && w->request->patch == HFD_PATCH_APPLY;
        int r = merged ? merge_part(w, merged) : -ENOMEM;

        /* After an apply or a change by admission, the owners are known already. */
        if (r == 0 && (applies || hfd_write_admit_has_mutated(w)))
                r = replace_part(merged, "metadata.managedFields", w->object);
        if (r != 0) {
                hf__json_free(merged);
                return r;
        }
        hf__json_free(w->object);
        w->object = merged;
        return 0;
}

int hfd_write_merge_parts(struct hfd_write *w, const struct hf__json *old) {
        const struct hfd_resource *resource = w->request->resource;
        enum hfd_subresource part = w->request->subresource;
        unsigned subresources = resource->subresources;
        /* checks/certificate.c also restores the certificate, which a request to /approval must not
         * write. */
        bool is_status = part == HFD_SUB_STATUS || part == HFD_SUB_APPROVAL;
        int r = 0;

        /* A Scale changes the number of replicas, which a request to the object may change too. */
        bool is_part = part && part != HFD_SUB_SCALE;
        if (is_part &&
            (!resource->subresources_write_meta || hfd_resource_part_rules(resource, part)))
                return merge_subresource(w, old);
        if (is_part) {
                r = replace_part(w->object, is_status ? "spec" : "status", old);
                /* As in Kubernetes, ownerReferences stay: old kubelets send damaged ones, which
                 * would break the garbage collection. */
                if (r == 0 && hfd_quota_kind(resource->group, resource->plural) == HFD_QUOTA_PODS)
                        r = replace_part(w->object, "metadata.ownerReferences", old);
                return r == 0 ? hfd_meta_prepare_update(resource, w->object, old) : r;
        }
        if (subresources & HFD_SUB_STATUS)
                r = replace_part(w->object, "status", old);
        if (r == 0 && subresources & HFD_SUB_FINALIZE)
                r = replace_part(w->object, "spec.finalizers", old);
        return r == 0 ? hfd_meta_prepare_update(resource, w->object, old) : r;
}
