/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Rules that FlowSchemas and PriorityLevelConfigurations share. Pure. Thread: any. */

struct hf__json;
struct hfd_causes;

/* The spec of an object that cannot be changed must equal wanted. wanted NULL = memory ran out. */
void hfd_flow_validate_fixed(const struct hf__json *object, const struct hf__json *wanted,
                             const char *detail, struct hfd_causes *causes);
