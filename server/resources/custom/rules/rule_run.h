/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Evaluates the rules of one part of an object. Thread: owner only. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/strbuf.h"

struct hf__json;
struct hfd_causes;
struct hfd_part_values;
struct hfd_rule_node;

/* A part of an object with its old value. */
struct hfd_rule_pair {
        const struct hf__json *object;
        const struct hf__json *old;
        /* The pair of the part above, if object has the same place in around->object that old has
         * in around->old; NULL = none. So if that pair is equal, this one is, too. */
        const struct hfd_rule_pair *around;
        bool compared;
        bool equal; /* if compared */
};

/* Decides whether a broken rule is ignored because nothing has changed: whether the values of
 * `current` or, if that is NULL, those of `nearest` are equal. The pairs are on the stack of the
 * walk (rules_check.c), in the functions that visit their parts. */
struct hfd_rule_correlation {
        /* NULL: the part has no counterpart in the old object, or counts as one that has none
         * (rules_check.c). */
        struct hfd_rule_pair *current;
        struct hfd_rule_pair *nearest; /* the nearest part above with a counterpart; NULL = none */
};

struct hfd_rule_run {
        struct hfd_causes *causes;
        struct hf__strbuf path;      /* of the part; "" is the object itself */
        uint64_t budget;             /* cost that is left for the object */
        uint64_t work_budget;        /* the same for the steps of work (cel/cel.h) */
        bool stopped;                /* no further rule is evaluated */
        bool failed;                 /* out of memory, so the causes are incomplete */
        struct hf__arena values;     /* of parts, until the uppermost one is done (rules_check.c) */
        bool has_values;             /* `values` has some */
        struct hf__arena evaluation; /* what one rule needs */
};

/* Evaluates the rules of node. old NULL: the part has no old value. values: those of the part that
 * the value of the part above contains. The function adds those that it makes. If those given were
 * not made for the declaration of node (part_values.h), it drops them first. */
void hfd_rule_run_node(struct hfd_rule_run *run, const struct hfd_rule_node *node,
                       const struct hf__json *object, const struct hf__json *old,
                       struct hfd_rule_correlation correlation, struct hfd_part_values *values);
