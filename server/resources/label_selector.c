/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LabelSelectors of objects. An operator that Kubernetes does not know selects as In does; the
 * validation of the kind refuses it.
 */
#include "server/resources/label_selector.h"

#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"

static const char *text_of(const struct hf__json *object, const char *key) {
        const struct hf__json *member = hf__json_get(object, key);

        return hf__json_is_string(member) ? hf__json_text(member) : "";
}

/* ---- matching ---- */

static bool is_met(const struct hf__json *expression, const struct hf__json *labels) {
        const char *op = text_of(expression, "operator"), *key = text_of(expression, "key");
        bool present = hf__json_get(labels, key) != NULL;
        bool in = present &&
                  hf__json_has_element(hf__json_get(expression, "values"), text_of(labels, key));

        if (strcmp(op, "Exists") == 0)
                return present;
        if (strcmp(op, "DoesNotExist") == 0)
                return !present;
        return strcmp(op, "NotIn") == 0 ? !in : in;
}

bool hfd_labels_contain(const struct hf__json *labels, const struct hf__json *wanted) {
        for (const struct hf__json *m = hf__json_first(wanted); m; m = hf__json_next(m)) {
                const struct hf__json *value = hf__json_get(labels, hf__json_key(m));
                if (!value || !hf__json_equal(value, m))
                        return false;
        }
        return true;
}

bool hfd_label_selector_matches(const struct hf__json *selector, const struct hf__json *labels) {
        if (!hfd_labels_contain(labels, hf__json_get(selector, "matchLabels")))
                return false;
        for (const struct hf__json *m = hf__json_first(hf__json_get(selector, "matchExpressions"));
             m; m = hf__json_next(m))
                if (!is_met(m, labels))
                        return false;
        return true;
}

bool hfd_label_selector_is_empty(const struct hf__json *selector) {
        return !hf__json_first(hf__json_get(selector, "matchLabels")) &&
               !hf__json_first(hf__json_get(selector, "matchExpressions"));
}

/* ---- the text ---- */

/* n: the length of out before the list. */
static void put_separator(struct hf__strbuf *out, size_t n) {
        if (out->n > n)
                hf__strbuf_putc(out, ',');
}

static void print_expression(const struct hf__json *expression, struct hf__strbuf *out) {
        const char *op = text_of(expression, "operator"), *key = text_of(expression, "key");

        if (strcmp(op, "Exists") == 0 || strcmp(op, "DoesNotExist") == 0) {
                hf__strbuf_printf(out, "%s%s", strcmp(op, "Exists") == 0 ? "" : "!", key);
                return;
        }
        hf__strbuf_printf(out, "%s %s (", key, strcmp(op, "In") == 0 ? "in" : "notin");
        size_t n = out->n;
        for (const struct hf__json *m = hf__json_first(hf__json_get(expression, "values")); m;
             m = hf__json_next(m)) {
                put_separator(out, n);
                hf__strbuf_puts(out, hf__json_is_string(m) ? hf__json_text(m) : "");
        }
        hf__strbuf_putc(out, ')');
}

void hfd_labels_print(const struct hf__json *labels, struct hf__strbuf *out) {
        size_t n = out->n;

        for (const struct hf__json *m = hf__json_first(labels); m; m = hf__json_next(m)) {
                put_separator(out, n);
                hf__strbuf_printf(out, "%s=%s", hf__json_key(m),
                                  hf__json_is_string(m) ? hf__json_text(m) : "");
        }
}

void hfd_label_selector_print(const struct hf__json *selector, struct hf__strbuf *out) {
        size_t n = out->n;

        hfd_labels_print(hf__json_get(selector, "matchLabels"), out);
        for (const struct hf__json *m = hf__json_first(hf__json_get(selector, "matchExpressions"));
             m; m = hf__json_next(m)) {
                put_separator(out, n);
                print_expression(m, out);
        }
}
