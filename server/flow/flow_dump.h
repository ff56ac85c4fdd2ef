/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The state of the levels, as tables for people: the texts of /debug/api_priority_and_fairness/, in
 * Kubernetes' form. Thread: any; takes the locks of the levels. Linear in the queues and the
 * requests of all levels.
 */
#include <stdbool.h>

struct hf__strbuf;
struct hf_host;
struct hfd_flow_levels;

/* One row for each level. */
void hfd_flow_dump_levels(struct hfd_flow_levels *levels, struct hf__strbuf *text);
/* One row for each queue that has been used, as long as it is kept (queue_set.h). */
void hfd_flow_dump_queues(struct hfd_flow_levels *levels, struct hf__strbuf *text);
/* One row for each request. details: also its user and its attributes. host: for the real time. */
void hfd_flow_dump_requests(struct hfd_flow_levels *levels, const struct hf_host *host,
                            bool details, struct hf__strbuf *text);
