/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Rules that FlowSchemas and PriorityLevelConfigurations share. Pure. Thread: any. */

struct hf__json;
struct hfd_causes;

/* Adds a cause unless the spec of object, which must not be changed, equals wanted. wanted NULL =
 * memory ran out, which causes note. */
void hfd_flow_validate_fixed(const struct hf__json *object, const struct hf__json *wanted,
                             const char *detail, struct hfd_causes *causes);
