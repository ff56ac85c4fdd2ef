/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks the validations of a ValidatingAdmissionPolicy against the schemas of the kinds that its
 * rules name: each expression and messageExpression. Thread: any. Never blocks. Stack: as for
 * expressions (expressions.h).
 */
struct hf__json;
struct hfd_custom_table;

/*
 * Makes status.typeChecking: {"expressionWarnings": [...]}, or {} without warnings. The caller owns
 * the result. table NULL = there are no custom resources. 0 or -ENOMEM.
 */
int hfd_policy_type_check(const struct hf__json *policy, struct hfd_custom_table *table,
                          struct hf__json **ret_checking);
