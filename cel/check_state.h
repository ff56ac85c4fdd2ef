/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The state of one check of an expression, which the parts of the checker share (checker.c,
 * check_calls.c, check_folds.c). Owner: hf__cel_check. Thread: the owner's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/inference.h"
#include "cel/syntax/ast.h"
#include "cel/values/declarations.h"
#include "cel/values/issues.h"

struct hf__arena;

/* Bytes of a name like "a.b.c", with the NUL. */
#define HF__CEL_NAME_MAX_BYTES 256

struct hf__cel_local {
        const char *name;
        const struct hf__cel_type *type;
};

struct hf__cel_checker {
        const struct hf__cel_declarations *declarations;
        struct hf__cel_issues *issues;
        struct hf__arena *arena;
        struct hf__cel_inference in;
        struct hf__cel_local locals[2 * 256]; /* two for each of 250 levels, rounded up */
        uint32_t n_locals;
        uint32_t max_locals; /* the highest n_locals so far: the slots that an evaluation needs */
        uint64_t used;       /* bit i: the expression uses the declared variable i, if i < 64 */
};

/* Checks a node and what is below it. The node has a type afterwards, which is ERROR if its type
 * cannot be determined. */
void hf__cel_check_node(struct hf__cel_checker *c, struct hf__cel_node *node);
/* The same for a call (check_calls.c) and for a macro over a range (check_folds.c). */
void hf__cel_check_call(struct hf__cel_checker *c, struct hf__cel_node *node);
void hf__cel_check_fold(struct hf__cel_checker *c, struct hf__cel_node *node);

/* Checks the arguments against n overloads and returns the type of the result. `matching` (with
 * room for n) gets the overloads that match, and *ret_n their number. NULL: none matches, or
 * in.failed is set. */
const struct hf__cel_type *
hf__cel_check_overloads(struct hf__cel_checker *c, bool member, uint32_t n_args,
                        const struct hf__cel_overload *const *overloads, size_t n,
                        const struct hf__cel_type *const *types,
                        const struct hf__cel_overload **matching, uint16_t *ret_n);
/* Writes the name of a chain of fields, "a.b.c", with a NUL but without a leading dot, and returns
 * its length. 0: the node is not such a chain, or the chain is too long. */
size_t hf__cel_check_chain(const struct hf__cel_node *node, char out[HF__CEL_NAME_MAX_BYTES]);

/* Adds the issue that a name is not declared. */
void hf__cel_check_undeclared(struct hf__cel_checker *c, uint32_t at, const char *name);
/* A new type; ERROR if it has too many parts or memory ran out: then in.failed is set. */
const struct hf__cel_type *hf__cel_check_made(struct hf__cel_checker *c, enum hf__cel_kind kind,
                                              const struct hf__cel_type *a,
                                              const struct hf__cel_type *b);
/* The type of a new type variable. */
const struct hf__cel_type *hf__cel_check_new_var(struct hf__cel_checker *c);
/* hf__cel_assign of a single pair of types. */
bool hf__cel_check_assign_one(struct hf__cel_checker *c, const struct hf__cel_type *from,
                              const struct hf__cel_type *to);
static inline const struct hf__cel_type *hf__cel_check_dyn(void) {
        return hf__cel_type_of(HF__CEL_DYN);
}
static inline const struct hf__cel_type *hf__cel_check_error_type(void) {
        return hf__cel_type_of(HF__CEL_ERROR);
}
