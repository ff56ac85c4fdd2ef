/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Embedded resources: their apiVersion, kind and metadata. Pure. Thread: any. */
#include "server/resources/custom/schema/check/check_report.h"
#include "server/resources/custom/schema/compile/node.h"

/* Adds a cause for each mistake in an embedded resource in value, which may be one itself. */
void hfd_check_embedded(const struct hfd_check_report *report, const struct hfd_custom_node *node,
                        const struct hf__json *value, const struct hfd_place *place);
