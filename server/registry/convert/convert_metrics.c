/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the calls of conversion webhooks (convert_metrics.h).
 *
 * Invariant: names and labels are those of kube-apiserver. There are five kinds of results, so the
 * number of series is bounded.
 */
#include "server/registry/convert/convert_metrics.h"

#include <stdio.h>
#include <string.h>

#include <holdfast/metrics.h>

/* kube-apiserver's word for a failure; "" = the call succeeded. why: the message of the failure.
 * If the webhook has responded with success, conversion_review.c has written it, and its beginning
 * tells the types apart. */
static const char *failure_type(const char *why, bool responded) {
        if (!why)
                return "";
        if (!responded)
                return "conversion_webhook_call_failure";
        if (strncmp(why, "failed", 6) == 0)
                return "conversion_webhook_malformed_response_failure";
        if (strncmp(why, "returned invalid", 16) == 0)
                return "conversion_webhook_invalid_converted_object_failure";
        return "conversion_webhook_partial_response_failure";
}

void hfd_convert_metrics_called(const struct hf_host *host, const char *why, bool responded,
                                hf_nsec took) {
        char labels[128];

        if (!host->metrics)
                return;
        (void)snprintf(labels, sizeof labels, "failure_type=\"%s\",result=\"%s\"",
                       failure_type(why, responded), why ? "failure" : "success");
        hf_metric_add(hf_metrics_get(host->metrics, HF_METRIC_COUNTER,
                                     "apiserver_conversion_webhook_request_total",
                                     "Calls of conversion webhooks.", labels),
                      1);
        hf_metric_observe(hf_metrics_get(host->metrics, HF_METRIC_HISTOGRAM,
                                         "apiserver_conversion_webhook_duration_seconds",
                                         "Time of the calls of conversion webhooks.", labels),
                          (double)took / HF_NSEC_PER_SEC);
}
