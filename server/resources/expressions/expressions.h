/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The expressions of admission: those of policies, and the matchConditions of policies and
 * webhooks, in the Common Expression Language. A set has those of one policy or one webhook, which
 * are compiled once, and refer to the same variables. (The type check of a policy makes one
 * set for each kind.) server/admission/expressions/ evaluates them.
 *
 * Owner: the caller frees a set; its expressions live as long as the set. Thread: only that of the
 * owner until the set is complete. Then the set does not change any more, and any thread may
 * evaluate its expressions. Nothing blocks. Pure.
 *
 * Stack: as for the rules of custom resources (custom/rules/custom_rules.h), at most
 * HFD_CUSTOM_RULES_STACK bytes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/values/declarations.h"

struct hf__cel_program;
struct hfd_expressions;

/* The variables of expressions, in the order in which an evaluation gets their values. */
enum hfd_expression_slot {
        HFD_SLOT_OBJECT,
        HFD_SLOT_OLD_OBJECT,
        HFD_SLOT_NAMESPACE_OBJECT,
        HFD_SLOT_REQUEST,
        HFD_SLOT_PARAMS,
        HFD_SLOT_AUTHORIZER,
        HFD_SLOT_REQUEST_RESOURCE, /* authorizer.requestResource */
        HFD_SLOT_VARIABLES,
        HFD_SLOTS_OF_EXPRESSION
};

/* Features that only some expressions have; a set of bits. */
enum {
        HFD_EXPRESSION_PARAMS = 1,     /* the variable params */
        HFD_EXPRESSION_AUTHORIZER = 2, /* the variables authorizer... */
        HFD_EXPRESSION_VARIABLES = 4,  /* `variables`: spec.variables of the policy */
        HFD_EXPRESSION_PATCH = 8       /* Object{...}, JSONPatch{...} */
};

/* The types that the result of an expression may have. */
enum hfd_expression_result {
        HFD_RESULT_ANY,
        HFD_RESULT_BOOL,
        HFD_RESULT_STRING,
        HFD_RESULT_STRING_OR_NULL,
        HFD_RESULT_OBJECT,    /* Object */
        HFD_RESULT_JSON_PATCH /* list(JSONPatch) */
};

struct hfd_expression {
        const char *text;
        struct hf__cel_program *program; /* NULL: it has a mistake, see error */
        /* The mistake, in kube-apiserver's words: "compilation failed: ERROR: <input>:1:1: ...",
         * or, if the result has a wrong type, "must evaluate to bool but got int". NULL: none. */
        const char *error;
        unsigned depth;              /* levels of the program */
        struct hfd_expression *next; /* in the list of all of the set; for expressions.c only */
};

/* An expression with a name, of `variables`. */
struct hfd_expression_variable {
        const char *name;
        const struct hfd_expression *expression;
};

/* Variables of one set. Each look-up by name is linear, so their number has a limit. */
#define HFD_EXPRESSION_VARIABLES_MAX 1000

/* The most steps of work (cel/cel.h) for compiling all expressions of a policy, or all
 * matchConditions of a configuration of webhooks: some 0.1 s, and patterns of some 20 MB at most.
 * Without this limit, an object could have thousands of expressions, each of which may take four
 * million steps. Only validation applies the limit: a stored object was accepted once. */
#define HFD_EXPRESSIONS_COMPILE_MAX UINT64_C(10000000)
#define HFD_EXPRESSIONS_COMPILE_TEXT                                                               \
        "the expressions take more than 10,000,000 steps of work to compile in all"

/*
 * An empty set. features: those that its expressions may use. object_type is the type of object and
 * oldObject, params_type that of params. They serve type checks, and must live as long as the set;
 * NULL = dyn. 0 or -ENOMEM.
 */
int hfd_expressions_new(unsigned features, const struct hf__cel_type *object_type,
                        const struct hf__cel_type *params_type, struct hfd_expressions **ret_set);
struct hfd_expressions *hfd_expressions_free(struct hfd_expressions *set); /* accepts NULL */

/* Compiles an expression. features: those that this expression may use, a subset of the set's.
 * result: the type that it must have; another one is a mistake in the expression. A mistake is not
 * a failure: (*ret_expression)->error describes it. 0 or -ENOMEM. */
int hfd_expressions_compile(struct hfd_expressions *set, const char *text, unsigned features,
                            enum hfd_expression_result result,
                            const struct hfd_expression **ret_expression);
/* Compiles an expression and makes it a field of `variables` for all later ones. The set has the
 * feature HFD_EXPRESSION_VARIABLES. 0, -ENOMEM, or HF_E_TOO_LARGE: there are too many variables. */
int hfd_expressions_add_variable(struct hfd_expressions *set, const char *name, const char *text,
                                 const struct hfd_expression **ret_expression);
/* The variables in the order in which they were added, borrowed from the set until the next one is
 * added. *ret_n: how many. */
const struct hfd_expression_variable *hfd_expressions_variables(const struct hfd_expressions *set,
                                                                size_t *ret_n);
/* The steps of work that compiling the expressions of the set has taken. */
uint64_t hfd_expressions_work(const struct hfd_expressions *set);
/* A copy of a text that lives as long as the set. NULL: out of memory. */
const char *hfd_expressions_text(struct hfd_expressions *set, const char *text);
/* The last variable of this name, borrowed until the next one is added. NULL: there is none. */
const struct hfd_expression_variable *hfd_expressions_variable(const struct hfd_expressions *set,
                                                               const char *name, size_t n_name);
