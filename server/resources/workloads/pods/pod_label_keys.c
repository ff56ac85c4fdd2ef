/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the values of a new pod's own labels into its spread constraints and its affinities to pods:
 * for each of matchLabelKeys the labelSelector gets a term that the label has this value (In), and
 * for each of mismatchLabelKeys a term that it does not (NotIn). Schedulers read the selector only.
 *
 * Invariants: the terms and their order are those of kube-apiserver, for each pod that is valid.
 * All this happens before the validation, and a client chooses how many keys there are and how long
 * the labels are: so a label that the validation refuses becomes no term, and a key that a list
 * repeats becomes two terms, which are enough for the validation to find it. Keys are found in
 * indexes. Many lists may name the same labels, so the terms may not take more bytes than a body.
 */
#include <errno.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/validation/names.h"
#include "server/resources/workloads/workloads.h"

#define TERMS_MAX ((size_t)3 << 20) /* bytes of all terms of a pod as JSON; as many as a body */
/* Bytes of a term with empty texts, and a comma. */
#define TERM_SIZE 39

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

/* Whether the list has the key twice before this position. */
static bool is_listed_twice(const struct hf__json_index *keys, const char *key, size_t position) {
        const struct hf__json_index_entry *first = hf__json_index_find(keys, key);
        const struct hf__json_index_entry *end = keys->entries + keys->n;

        return first && first + 1 < end && first[1].position < position &&
               strcmp(first[1].text, key) == 0;
}

/* Takes the bytes that a term needs from *room. False: there are not enough. */
static bool take_room(size_t *room, const char *key, const char *operator, const char * value) {
        size_t n = TERM_SIZE + strlen(key) + strlen(operator) + strlen(value);

        if (n > *room)
                return false;
        *room -= n;
        return true;
}

/* Appends a term for each key that is one of the pod's labels. labels: an index; the entry of a
 * label that the validation refuses has the item NULL. 0, -ENOMEM or HF_E_TOO_LARGE. */
static int append_terms(struct hf__json *terms, const struct hf__json *keys, const char *operator,
                        const struct hf__json_index * labels, size_t *room) {
        struct hf__json_index listed;
        size_t i = 0;
        int r = hf__json_index_init(&listed, keys, NULL);

        for (const struct hf__json *m = hf__json_first(keys); m && r == 0;
             m = hf__json_next(m), i++) {
                const char *key = hf__json_text_or_empty(m);
                const struct hf__json_index_entry *label = hf__json_index_find(labels, key);
                if (!label || !label->item || is_listed_twice(&listed, key, i))
                        continue;
                const char *value = hf__json_text_or_empty(label->item);
                r = take_room(room, key, operator, value)
                            ? hf__json_append(terms, new_term(key, operator, value))
                            : HF_E_TOO_LARGE;
        }
        hf__json_index_done(&listed);
        return r;
}

/* term: a spread constraint, or a term of an affinity to pods. Without a labelSelector it selects
 * no pods, and that stays so: none is added. Returns what append_terms does. */
static int merge_term(struct hf__json *term, const struct hf__json_index *labels, size_t *room) {
        const struct hf__json *match = hf__json_get(term, "matchLabelKeys"),
                              *mismatch = hf__json_get(term, "mismatchLabelKeys");
        struct hf__json *selector = hf__json_get(term, "labelSelector");
        int r = 0;

        if (!hf__json_is_object(selector) || (!hf__json_first(match) && !hf__json_first(mismatch)))
                return 0;
        if (!hf__json_get(selector, "matchExpressions"))
                r = hf__json_put(selector, "matchExpressions", hf__json_array());
        struct hf__json *terms = hf__json_get(selector, "matchExpressions");
        if (r == 0)
                r = append_terms(terms, match, "In", labels, room);
        if (r == 0)
                r = append_terms(terms, mismatch, "NotIn", labels, room);
        if (r == 0 && !hf__json_first(terms))
                hf__json_drop(selector, "matchExpressions");
        return r;
}

/* ---- all terms of a pod ---- */

/* member: the member of each element that is a term; NULL: the element itself is a term. */
static int merge_list(struct hf__json *list, const char *member,
                      const struct hf__json_index *labels, size_t *room) {
        int r = 0;

        for (struct hf__json *m = hf__json_first(list); m && r == 0; m = hf__json_next(m))
                r = merge_term(member ? hf__json_get(m, member) : m, labels, room);
        return r;
}

/* Sets the items of the labels that the validation refuses to NULL. Each label is checked once
 * here, because many lists may name a long one. */
static void drop_refused(struct hf__json_index *labels) {
        for (size_t i = 0; i < labels->n; i++) {
                struct hf__json_index_entry *label = &labels->entries[i];
                if (!hfd_is_qualified_name(label->text) ||
                    !hfd_is_label_value(hf__json_text_or_empty(label->item)))
                        label->item = NULL;
        }
}

int hfd_pod_complete(struct hf__json *object) {
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
        size_t room = TERMS_MAX;
        int r;

        if (!hf__json_get(spec, "affinity") && !hf__json_get(spec, "topologySpreadConstraints"))
                return 0;
        r = hf__json_index_init(&labels, hf__json_path(object, "metadata.labels"), NULL);
        if (r == 0)
                drop_refused(&labels);
        for (size_t i = 0; i < sizeof lists / sizeof lists[0] && r == 0; i++)
                r = merge_list(hf__json_path(spec, lists[i].list), lists[i].member, &labels, &room);
        hf__json_index_done(&labels);
        return r;
}
