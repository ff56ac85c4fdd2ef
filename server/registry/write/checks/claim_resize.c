/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets a claim grow only if its StorageClass says that its volumes can be expanded: otherwise the
 * claim would ask for a size that no driver will ever give it. To ask for less is a matter of the
 * rules of claims (claim_validation.c).
 *
 * Invariants: a refusal is about the newest version of the claim. If the cache does not have the
 * class, or has a version that forbids the expansion, the class may have been created or changed on
 * another instance a moment ago. So before a refusal because of the class, the write waits until
 * the cache has all earlier writes. If the cache stays behind, its classes decide. The messages are
 * those of kube-apiserver.
 */
#include "server/registry/write/checks/claim_resize.h"

#include <string.h>

#include "base/json.h"
#include "server/registry/write/checks/priority_default.h"
#include "server/registry/write/reply.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/validation/resource_names.h"

static bool is_claim_update(const struct hfd_write *w) {
        const struct hfd_resource *resource = w->request->resource;

        return w->old && w->request->subresource == HFD_SUB_NONE && !*resource->group &&
               strcmp(resource->plural, "persistentvolumeclaims") == 0;
}

static bool grows(const struct hf__json *claim, const struct hf__json *old) {
        static const char path[] = "spec.resources.requests.storage";
        const struct hfd_quantity size = hfd_quantity_of_json(hf__json_path(claim, path)),
                                  before = hfd_quantity_of_json(hf__json_path(old, path));

        return hfd_quantity_compare(&size, &before) > 0;
}

/* The annotation is the older form, and comes first. "": the claim has no class. */
static const char *class_of(const struct hf__json *claim) {
        static const char key[] = "volume.beta.kubernetes.io/storage-class";
        const struct hf__json *annotation =
                hf__json_get(hf__json_path(claim, "metadata.annotations"), key);

        if (!annotation)
                annotation = hf__json_path(claim, "spec.storageClassName");
        return hf__json_is_string(annotation) ? hf__json_text(annotation) : "";
}

/* 0: the class lets volumes grow. HF_E_FORBIDDEN: it does not. HF_E_NOT_FOUND: the cache does not
 * have it. HF_E_UNAVAILABLE: the cache is not filled. Or -ENOMEM. */
static int ask_class(struct hfd_write *w, const char *name) {
        const struct hfd_resource *classes =
                hfd_resource_find("storage.k8s.io", "v1", "storageclasses");
        struct hf__json *class;
        int r = hfd_write_find_class(w, classes, name, &class);

        if (r == 0 && !hf__json_bool(class, "allowVolumeExpansion", false))
                r = HF_E_FORBIDDEN;
        hf__json_free(class);
        return r;
}

bool hfd_write_claim_may_grow(struct hfd_write *w) {
        const char *why = "only dynamically provisioned pvc can be resized and the storageclass "
                          "that provisions the pvc must support resize";

        if (!is_claim_update(w) || !grows(w->object, w->old))
                return true;
        const char *class = class_of(w->object), *phase = hf__json_string(w->old, "status.phase");
        bool asked = false;
        int r = HF_E_FORBIDDEN;
        if (!phase || strcmp(phase, "Bound") != 0)
                why = "Only bound persistent volume claims can be expanded";
        else
                asked = *class && strlen(class) <= HF_NAME_MAX &&
                        strcmp(class, class_of(w->old)) == 0;
        if (asked)
                r = ask_class(w, class);
        if (r == 0)
                return true;
        if (!w->fresh)
                hfd_write_refetch(w);
        else if (asked && (r == HF_E_NOT_FOUND || r == HF_E_FORBIDDEN) && !w->knows_classes)
                hfd_write_await_classes(w, true);
        else if (r == HF_E_NOT_FOUND || r == HF_E_FORBIDDEN)
                hfd_write_reply_forbidden(w, why);
        else
                hfd_write_reply_store_error(w, r, NULL);
        return false;
}
