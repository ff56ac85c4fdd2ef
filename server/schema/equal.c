/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two values as Kubernetes' Semantic.DeepEqual does, in a walk through both values and
 * their schema. A write that changes nothing must not change the object's version, although the
 * client may have sent the object in other words; this comparison decides.
 *
 * Invariant: apart from sorting, the time is in proportion to the values, though a client chooses
 * them. A STRUCT is searched only for fields of its schema, and a map by a sorted index. Another
 * program may have stored one of the values, so it can have any form: before keys are compared, a
 * check finds out whether it is an object.
 */
#include "server/schema/equal.h"

#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/schema/values/quantity.h"

/* ---- scalars ---- */

static bool is_zero(const struct hf__json *value) {
        if (hf__json_is_string(value))
                return hf__json_text(value)[0] == '\0';
        if (hf__json_is_number(value))
                return hf__json_number(value) == 0;
        return hf__json_is_bool(value) && !hf__json_is_true(value);
}

/* Quantities that cannot be parsed are compared as texts. in_map: they are amounts of resources, so
 * both are first rounded to thousandths. A write rounds them, too (decode.c), but an earlier
 * version of this server may have stored one of the two without rounding it. */
static bool quantities_equal(const struct hf__json *a, const struct hf__json *b, bool in_map) {
        const char *text = hf__json_is_string(a) ? hf__json_text(a) : "0",
                   *other = hf__json_is_string(b) ? hf__json_text(b) : "0";
        struct hfd_quantity x, y;

        if (strcmp(text, other) == 0)
                return true;
        if (hfd_quantity_parse(text, &x) || hfd_quantity_parse(other, &y))
                return false;
        if (in_map) {
                hfd_quantity_round_to_thousandths(&x);
                hfd_quantity_round_to_thousandths(&y);
        }
        return hfd_quantity_compare(&x, &y) == 0;
}

/* ---- containers ---- */

static bool values_equal(const struct hfd_schema *schema, bool pointer, const struct hf__json *a,
                         const struct hf__json *b, int *r);

static bool is_pointer(const struct hfd_schema_field *field) {
        return (field->flags & HFD_FIELD_POINTER) != 0;
}

/* Whether the value of a STRUCT or a map is absent or an object. */
static bool may_have_members(const struct hf__json *value) {
        return !value || hf__json_is_object(value);
}

/* Compares the members of a with those of b; most often they have the same order. */
static bool structs_equal(const struct hfd_schema *schema, const struct hf__json *a,
                          const struct hf__json *b, int *r) {
        const struct hf__json *y = hf__json_first(b), *other;

        if (!may_have_members(a) || !may_have_members(b))
                return false;
        for (const struct hf__json *x = hf__json_first(a); x; x = hf__json_next(x)) {
                const struct hfd_schema_field *field = hfd_schema_field(schema, hf__json_key(x));
                bool in_order = y && strcmp(hf__json_key(x), hf__json_key(y)) == 0;
                if (field) {
                        other = in_order ? y : hf__json_get(b, field->name);
                        if (!values_equal(field->schema, is_pointer(field), x, other, r))
                                return false;
                }
                y = in_order ? hf__json_next(y) : y;
        }
        /* The loop has compared the members before y. */
        for (; y; y = hf__json_next(y)) {
                const struct hfd_schema_field *field = hfd_schema_field(schema, hf__json_key(y));
                if (field && !hf__json_get(a, field->name) &&
                    !values_equal(field->schema, is_pointer(field), NULL, y, r))
                        return false;
        }
        return true;
}

static bool maps_equal(const struct hfd_schema *items, const struct hf__json *a,
                       const struct hf__json *b, int *r) {
        struct hf__json_index index;

        if (!may_have_members(a) || !may_have_members(b))
                return false;
        *r = hf__json_index_init(&index, b, NULL);
        bool same = *r == 0 && index.n == hf__json_count(a);
        for (const struct hf__json *x = hf__json_first(a); x && same; x = hf__json_next(x)) {
                const struct hf__json_index_entry *y = hf__json_index_find(&index, hf__json_key(x));
                same = y && (items->type == HFD_SCHEMA_QUANTITY
                                     ? quantities_equal(x, y->item, true)
                                     : values_equal(items, false, x, y->item, r));
        }
        hf__json_index_done(&index);
        return same;
}

static bool lists_equal(const struct hfd_schema *items, const struct hf__json *a,
                        const struct hf__json *b, int *r) {
        const struct hf__json *x = hf__json_first(a), *y = hf__json_first(b);

        for (; x && y; x = hf__json_next(x), y = hf__json_next(y))
                if (!values_equal(items, false, x, y, r))
                        return false;
        return !x && !y;
}

static bool json_equal(const struct hf__json *a, const struct hf__json *b, int *r) {
        bool equal;

        *r = hf__json_are_equal(a, b, &equal);
        return equal;
}

/* a, b: NULL = absent. pointer: Go holds the value through a pointer, so absent differs from zero.
 * *r becomes an error, or stays 0; with an error the result is false. */
static bool values_equal(const struct hfd_schema *schema, bool pointer, const struct hf__json *a,
                         const struct hf__json *b, int *r) {
        enum hfd_schema_type type = schema->type;

        a = hf__json_is_null(a) ? NULL : a;
        b = hf__json_is_null(b) ? NULL : b;
        if (!a && !b)
                return true;
        if (type == HFD_SCHEMA_LIST)
                return lists_equal(schema->items, a, b, r);
        if (type == HFD_SCHEMA_MAP)
                return maps_equal(schema->items, a, b, r);
        if (type == HFD_SCHEMA_ANY || type == HFD_SCHEMA_EITHER || schema->preserve_unknown)
                return json_equal(a, b, r);
        if ((!a || !b) && pointer)
                return false;
        if (type == HFD_SCHEMA_STRUCT)
                return structs_equal(schema, a, b, r);
        if (type == HFD_SCHEMA_QUANTITY)
                return quantities_equal(a, b, false);
        if (a && b)
                return json_equal(a, b, r);
        return is_zero(a ? a : b);
}

int hfd_schema_are_equal(const struct hfd_schema *schema, const struct hf__json *a,
                         const struct hf__json *b, bool *ret_equal) {
        int r = 0;

        *ret_equal = values_equal(schema, false, a, b, &r);
        return r;
}

int hfd_schema_are_members_equal(const struct hfd_schema *schema, const struct hf__json *a,
                                 const struct hf__json *b, const char *name, bool *ret_equal) {
        const struct hfd_schema_field *field = hfd_schema_field(schema, name);
        const struct hf__json *x = hf__json_get(a, name), *y = hf__json_get(b, name);
        int r = 0;

        *ret_equal = field ? values_equal(field->schema, is_pointer(field), x, y, &r)
                           : json_equal(x, y, &r);
        return r;
}
