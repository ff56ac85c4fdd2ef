/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The status model as JSON for programs: one object in one line. docs/monitoring.md documents its
 * members. A member is never left out and never changes its meaning; later versions may add
 * members. A value that is not known is null. Pure.
 */
#include <stdint.h>

struct hf__strbuf;
struct hfd_status_model;

/* Appends the object and a newline. now_us: microseconds since 1970. An error is recorded in
 * out->error. */
void hfd_status_render_json(const struct hfd_status_model *model, int64_t now_us,
                            struct hf__strbuf *out);
