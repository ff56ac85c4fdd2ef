/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Rules that FlowSchemas and PriorityLevelConfigurations share. Pure. Thread: any. */

struct hf__json;
struct hfd_causes;

/* Adds a cause unless the spec of object equals `wanted`, the spec that it must have. detail: the
 * text of the cause. wanted NULL: memory ran out, which is noted in the causes. */
void hfd_flow_validate_fixed(const struct hf__json *object, const struct hf__json *wanted,
                             const char *detail, struct hfd_causes *causes);
