/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the rules of an aggregated ClusterRole from the roles that it selects.
 *
 * As in Kubernetes, an empty selector matches every role, and a role never selects itself. A
 * malformed selector matches nothing.
 *
 * Invariant: the time is n log n in the number of rules, because roles may have very many. So equal
 * rules are found by an index of their texts.
 */
#include "server/controllers/roles/role_aggregation.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"

static bool is_text(const struct hf__json *json, const char *text) {
        const char *value = hf__json_text(json);

        return value && text && strcmp(value, text) == 0;
}

static bool is_absent(const struct hf__json *json) { return !json || hf__json_is_null(json); }

/* Whether the values are those of In and NotIn: a list of texts that is not empty. */
static bool is_list_of_texts(const struct hf__json *values) {
        for (const struct hf__json *m = hf__json_first(values); m; m = hf__json_next(m))
                if (!hf__json_is_string(m))
                        return false;
        return hf__json_is_array(values) && hf__json_first(values);
}

/* As in Kubernetes, NotIn and DoesNotExist match an object that has no label of the key. */
static bool expression_matches(const struct hf__json *expression, const struct hf__json *labels) {
        const struct hf__json *op = hf__json_get(expression, "operator"),
                              *values = hf__json_get(expression, "values");
        const char *key = hf__json_string(expression, "key");
        const char *value = key ? hf__json_text(hf__json_get(labels, key)) : NULL;

        if (is_text(op, "In"))
                return value && is_list_of_texts(values) && hf__json_has_element(values, value);
        if (is_text(op, "NotIn"))
                return key && is_list_of_texts(values) &&
                       (!value || !hf__json_has_element(values, value));
        if (hf__json_first(values))
                return false; /* the other operators have none */
        if (is_text(op, "Exists"))
                return value != NULL;
        return key && is_text(op, "DoesNotExist") && !value;
}

static bool selector_matches(const struct hf__json *selector, const struct hf__json *labels) {
        const struct hf__json *wanted = hf__json_get(selector, "matchLabels"),
                              *expressions = hf__json_get(selector, "matchExpressions");

        if (!hf__json_is_object(selector) || (!is_absent(wanted) && !hf__json_is_object(wanted)) ||
            (!is_absent(expressions) && !hf__json_is_array(expressions)))
                return false;
        for (const struct hf__json *m = hf__json_first(wanted); m; m = hf__json_next(m))
                if (!is_text(hf__json_get(labels, hf__json_key(m)), hf__json_text(m)))
                        return false;
        for (const struct hf__json *m = hf__json_first(expressions); m; m = hf__json_next(m))
                if (!expression_matches(m, labels))
                        return false;
        return true;
}

/* Appends the text of a rule. Equal rules have equal texts. */
static int append_text(struct hf__json *texts, const struct hf__json *rule) {
        static const char *const members[] = {"apiGroups", "nonResourceURLs", "resourceNames",
                                              "resources", "verbs"};
        struct hf__strbuf text = {0};

        if (!hf__json_is_object(rule))
                hf__json_print(rule, &text);
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
                hf__strbuf_putc(&text, ' ');
                hf__json_print(hf__json_get(rule, members[i]), &text);
        }
        int r = text.error == 0 ? hf__json_append_string(texts, text.data) : text.error;
        hf__strbuf_done(&text);
        return r;
}

static int add_rules(struct hf__json *rules, struct hf__json *texts, const struct hf__json *role) {
        int r = 0;

        assert(rules && texts);
        for (const struct hf__json *m = hf__json_first(hf__json_get(role, "rules")); m && r == 0;
             m = hf__json_next(m)) {
                r = hf__json_append(rules, hf__json_dup(m));
                if (r == 0)
                        r = append_text(texts, m);
        }
        return r;
}

/* Removes each rule that equals an earlier one. */
static int drop_repeated(struct hf__json *rules, const struct hf__json *texts) {
        struct hf__json_index index;
        struct hf__json *rule = hf__json_first(rules);
        size_t i = 0;

        assert(hf__json_is_array(rules) && hf__json_is_array(texts));
        int r = hf__json_index_init(&index, texts, NULL);
        for (const struct hf__json *text = hf__json_first(texts); text && r == 0;
             text = hf__json_next(text), i++) {
                struct hf__json *next = hf__json_next(rule);
                if (hf__json_index_find(&index, hf__json_text(text))->position < i)
                        hf__json_free(hf__json_detach(rules, rule));
                rule = next;
        }
        hf__json_index_done(&index);
        return r;
}

/* Adds the rules of the roles that the selector selects, except roles that are already `taken`. */
static int add_selected(struct hf__json *rules, struct hf__json *texts, bool *taken,
                        const struct hf__json *role, const struct hf__json *selector,
                        const struct hf__json *all) {
        const char *name = hf__json_string(role, "metadata.name");
        size_t i = 0;
        int r = 0;

        for (const struct hf__json *m = hf__json_first(all); m && r == 0;
             m = hf__json_next(m), i++) {
                if (taken[i] || is_text(hf__json_path(m, "metadata.name"), name) ||
                    !selector_matches(selector, hf__json_path(m, "metadata.labels")))
                        continue;
                taken[i] = true;
                r = add_rules(rules, texts, m);
        }
        return r;
}

int hfd_role_aggregation_rules(const struct hf__json *role, const struct hf__json *all,
                               struct hf__json **ret_rules) {
        HF__CLEANUP(hf__json_cleanup)
        struct hf__json *rules = hf__json_array(), *texts = hf__json_array();
        /* One more, because calloc of nothing may return NULL. */
        HF__CLEANUP(hf__free_cleanup) bool *taken = calloc(hf__json_count(all) + 1, sizeof *taken);
        int r = rules && texts && taken ? 0 : -ENOMEM;

        for (const struct hf__json *selector =
                     hf__json_first(hf__json_path(role, "aggregationRule.clusterRoleSelectors"));
             selector && r == 0; selector = hf__json_next(selector))
                r = add_selected(rules, texts, taken, role, selector, all);
        if (r == 0)
                r = drop_repeated(rules, texts);
        if (r != 0)
                return r;
        *ret_rules = HF__TAKE(rules);
        return 0;
}
