/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks the apiVersion, kind and metadata of embedded resources (x-kubernetes-embedded-resource),
 * such as the Pod in a template. Pure. Thread: any. */
#include "server/resources/custom/schema/check/check_report.h"
#include "server/resources/custom/schema/compile/node.h"

/* Adds a cause for each mistake in the embedded resources at any depth in value, which may be one
 * itself. node: the schema of value; NULL = it has none, so it has no embedded resources. */
void hfd_check_embedded(const struct hfd_check_report *report, const struct hfd_custom_node *node,
                        const struct hf__json *value, const struct hfd_place *place);
