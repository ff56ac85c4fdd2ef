/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Pure. Thread: any. */
#include <stdbool.h>

struct hf__json;

/* Whether each keyword in props, a JSONSchemaProps, has a value of the right type. The decoder of
 * the kind ensures this for what clients send, but a definition in the store may have any content.
 */
bool hfd_schema_props_are_formed(const struct hf__json *props);
