/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes the CEL type of the objects of a kind from its schema, for type checks. Pure. Thread: owner
 * of the arena. */
struct hf__arena;
struct hf__cel_type;
struct hfd_schema;

/*
 * The type of the objects of a schema: an object type whose name begins with `kind`, or dyn if the
 * schema leaves all open. In one set of expressions, types of different schemas need different
 * `kind`s, because types with one name are one type. A part that the schema leaves open, or that
 * contains itself, is dyn. So is one that is nested too deeply, or comes after too many others. The
 * type belongs to the arena and borrows texts of the schema. NULL: out of memory, and the arena has
 * failed.
 */
const struct hf__cel_type *hfd_schema_type(struct hf__arena *arena, const struct hfd_schema *schema,
                                           const char *kind);
