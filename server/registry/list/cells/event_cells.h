/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cells of Events in a Table, which are computed from several members. Pure. Thread: any. */
#include <stdint.h>

struct hf__json;
struct hf__strbuf;

/*
 * Appends the cell `what` of an Event in the stored form, as JSON: "last" or "first" (the time
 * since the last or first occurrence), "object", "source", "message" or "count". now_s: seconds
 * since 1970.
 */
void hfd_event_put_cell(struct hf__strbuf *s, const struct hf__json *event, const char *what,
                        int64_t now_s);
