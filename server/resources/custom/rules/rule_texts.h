/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Mistakes that a rule can have before its expressions are compiled. Thread: owner only. */
struct hf__json;
struct hf__strbuf;
struct hfd_causes;
struct hfd_structure;

/* Checks all rules below props. members: finds the properties of props. path: that of props. Its
 * length is restored before this returns. An error is kept in path->error. */
void hfd_rule_texts_check(struct hfd_structure *members, const struct hf__json *props,
                          struct hf__strbuf *path, struct hfd_causes *causes);
