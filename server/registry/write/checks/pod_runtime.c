/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from the RuntimeClass of a new pod its overhead, and the members that say on which nodes
 * such pods can run (node selector, tolerations), as kube-apiserver's admission plug-in
 * RuntimeClass does.
 *
 * Invariants: a pod is created with the overhead of its class and no other. A class that the cache
 * does not know may have been created on another instance a moment ago, so before a refusal the
 * write waits until the cache has all earlier writes. The messages are those of kube-apiserver.
 */
#include "server/registry/write/checks/pod_runtime.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/quota/usage.h"
#include "server/registry/write/checks/priority_default.h"
#include "server/registry/write/reply.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/values/quantity.h"

static bool is_new_pod(const struct hfd_write *w) {
        const struct hfd_resource *resource = w->request->resource;

        return w->created && w->request->subresource == HFD_SUB_NONE &&
               hfd_quota_kind(resource->group, resource->plural) == HFD_QUOTA_PODS;
}

/* Finds the class of the pod, which the caller frees; *ret_class NULL = the pod names none. False:
 * the response was sent, or another attempt was started. */
static bool class_of(struct hfd_write *w, struct hf__json **ret_class) {
        const char *name = hf__json_string(w->object, "spec.runtimeClassName");
        char why[HF_NAME_MAX + 60];

        *ret_class = NULL;
        if (!name)
                return true;
        const struct hfd_resource *classes =
                hfd_resource_find("node.k8s.io", "v1", "runtimeclasses");
        int r = strlen(name) > HF_NAME_MAX ? HF_E_NOT_FOUND
                                           : hfd_write_find_class(w, classes, name, ret_class);
        if (r == HF_E_NOT_FOUND && !w->knows_classes && strlen(name) <= HF_NAME_MAX) {
                hfd_write_await_classes(w, false);
        } else if (r == HF_E_NOT_FOUND) {
                (void)snprintf(why, sizeof why, "pod rejected: RuntimeClass \"%.253s\" not found",
                               name);
                hfd_write_reply_forbidden(w, why);
        } else if (r != 0) {
                hfd_write_reply_store_error(w, r, NULL);
        }
        return r == 0;
}

/* ---- overhead ---- */

/* Whether both are quantities of the same amount, in whatever form. */
static bool same_amount(const struct hf__json *a, const struct hf__json *b) {
        struct hfd_quantity x, y;

        return hf__json_is_string(a) && hf__json_is_string(b) &&
               !hfd_quantity_parse(hf__json_text(a), &x) &&
               !hfd_quantity_parse(hf__json_text(b), &y) && hfd_quantity_compare(&x, &y) == 0;
}

/* Whether both have the same amounts, also if these are written in different ways. 0 or -ENOMEM. */
static int same_overhead(const struct hf__json *a, const struct hf__json *b, bool *ret_same) {
        struct hf__json_index of_b;
        int r = hf__json_index_init(&of_b, b, NULL);

        *ret_same = r == 0 && hf__json_count(a) == of_b.n;
        for (const struct hf__json *m = hf__json_first(a); m && *ret_same; m = hf__json_next(m)) {
                const struct hf__json_index_entry *amount =
                        hf__json_index_find(&of_b, hf__json_key(m));
                *ret_same = amount && same_amount(m, amount->item);
        }
        hf__json_index_done(&of_b);
        return r;
}

static const struct hf__json *overhead_of(const struct hf__json *class) {
        return hf__json_path(class, "overhead.podFixed");
}

/* Whether the pod has the overhead of its class; class NULL = it names none, so it must have no
 * overhead. False: the response was sent. */
static bool check_overhead(struct hfd_write *w, const struct hf__json *class) {
        const struct hf__json *of_pod = hf__json_path(w->object, "spec.overhead");
        const char *why = NULL;
        bool same = true;

        if (!hf__json_get(class, "overhead") && of_pod) {
                why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined "
                      "Overhead";
        } else if (hf__json_get(class, "overhead") &&
                   same_overhead(overhead_of(class), of_pod, &same) != 0) {
                hfd_write_reply_no_memory(w);
                return false;
        }
        if (!same)
                why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
        if (why)
                hfd_write_reply_forbidden(w, why);
        return !why;
}

static bool assign_overhead(struct hfd_write *w, const struct hf__json *class) {
        const struct hf__json *overhead = overhead_of(class);

        if (!overhead)
                return true;
        if (hf__json_first(hf__json_path(w->object, "spec.overhead")))
                return check_overhead(w, class);
        if (hf__json_set(w->object, "spec.overhead", hf__json_dup(overhead)) == 0)
                return true;
        hfd_write_reply_no_memory(w);
        return false;
}

/* ---- scheduling ---- */

static bool assign_scheduling(struct hfd_write *w, const struct hf__json *class) {
        const struct hf__json *scheduling = hf__json_get(class, "scheduling");
        struct hf__json *spec = hf__json_get(w->object, "spec");
        struct hf__strbuf why = {0};
        bool assigned = false;

        if (!scheduling)
                return true;
        int r = hfd_pod_merge_node_selector(spec, hf__json_get(scheduling, "nodeSelector"), &why);
        if (r == 0 && why.n == 0)
                r = hfd_pod_merge_tolerations(spec, hf__json_get(scheduling, "tolerations"));
        if (r == HF_E_TOO_LARGE)
                hf__strbuf_puts(&why, "the pod and its RuntimeClass have too many tolerations");
        if (why.n > 0)
                hfd_write_reply_forbidden(w, why.data);
        else if (r != 0)
                hfd_write_reply_no_memory(w);
        else
                assigned = true;
        hf__strbuf_done(&why);
        return assigned;
}

bool hfd_write_runtime_assign(struct hfd_write *w) {
        struct hf__json *class;

        if (!is_new_pod(w))
                return true;
        if (!class_of(w, &class))
                return false;
        bool assigned = !class || (assign_overhead(w, class) && assign_scheduling(w, class));
        hf__json_free(class);
        return assigned;
}

bool hfd_write_runtime_allows(struct hfd_write *w) {
        struct hf__json *class;

        if (!is_new_pod(w))
                return true;
        if (!class_of(w, &class))
                return false;
        bool allowed = check_overhead(w, class);
        hf__json_free(class);
        return allowed;
}
