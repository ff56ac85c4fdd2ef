/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Compares values as Kubernetes compares its Go values (Semantic.DeepEqual). A typed client that
 * sends an object back leaves out members that are zero, and a quantity may have another form. So
 * these are equal:
 *
 *  - a list, a map or BYTES that is absent, and one that is empty;
 *  - a field without HFD_FIELD_POINTER that is absent, and one with the zero of its type;
 *  - two quantities of the same amount; in a map, after they are rounded to thousandths.
 *
 * Members of a STRUCT that the schema does not have do not count, unless it has preserve_unknown:
 * then it is compared as JSON, like an ANY or EITHER. NULL and null are absent values. Takes time
 * in proportion to the size of both values; only the members of a map, or of an object that is
 * compared as JSON, may have to be sorted first. Pure. Thread: owner of the values.
 */
#include <stdbool.h>

#include "server/schema/schema.h"

struct hf__json;

/* a and b are values with this schema; as for a field without HFD_FIELD_POINTER, absent equals
 * zero. 0, or -ENOMEM with the result false. */
int hfd_schema_are_equal(const struct hfd_schema *schema, const struct hf__json *a,
                         const struct hf__json *b, bool *ret_equal);
/* The same for the member `name` of both a and b. schema: a STRUCT; a member that it does not have
 * is compared as JSON. */
int hfd_schema_are_members_equal(const struct hfd_schema *schema, const struct hf__json *a,
                                 const struct hf__json *b, const char *name, bool *ret_equal);
