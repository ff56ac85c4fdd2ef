/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The annotations of a pod that programs read: profiles of AppArmor, the mark of a mirror pod, with
 * which a kubelet shows a pod that it runs from a file, and the cost of a deletion, by which the
 * controller of ReplicaSets chooses a pod.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. The first two kinds of annotations never change: the pod runs
 * with what they said when it was created.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/strategies/pod/rules/secret_references.h"
#include "server/resources/workloads/workloads.h"

#define DELETION_COST "controller.kubernetes.io/pod-deletion-cost"

static const char field[] = "metadata.annotations";

/* "metadata.annotations[KEY]". A long key is cut. */
static const char *keyed_path(char path[HFD_FIELD_PATH_MAX], const char *key) {
        (void)snprintf(path, HFD_FIELD_PATH_MAX, "%s[%s]", field, key);
        return path;
}

/* ---- what stays ---- */

/* Adds a cause for each annotation of AppArmor or mirror pods in `from` that `to` does not have,
 * or, if `values` is true, that has another value there. why: the texts for AppArmor and for mirror
 * pods. */
static void refuse_missing(const struct hf__json *from, const struct hf__json *to, bool values,
                           const char *const why[2], struct hfd_causes *causes) {
        struct hf__json_index by_key;
        char path[HFD_FIELD_PATH_MAX];

        if (!hfd_app_armor_is_annotated(from) && !hf__json_get(from, HFD_MIRROR_POD))
                return;
        if (hfd_causes_check(causes, hf__json_index_init(&by_key, to, NULL)))
                for (const struct hf__json *m = hf__json_first(from); m; m = hf__json_next(m)) {
                        const char *key = hf__json_key(m);
                        bool is_mirror = strcmp(key, HFD_MIRROR_POD) == 0;
                        const struct hf__json_index_entry *same = hf__json_index_find(&by_key, key);
                        if ((!is_mirror && !hfd_app_armor_is_key(key)) ||
                            (same && (!values || hfd_causes_equal(causes, same->item, m))))
                                continue;
                        hfd_cause_forbidden(causes, keyed_path(path, key), why[is_mirror]);
                }
        hf__json_index_done(&by_key);
}

/* ---- the cost of a deletion ---- */

/* A number of 32 bits. As in Kubernetes, a "+" and zeros in front of the number are refused, but
 * zeros after a "-" are not. */
static bool is_cost(const char *text) {
        const char *digits = text + (*text == '-');
        size_t n = strspn(digits, "0123456789");
        int64_t value = 0;

        if (n == 0 || digits[n] || (text[0] == '0' && text[1]))
                return false;
        for (size_t i = 0; i < n && value <= INT32_MAX; i++)
                value = 10 * value + (digits[i] - '0');
        return value <= (int64_t)INT32_MAX + (*text == '-');
}

/* If the cost of the old pod is invalid, any cost is accepted. */
static void validate_cost(const struct hf__json *annotations, const struct hf__json *was,
                          struct hfd_causes *causes) {
        const struct hf__json *cost = hf__json_get(annotations, DELETION_COST),
                              *old_cost = hf__json_get(was, DELETION_COST);
        char path[HFD_FIELD_PATH_MAX];

        /* What another program has stored need not be a text. */
        bool was_good =
                !old_cost || (hf__json_is_string(old_cost) && is_cost(hf__json_text(old_cost)));
        if (was_good && hf__json_is_string(cost) && !is_cost(hf__json_text(cost)))
                hfd_cause_invalid_text(causes, keyed_path(path, DELETION_COST), hf__json_text(cost),
                                       "must be a 32bit integer");
}

/* ---- all annotations ---- */

/* The values of the annotations for AppArmor are checked with the spec of a new pod
 * (hfd_app_armor_annotations_validate). */
void hfd_pod_validate_annotations(const struct hf__json *object, const struct hf__json *old,
                                  struct hfd_causes *causes) {
        static const char *const changed[] = {"may not remove or update AppArmor annotations",
                                              "may not remove or update mirror pod annotation"},
                                 *const added[] = {"may not add AppArmor annotations",
                                                   "may not add mirror pod annotation"};
        const struct hf__json *annotations = hf__json_path(object, field),
                              *was = hf__json_path(old, field),
                              *mirror = hf__json_get(annotations, HFD_MIRROR_POD);
        const char *node = hf__json_string(object, "spec.nodeName");
        char path[HFD_FIELD_PATH_MAX];

        if (old) {
                refuse_missing(was, annotations, true, changed, causes);
                refuse_missing(annotations, was, false, added, causes);
        } else if (hf__json_is_string(mirror) && (!node || !*node)) {
                hfd_cause_invalid_text(causes, keyed_path(path, HFD_MIRROR_POD),
                                       hf__json_text(mirror),
                                       "must set spec.nodeName if mirror pod annotation is set");
        }
        validate_cost(annotations, was, causes);
}
