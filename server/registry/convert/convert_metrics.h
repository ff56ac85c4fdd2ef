/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The metrics of conversion webhooks, with the names and labels of kube-apiserver. Thread: any. */
#include <stdbool.h>

#include <holdfast/host.h>

/*
 * A call has ended after `took`. why: NULL = success; otherwise the message for the client.
 * responded: the webhook has responded, with a status code of success; then a failure is one of
 * conversion_review.h, and the message identifies its type.
 */
void hfd_convert_metrics_called(const struct hf_host *host, const char *why, bool responded,
                                hf_nsec took);
