/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks that the elements of lists are unique where x-kubernetes-list-type says so. Pure. Thread:
 * any. */
#include <stdbool.h>

#include "server/resources/custom/schema/check/check_report.h"
#include "server/resources/custom/schema/compile/node.h"

/* Whether no list of type set or map, at any depth in value, has an element twice, and no list of
 * type map has an element that is neither an object nor null. records: the report gets a cause for
 * each such mistake. Otherwise the search ends at the first one, and the report only notes if
 * memory runs out. If memory runs out, the result is false. */
bool hfd_check_list_types(const struct hfd_check_report *report, bool records,
                          const struct hfd_custom_node *node, const struct hf__json *value,
                          const struct hfd_place *place);
