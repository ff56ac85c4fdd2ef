/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the shape of a value, and the elements of a list by their steps (sets/element_step.h).
 *
 * Invariant: elements that share a step are not `single`, wherever they are in the list.
 */
#include "server/apply/shape.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "server/apply/sets/element_step.h"
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

static int order_of_elements(const void *a, const void *b) {
        const struct hfd_element *x = a, *y = b;
        int order = hfd_step_compare(&x->step, &y->step);

        if (order != 0)
                return order;
        return x->position < y->position ? -1 : x->position > y->position;
}

/* Sorts the elements, and finds those that share a step, as they may in a stored object. An apply
 * with such elements is refused; a create or update is refused only if the kind's rules say so. */
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
                int r = hfd_element_step(scratch, schema, m, i, &element->step, reason);
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
