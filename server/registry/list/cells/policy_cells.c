/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the cells of admission policies and of their bindings in a Table.
 *
 * Invariant: the texts are those of Kubernetes, which prints a selector as Go prints its struct.
 */
#include "server/registry/list/cells/policy_cells.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"

/* Appends text as a JSON string, or copies its error to s. */
static void put_string(struct hf__strbuf *s, const struct hf__strbuf *text) {
        if (text->error != 0)
                s->error = text->error;
        else
                hf__strbuf_json(s, text->data ? text->data : "", text->n);
}

void hfd_policy_put_param_kind(struct hf__strbuf *s, const struct hf__json *policy) {
        const struct hf__json *kind = hf__json_path(policy, "spec.paramKind");
        struct hf__strbuf text = {0};

        if (kind)
                hf__strbuf_printf(&text, "%s/%s", hf__json_string_or_empty(kind, "apiVersion"),
                                  hf__json_string_or_empty(kind, "kind"));
        else
                hf__strbuf_puts(&text, "<unset>");
        put_string(s, &text);
        hf__strbuf_done(&text);
}

static int order_of_keys(const void *a, const void *b) {
        const struct hf__json *const *x = a, *const *y = b;

        return strcmp(hf__json_key(*x), hf__json_key(*y));
}

/* Prints the labels of a map, sorted. */
static void print_labels(struct hf__strbuf *out, const struct hf__json *labels) {
        size_t n = 0;
        const struct hf__json **sorted = calloc(hf__json_count(labels) + 1, sizeof *sorted);

        if (!sorted) {
                out->error = -ENOMEM;
                return;
        }
        for (const struct hf__json *m = hf__json_first(labels); m; m = hf__json_next(m))
                sorted[n++] = m;
        qsort(sorted, n, sizeof(struct hf__json *), order_of_keys);
        for (size_t i = 0; i < n; i++)
                hf__strbuf_printf(out, "%s: %s,", hf__json_key(sorted[i]),
                                  hf__json_is_string(sorted[i]) ? hf__json_text(sorted[i]) : "");
        free(sorted);
}

/* Prints the selector like String() of Go's metav1.LabelSelector. */
static void print_selector(struct hf__strbuf *out, const struct hf__json *selector) {
        hf__strbuf_puts(out, "&LabelSelector{MatchLabels:map[string]string{");
        print_labels(out, hf__json_get(selector, "matchLabels"));
        hf__strbuf_puts(out, "},MatchExpressions:[]LabelSelectorRequirement{");
        for (const struct hf__json *m = hf__json_first(hf__json_get(selector, "matchExpressions"));
             m; m = hf__json_next(m)) {
                const char *between = "";

                hf__strbuf_printf(out, "LabelSelectorRequirement{Key:%s,Operator:%s,Values:[",
                                  hf__json_string_or_empty(m, "key"),
                                  hf__json_string_or_empty(m, "operator"));
                for (const struct hf__json *value = hf__json_first(hf__json_get(m, "values"));
                     value; value = hf__json_next(value)) {
                        hf__strbuf_printf(out, "%s%s", between,
                                          hf__json_is_string(value) ? hf__json_text(value) : "");
                        between = " ";
                }
                hf__strbuf_puts(out, "],},");
        }
        hf__strbuf_puts(out, "},}");
}

void hfd_policy_put_param_ref(struct hf__strbuf *s, const struct hf__json *binding) {
        const struct hf__json *ref = hf__json_path(binding, "spec.paramRef");
        const char *ns = hf__json_string_or_empty(ref, "namespace");
        const char *name = hf__json_string_or_empty(ref, "name");
        struct hf__strbuf text = {0};

        if (name[0])
                hf__strbuf_printf(&text, "%s/%s", ns[0] ? ns : "*", name);
        else if (hf__json_get(ref, "selector"))
                print_selector(&text, hf__json_get(ref, "selector"));
        else
                hf__strbuf_puts(&text, "<unset>");
        put_string(s, &text);
        hf__strbuf_done(&text);
}
