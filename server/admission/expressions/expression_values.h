/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The values of the variables that Kubernetes declares for expressions. Thread: owner only. */
#include <stdint.h>

#include "cel/values/value.h"
#include "server/resources/expressions/expressions.h"

struct hf__arena;
struct hf__cel_authorizer;
struct hfd_expression_allowance;
struct hfd_expression_input;

/* What a value is made of. All is borrowed, and lives as long as the value. */
struct hfd_expression_maker {
        const struct hfd_expression_input *input;
        struct hf__arena *arena;
        struct hf__cel_authorizer *authorizer;      /* filled for the values of authorizer */
        struct hfd_expression_allowance *allowance; /* NULL: there is no limit */
        uint64_t used; /* what making the values has taken, as an allowance counts it */
};

/* Makes a value; that of `variables` is null. 0; -ENOMEM; or HF_E_TOO_LARGE: the allowance is
 * spent. */
int hfd_expression_value(struct hfd_expression_maker *maker, enum hfd_expression_slot slot,
                         struct hf__cel_value *ret_value);
