/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cells of Pods and Jobs. Each function appends plain text to out. now_s: seconds since 1970.
 * Pure. Thread: any. */
#include <stdint.h>

struct hf__json;
struct hf__strbuf;

/* what: "ready", "status", "restarts" or "gates". */
void hfd_pod_put_cell(struct hf__strbuf *out, const struct hf__json *pod, const char *what,
                      int64_t now_s);
/* what: "status", "completions" or "duration". */
void hfd_job_put_cell(struct hf__strbuf *out, const struct hf__json *job, const char *what,
                      int64_t now_s);
