/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matchLabelKeys and mismatchLabelKeys, beside the labelSelector of a spread constraint or of an
 * affinity to pods: keys of the pod's own labels, whose values narrow the selector.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Keys are found in indexes, because a client chooses how many
 * keys and terms there are.
 */
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"

static void validate_keys(const struct hf__json *keys, const struct hf__json *selector,
                          const char *field, struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (hf__json_first(keys) && !selector) {
                hfd_cause_forbidden(causes, field,
                                    "must not be specified when labelSelector is not set");
                return;
        }
        for (const struct hf__json *m = hf__json_first(keys); m; m = hf__json_next(m))
                hfd_qualified_name_validate(hf__json_text_or_empty(m),
                                            hfd_field_index(path, field, i++), causes);
}

/* The keys of one constraint or term. The indexes borrow from it. */
struct keys {
        struct hf__json_index match;         /* matchLabelKeys; see share_last */
        struct hf__json_index labels, terms; /* the keys of the selector */
};

/* Gives all entries of the same text the position of the last one: kube-apiserver shows that
 * position of a key that is repeated. */
static void share_last(struct hf__json_index *index) {
        struct hf__json_index_entry *entries = index->entries;

        for (size_t i = index->n; i > 1; i--)
                if (strcmp(entries[i - 2].text, entries[i - 1].text) == 0)
                        entries[i - 2].position = entries[i - 1].position;
}

/* done_keys frees the indexes, also after a failure. 0 or -ENOMEM. */
static int init_keys(struct keys *keys, const struct hf__json *match,
                     const struct hf__json *selector) {
        *keys = (struct keys){0};
        int r = hf__json_index_init(&keys->match, match, NULL);
        if (r == 0)
                share_last(&keys->match);
        if (r == 0)
                r = hf__json_index_init(&keys->labels, hf__json_get(selector, "matchLabels"), NULL);
        return r == 0 ? hf__json_index_init(&keys->terms,
                                            hf__json_get(selector, "matchExpressions"), "key")
                      : r;
}

static void done_keys(struct keys *keys) {
        hf__json_index_done(&keys->match);
        hf__json_index_done(&keys->labels);
        hf__json_index_done(&keys->terms);
}

/*
 * Refuses a term of matchExpressions if its key is one of matchLabelKeys, and also occurs in
 * matchLabels or in an earlier term. In a new pod the last terms were made from matchLabelKeys and
 * mismatchLabelKeys (pod_label_keys.c). So the client has written the earlier one, or has listed
 * the key twice. As in kube-apiserver, the path has the index of the key but not the list's name:
 * "...topologySpreadConstraints[0][1]".
 */
static void refuse_selected(const struct hf__json *match, const struct hf__json *selector,
                            const char *field, struct hfd_causes *causes) {
        const struct hf__json *terms = hf__json_get(selector, "matchExpressions");
        char path[HFD_FIELD_PATH_MAX];
        struct keys keys;
        size_t i = 0;

        if (hfd_causes_check(causes, init_keys(&keys, match, selector)))
                for (const struct hf__json *m = hf__json_first(terms);
                     m && causes->n < HFD_CAUSES_MAX; m = hf__json_next(m), i++) {
                        const char *key = hfd_text_of(m, "key");
                        const struct hf__json_index_entry *same =
                                hf__json_index_find(&keys.match, key);
                        if (!same || (!hf__json_index_find(&keys.labels, key) &&
                                      !hfd_is_repeated(&keys.terms, key, i)))
                                continue;
                        hfd_field_index(path, field, same->position);
                        hfd_cause_invalid_text(causes, path, key,
                                               "exists in both matchLabelKeys and labelSelector");
                }
        done_keys(&keys);
}

static void refuse_common(const struct hf__json *keys, const struct hf__json *mismatch,
                          const char *field, struct hfd_causes *causes) {
        struct hf__json_index others;
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (hfd_causes_check(causes, hf__json_index_init(&others, mismatch, NULL)))
                for (const struct hf__json *m = hf__json_first(keys); m; m = hf__json_next(m), i++)
                        if (hf__json_index_find(&others, hf__json_text_or_empty(m)))
                                hfd_cause_invalid_text(causes, hfd_field_index(path, field, i),
                                                       hf__json_text_or_empty(m),
                                                       "exists in both matchLabelKeys and "
                                                       "mismatchLabelKeys");
        hf__json_index_done(&others);
}

void hfd_label_keys_validate(const struct hf__json *term, const char *field,
                             struct hfd_causes *causes) {
        const struct hf__json *selector = hf__json_get(term, "labelSelector"),
                              *match = hf__json_get(term, "matchLabelKeys"),
                              *mismatch = hf__json_get(term, "mismatchLabelKeys");
        char of_match[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        if (!hf__json_first(match) && !hf__json_first(mismatch))
                return;
        validate_keys(match, selector, hfd_field_path(of_match, field, "matchLabelKeys"), causes);
        validate_keys(mismatch, selector, hfd_field_path(path, field, "mismatchLabelKeys"), causes);
        refuse_selected(match, selector, field, causes);
        refuse_common(match, mismatch, of_match, causes);
}
