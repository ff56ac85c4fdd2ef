/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Issues that name types, in the words of Kubernetes. Thread: that of the owner of the issues. */
#include "cel/inference.h"
#include "cel/values/issues.h"

/* Adds an issue whose format has one %s for each type; b may be NULL. */
void hf__cel_type_issue(struct hf__cel_issues *issues, struct hf__cel_inference *in, uint32_t at,
                        const char *format, const struct hf__cel_type *a,
                        const struct hf__cel_type *b);
/* Adds the issue that no overload of the function takes arguments of these n types. If `member`,
 * the first type is that of the target. */
void hf__cel_no_overload(struct hf__cel_issues *issues, struct hf__cel_inference *in, uint32_t at,
                         const char *function, bool member, const struct hf__cel_type *const *types,
                         uint32_t n);
