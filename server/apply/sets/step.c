/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of paths: order, parsing and printing.
 *
 * Invariants: the order is total, also between values of different types, because sets are sorted
 * and clients can send any value. Integers and doubles are sorted as numbers. A step that is
 * printed and parsed again equals itself; otherwise a manager would lose the field with the next
 * write.
 */
#include "server/apply/sets/step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"

/* ---- order ---- */

static int compare_numbers(const struct hfd_scalar *a, const struct hfd_scalar *b) {
        if (a->type == HFD_SCALAR_INTEGER && b->type == HFD_SCALAR_INTEGER)
                return (a->integer > b->integer) - (a->integer < b->integer);
        double x = a->type == HFD_SCALAR_INTEGER ? (double)a->integer : a->number;
        double y = b->type == HFD_SCALAR_INTEGER ? (double)b->integer : b->number;
        if (x != y)
                return x < y ? -1 : 1;
        /* Several large integers convert to the same double. If all of them were equal to it, they
         * would have to be equal to each other. So an integer never equals a double. */
        return (int)a->type - (int)b->type;
}

static int compare_scalars(const struct hfd_scalar *a, const struct hfd_scalar *b) {
        if (a->type <= HFD_SCALAR_DOUBLE && b->type <= HFD_SCALAR_DOUBLE)
                return compare_numbers(a, b);
        if (a->type != b->type)
                return a->type < b->type ? -1 : 1;
        if (a->type == HFD_SCALAR_TEXT)
                return strcmp(a->text, b->text);
        return a->type == HFD_SCALAR_BOOLEAN ? a->boolean - b->boolean : 0;
}

/* Both have their keys sorted by name. Elements of one list may have different keys, if a key is
 * optional; the step whose keys are the beginning of the other's comes first, as in Kubernetes. */
static int compare_keys(const struct hfd_step *a, const struct hfd_step *b) {
        for (unsigned i = 0; i < a->n_keys && i < b->n_keys; i++) {
                int order = strcmp(a->keys[i].name, b->keys[i].name);
                if (order == 0)
                        order = compare_scalars(&a->keys[i].value, &b->keys[i].value);
                if (order != 0)
                        return order;
        }
        return (a->n_keys > b->n_keys) - (a->n_keys < b->n_keys);
}

int hfd_step_compare(const struct hfd_step *a, const struct hfd_step *b) {
        if (a->kind != b->kind)
                return a->kind < b->kind ? -1 : 1;
        switch (a->kind) {
        case HFD_STEP_FIELD: return strcmp(a->name, b->name);
        case HFD_STEP_KEY: return compare_keys(a, b);
        case HFD_STEP_VALUE: return compare_scalars(a->value, b->value);
        case HFD_STEP_INDEX: break;
        }
        return (a->index > b->index) - (a->index < b->index);
}

/* ---- parsing ---- */

bool hfd_scalar_of(const struct hf__json *json, struct hfd_scalar *ret_scalar) {
        struct hfd_scalar scalar = {.type = HFD_SCALAR_NULL};

        if (hf__json_is_string(json)) {
                scalar.type = HFD_SCALAR_TEXT;
                scalar.text = hf__json_text(json);
        } else if (hf__json_is_bool(json)) {
                scalar.type = HFD_SCALAR_BOOLEAN;
                scalar.boolean = hf__json_is_true(json);
        } else if (hf__json_is_number(json)) {
                scalar.type = HFD_SCALAR_INTEGER;
                if (!hf__json_integer(json, &scalar.integer)) {
                        scalar.type = HFD_SCALAR_DOUBLE;
                        scalar.number = hf__json_number(json);
                }
        } else if (!hf__json_is_null(json)) {
                return false;
        }
        *ret_scalar = scalar;
        return true;
}

/* Like hfd_scalar_of, but copies the text to scratch. 0, -ENOMEM or HF_E_INVALID. */
static int copy_scalar(struct hf__arena *scratch, const struct hf__json *json,
                       struct hfd_scalar *ret_scalar) {
        if (!hfd_scalar_of(json, ret_scalar))
                return HF_E_INVALID;
        if (ret_scalar->type == HFD_SCALAR_TEXT)
                ret_scalar->text =
                        hf__arena_text(scratch, ret_scalar->text, strlen(ret_scalar->text));
        return scratch->failed ? -ENOMEM : 0;
}

static int order_of_names(const void *a, const void *b) {
        const struct hfd_step_key *x = a, *y = b;

        return strcmp(x->name, y->name);
}

/* A client may send the keys in any order. They are sorted, so that equal steps have equal arrays
 * of keys. A step in which a key occurs twice is malformed: the key would have two values. */
static int parse_keys(struct hf__arena *scratch, const struct hf__json *json,
                      struct hfd_step *ret_step) {
        size_t n = hf__json_count(json), i = 0;
        struct hfd_step_key *keys;

        if (!hf__json_is_object(json) || n == 0)
                return HF_E_INVALID;
        keys = hf__arena_alloc(scratch, n * sizeof *keys);
        if (!keys)
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m), i++) {
                int r = copy_scalar(scratch, m, &keys[i].value);
                if (r != 0)
                        return r;
                keys[i].name = hf__arena_text(scratch, hf__json_key(m), strlen(hf__json_key(m)));
                if (!keys[i].name)
                        return -ENOMEM;
        }
        qsort(keys, n, sizeof *keys, order_of_names);
        for (i = 1; i < n; i++)
                if (strcmp(keys[i - 1].name, keys[i].name) == 0)
                        return HF_E_INVALID;
        *ret_step = (struct hfd_step){.kind = HFD_STEP_KEY, .n_keys = (unsigned)n, .keys = keys};
        return 0;
}

static int parse_value(struct hf__arena *scratch, const struct hf__json *json,
                       struct hfd_step *ret_step) {
        struct hfd_scalar *value = hf__arena_alloc(scratch, sizeof *value);

        if (!value)
                return -ENOMEM;
        *ret_step = (struct hfd_step){.kind = HFD_STEP_VALUE, .value = value};
        return copy_scalar(scratch, json, value);
}

/* Parses an index, a JSON number that is an int64_t. No list of Holdfast has steps of this kind,
 * but sets that other programs have written are kept as they are. */
static int parse_index(const char *text, struct hfd_step *ret_step) {
        struct hf__json *json = NULL;
        int64_t index;
        int r = hf__json_parse(text, strlen(text), &json, NULL);

        if (r == 0 && !hf__json_integer(json, &index))
                r = HF_E_INVALID;
        hf__json_free(json);
        if (r != 0)
                return r == -ENOMEM ? r : HF_E_INVALID;
        *ret_step = (struct hfd_step){.kind = HFD_STEP_INDEX, .index = index};
        return 0;
}

int hfd_step_parse(struct hf__arena *scratch, const char *text, struct hfd_step *ret_step) {
        struct hf__json *json = NULL;
        int r;

        if (!text[0] || text[1] != ':')
                return HF_E_INVALID;
        if (text[0] == 'f') { /* any text is a name, also an empty one */
                *ret_step = (struct hfd_step){.kind = HFD_STEP_FIELD, .name = text + 2};
                return 0;
        }
        if (text[0] == 'i')
                return parse_index(text + 2, ret_step);
        if (text[0] != 'k' && text[0] != 'v')
                return HF_E_NOT_FOUND;
        r = hf__json_parse(text + 2, strlen(text + 2), &json, NULL);
        if (r == 0 && text[0] == 'k')
                r = parse_keys(scratch, json, ret_step);
        else if (r == 0)
                r = parse_value(scratch, json, ret_step);
        hf__json_free(json);
        return r == 0 || r == -ENOMEM ? r : HF_E_INVALID;
}

/* ---- printing ---- */

/* Writes 15 digits if reading them gives the same number, otherwise 17, which are always enough. */
static void put_double(double number, struct hf__strbuf *out) {
        char text[32];

        (void)snprintf(text, sizeof text, "%.15g", number);
        if (strtod(text, NULL) != number)
                (void)snprintf(text, sizeof text, "%.17g", number);
        hf__strbuf_puts(out, text);
}

static void put_scalar(const struct hfd_scalar *scalar, struct hf__strbuf *out) {
        switch (scalar->type) {
        case HFD_SCALAR_INTEGER: hf__strbuf_printf(out, "%lld", (long long)scalar->integer); break;
        case HFD_SCALAR_DOUBLE: put_double(scalar->number, out); break;
        case HFD_SCALAR_TEXT: hf__strbuf_json(out, scalar->text, strlen(scalar->text)); break;
        case HFD_SCALAR_BOOLEAN: hf__strbuf_puts(out, scalar->boolean ? "true" : "false"); break;
        case HFD_SCALAR_NULL: hf__strbuf_puts(out, "null"); break;
        }
}

/* The order by name is also that of Kubernetes, so both write the same text for a step. */
static void put_keys(const struct hfd_step *step, struct hf__strbuf *out) {
        hf__strbuf_puts(out, "k:{");
        for (unsigned i = 0; i < step->n_keys; i++) {
                if (i > 0)
                        hf__strbuf_putc(out, ',');
                hf__strbuf_json(out, step->keys[i].name, strlen(step->keys[i].name));
                hf__strbuf_putc(out, ':');
                put_scalar(&step->keys[i].value, out);
        }
        hf__strbuf_putc(out, '}');
}

void hfd_step_put(const struct hfd_step *step, struct hf__strbuf *out) {
        switch (step->kind) {
        case HFD_STEP_FIELD:
                hf__strbuf_puts(out, "f:");
                hf__strbuf_puts(out, step->name);
                break;
        case HFD_STEP_KEY: put_keys(step, out); break;
        case HFD_STEP_VALUE:
                hf__strbuf_puts(out, "v:");
                put_scalar(step->value, out);
                break;
        case HFD_STEP_INDEX: hf__strbuf_printf(out, "i:%lld", (long long)step->index); break;
        }
}

void hfd_step_put_message(const struct hfd_step *step, struct hf__strbuf *out) {
        switch (step->kind) {
        case HFD_STEP_FIELD:
                hf__strbuf_putc(out, '.');
                hf__strbuf_puts(out, step->name);
                break;
        case HFD_STEP_KEY:
                for (unsigned i = 0; i < step->n_keys; i++) {
                        hf__strbuf_putc(out, i == 0 ? '[' : ',');
                        hf__strbuf_puts(out, step->keys[i].name);
                        hf__strbuf_putc(out, '=');
                        put_scalar(&step->keys[i].value, out);
                }
                hf__strbuf_putc(out, ']');
                break;
        case HFD_STEP_VALUE:
                hf__strbuf_puts(out, "[=");
                put_scalar(step->value, out);
                hf__strbuf_putc(out, ']');
                break;
        case HFD_STEP_INDEX: hf__strbuf_printf(out, "[%lld]", (long long)step->index); break;
        }
}
