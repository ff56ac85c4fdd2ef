/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the values of a new pod's own labels into its spread constraints and its affinities to pods:
 * for each of matchLabelKeys the labelSelector gets a term that the label has this value, and for
 * each of mismatchLabelKeys a term that it has another one. Schedulers read the selector only.
 *
 * Invariants: the terms and their order are those of kube-apiserver. A second call for the same pod
 * adds nothing: the pod is prepared again when admission has changed it. Terms are found in an
 * index, because a client chooses how many keys and terms there are.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/workloads/workloads.h"

/* ---- terms ---- */

/* A term of a selector. NULL: memory ran out. */
static struct hf__json *new_term(const char *key, const char *operator, const char * value) {
        struct hf__json *term = hf__json_object(), *values = hf__json_array();
        int r = hf__json_append_string(values, value);

        if (r == 0)
                r = hf__json_add_string(term, "key", key);
        if (r == 0)
                r = hf__json_add_string(term, "operator", operator);
        if (r != 0) {
                hf__json_free(values);
                return hf__json_free(term);
        }
        r = hf__json_add(term, "values", values);
        return r == 0 ? term : hf__json_free(term);
}

/* A text by which a term with one value is found. The caller frees ret_text. 0 or -ENOMEM. */
static int print_term(const char *key, const char *operator, const char * value,
                      struct hf__strbuf *ret_text) {
        hf__strbuf_printf(ret_text, "%s\n%s\n%s", operator, key, value);
        return ret_text->error;
}

/* Appends a text for each term with one value. texts NULL counts as out of memory. */
static int list_terms(const struct hf__json *terms, struct hf__json *texts) {
        int r = texts ? 0 : -ENOMEM;

        for (const struct hf__json *m = hf__json_first(terms); m && r == 0; m = hf__json_next(m)) {
                const struct hf__json *value = hf__json_first(hf__json_get(m, "values"));
                struct hf__strbuf text = {0};
                if (!value || hf__json_next(value))
                        continue;
                r = print_term(hf__json_string_or_empty(m, "key"),
                               hf__json_string_or_empty(m, "operator"),
                               hf__json_text_or_empty(value), &text);
                if (r == 0)
                        r = hf__json_append_string(texts, text.data);
                hf__strbuf_done(&text);
        }
        return r;
}

/* ---- merge ---- */

/* Appends a term for each key that is one of the pod's labels, unless it is among `had`, the terms
 * of a pass before. 0 or -ENOMEM. */
static int append_terms(struct hf__json *terms, const struct hf__json *keys, const char *operator,
                        const struct hf__json_index * labels, const struct hf__json_index *had) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(keys); m && r == 0; m = hf__json_next(m)) {
                const struct hf__json_index_entry *label =
                        hf__json_index_find(labels, hf__json_text_or_empty(m));
                struct hf__strbuf text = {0};
                if (!label)
                        continue;
                const char *value = hf__json_text_or_empty(label->item);
                r = print_term(label->text, operator, value, &text);
                if (r == 0 && !hf__json_index_find(had, text.data))
                        r = hf__json_append(terms, new_term(label->text, operator, value));
                hf__strbuf_done(&text);
        }
        return r;
}

/* term: a spread constraint, or a term of an affinity to pods. Without a selector it selects no
 * pods, and keeps none. 0 or -ENOMEM. */
static int merge_term(struct hf__json *term, const struct hf__json_index *labels) {
        const struct hf__json *match = hf__json_get(term, "matchLabelKeys"),
                              *mismatch = hf__json_get(term, "mismatchLabelKeys");
        struct hf__json *selector = hf__json_get(term, "labelSelector");
        HF__CLEANUP(hf__json_cleanup) struct hf__json *texts = NULL;
        struct hf__json_index had = {0};
        int r = 0;

        if (!hf__json_is_object(selector) || (!hf__json_first(match) && !hf__json_first(mismatch)))
                return 0;
        if (!hf__json_get(selector, "matchExpressions"))
                r = hf__json_put(selector, "matchExpressions", hf__json_array());
        struct hf__json *terms = hf__json_get(selector, "matchExpressions");
        texts = hf__json_array();
        if (r == 0)
                r = list_terms(terms, texts);
        if (r == 0)
                r = hf__json_index_init(&had, texts, NULL);
        if (r == 0)
                r = append_terms(terms, match, "In", labels, &had);
        if (r == 0)
                r = append_terms(terms, mismatch, "NotIn", labels, &had);
        hf__json_index_done(&had);
        if (r == 0 && !hf__json_first(terms))
                hf__json_drop(selector, "matchExpressions");
        return r;
}

/* ---- all terms of a pod ---- */

/* member: that of an element which is the term; NULL: the element itself is one. */
static int merge_list(struct hf__json *list, const char *member,
                      const struct hf__json_index *labels) {
        int r = 0;

        for (struct hf__json *m = hf__json_first(list); m && r == 0; m = hf__json_next(m))
                r = merge_term(member ? hf__json_get(m, member) : m, labels);
        return r;
}

int hfd_pod_merge_label_keys(struct hf__json *object) {
        static const struct {
                const char *list, *member;
        } lists[] = {{"affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution",
                      "podAffinityTerm"},
                     {"affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution", NULL},
                     {"affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution",
                      "podAffinityTerm"},
                     {"affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
                      NULL},
                     {"topologySpreadConstraints", NULL}};
        struct hf__json *spec = hf__json_get(object, "spec");
        struct hf__json_index labels;
        int r;

        if (!hf__json_get(spec, "affinity") && !hf__json_get(spec, "topologySpreadConstraints"))
                return 0;
        r = hf__json_index_init(&labels, hf__json_path(object, "metadata.labels"), NULL);
        for (size_t i = 0; i < sizeof lists / sizeof lists[0] && r == 0; i++)
                r = merge_list(hf__json_path(spec, lists[i].list), lists[i].member, &labels);
        hf__json_index_done(&labels);
        return r;
}
