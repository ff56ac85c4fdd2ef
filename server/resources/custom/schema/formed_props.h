/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks whether the schema of a definition has the form that the code which walks through it
 * expects. Pure. Thread: any.
 */
#include <stdbool.h>

struct hf__json;

/* Whether props is an object (a JSONSchemaProps) in which each keyword that the server uses has a
 * value of the right type, and whether the same holds for each schema within props. A keyword that
 * is null counts as absent. The decoder of the kind ensures this for what clients send, but a
 * definition in the store may have any content. */
bool hfd_schema_props_are_formed(const struct hf__json *props);
