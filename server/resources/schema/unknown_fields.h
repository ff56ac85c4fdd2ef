/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Knows the fields of the parts of kinds that the table in unknown_fields.c lists, and finds
 * unknown fields in those parts. Pure. Thread: any.
 */
#include "base/json.h"
#include "server/resources/resource.h"

/*
 * The first unknown fields of object, at most 8, as `unknown field "spec.x"`, one per line. Names
 * are cut and made printable, for a header. *ret_unknown is malloc'ed and belongs to the caller;
 * NULL = none was found. 0 or -ENOMEM.
 */
int hfd_unknown_fields_find(const struct hfd_resource *resource, struct hf__json *object,
                            char **ret_unknown);

/*
 * Lists the fields of one part of a kind: their names, separated by spaces. part: "" = the object
 * itself, "x" = its member x, "x[]" = each object of the array x. NULL: the table has no such part,
 * so nothing is checked there. Static storage.
 */
const char *hfd_unknown_fields_list_known(const char *kind, const char *part);
