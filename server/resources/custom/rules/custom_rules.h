/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The x-kubernetes-validations of one version of custom resources; immutable. Thread: any. */
struct hf__json;
struct hfd_causes;
struct hfd_custom_rules;

int hfd_custom_rules_new(const struct hf__json *props, const char *path, struct hfd_causes *causes,
                         struct hfd_custom_rules **ret);
struct hfd_custom_rules *hfd_custom_rules_free(struct hfd_custom_rules *rules);
int hfd_custom_rules_check(const struct hfd_custom_rules *rules, const struct hf__json *object,
                           const struct hf__json *old, struct hfd_causes *causes);
