/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cell of a HorizontalPodAutoscaler that shows its metrics and their targets. */

struct hf__json;
struct hf__strbuf;

/* Appends plain text to out: "cpu: <unknown>/80%". autoscaler: as stored, v2. Pure. Thread: any. */
void hfd_target_put_cell(struct hf__strbuf *out, const struct hf__json *autoscaler);
