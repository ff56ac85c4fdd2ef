/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes selectors as query parameters.
 *
 * Invariant: no value can add a requirement. Label selectors have no escapes, so characters that
 * could end a value are refused. Field selectors escape the comma, the equals sign and the
 * backslash with a backslash. Both are then percent-encoded for the URL.
 */
#include <holdfast/selector.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized_struct.h"
#include "base/strbuf.h"

static const struct hf__sized sized_selector = HF__SIZED(struct hf_selector, size);

static bool is_alphanumeric(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Whether the text has only letters, digits and characters of `others`. */
static bool has_only(const char *text, const char *others) {
        for (; *text; text++)
                if (!is_alphanumeric(*text) && !strchr(others, *text))
                        return false;
        return true;
}

/* Refuses what the selector's syntax cannot express, or what would mean something else in it. */
static int check_term(const struct hf_selector_term *term, bool is_label,
                      struct hf_status *reterr_status) {
        const char *kind = is_label ? "label" : "field";
        bool is_equality = term->op == HF_SELECTOR_EQUALS || term->op == HF_SELECTOR_NOT_EQUALS;
        bool is_set = term->op == HF_SELECTOR_IN || term->op == HF_SELECTOR_NOT_IN;

        if (!term->key || !term->key[0] || !has_only(term->key, is_label ? "-_./" : "-_./[]"))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "selector: \"%s\" is not a valid key of a %s",
                               term->key ? term->key : "", kind);
        if ((!is_label && !is_equality) || (unsigned)term->op > HF_SELECTOR_NOT_EXISTS)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "selector: %s: no such operator for a %s", term->key, kind);
        size_t least = is_equality || is_set, most = is_set ? SIZE_MAX : least;
        if (term->n_values < least || term->n_values > most)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "selector: %s: %zu values do not fit the operator", term->key,
                               term->n_values);
        for (size_t i = 0; i < term->n_values; i++)
                if (!term->values || !term->values[i] ||
                    (is_label && !has_only(term->values[i], "-_.")))
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "selector: %s: a label cannot have this value", term->key);
        return 0;
}

/* The escapes are those of apimachinery's fields.EscapeValue. */
static void put_field_value(struct hf__strbuf *out, const char *value) {
        for (; *value; value++) {
                if (strchr(",=\\", *value))
                        hf__strbuf_putc(out, '\\');
                hf__strbuf_putc(out, *value);
        }
}

/* `in` and `notin` are words, so a space divides them from the key. */
static void put_values(struct hf__strbuf *out, const struct hf_selector_term *term) {
        hf__strbuf_puts(out, term->key);
        hf__strbuf_puts(out, term->op == HF_SELECTOR_IN ? " in (" : " notin (");
        for (size_t i = 0; i < term->n_values; i++) {
                if (i > 0)
                        hf__strbuf_putc(out, ',');
                hf__strbuf_puts(out, term->values[i]);
        }
        hf__strbuf_putc(out, ')');
}

static void put_term(struct hf__strbuf *out, const struct hf_selector_term *term, bool is_label) {
        switch (term->op) {
        case HF_SELECTOR_EQUALS:
        case HF_SELECTOR_NOT_EQUALS:
                hf__strbuf_puts(out, term->key);
                hf__strbuf_puts(out, term->op == HF_SELECTOR_EQUALS ? "=" : "!=");
                if (is_label)
                        hf__strbuf_puts(out, term->values[0]);
                else
                        put_field_value(out, term->values[0]);
                break;
        case HF_SELECTOR_IN:
        case HF_SELECTOR_NOT_IN: put_values(out, term); break;
        case HF_SELECTOR_NOT_EXISTS:
                hf__strbuf_putc(out, '!');
                hf__strbuf_puts(out, term->key);
                break;
        case HF_SELECTOR_EXISTS: hf__strbuf_puts(out, term->key); break;
        }
}

/* Appends one parameter with all requirements of a kind. */
static int put_terms(struct hf__strbuf *query, const struct hf_selector_term *terms, size_t n,
                     bool is_label, struct hf_status *reterr_status) {
        struct hf__strbuf text = {0};
        int r = 0;

        for (size_t i = 0; r == 0 && i < n; i++) {
                r = check_term(&terms[i], is_label, reterr_status);
                if (r != 0)
                        break;
                if (i > 0)
                        hf__strbuf_putc(&text, ',');
                put_term(&text, &terms[i], is_label);
        }
        if (r == 0 && text.error != 0)
                r = hf_fail(reterr_status, text.error, "selector: %s", hf_strerror(text.error));
        if (r == 0 && n > 0) {
                hf__strbuf_puts(query, query->n > 0 ? "&" : "");
                hf__strbuf_puts(query, is_label ? "labelSelector=" : "fieldSelector=");
                hf__strbuf_urlencode(query, text.data);
        }
        hf__strbuf_done(&text);
        return r;
}

int hf_selector_query(const struct hf_selector *given, char **ret_query,
                      struct hf_status *reterr_status) {
        struct hf_selector selector;
        struct hf__strbuf query = {0};

        if (!ret_query)
                return hf_fail(reterr_status, -EINVAL, "selector: ret_query is NULL");
        int r = hf__sized_copy(&sized_selector, &selector, given, reterr_status);
        if (r != 0)
                return r;
        hf__strbuf_puts(&query, ""); /* so that a selector without terms is "", and not NULL */
        r = put_terms(&query, selector.labels, selector.n_labels, true, reterr_status);
        if (r == 0)
                r = put_terms(&query, selector.fields, selector.n_fields, false, reterr_status);
        if (r == 0 && query.error != 0)
                r = hf_fail(reterr_status, query.error, "selector: %s", hf_strerror(query.error));
        if (r != 0) {
                hf__strbuf_done(&query);
                return r;
        }
        *ret_query = query.data;
        return 0;
}
