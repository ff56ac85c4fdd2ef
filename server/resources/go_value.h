/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Prints JSON values as Go does. Kubernetes' messages and tables contain values in these forms.
 * Pure. Thread: any. */
#include "base/strbuf.h"

struct hf__json;
struct hfd_schema;

/* Appends the value as Go's fmt.Print does: "[a b]", "map[k:v]". Members are printed in their
 * order; Go sorts them. */
void hfd_go_value_print(struct hf__strbuf *s, const struct hf__json *value);
/* Appends the value as encoding/json does for Kubernetes' internal types, whose fields have no
 * names in JSON: `{"Key":"a","Value":"","Effect":"NoExecute","TimeAdded":null}`. Fields have the
 * order of their numbers in protobuf. So this fits only types that declare their fields in this
 * order, with names that differ from those of the schema in the first letter only. value: NULL = a
 * pointer that is nil. Members of maps are printed in their order; Go sorts them. */
void hfd_go_fields_print(struct hf__strbuf *s, const struct hfd_schema *schema,
                         const struct hf__json *value);
