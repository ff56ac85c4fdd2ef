/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks macros over a range: the types of their variables and of what they accumulate.
 *
 * Invariant: the variables of a macro exist while its test and its result are checked, and no
 * longer. They have two slots even if the macro has one variable.
 */
#include <assert.h>

#include "cel/check_state.h"
#include "cel/functions/list_order.h"
#include "cel/library.h"
#include "cel/type_issues.h"

#define SORT_OVERLOADS_MAX 8 /* types of keys */

/* The types of the variables of a macro, by the type of its range. */
static void range_types(struct hf__cel_checker *c, const struct hf__cel_node *node,
                        const struct hf__cel_type *types[2]) {
        const struct hf__cel_node *range = node->as.fold.range;
        const struct hf__cel_type *type = hf__cel_substitute(&c->in, range->type, false);
        bool two = node->as.fold.variables[1].text != NULL;

        /* ERROR fits everything: if the range is wrong, the use of the variables gives no further
         * issues. */
        types[0] = types[1] = hf__cel_check_error_type();
        if (node->op == HF__CEL_FOLD_OPT_MAP || node->op == HF__CEL_FOLD_OPT_FLAT_MAP) {
                if (type->kind == HF__CEL_OPTIONAL)
                        types[0] = type->params[0];
                else if (type->kind == HF__CEL_DYN || type->kind == HF__CEL_ERROR)
                        types[0] = hf__cel_check_dyn();
                else
                        hf__cel_no_overload(c->issues, &c->in, node->at, "hasValue", true, &type,
                                            1);
        } else if (type->kind == HF__CEL_LIST) {
                /* One variable stands for the element of a list, but for the key of a map. With two
                 * variables the first one is the index or the key. */
                types[0] = two ? hf__cel_type_of(HF__CEL_INT) : type->params[0];
                types[1] = type->params[0];
        } else if (type->kind == HF__CEL_MAP) {
                types[0] = type->params[0];
                types[1] = type->params[1];
        } else if (type->kind == HF__CEL_DYN || type->kind == HF__CEL_ERROR ||
                   type->kind == HF__CEL_VAR) {
                /* If the type of the range is still open (a VAR), it becomes dyn, as in cel-go, so
                 * it cannot turn out to be a number afterwards. */
                hf__cel_check_assign_one(c, hf__cel_check_dyn(), type);
                types[0] = types[1] = hf__cel_check_dyn();
        } else {
                hf__cel_type_issue(c->issues, &c->in,
                                   node->op == HF__CEL_FOLD_SORT ? node->at : range->at,
                                   "expression of type '%s' cannot be range of a comprehension "
                                   "(must be "
                                   "list, map, or dynamic)",
                                   type, NULL);
        }
}

/* The type of a list that is sorted by keys. Kubernetes turns sortBy into a call of the function
 * HF__CEL_SORT_BY with the list of keys. So the overloads of that function in the library say which
 * keys have an order. */
static const struct hf__cel_type *sorted_type(struct hf__cel_checker *c,
                                              const struct hf__cel_node *node) {
        const struct hf__cel_overload *const *overloads;
        const struct hf__cel_overload *matching[SORT_OVERLOADS_MAX];
        size_t n = hf__cel_library_find(c->declarations->functions, HF__CEL_SORT_BY, &overloads);
        const struct hf__cel_type *types[2] = {node->as.fold.range->type, NULL};
        const struct hf__cel_type *result;
        uint16_t n_matching;

        assert(n <= SORT_OVERLOADS_MAX);
        types[1] = hf__cel_check_made(c, HF__CEL_LIST, node->as.fold.result->type, NULL);
        result = hf__cel_check_overloads(c, true, 2, overloads, n, types, matching, &n_matching);
        if (!result && !c->in.failed)
                hf__cel_no_overload(c->issues, &c->in, node->at, HF__CEL_SORT_BY, true, types, 2);
        return result ? result : hf__cel_check_error_type();
}

/* The type of what a macro accumulates, which is also the type of its value. There are two
 * exceptions. For exists_one it is the type of the counter of hits, while the value is a bool. For
 * sortBy, which accumulates keys, it is the type of the value. */
static const struct hf__cel_type *fold_type(struct hf__cel_checker *c,
                                            const struct hf__cel_node *node,
                                            const struct hf__cel_type *element) {
        const struct hf__cel_node *result = node->as.fold.result;
        const struct hf__cel_type *type;

        switch (node->op) {
        case HF__CEL_FOLD_EXISTS_ONE: return hf__cel_type_of(HF__CEL_INT);
        case HF__CEL_FOLD_LIST: return hf__cel_check_made(c, HF__CEL_LIST, result->type, NULL);
        case HF__CEL_FOLD_SORT: return sorted_type(c, node);
        case HF__CEL_FOLD_FILTER: return hf__cel_check_made(c, HF__CEL_LIST, element, NULL);
        case HF__CEL_FOLD_MAP:
                type = hf__cel_substitute(&c->in, node->as.fold.range->type, false);
                if (type->kind == HF__CEL_MAP)
                        return hf__cel_check_made(c, HF__CEL_MAP, type->params[0], result->type);
                return hf__cel_check_made(c, HF__CEL_MAP,
                                          type->kind == HF__CEL_LIST ? hf__cel_type_of(HF__CEL_INT)
                                                                     : hf__cel_check_dyn(),
                                          result->type);
        case HF__CEL_FOLD_MAP_ENTRY:
                type = hf__cel_check_made(c, HF__CEL_MAP, hf__cel_check_new_var(c),
                                          hf__cel_check_new_var(c));
                if (!hf__cel_check_assign_one(c, result->type, type) && !c->in.failed)
                        hf__cel_type_issue(c->issues, &c->in, result->at,
                                           "expected type '%s' but found '%s'", type, result->type);
                return type;
        case HF__CEL_FOLD_OPT_MAP:
                return hf__cel_check_made(c, HF__CEL_OPTIONAL, result->type, NULL);
        case HF__CEL_FOLD_OPT_FLAT_MAP:
                type = hf__cel_check_made(c, HF__CEL_OPTIONAL, hf__cel_check_new_var(c), NULL);
                if (!hf__cel_check_assign_one(c, result->type, type) && !c->in.failed)
                        hf__cel_type_issue(c->issues, &c->in, result->at,
                                           "expected type '%s' but found '%s'", type, result->type);
                return type;
        default: return hf__cel_type_of(HF__CEL_BOOL);
        }
}

void hf__cel_check_fold(struct hf__cel_checker *c, struct hf__cel_node *node) {
        const struct hf__cel_type *boolean = hf__cel_type_of(HF__CEL_BOOL);
        const struct hf__cel_type *types[2];
        const struct hf__cel_type *type;
        struct hf__cel_node *test = node->as.fold.test;
        bool logic = node->op == HF__CEL_FOLD_ALL || node->op == HF__CEL_FOLD_EXISTS;

        hf__cel_check_node(c, node->as.fold.range);
        range_types(c, node, types);
        assert(c->n_locals + 2 <= sizeof c->locals / sizeof c->locals[0]);
        node->as.fold.slot = c->n_locals;
        /* Two slots in any case. So a level of the tree takes two at most, and the array is large
         * enough. */
        for (unsigned i = 0; i < 2; i++)
                c->locals[c->n_locals++] =
                        (struct hf__cel_local){.name = node->as.fold.variables[i].text,
                                               .type = types[i]};
        if (c->n_locals > c->max_locals)
                c->max_locals = c->n_locals;
        if (test)
                hf__cel_check_node(c, test);
        if (node->as.fold.result)
                hf__cel_check_node(c, node->as.fold.result);
        /* The next macro beside this one uses the same slots again. */
        assert(c->n_locals >= 2);
        c->n_locals -= 2;
        type = fold_type(c, node, types[0]);
        node->type = node->op == HF__CEL_FOLD_EXISTS_ONE ? boolean : type;
        if (!test || hf__cel_check_assign_one(c, test->type, boolean) || c->in.failed)
                return;
        /* all and exists have the test as an operand of && or ||. The other macros become a
         * condition in cel-go, and its message names the operator of that condition. */
        if (logic) {
                hf__cel_type_issue(c->issues, &c->in, test->at, "expected type '%s' but found '%s'",
                                   boolean, test->type);
        } else {
                const struct hf__cel_type *operands[3] = {test->type, type, type};

                hf__cel_no_overload(c->issues, &c->in, node->at, "_?_:_", false, operands, 3);
        }
}
