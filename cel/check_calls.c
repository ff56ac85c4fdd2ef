/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks calls: which overloads of a function take the arguments, and the type of the result.
 *
 * Invariants: the arguments are checked before the overloads are tried. A call that fits no
 * overload has the type ERROR and one issue, or none if in.failed is set (inference.h).
 */
#include <string.h>

#include "base/arena.h"
#include "cel/check_state.h"
#include "cel/library.h"
#include "cel/type_issues.h"

#define VARS_OF_OVERLOAD 3 /* A, B and C */

const struct hf__cel_type *
hf__cel_check_overloads(struct hf__cel_checker *c, bool member, uint32_t n_args,
                        const struct hf__cel_overload *const *overloads, size_t n,
                        const struct hf__cel_type *const *types,
                        const struct hf__cel_overload **matching, uint16_t *ret_n) {
        const struct hf__cel_type *result = NULL;

        *ret_n = 0;
        for (size_t i = 0; i < n; i++) {
                const struct hf__cel_overload *o = overloads[i];
                const struct hf__cel_type *wanted[HF__CEL_ARGS_MAX];
                const struct hf__cel_type *type;
                uint32_t base;

                if (o->member != member || o->n_args != n_args ||
                    (o->only_dyn &&
                     hf__cel_substitute(&c->in, types[0], false)->kind != HF__CEL_DYN))
                        continue;
                base = hf__cel_new_vars(&c->in, VARS_OF_OVERLOAD);
                for (uint32_t k = 0; k < o->n_args; k++)
                        wanted[k] = hf__cel_instantiate(&c->in, o->args[k], base);
                if (c->in.failed || !hf__cel_assign(&c->in, types, wanted, o->n_args))
                        continue;
                /* The search goes on: arguments of type dyn may fit several overloads, and the
                 * evaluator chooses among them by the values. The variables that a match has bound
                 * stay bound for the next overloads, as in cel-go. */
                matching[(*ret_n)++] = o;
                type = hf__cel_substitute(&c->in, hf__cel_instantiate(&c->in, o->result, base),
                                          false);
                if (!result)
                        result = type;
                /* The overload that will be called is not known yet, so the result can have either
                 * type. */
                else if (result->kind != HF__CEL_DYN && !hf__cel_type_same(result, type))
                        result = hf__cel_check_dyn();
        }
        return result;
}

static void check_function(struct hf__cel_checker *c, struct hf__cel_node *node,
                           const struct hf__cel_overload *const *overloads, size_t n) {
        /* More than any function takes: the message about a wrong call shows the types of this many
         * arguments. */
        const struct hf__cel_type *types[HF__CEL_ARGS_MAX + 12];
        const struct hf__cel_overload **matching = hf__arena_alloc(c->arena, n * sizeof *matching);
        uint32_t n_args = node->as.call.n_args;
        const struct hf__cel_type *result = NULL;
        uint16_t n_matching = 0;

        node->type = hf__cel_check_error_type();
        if (!matching) {
                c->in.failed = true;
                return;
        }
        if (n_args > sizeof types / sizeof types[0])
                n_args = sizeof types / sizeof types[0];
        for (uint32_t i = 0; i < n_args; i++)
                types[i] = node->as.call.args[i]->type;
        if (n_args <= HF__CEL_ARGS_MAX)
                result = hf__cel_check_overloads(c, node->as.call.member, n_args, overloads, n,
                                                 types, matching, &n_matching);
        if (!result) {
                if (!c->in.failed)
                        hf__cel_no_overload(c->issues, &c->in, node->at, node->as.call.function,
                                            node->as.call.member, types, n_args);
                return;
        }
        node->type = result;
        node->as.call.overloads = matching;
        node->as.call.n_overloads = n_matching;
}

/* Checks && and ||. They have no overloads, because the evaluator carries them out: an operand that
 * decides absorbs the error of another one, which no function can do. */
static void check_logic(struct hf__cel_checker *c, struct hf__cel_node *node) {
        const struct hf__cel_type *boolean = hf__cel_type_of(HF__CEL_BOOL);

        for (uint32_t i = 0; i < node->as.call.n_args; i++) {
                struct hf__cel_node *arg = node->as.call.args[i];

                hf__cel_check_node(c, arg);
                if (!hf__cel_check_assign_one(c, arg->type, boolean) && !c->in.failed)
                        hf__cel_type_issue(c->issues, &c->in, arg->at,
                                           "expected type '%s' but found '%s'", boolean, arg->type);
        }
        node->type = boolean;
}

/* Checks ?:, == and !=, whose last two operands have one type. The language definition declares ==
 * as (A, A) -> bool for every type A, and ?: as (bool, A, A) -> A. One variable stands for A, so
 * operands of different types are an error here, while values that turn out to differ in type are
 * just not equal. */
static void check_pair(struct hf__cel_checker *c, struct hf__cel_node *node) {
        bool condition = node->op == HF__CEL_OP_CONDITION;
        const struct hf__cel_type *var = hf__cel_var(&c->in, hf__cel_new_vars(&c->in, 1));
        const struct hf__cel_type *boolean = hf__cel_type_of(HF__CEL_BOOL);
        const struct hf__cel_type *wanted[3] = {boolean, var, var};
        const struct hf__cel_type *types[3];
        uint32_t n = node->as.call.n_args;

        for (uint32_t i = 0; i < n; i++) {
                hf__cel_check_node(c, node->as.call.args[i]);
                types[i] = node->as.call.args[i]->type;
        }
        node->type = hf__cel_check_error_type();
        if (!hf__cel_assign(&c->in, types, wanted + (condition ? 0 : 1), n)) {
                if (!c->in.failed)
                        hf__cel_no_overload(c->issues, &c->in, node->at, node->as.call.function,
                                            false, types, n);
                return;
        }
        node->type = condition ? hf__cel_substitute(&c->in, var, false) : boolean;
}

/* A call like sets.contains(a, b) was parsed as a call of a member of `sets`. Turns it into a call
 * of the function with this long name. Returns the number of overloads; 0: there are none, and
 * nothing has changed. The long name is tried before the member function, because CEL prefers the
 * longest declared name, in cel-go even if `sets` is a local variable. */
static size_t resolve_qualified(struct hf__cel_checker *c, struct hf__cel_node *node,
                                const struct hf__cel_overload *const **ret_overloads) {
        char name[HF__CEL_NAME_MAX_BYTES];
        size_t n = hf__cel_check_chain(node->as.call.args[0], name);
        size_t n_function = strlen(node->as.call.function);

        if (n == 0 || n + 1 + n_function >= sizeof name)
                return 0;
        name[n] = '.';
        memcpy(name + n + 1, node->as.call.function, n_function + 1);
        n = hf__cel_library_find(c->declarations->functions, name, ret_overloads);
        if (n > 0) {
                node->as.call.function = (*ret_overloads)[0]->name;
                node->as.call.member = false;
                node->as.call.args++;
                node->as.call.n_args--;
        }
        return n;
}

void hf__cel_check_call(struct hf__cel_checker *c, struct hf__cel_node *node) {
        const char *function = node->as.call.function;
        const struct hf__cel_overload *const *overloads;
        size_t n = 0;

        if (node->op == HF__CEL_OP_AND || node->op == HF__CEL_OP_OR) {
                check_logic(c, node);
                return;
        }
        if (node->op != HF__CEL_OP_NONE) {
                check_pair(c, node);
                return;
        }
        if (node->as.call.member)
                n = resolve_qualified(c, node, &overloads);
        for (uint32_t i = 0; i < node->as.call.n_args; i++)
                hf__cel_check_node(c, node->as.call.args[i]);
        if (n == 0)
                n = hf__cel_library_find(c->declarations->functions,
                                         function + (function[0] == '.' ? 1 : 0), &overloads);
        if (n == 0) {
                hf__cel_check_undeclared(c, node->at, function);
                node->type = hf__cel_check_error_type();
                return;
        }
        node->as.call.function = overloads[0]->name;
        check_function(c, node, overloads, n);
        /* The overloads of orValue and or have given the type. From here on both calls are
         * operators, so that the evaluator need not evaluate the argument. */
        if (node->as.call.member && strcmp(node->as.call.function, "orValue") == 0)
                node->op = HF__CEL_OP_OR_VALUE;
        if (node->as.call.member && strcmp(node->as.call.function, "or") == 0)
                node->op = HF__CEL_OP_OR_OTHER;
}
