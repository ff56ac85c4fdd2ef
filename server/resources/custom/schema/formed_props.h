/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks whether the schema of a definition has the form that the code which walks through it
 * expects. Pure. Thread: any.
 */
#include <stdbool.h>

struct hf__json;

/* Whether each keyword that is used has a value of the right type, in props, a
 * JSONSchemaProps, and in the schemas in it. Null counts as absent. The decoder of the kind ensures
 * this for what clients send, but a definition in the store may have any content. */
bool hfd_schema_props_are_formed(const struct hf__json *props);
