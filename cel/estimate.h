/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The highest cost of an evaluation, computed before there are values: as Kubernetes estimates it
 * from the tree of an expression and the largest sizes that types declare. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stdint.h>

#include "cel/syntax/ast.h"
#include "cel/values/declarations.h"

struct hf__arena;

struct hf__cel_size {
        uint64_t min;
        uint64_t max;
};

enum hf__cel_path_state {
        HF__CEL_PATH_NONE, /* a value that comes from no variable */
        HF__CEL_PATH_LOST, /* a part of a value, which no declared type describes */
        HF__CEL_PATH_AT,   /* `type` is the declared type of the value */
};

/* The place in the declared types from which a value comes. */
struct hf__cel_path {
        enum hf__cel_path_state state;
        const struct hf__cel_type *type; /* if AT */
};

/* The knowledge about the value of a node. A cost or a size that does not fit is UINT64_MAX. */
struct hf__cel_estimate {
        uint64_t cost; /* of its evaluation, at most */
        struct hf__cel_path path;
        const struct hf__cel_node *node;
        bool has_size;
        bool has_parts; /* a list or map with the sizes of its keys and elements */
        struct hf__cel_size size;
        struct hf__cel_size key;
        struct hf__cel_size element;
};

/* The largest cost of a tree that is checked, but not prepared (hf__cel_prepare) yet. false: out of
 * memory. */
bool hf__cel_estimate_tree(struct hf__arena *arena, const struct hf__cel_node *root,
                           const struct hf__cel_declarations *declarations, uint32_t n_locals,
                           uint64_t *ret_cost);

/* ---- for the estimates of functions ---- */

/* A result that does not fit is UINT64_MAX. */
uint64_t hf__cel_cost_sum(uint64_t a, uint64_t b);
uint64_t hf__cel_cost_product(uint64_t a, uint64_t b);
uint64_t hf__cel_cost_factor(uint64_t size, double factor); /* rounded up */
struct hf__cel_size hf__cel_size_union(struct hf__cel_size a, struct hf__cel_size b);
/* The size; if it is not known, from 0 to the largest one. */
struct hf__cel_size hf__cel_size_or_any(const struct hf__cel_estimate *estimate);

/* The cost of a call that compares each element of a list with every other element, twice, and
 * makes a list. texts: the elements are texts or bytes. *result gets the size that Kubernetes
 * estimates: the square of that of the list. */
uint64_t hf__cel_estimate_pairs(bool texts, struct hf__cel_size list,
                                struct hf__cel_estimate *result);
/* The cost of a call of one overload, without that of its arguments; if the result has a size that
 * is known, *result gets it. */
uint64_t hf__cel_estimate_overload(const struct hf__cel_overload *overload,
                                   const struct hf__cel_estimate *args,
                                   struct hf__cel_estimate *result);
