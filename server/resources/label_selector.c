/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LabelSelectors of objects. An operator that Kubernetes does not know selects as In does, and is
 * printed as NotIn. Neither matters, because the validation of the kind refuses such an operator.
 *
 * Invariant: labels are found in the same way with and without an index. The index only makes many
 * labels cheap, so a look-up goes on without it when memory runs out.
 */
#include "server/resources/label_selector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "base/text.h"

/* Up to this number, searching the labels one after another is faster than making an index. */
#define LABELS_FEW 32

/* ---- matching ---- */

/* There is no index if the labels are few or memory runs out. They are then searched one after
 * another. */
void hfd_labels_init(struct hfd_labels *labels, const struct hf__json *all) {
        labels->all = all;
        labels->is_indexed = hf__json_count(all) > LABELS_FEW &&
                             hf__json_index_init(&labels->index, all, NULL) == 0;
}

void hfd_labels_done(struct hfd_labels *labels) {
        if (labels->is_indexed)
                hf__json_index_done(&labels->index);
}

static const struct hf__json *find_label(const struct hfd_labels *labels, const char *key) {
        if (!labels->is_indexed)
                return hf__json_get(labels->all, key);
        const struct hf__json_index_entry *entry = hf__json_index_find(&labels->index, key);
        return entry ? entry->item : NULL;
}

static bool is_met(const struct hf__json *expression, const struct hfd_labels *labels) {
        const char *op = hf__json_string_or_empty(expression, "operator"),
                   *key = hf__json_string_or_empty(expression, "key");
        const struct hf__json *label = find_label(labels, key);
        bool present = label != NULL;
        bool in = present &&
                  hf__json_has_element(hf__json_get(expression, "values"),
                                       hf__json_is_string(label) ? hf__json_text(label) : "");

        if (strcmp(op, "Exists") == 0)
                return present;
        if (strcmp(op, "DoesNotExist") == 0)
                return !present;
        return strcmp(op, "NotIn") == 0 ? !in : in;
}

static bool labels_contain(const struct hfd_labels *labels, const struct hf__json *wanted) {
        for (const struct hf__json *m = hf__json_first(wanted); m; m = hf__json_next(m)) {
                const struct hf__json *value = find_label(labels, hf__json_key(m));
                if (!value || !hf__json_equal(value, m))
                        return false;
        }
        return true;
}

bool hfd_labels_contain(const struct hf__json *labels, const struct hf__json *wanted) {
        struct hfd_labels all;

        hfd_labels_init(&all, labels);
        bool contains = labels_contain(&all, wanted);
        hfd_labels_done(&all);
        return contains;
}

bool hfd_label_selector_selects(const struct hf__json *selector, const struct hfd_labels *labels) {
        bool selects = labels_contain(labels, hf__json_get(selector, "matchLabels"));

        for (const struct hf__json *m = hf__json_first(hf__json_get(selector, "matchExpressions"));
             m && selects; m = hf__json_next(m))
                selects = is_met(m, labels);
        return selects;
}

bool hfd_label_selector_matches(const struct hf__json *selector, const struct hf__json *labels) {
        struct hfd_labels all;

        hfd_labels_init(&all, labels);
        bool matches = hfd_label_selector_selects(selector, &all);
        hfd_labels_done(&all);
        return matches;
}

bool hfd_label_selector_is_empty(const struct hf__json *selector) {
        return !hf__json_first(hf__json_get(selector, "matchLabels")) &&
               !hf__json_first(hf__json_get(selector, "matchExpressions"));
}

/* ---- the text ---- */

/* Appends the strings of a list, sorted. One of them may be "". */
static void print_values(const struct hf__json *list, struct hf__strbuf *out) {
        const char **values = calloc(hf__json_count(list) + 1, sizeof *values);
        size_t n = 0;

        for (const struct hf__json *m = hf__json_first(list); m && values; m = hf__json_next(m))
                values[n++] = hf__json_is_string(m) ? hf__json_text(m) : "";
        if (values)
                qsort(values, n, sizeof *values, hf__text_compare);
        else
                out->error = -ENOMEM;
        for (size_t i = 0; i < n; i++)
                hf__strbuf_printf(out, "%s%s", i > 0 ? "," : "", values[i]);
        free(values);
}

static void print_expression(const struct hf__json *expression, struct hf__strbuf *out) {
        const char *op = hf__json_string_or_empty(expression, "operator"),
                   *key = hf__json_string_or_empty(expression, "key");

        if (strcmp(op, "Exists") == 0 || strcmp(op, "DoesNotExist") == 0) {
                hf__strbuf_printf(out, "%s%s", strcmp(op, "Exists") == 0 ? "" : "!", key);
                return;
        }
        hf__strbuf_printf(out, "%s %s (", key, strcmp(op, "In") == 0 ? "in" : "notin");
        print_values(hf__json_get(expression, "values"), out);
        hf__strbuf_putc(out, ')');
}

/* A label that is required, or an expression. */
struct requirement {
        const char *key;
        const struct hf__json *json;
        size_t i; /* in the order of the selector */
        bool is_expression;
};

static int order_of_requirements(const void *a, const void *b) {
        const struct requirement *x = a, *y = b;
        int order = strcmp(x->key, y->key);

        return order != 0 ? order : (x->i > y->i) - (x->i < y->i);
}

/* Appends the requirements sorted by their keys, as Go does: the order of labels means nothing. */
static void print_sorted(const struct hf__json *labels, const struct hf__json *expressions,
                         struct hf__strbuf *out) {
        size_t n = 0;
        struct requirement *all =
                calloc(hf__json_count(labels) + hf__json_count(expressions) + 1, sizeof *all);

        if (!all) {
                out->error = -ENOMEM;
                return;
        }
        for (const struct hf__json *m = hf__json_first(labels); m; m = hf__json_next(m), n++)
                all[n] = (struct requirement){.key = hf__json_key(m), .json = m, .i = n};
        for (const struct hf__json *m = hf__json_first(expressions); m; m = hf__json_next(m), n++)
                all[n] = (struct requirement){.key = hf__json_string_or_empty(m, "key"),
                                              .json = m,
                                              .i = n,
                                              .is_expression = true};
        qsort(all, n, sizeof *all, order_of_requirements);
        for (size_t i = 0; i < n; i++) {
                hf__strbuf_puts(out, i > 0 ? "," : "");
                if (all[i].is_expression)
                        print_expression(all[i].json, out);
                else
                        hf__strbuf_printf(out, "%s=%s", all[i].key,
                                          hf__json_is_string(all[i].json)
                                                  ? hf__json_text(all[i].json)
                                                  : "");
        }
        free(all);
}

void hfd_labels_print(const struct hf__json *labels, struct hf__strbuf *out) {
        print_sorted(labels, NULL, out);
}

void hfd_label_selector_print(const struct hf__json *selector, struct hf__strbuf *out) {
        print_sorted(hf__json_get(selector, "matchLabels"),
                     hf__json_get(selector, "matchExpressions"), out);
}
