/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets the members of pods and nodes that decide where pods may run: the tolerations that all pods
 * get, the taint of new nodes, and what a RuntimeClass adds to a pod.
 *
 * Invariants: the results and the texts are those of kube-apiserver's admission plug-ins
 * DefaultTolerationSeconds, TaintNodesByCondition and RuntimeClass. The merge of tolerations
 * compares each one with all others, so it refuses long lists (HFD_TOLERATIONS_MERGED_MAX): a
 * client chooses how long they are.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

/* How long a pod stays on a node that is not ready or not reachable, before it is evicted. */
#define DEFAULT_SECONDS 300

/* ---- the tolerations of all pods ---- */

/* Whether the toleration is for a taint with this key and the effect NoExecute. A toleration
 * without a key or an effect is for all keys or effects. */
static bool toleration_covers(const struct hf__json *t, const char *taint) {
        const char *key = hfd_text_of(t, "key"), *effect = hfd_text_of(t, "effect");

        return (!*key || strcmp(key, taint) == 0) && (!*effect || strcmp(effect, "NoExecute") == 0);
}

/* Appends the default toleration for the taint with this key. list NULL counts as out of memory. 0
 * or -ENOMEM. */
static int append_default(struct hf__json *list, const char *taint) {
        struct hf__json *t = hf__json_object();
        int r = hf__json_add_string(t, "key", taint);

        if (r == 0)
                r = hf__json_add_string(t, "operator", "Exists");
        if (r == 0)
                r = hf__json_add_string(t, "effect", "NoExecute");
        if (r == 0)
                r = hf__json_set_i64(t, "tolerationSeconds", DEFAULT_SECONDS);
        if (r != 0) {
                hf__json_free(t);
                return r;
        }
        return hf__json_append(list, t);
}

int hfd_pod_default_tolerations(struct hf__json *spec, bool *ret_changed) {
        static const char *const taints[] = {"node.kubernetes.io/not-ready",
                                             "node.kubernetes.io/unreachable"};
        bool covered[2] = {false, false};
        struct hf__json *list = hf__json_get(spec, "tolerations");
        int r = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                for (size_t i = 0; i < 2; i++)
                        covered[i] = covered[i] || toleration_covers(m, taints[i]);
        *ret_changed = !covered[0] || !covered[1];
        if (*ret_changed && !hf__json_is_array(list)) {
                r = hf__json_put(spec, "tolerations", hf__json_array());
                list = hf__json_get(spec, "tolerations");
        }
        for (size_t i = 0; i < 2 && r == 0; i++)
                if (!covered[i])
                        r = append_default(list, taints[i]);
        return r;
}

/* ---- new nodes ---- */

/* The taint keeps pods away from a node until Kubernetes' node controller sees that it is ready. */
int hfd_node_taint_new(struct hf__json *node) {
        static const char path[] = "spec.taints", key[] = "node.kubernetes.io/not-ready";
        struct hf__json *list = hf__json_path(node, path), *taint;
        int r = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                if (hf__json_has_text(m, "key", key) &&
                    hf__json_has_text(m, "effect", "NoSchedule"))
                        return 0;
        if (!hf__json_is_array(list)) {
                r = hf__json_set(node, path, hf__json_array());
                list = hf__json_path(node, path);
        }
        if (r != 0)
                return r;
        taint = hf__json_object();
        r = hf__json_add_string(taint, "key", key);
        if (r == 0)
                r = hf__json_add_string(taint, "effect", "NoSchedule");
        if (r == 0)
                return hf__json_append(list, taint);
        hf__json_free(taint);
        return r;
}

/* ---- additions of a RuntimeClass ---- */

/* Whether `wide` tolerates all taints that t tolerates, for as long a time at least. As in
 * Kubernetes, a t without an operator, which means Equal, counts as tolerated only if `wide` has
 * the operator Exists or is equal to t. */
static bool is_superset(const struct hf__json *wide, const struct hf__json *t) {
        const char *key = hfd_text_of(wide, "key"), *op = hfd_text_of(wide, "operator"),
                   *effect = hfd_text_of(wide, "effect");
        bool exists = strcmp(op, "Exists") == 0;
        int64_t limit, seconds;

        if (hf__json_equal(wide, t))
                return true;
        if (strcmp(hfd_text_of(t, "key"), key) != 0 && (*key || !exists))
                return false;
        if (strcmp(hfd_text_of(t, "effect"), effect) != 0 && *effect)
                return false;
        if (strcmp(effect, "NoExecute") == 0 && hf__json_i64(wide, "tolerationSeconds", &limit) &&
            (!hf__json_i64(t, "tolerationSeconds", &seconds) || seconds > limit))
                return false;
        if (*op && strcmp(op, "Equal") != 0)
                return exists;
        return strcmp(hfd_text_of(t, "operator"), "Equal") == 0 &&
               strcmp(hfd_text_of(t, "value"), hfd_text_of(wide, "value")) == 0;
}

/* Whether another toleration of the list covers t: one of `kept`, which are left of those before t,
 * or one after t in the list. Of equal tolerations, the first is kept. */
static bool is_redundant(const struct hf__json *kept, const struct hf__json *t) {
        for (const struct hf__json *m = hf__json_first(kept); m; m = hf__json_next(m))
                if (is_superset(m, t))
                        return true;
        for (const struct hf__json *m = hf__json_next(t); m; m = hf__json_next(m))
                if (!hf__json_equal(m, t) && is_superset(m, t))
                        return true;
        return false;
}

/* Appends copies. from NULL: there is nothing to append. 0 or -ENOMEM. */
static int append_elements(struct hf__json *list, const struct hf__json *from) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(from); m && r == 0; m = hf__json_next(m))
                r = hf__json_append(list, hf__json_dup(m));
        return r;
}

int hfd_pod_merge_tolerations(struct hf__json *spec, const struct hf__json *more) {
        const struct hf__json *own = hf__json_get(spec, "tolerations");
        size_t n = hf__json_count(own) + hf__json_count(more);

        if (n > HFD_TOLERATIONS_MERGED_MAX)
                return HF_E_TOO_LARGE;
        if (n == 0)
                return 0;
        HF__CLEANUP(hf__json_cleanup)
        struct hf__json *all = hf__json_array(), *kept = hf__json_array();
        int r = all && kept ? append_elements(all, own) : -ENOMEM;
        if (r == 0)
                r = append_elements(all, more);
        for (const struct hf__json *m = hf__json_first(all); m && r == 0; m = hf__json_next(m))
                if (!is_redundant(kept, m))
                        r = hf__json_append(kept, hf__json_dup(m));
        return r == 0 ? hf__json_put(spec, "tolerations", HF__TAKE(kept)) : r;
}

int hfd_pod_merge_node_selector(struct hf__json *spec, const struct hf__json *more,
                                struct hf__strbuf *why) {
        struct hf__json *own = hf__json_get(spec, "nodeSelector");
        struct hf__json_index labels;
        int r = 0;

        if (!hf__json_first(more))
                return 0;
        if (!own)
                return hf__json_put(spec, "nodeSelector", hf__json_dup(more));
        r = hf__json_index_init(&labels, own, NULL);
        for (const struct hf__json *m = hf__json_first(more); m && r == 0; m = hf__json_next(m)) {
                const char *key = hf__json_key(m), *value = hf__json_text(m);
                const struct hf__json_index_entry *same = hf__json_index_find(&labels, key);
                if (!same) {
                        r = hf__json_add(own, key, hf__json_dup(m));
                } else if (!hf__json_equal(same->item, m)) {
                        hf__strbuf_printf(why,
                                          "conflict: runtimeClass.scheduling.nodeSelector[%s] = "
                                          "%s; pod.spec.nodeSelector[%s] = %s",
                                          key, value ? value : "", key,
                                          hf__json_is_string(same->item) ? hf__json_text(same->item)
                                                                         : "");
                        break;
                }
        }
        hf__json_index_done(&labels);
        return r == 0 ? why->error : r;
}
