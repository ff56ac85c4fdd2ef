/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tables of objects, and of the causes with which the rules of their kind refuse them. */
#include <stddef.h>

struct hf__json;
struct hfd_causes;

struct rule_case {
        void (*rules)(const struct hf__json *object, const struct hf__json *old,
                      struct hfd_causes *causes);
        const char *object, *old; /* JSON, in which ' stands for ". old NULL: a create */
        /* All causes, "FIELD: TEXT" with a newline after each. NULL: there is none. */
        const char *causes;
};

/* Fails at the first case that has other causes. */
void check_rule_cases(const struct rule_case *cases, size_t n);
/* JSON in which ' stands for ". The caller frees it. */
struct hf__json *parse_quoted_json(const char *text);
