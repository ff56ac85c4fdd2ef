/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events. Only the two parts that must be objects for selectors are checked here.
 * schema/field_types.c checks the types of the other fields.
 */
#include "server/resources/parts.h"
#include "server/resources/strategies/strategies.h"

bool hfd_event_decode(struct hf__json *object, char *reason, size_t max_reason) {
        return hfd_part_is_object(object, "involvedObject", "Event", reason, max_reason) &&
               hfd_part_is_object(object, "source", "Event", reason, max_reason);
}
