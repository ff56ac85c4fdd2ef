/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A set of paths to the fields of an object, as a trie. Kubernetes' name for its JSON form is
 * FieldsV1. If a path is in the set, this says nothing about the paths above and below it.
 *
 * Sets are immutable, and their memory is that of an arena (base/arena.h), here called scratch.
 * Operations share parts of their arguments; a union or a difference that changes nothing is the
 * first argument itself. NULL is the empty set. When memory is exhausted, operations return any
 * set, and scratch->failed is set.
 *
 * All operations take at most n log n time for each level of sets of n paths, and recurse as deep
 * as the sets are: at most HFD_FIELDS_DEPTH steps. A value that is deeper counts as one field.
 * The JSON form of a set is nested as deep as the object, and is itself some levels below the top
 * of the object, in managedFields. So without this limit, an object that the JSON parser just
 * accepts would become too deep for the parser. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/apply/sets/step.h"

#define HFD_FIELDS_DEPTH 64

struct hfd_fields;

struct hfd_field {
        struct hfd_step step;
        bool member;                    /* the path that ends with this step is in the set */
        const struct hfd_fields *below; /* the paths that go on; NULL = none */
};

struct hfd_fields {
        size_t n;              /* > 0 */
        struct hfd_field at[]; /* sorted by step; each is a member, or has fields below */
};

/* ---- building ---- */

/*
 * A builder holds the fields of all levels that are not complete yet:
 *
 *      size_t level = hfd_fields_open(&builder);
 *      hfd_fields_add(&builder, &step, true, NULL);
 *      fields = hfd_fields_close(&builder, level);
 */

struct hfd_fields_builder {
        struct hf__arena *scratch;
        struct hfd_field *fields; /* memory of scratch */
        size_t n, space;
};

static inline size_t hfd_fields_open(const struct hfd_fields_builder *builder) {
        return builder->n;
}
/* Adds a field to the level that was opened last. Adds nothing if `member` is false and `below` is
 * NULL. Steps may come in any order, and more than once. */
void hfd_fields_add(struct hfd_fields_builder *builder, const struct hfd_step *step, bool member,
                    const struct hfd_fields *below);
/* Closes the level. Returns the set of the fields that were added since it was opened. */
const struct hfd_fields *hfd_fields_close(struct hfd_fields_builder *builder, size_t level);

/* ---- operations ---- */

/* The paths that are in a or in b; and those that are in both. A union that is a itself takes time
 * in proportion to b, times the logarithm of a. */
const struct hfd_fields *hfd_fields_union(struct hf__arena *scratch, const struct hfd_fields *a,
                                          const struct hfd_fields *b);
const struct hfd_fields *hfd_fields_intersect(struct hf__arena *scratch, const struct hfd_fields *a,
                                              const struct hfd_fields *b);
/* The paths of a that are not in b. */
const struct hfd_fields *hfd_fields_subtract(struct hf__arena *scratch, const struct hfd_fields *a,
                                             const struct hfd_fields *b);
bool hfd_fields_equal(const struct hfd_fields *a, const struct hfd_fields *b);
/* The field with this step; NULL = there is none. */
const struct hfd_field *hfd_fields_find(const struct hfd_fields *fields,
                                        const struct hfd_step *step);
/* The number of paths. */
size_t hfd_fields_count(const struct hfd_fields *fields);
