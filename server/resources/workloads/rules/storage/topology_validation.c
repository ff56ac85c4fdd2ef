/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of allowedTopologies of a StorageClass: a list of terms, each of which selects parts of
 * the cluster by labels of their nodes.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Repeated values and terms are found with an index, because
 * clients choose how many there are: two terms are equal if their texts are (print_term).
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/workloads/workloads.h"

/* ---- one term ---- */

static void validate_values(const struct hf__json *values, const char *field,
                            struct hfd_causes *causes) {
        struct hf__json_index by_text;
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (!hf__json_first(values))
                hfd_cause_required(causes, field, "");
        if (hfd_causes_check(causes, hf__json_index_init(&by_text, values, NULL)))
                for (const struct hf__json *m = hf__json_first(values); m;
                     m = hf__json_next(m), i++) {
                        const char *value = hf__json_text_or_empty(m);
                        const struct hf__json_index_entry *first =
                                hf__json_index_find(&by_text, value);
                        if (first && first->position < i)
                                hfd_cause_duplicate_text(causes, hfd_field_index(path, field, i),
                                                         value);
                }
        hf__json_index_done(&by_text);
}

static void validate_term(const struct hf__json *term, const char *field,
                          struct hfd_causes *causes) {
        const struct hf__json *expressions = hf__json_get(term, "matchLabelExpressions");
        struct hf__json_index by_key;
        char list[HFD_FIELD_PATH_MAX], item[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        hfd_field_path(list, field, "matchLabelExpressions");
        if (hfd_causes_check(causes, hf__json_index_init_texts(&by_key, expressions, "key")))
                for (const struct hf__json *m = hf__json_first(expressions); m;
                     m = hf__json_next(m), i++) {
                        const char *key = hfd_text_of(m, "key");
                        const struct hf__json_index_entry *first =
                                hf__json_index_find(&by_key, key);
                        hfd_field_index(item, list, i);
                        validate_values(hf__json_get(m, "values"),
                                        hfd_field_path(path, item, "values"), causes);
                        hfd_qualified_name_validate(key, hfd_field_path(path, item, "key"), causes);
                        if (first && first->position < i)
                                hfd_cause_duplicate_text(causes, path, key);
                }
        hf__json_index_done(&by_key);
}

/* ---- equal terms ---- */

/* Whether the entry is the last one of those with its text. */
static bool is_last(const struct hf__json_index *index, size_t i) {
        return i + 1 == index->n || strcmp(index->entries[i].text, index->entries[i + 1].text) != 0;
}

/* Appends the values, sorted, each once and with its length, so that two lists get the same text
 * only if they have the same set of values. 0 or -ENOMEM. */
static int print_values(const struct hf__json *values, struct hf__strbuf *out) {
        struct hf__json_index by_text;
        int r = hf__json_index_init(&by_text, values, NULL);

        for (size_t i = 0; r == 0 && i < by_text.n; i++)
                if (is_last(&by_text, i))
                        hf__strbuf_printf(out, "%zu=%s", strlen(by_text.entries[i].text),
                                          by_text.entries[i].text);
        hf__json_index_done(&by_text);
        return r == 0 ? out->error : r;
}

/* Appends a text that is the same for equal terms, whatever the order of their expressions and
 * values. Of several expressions with one key, the last counts, as in Kubernetes. 0 or -ENOMEM. */
static int print_term(const struct hf__json *term, struct hf__strbuf *out) {
        struct hf__json_index by_key;
        int r = hf__json_index_init_texts(&by_key, hf__json_get(term, "matchLabelExpressions"),
                                          "key");

        hf__strbuf_puts(out, "");
        for (size_t i = 0; r == 0 && i < by_key.n; i++) {
                if (!is_last(&by_key, i))
                        continue;
                hf__strbuf_printf(out, "%zu:%s", strlen(by_key.entries[i].text),
                                  by_key.entries[i].text);
                r = print_values(hf__json_get(by_key.entries[i].item, "values"), out);
        }
        hf__json_index_done(&by_key);
        return r == 0 ? out->error : r;
}

/* An array with the text of each term. NULL = out of memory. */
static struct hf__json *print_terms(const struct hf__json *terms) {
        struct hf__json *texts = hf__json_array();
        struct hf__strbuf text = {0};
        int r = texts ? 0 : -ENOMEM;

        for (const struct hf__json *m = hf__json_first(terms); m && r == 0; m = hf__json_next(m)) {
                hf__strbuf_reset(&text);
                r = print_term(m, &text);
                if (r == 0)
                        r = hf__json_append_string(texts, text.n > 0 ? text.data : "");
        }
        hf__strbuf_done(&text);
        return r == 0 ? texts : hf__json_free(texts);
}

/* How many terms before the term i are equal to it; HFD_CAUSES_MAX if there are more. text: that of
 * the term i. Kubernetes puts the terms that it has seen into a list which begins with n empty
 * terms by mistake, where n is the number of all terms. So an empty term is equal to n more. */
static size_t count_equal(const struct hf__json_index *by_text, const char *text, size_t i) {
        const struct hf__json_index_entry *first = hf__json_index_find(by_text, text);
        size_t n = *text ? 0 : by_text->n;

        for (const struct hf__json_index_entry *e = first;
             e && e < by_text->entries + by_text->n && e->position < i && n < HFD_CAUSES_MAX &&
             strcmp(e->text, text) == 0;
             e++)
                n++;
        return n < HFD_CAUSES_MAX ? n : HFD_CAUSES_MAX;
}

void hfd_topologies_validate(const struct hf__json *terms, struct hfd_causes *causes) {
        static const char list[] = "allowedTopologies";
        struct hf__json *texts = print_terms(terms);
        const struct hf__json *text = hf__json_first(texts);
        struct hf__json_index by_text;
        char item[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (!hfd_causes_check(causes,
                              texts ? hf__json_index_init(&by_text, texts, NULL) : -ENOMEM)) {
                hf__json_free(texts);
                return;
        }
        for (const struct hf__json *m = hf__json_first(terms); m && text; m = hf__json_next(m)) {
                validate_term(m, hfd_field_index(item, list, i), causes);
                hfd_field_path(path, item, "matchLabelExpressions");
                for (size_t n = count_equal(&by_text, hf__json_text(text), i); n > 0; n--)
                        hfd_cause_duplicate_text(causes, path, "");
                text = hf__json_next(text);
                i++;
        }
        hf__json_index_done(&by_text);
        hf__json_free(texts);
}
