/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides how server-side apply divides a value into fields: not at all (a leaf), by the members of
 * an object, or by the elements of a list, which are identified by keys or by their values. The
 * schema decides. If it does not know a value, an object is divided and a list is not. Thread:
 * owner only.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/apply/sets/step.h"

struct hf__json;
struct hf__strbuf;
struct hfd_schema;
struct hf__arena;

enum hfd_shape { HFD_SHAPE_LEAF, HFD_SHAPE_OBJECT, HFD_SHAPE_LIST };

/*
 * An element of a list, and the step that identifies it: its keys or its value (sets/step.h). If
 * several elements have the same step, none of them is `single`, and together they are one field.
 */
struct hfd_element {
        struct hfd_step step;
        struct hf__json *value;
        size_t position; /* in the list */
        bool single;
};

struct hfd_elements {
        size_t n;
        struct hfd_element *in_order; /* as in the list */
        struct hfd_element *sorted;   /* by step, and by position where steps are equal */
};

/* depth: the number of steps that lead to the value; see HFD_FIELDS_DEPTH. Takes constant time. */
enum hfd_shape hfd_shape_of(const struct hfd_schema *schema, const struct hf__json *value,
                            unsigned depth);
/* Whether key is the name of a field that this schema declares. Whoever owns a part of such a field
 * owns the field too; this does not hold for a key of a map. */
bool hfd_shape_is_named(const struct hfd_schema *schema, const char *key);
/*
 * The elements of a list whose shape is LIST, in memory of scratch; they borrow from list and
 * schema. 0; -ENOMEM, and scratch->failed is set; HF_E_INVALID: an element has no step, and the
 * list counts as a leaf. Then reason, unless it is NULL, gets the element's position and
 * Kubernetes' message.
 */
int hfd_shape_elements(struct hf__arena *scratch, const struct hfd_schema *schema,
                       const struct hf__json *list, struct hfd_elements *ret_elements,
                       struct hf__strbuf *reason);
/* The first element with this step in sorted; NULL = none. */
struct hfd_element *hfd_shape_find(const struct hfd_elements *elements,
                                   const struct hfd_step *step);
