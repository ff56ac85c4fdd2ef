/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The fieldPath of a rule: ".spec.a", ".labels['b']". Pure. Thread: any. */
struct hf__json;
struct hf__strbuf;

/* Reads a path below a schema. 0: it leads to a declared part, and is appended to `out` as causes
 * name it, "spec.a"; an error is kept in out->error. HF_E_INVALID: it does not. */
int hfd_rule_field(const struct hf__json *props, const char *path, struct hf__strbuf *out);
