/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether the rules of a FlowSchema match a request. Pure. Thread: any. */
#include "server/rbac/attributes.h"

struct hf__json;

/* rules: spec.rules of the schema, or NULL. Malformed parts match nothing. */
bool hfd_flow_rules_match(const struct hf__json *rules, const struct hfd_subject *subject,
                          const struct hfd_attributes *attributes);
