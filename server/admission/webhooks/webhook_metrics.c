/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of webhooks. Names and labels are those of kube-apiserver.
 *
 * Invariants: the number of series of a webhook is limited, because each label except the name has
 * a limited number of values (the codes at most some 600). Users choose the names; the registry of
 * metrics (holdfast/metrics.h) has a limit, and drops new series beyond it.
 */
#include "server/admission/webhooks/webhook_metrics.h"

#include <stdio.h>
#include <string.h>

#include <holdfast/metrics.h>

/* Whether a name needs no escape in a label, and fits. Validation lets a webhook have only a DNS
 * name, of which this is true. Calls of a webhook with another name are not counted. */
static bool is_plain(const char *name) { return strlen(name) < 260 && !strpbrk(name, "\"\\\n"); }

void hfd_webhook_metrics_called(const struct hf_host *host, const char *webhook, const char *type,
                                enum hfd_admission_operation operation, bool rejected, int code,
                                hf_nsec took) {
        const char *name = hfd_admission_operation_name(operation);
        char labels[500];

        if (!host->metrics || !is_plain(webhook))
                return;
        (void)snprintf(labels, sizeof labels,
                       "name=\"%s\",operation=\"%s\",rejected=\"%s\",type=\"%s\"", webhook, name,
                       rejected ? "true" : "false", type);
        hf_metric_observe(hf_metrics_get(host->metrics, HF_METRIC_HISTOGRAM,
                                         "apiserver_admission_webhook_admission_duration_seconds",
                                         "Time of the calls of admission webhooks.", labels),
                          (double)took / HF_NSEC_PER_SEC);
        (void)snprintf(labels, sizeof labels,
                       "code=\"%d\",name=\"%s\",operation=\"%s\",rejected=\"%s\",type=\"%s\"",
                       /* 600 stands for all larger codes, as in kube-apiserver. */
                       code > 600 ? 600 : code, webhook, name, rejected ? "true" : "false", type);
        hf_metric_add(hf_metrics_get(host->metrics, HF_METRIC_COUNTER,
                                     "apiserver_admission_webhook_request_total",
                                     "Calls of admission webhooks.", labels),
                      1);
}

void hfd_webhook_metrics_rejected(const struct hf_host *host, const char *webhook, const char *type,
                                  enum hfd_admission_operation operation, const char *error_type,
                                  int code) {
        char labels[500];

        if (!host->metrics || !is_plain(webhook))
                return;
        (void)snprintf(labels, sizeof labels,
                       "error_type=\"%s\",name=\"%s\",operation=\"%s\",rejection_code=\"%d\","
                       "type=\"%s\"",
                       error_type, webhook, hfd_admission_operation_name(operation),
                       code > 600 ? 600 : code, type);
        hf_metric_add(hf_metrics_get(host->metrics, HF_METRIC_COUNTER,
                                     "apiserver_admission_webhook_rejection_count",
                                     "Requests that admission webhooks have refused.", labels),
                      1);
}

void hfd_webhook_metrics_failed_open(const struct hf_host *host, const char *webhook,
                                     const char *type) {
        char labels[400];

        if (!host->metrics || !is_plain(webhook))
                return;
        (void)snprintf(labels, sizeof labels, "name=\"%s\",type=\"%s\"", webhook, type);
        hf_metric_add(hf_metrics_get(host->metrics, HF_METRIC_COUNTER,
                                     "apiserver_admission_webhook_fail_open_count",
                                     "Failures of admission webhooks that were ignored.", labels),
                      1);
}
