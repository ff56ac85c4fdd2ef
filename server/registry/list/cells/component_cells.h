/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Cells of the Table of ComponentStatuses. Pure. Thread: any. */
#include "base/strbuf.h"

struct hf__json;

/* Appends a JSON string. what: "status", which gives "Healthy", "Unhealthy", or "Unknown" if the
 * object has no condition Healthy; or another member of that condition, "" if it is missing. */
void hfd_component_put_cell(struct hf__strbuf *s, const struct hf__json *object, const char *what);
