/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Cells of the Table of ComponentStatuses. Pure. Thread: any. */
#include "base/strbuf.h"

struct hf__json;

/* what: "status", or a member of the condition Healthy. Appends "" if there is none. */
void hfd_component_put_cell(struct hf__strbuf *s, const struct hf__json *object, const char *what);
