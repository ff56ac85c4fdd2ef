/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The functions of expressions, shared by all rules and all expressions of admission
 * (server/resources/expressions) in the process. Thread: any. */
struct hf__cel_library;

/* 0, or -ENOMEM. The library lives until each caller has given it back. */
int hfd_rule_library_ref(const struct hf__cel_library **ret_library);
void hfd_rule_library_unref(void);
