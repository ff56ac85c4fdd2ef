/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks that Kubernetes makes of an expression whose types are right. Thread: the owner's of the
 * issues. */
#include <stdbool.h>

#include "cel/inference.h"
#include "cel/syntax/ast.h"
#include "cel/values/issues.h"

/* Adds an issue for each literal format that does not suit its arguments and, unless
 * `mixed_literals`, for each literal list or map that mixes types. The tree is checked, and has no
 * issue yet. */
void hf__cel_validate(const struct hf__cel_node *root, bool mixed_literals,
                      struct hf__cel_inference *in, struct hf__cel_issues *issues);
