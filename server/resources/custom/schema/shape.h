/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Pure. Thread: any. */
#include <stdbool.h>

struct hf__json;

/* Whether props have the form of a JSONSchemaProps: each keyword a value of its type. The decoder
 * of the kind ensures it for what clients send; a definition in the store may be anything. */
bool hfd_schema_props_are_formed(const struct hf__json *props);
