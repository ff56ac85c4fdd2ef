/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks that the elements of lists are unique where x-kubernetes-list-type says so. Pure. Thread:
 * any. */
#include <stdbool.h>

#include "server/resources/custom/schema/check/check_report.h"
#include "server/resources/custom/schema/compile/node.h"

/* Whether no list of type set or map, at any depth in value, has an element twice, and no list of
 * type map has an element of a wrong type (neither an object nor null). records: the report gets
 * causes: for each list one for the first element of a wrong type or, if there is none, one for
 * each element that occurs twice. Otherwise the search ends at the first mistake, and the report
 * only notes if memory runs out. If memory runs out, the result is false. */
bool hfd_check_list_types(const struct hfd_check_report *report, bool records,
                          const struct hfd_custom_node *node, const struct hf__json *value,
                          const struct hfd_place *place);
