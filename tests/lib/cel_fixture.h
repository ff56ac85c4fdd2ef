/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Evaluates expressions for tests. The variables are: x (dyn) {'a': 1, 'b': [1, 2.5, 'c']}, i (int)
 * 7, s (string) 'hello', l (list(int)) [1, 2, 3], m (map(string, int)) {'a': 1}. Objects of the
 * type Object can be made, as in a MutatingAdmissionPolicy. */
#include <stddef.h>

#include "cel/cel.h"

struct cel_case {
        const char *expression;
        /* "= value" as hf__cel_print writes it, "! message", or "? " and the first line of the
         * compiler's message. */
        const char *outcome;
};

/* Evaluates each of the n expressions. If an outcome differs, the running test fails. */
void cel_check(const struct cel_case *cases, size_t n);
/* The same under Kubernetes' rule that a literal does not mix types. */
void cel_check_strict(const struct cel_case *cases, size_t n);
/* The work of compiling an expression, which may have mistakes. */
unsigned long long cel_compile_work(const char *expression);
/* The cost of an expression. */
unsigned long long cel_cost(const char *expression);
/* What hf__cel_compile or hf__cel_eval returns, with these limits; 0 is the default. */
int cel_result(const char *expression, const struct hf__cel_limits *limits);

#define CEL_CHECK(cases) cel_check(cases, sizeof cases / sizeof cases[0])
