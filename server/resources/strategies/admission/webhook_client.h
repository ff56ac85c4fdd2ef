/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Validates the address of a webhook: of admission webhooks, and of those that convert custom
 * resources. Each function adds a cause for each mistake; field: the path of the value. The texts
 * are Kubernetes'. Pure. Thread: any. */
struct hf__json;
struct hfd_causes;

void hfd_webhook_url_validate(const char *text, const char *field, struct hfd_causes *causes);
void hfd_webhook_service_validate(const struct hf__json *service, const char *field,
                                  struct hfd_causes *causes);
