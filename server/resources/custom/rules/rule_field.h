/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The fieldPath of a rule: ".spec.a", ".labels['b']". Thread: owner only. */
struct hf__json;
struct hf__strbuf;
struct hfd_structure;

/* Reads a path below the schema `props`; `members` has the indices that find its properties. 0: the
 * path leads to a declared part, and is appended to `out` in the form that it has in the causes of
 * a Status, "spec.a". HF_E_INVALID: it does not lead to one; a beginning of it may be in `out`. If
 * memory runs out, out->error is set. */
int hfd_rule_field(struct hfd_structure *members, const struct hf__json *props, const char *path,
                   struct hf__strbuf *out);
