/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks that Kubernetes makes of an expression whose types are right. Thread: that of the owner of
 * the issues. */
#include <stdbool.h>

#include "cel/inference.h"
#include "cel/syntax/ast.h"
#include "cel/values/issues.h"

/* Adds an issue for each literal format that does not suit a literal list of arguments. Unless
 * `mixed_literals`, also adds one for each literal list that mixes types, and for each key or value
 * of a literal map that has another type than the first one; the arguments of format() may always
 * mix types. The checker has accepted the tree. */
void hf__cel_validate(const struct hf__cel_node *root, bool mixed_literals,
                      struct hf__cel_inference *in, struct hf__cel_issues *issues);
