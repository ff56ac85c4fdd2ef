/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The metrics of webhooks, with the names of kube-apiserver. Thread: any. Never fails. */
#include <stdbool.h>

#include <holdfast/host.h>

#include "server/admission/admission.h"

/* A call has ended. type: "admit" or "validating". code: as kube-apiserver counts it: the status of
 * the webhook's response or refusal; 400, 429 or 500 if the call was not sent; 503 = there was no
 * valid response; 0 = HFD_WEBHOOK_INTERNAL (webhook_call.h). */
void hfd_webhook_metrics_called(const struct hf_host *host, const char *webhook, const char *type,
                                enum hfd_admission_operation operation, bool rejected, int code,
                                hf_nsec took);
/* A request was refused. error_type: "no_error", "calling_webhook_error" or
 * "apiserver_internal_error". */
void hfd_webhook_metrics_rejected(const struct hf_host *host, const char *webhook, const char *type,
                                  enum hfd_admission_operation operation, const char *error_type,
                                  int code);
/* A failure was ignored. */
void hfd_webhook_metrics_failed_open(const struct hf_host *host, const char *webhook,
                                     const char *type);
