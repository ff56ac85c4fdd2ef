/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Prints JSON values as Go's fmt.Print does: "[a b]", "map[k:v]". Kubernetes' messages and tables
 * contain values in this form. Pure. Thread: any. */
#include "base/strbuf.h"

struct hf__json;

/* Appends the value. Members are printed in their order; Go sorts them. */
void hfd_go_value_print(struct hf__strbuf *s, const struct hf__json *value);
