/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates objects. Nothing is checked so far.
 */
#include "server/resources/custom/schema/custom_schema.h"
void hfd_custom_schema_validate(const struct hfd_custom_schema *schema,
                                const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes) {
        (void)schema;
        (void)object;
        (void)old;
        (void)causes;
}
