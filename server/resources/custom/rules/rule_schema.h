/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts of a schema that describe parts of an object, and their paths. Pure. Thread: any. */
#include <stddef.h>

struct hf__json;
struct hf__strbuf;

/* Goes through the parts of props: additionalProperties, each of properties, items. NULL: there are
 * no more. */
const struct hf__json *hfd_rule_schema_first(const struct hf__json *props);
const struct hf__json *hfd_rule_schema_next(const struct hf__json *props,
                                            const struct hf__json *part);
/* Appends the step from props to this part: ".properties[a]". */
void hfd_rule_path_enter(struct hf__strbuf *path, const struct hf__json *props,
                         const struct hf__json *part);
/* Makes the path n bytes long again. */
void hfd_rule_path_cut(struct hf__strbuf *path, size_t n);
