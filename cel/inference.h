/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Type variables: which types they stand for, and whether one type can be assigned to another.
 * Owner: one check of an expression. Thread: the owner's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/values/type.h"

struct hf__arena;

struct hf__cel_inference {
        struct hf__arena *arena;
        const struct hf__cel_type **bound; /* by the number of the variable; NULL: not bound */
        uint32_t n_vars;
        uint32_t space;
        struct hf__cel_change *trail; /* the bindings made so far, the newest at the end */
        size_t n_trail;
        size_t trail_space;
        uint32_t steps; /* of walks into what variables stand for; their number is limited */
        /* A type is too large or nested too deeply, the steps are used up, or memory ran out. Then
         * nothing can be assigned any more, and the functions that return a type may return
         * ERROR. */
        bool failed;
};

/* New variables. Returns the number of the first; the others follow. If `failed` is set afterwards,
 * there may be none, and the number means nothing. */
uint32_t hf__cel_new_vars(struct hf__cel_inference *inference, uint32_t n);
const struct hf__cel_type *hf__cel_var(struct hf__cel_inference *inference, uint32_t number);
/* The type with new variables in place of its parameters: A becomes variable `base`, B the next. */
const struct hf__cel_type *hf__cel_instantiate(struct hf__cel_inference *inference,
                                               const struct hf__cel_type *type, uint32_t base);
/* The type with its bound variables replaced by the types that they stand for. `to_dyn`: variables
 * that are not bound become dyn. */
const struct hf__cel_type *hf__cel_substitute(struct hf__cel_inference *inference,
                                              const struct hf__cel_type *type, bool to_dyn);
/* Whether from[i] can be assigned to to[i], for each of the n pairs of types. If so, binds
 * variables so that this holds; if not, changes no binding. */
bool hf__cel_assign(struct hf__cel_inference *inference, const struct hf__cel_type *const *from,
                    const struct hf__cel_type *const *to, size_t n);
/* The more general of two types, one of which can be assigned to the other. */
const struct hf__cel_type *hf__cel_most_general(const struct hf__cel_type *a,
                                                const struct hf__cel_type *b);
