/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the shape of a value, and the steps that identify the elements of a list. The messages are
 * those of Kubernetes, because users search for them.
 *
 * Invariant: if an element omits a key, its step has the key's default. If the key has no default,
 * the step does not have the key, so elements with and without it are different. A step has at
 * least one key.
 */
#include "server/apply/shape.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/apply/sets/fields.h"
#include "server/schema/schema.h"

/* Without a schema the rules are those of Kubernetes' "deduced" type: maps are granular, and lists
 * are atomic, since nothing says how to identify their elements. */
enum hfd_shape hfd_shape_of(const struct hfd_schema *schema, const struct hf__json *value,
                            unsigned depth) {
        if (depth >= HFD_FIELDS_DEPTH)
                return HFD_SHAPE_LEAF;
        if (!schema || schema->type == HFD_SCHEMA_ANY)
                return hf__json_is_object(value) ? HFD_SHAPE_OBJECT : HFD_SHAPE_LEAF;
        if ((schema->type == HFD_SCHEMA_STRUCT || schema->type == HFD_SCHEMA_MAP) &&
            !schema->atomic && hf__json_is_object(value))
                return HFD_SHAPE_OBJECT;
        if (schema->type == HFD_SCHEMA_LIST && schema->list_type != HFD_LIST_ATOMIC &&
            hf__json_is_array(value))
                return HFD_SHAPE_LIST;
        return HFD_SHAPE_LEAF;
}

bool hfd_shape_is_named(const struct hfd_schema *schema, const char *key) {
        return schema && schema->type == HFD_SCHEMA_STRUCT && hfd_schema_field(schema, key);
}

/* ---- elements ---- */

/* The value of a key that an element omits. NULL = the key has no default. A field with
 * HFD_FIELD_MERGE has none, because it has a merge_key in place of key_default. */
static const char *default_of(const struct hfd_schema *list, const char *key) {
        const struct hfd_schema_field *field =
                list->items->type == HFD_SCHEMA_STRUCT ? hfd_schema_field(list->items, key) : NULL;

        return field && (field->flags & HFD_FIELD_MERGE) == 0 ? field->key_default : NULL;
}

/* Writes why the element at a position has no step. */
static int refuse_shape(struct hf__strbuf *reason, size_t position, const char *why) {
        if (reason)
                hf__strbuf_printf(reason, "element %zu: %s", position, why);
        return HF_E_INVALID;
}

static int refuse_without_keys(const struct hfd_schema *list, struct hf__strbuf *reason,
                               size_t position) {
        (void)refuse_shape(reason, position,
                           "associative list with keys has an element that omits all key fields [");
        for (size_t i = 0; reason && list->list_keys[i]; i++)
                hf__strbuf_printf(reason, "%s\"%s\"", i > 0 ? " " : "", list->list_keys[i]);
        if (reason)
                hf__strbuf_puts(reason, "] (and doesn't have default values for any key fields)");
        return HF_E_INVALID;
}

/* The step of an element of a list of type map. Of more than HFD_STEP_KEYS_MAX keys, the first ones
 * count. */
static int step_of_object(struct hf__arena *scratch, const struct hfd_schema *list,
                          struct hfd_element *element, struct hf__strbuf *reason) {
        struct hfd_step_key found[HFD_STEP_KEYS_MAX], *keys;
        unsigned n = 0;

        if (!hf__json_is_object(element->value))
                return refuse_shape(
                        reason, element->position,
                        hf__json_is_null(element->value)
                                ? "associative list with keys may not have a null element"
                                : "associative list with keys may not have non-map elements");
        for (size_t i = 0; list->list_keys[i] && n < HFD_STEP_KEYS_MAX; i++) {
                const char *name = list->list_keys[i], *otherwise = default_of(list, name);
                const struct hf__json *value = hf__json_get(element->value, name);
                struct hfd_step_key *key = &found[n];
                key->name = name;
                if (value && !hfd_scalar_of(value, &key->value))
                        return refuse_shape(reason, element->position,
                                            "associative list has a key that is no scalar");
                if (!value)
                        key->value = (struct hfd_scalar){HFD_SCALAR_TEXT, {.text = otherwise}};
                n += value || otherwise;
        }
        if (n == 0)
                return refuse_without_keys(list, reason, element->position);
        keys = hf__arena_alloc(scratch, n * sizeof *keys);
        if (!keys)
                return -ENOMEM;
        memcpy(keys, found, n * sizeof *keys);
        element->step = (struct hfd_step){.kind = HFD_STEP_KEY, .n_keys = n, .keys = keys};
        return 0;
}

/* The step of an element of a list of type set. */
static int step_of_value(struct hf__arena *scratch, struct hfd_element *element,
                         struct hf__strbuf *reason) {
        struct hfd_scalar *value;

        if (hf__json_is_object(element->value))
                return refuse_shape(reason, element->position,
                                    "associative list without keys has an element that's a map "
                                    "type");
        if (hf__json_is_array(element->value))
                return refuse_shape(reason, element->position,
                                    "not supported: associative list with lists as elements");
        if (hf__json_is_null(element->value))
                return refuse_shape(reason, element->position,
                                    "associative list without keys has an element that's an "
                                    "explicit null");
        value = hf__arena_alloc(scratch, sizeof *value);
        if (!value)
                return -ENOMEM;
        (void)hfd_scalar_of(element->value, value);
        element->step = (struct hfd_step){.kind = HFD_STEP_VALUE, .value = value};
        return 0;
}

static int order_of_elements(const void *a, const void *b) {
        const struct hfd_element *x = a, *y = b;
        int order = hfd_step_compare(&x->step, &y->step);

        if (order != 0)
                return order;
        return x->position < y->position ? -1 : x->position > y->position;
}

/* Sorts the elements, and finds those that share a step. A stored object may have such elements:
 * only the configuration of an apply is refused for them, not an update. */
static void sort_elements(struct hfd_elements *elements) {
        struct hfd_element *sorted = elements->sorted;

        memcpy(sorted, elements->in_order, elements->n * sizeof *sorted);
        qsort(sorted, elements->n, sizeof *sorted, order_of_elements);
        for (size_t i = 1; i < elements->n; i++) {
                if (hfd_step_compare(&sorted[i - 1].step, &sorted[i].step) != 0)
                        continue;
                sorted[i - 1].single = sorted[i].single = false;
                elements->in_order[sorted[i - 1].position].single = false;
                elements->in_order[sorted[i].position].single = false;
        }
}

int hfd_shape_elements(struct hf__arena *scratch, const struct hfd_schema *schema,
                       const struct hf__json *list, struct hfd_elements *ret_elements,
                       struct hf__strbuf *reason) {
        struct hfd_elements elements = {.n = hf__json_count(list)};
        size_t i = 0;

        elements.in_order = hf__arena_alloc(scratch, elements.n * sizeof *elements.in_order);
        elements.sorted = hf__arena_alloc(scratch, elements.n * sizeof *elements.sorted);
        if (!elements.in_order || !elements.sorted)
                return -ENOMEM;
        assert(elements.n == 0 || hf__json_is_array(list));
        for (struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++) {
                struct hfd_element *element = &elements.in_order[i];
                *element = (struct hfd_element){.value = m, .position = i, .single = true};
                int r = schema->list_type == HFD_LIST_MAP
                                ? step_of_object(scratch, schema, element, reason)
                                : step_of_value(scratch, element, reason);
                if (r != 0)
                        return r;
        }
        if (elements.n > 0)
                sort_elements(&elements);
        *ret_elements = elements;
        return 0;
}

struct hfd_element *hfd_shape_find(const struct hfd_elements *elements,
                                   const struct hfd_step *step) {
        size_t low = 0, high = elements->n;

        assert(elements->n == 0 || elements->sorted);
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (hfd_step_compare(&elements->sorted[middle].step, step) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == elements->n || hfd_step_compare(&elements->sorted[low].step, step) != 0)
                return NULL;
        return &elements->sorted[low];
}
