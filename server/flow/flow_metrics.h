/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The metrics of priority and fairness, with Kubernetes' names, labels and buckets. They are
 * written from the levels themselves at each scrape, not kept in the registry of the process, so
 * FlowSchemas that come and go leave nothing behind. Thread: any; takes the locks of the levels.
 */
struct hf__strbuf;
struct hfd_flow_levels;

void hfd_flow_metrics_write(struct hfd_flow_levels *levels, struct hf__strbuf *text);
