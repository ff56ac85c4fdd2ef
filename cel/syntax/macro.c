/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expands macros. Each becomes one node rather than a general loop with an accumulator, because a
 * node of its own needs no intermediate lists.
 *
 * Invariant: a call that is not a macro by name, style and number of arguments is left as it is:
 * for the checker it is the call of a function, perhaps of an unknown one.
 */
#include "cel/syntax/macro.h"

#include <string.h>

#include "cel/values/issues.h"

/* all, exists, exists_one, map and filter with one variable come from the language definition. The
 * others come from the libraries of cel-go that Kubernetes enables. */
static const struct macro {
        const char *name;
        uint8_t n_args; /* without the target */
        uint8_t n_variables;
        enum hf__cel_fold fold;
        bool has_test;
        bool has_result;
} macros[] = {
        {"all", 2, 1, HF__CEL_FOLD_ALL, true, false},
        {"exists", 2, 1, HF__CEL_FOLD_EXISTS, true, false},
        {"exists_one", 2, 1, HF__CEL_FOLD_EXISTS_ONE, true, false},
        {"map", 2, 1, HF__CEL_FOLD_LIST, false, true},
        {"map", 3, 1, HF__CEL_FOLD_LIST, true, true},
        {"filter", 2, 1, HF__CEL_FOLD_FILTER, true, false},
        {"all", 3, 2, HF__CEL_FOLD_ALL, true, false},
        {"exists", 3, 2, HF__CEL_FOLD_EXISTS, true, false},
        {"exists_one", 3, 2, HF__CEL_FOLD_EXISTS_ONE, true, false},
        {"existsOne", 3, 2, HF__CEL_FOLD_EXISTS_ONE, true, false},
        {"transformList", 3, 2, HF__CEL_FOLD_LIST, false, true},
        {"transformList", 4, 2, HF__CEL_FOLD_LIST, true, true},
        {"transformMap", 3, 2, HF__CEL_FOLD_MAP, false, true},
        {"transformMap", 4, 2, HF__CEL_FOLD_MAP, true, true},
        {"transformMapEntry", 3, 2, HF__CEL_FOLD_MAP_ENTRY, false, true},
        {"transformMapEntry", 4, 2, HF__CEL_FOLD_MAP_ENTRY, true, true},
        {"optMap", 2, 1, HF__CEL_FOLD_OPT_MAP, false, true},
        {"optFlatMap", 2, 1, HF__CEL_FOLD_OPT_FLAT_MAP, false, true},
        {"sortBy", 2, 1, HF__CEL_FOLD_SORT, false, true},
};

/* has() asks whether a field is there, so its argument must be one. Only the operand of the field
 * is evaluated. */
static void expand_has(struct hf__cel_node *call, struct hf__cel_issues *issues) {
        struct hf__cel_node *arg = call->as.call.args[0];

        if (arg->kind != HF__CEL_NODE_SELECT || arg->optional) {
                hf__cel_issues_add(issues, arg->at, "invalid argument to has() macro");
                return;
        }
        call->kind = HF__CEL_NODE_HAS;
        call->as.select.field = arg->as.select.field;
        call->as.select.operand = arg->as.select.operand;
}

/* Whether the argument can be a variable; otherwise there is an issue. A name with a dot in front
 * means the root container, where a macro declares nothing. */
static bool check_variable(const struct macro *macro, const struct hf__cel_node *arg,
                           struct hf__cel_issues *issues) {
        if (arg->kind != HF__CEL_NODE_NAME || arg->as.name.name.text[0] == '.') {
                if (macro->fold == HF__CEL_FOLD_SORT)
                        hf__cel_issues_add(issues, arg->at, "argument is not an identifier");
                else if (strncmp(macro->name, "opt", 3) == 0)
                        hf__cel_issues_add(issues, arg->at,
                                           "%s() variable name must be a simple identifier",
                                           macro->name);
                else
                        hf__cel_issues_add(issues, arg->at, "argument must be a simple name");
                return false;
        }
        /* cel-go's expansion has a variable of this name. Here it would do no harm, but an
         * expression must not be accepted here and refused there. */
        if (strcmp(arg->as.name.name.text, "__result__") == 0) {
                hf__cel_issues_add(issues, arg->at,
                                   "iteration variable overwrites accumulator variable");
                return false;
        }
        return true;
}

/* Whether sortBy takes this kind of target. cel-go decides by the form of the target, before its
 * type is known. */
static bool can_sort(const struct hf__cel_node *target) {
        return target->kind != HF__CEL_NODE_CONST && target->kind != HF__CEL_NODE_MAP &&
               target->kind != HF__CEL_NODE_OBJECT;
}

static void expand_fold(const struct macro *macro, struct hf__cel_node *call,
                        struct hf__cel_issues *issues) {
        struct hf__cel_node **args = call->as.call.args;
        struct hf__cel_name variables[2] = {{.text = NULL}};
        struct hf__cel_node *test;
        struct hf__cel_node *result;
        unsigned i;

        if (macro->fold == HF__CEL_FOLD_SORT && !can_sort(args[0])) {
                hf__cel_issues_add(issues, args[0]->at,
                                   "sortBy can only be applied to a list, identifier, "
                                   "comprehension, call or select expression");
                return;
        }
        for (i = 0; i < macro->n_variables; i++) {
                if (!check_variable(macro, args[1 + i], issues))
                        return;
                variables[i] = args[1 + i]->as.name.name;
        }
        if (variables[1].text && strcmp(variables[0].text, variables[1].text) == 0) {
                hf__cel_issues_add(issues, args[2]->at, "duplicate variable name: %s",
                                   variables[0].text);
                return;
        }
        /* A test stands before the result: map(x, test, result). */
        test = macro->has_test ? args[1 + i++] : NULL;
        result = macro->has_result ? args[1 + i] : NULL;
        call->kind = HF__CEL_NODE_FOLD;
        call->op = (uint8_t)macro->fold;
        call->as.fold.range = args[0];
        call->as.fold.variables[0] = variables[0];
        call->as.fold.variables[1] = variables[1];
        call->as.fold.slot = 0;
        call->as.fold.test = test;
        call->as.fold.result = result;
}

void hf__cel_macro_expand(struct hf__cel_node *call, struct hf__cel_issues *issues) {
        if (!call->as.call.member) {
                if (strcmp(call->as.call.function, "has") == 0 && call->as.call.n_args == 1)
                        expand_has(call, issues);
                return;
        }
        for (size_t i = 0; i < sizeof macros / sizeof macros[0]; i++)
                if (macros[i].n_args + 1U == call->as.call.n_args &&
                    strcmp(macros[i].name, call->as.call.function) == 0) {
                        expand_fold(&macros[i], call, issues);
                        return;
                }
}
