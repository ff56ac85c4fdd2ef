/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Knows the fields of each kind, and finds those fields of a received object that its kind does not
 * have. Pure. Thread: any.
 */
#include "base/json.h"
#include "server/resources/resource.h"

/*
 * The fields of object that its kind does not have, as `unknown field "spec.x"`, one per line.
 * *ret_unknown is malloc'ed and belongs to the caller; NULL = there are none. 0 or -ENOMEM.
 */
int hfd_unknown_fields_find(const struct hfd_resource *resource, struct hf__json *object,
                            char **ret_unknown);

/*
 * Lists the fields of one part of a kind ("" = the object itself): their names, separated by
 * spaces. NULL: the part may have any field. Static storage.
 */
const char *hfd_unknown_fields_list_known(const char *kind, const char *part);
