/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The properties of a CustomResourceDefinition that controllers use. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#include "server/controllers/kinds/kind_set.h"

struct hf__buf;
struct hf__json;

/*
 * The kind that the definition makes, in the version in which its objects are stored. Clients
 * inside the server reach them in that version even if it is not served. False: the definition is
 * not Established, or lacks the group, a name or the version, so there are no objects. The strings
 * of the row are borrowed from the definition.
 */
bool hfd_definition_row(const struct hf__json *definition, struct hfd_kind_row *ret_row);

/* A hf__informer_transform_fn (client/informer_transform.h): leaves out the schemas of a
 * definition, and the large parts of its metadata. 0, -ENOMEM, or -EPROTO: this is not JSON. */
int hfd_definition_reduce(const char *object, size_t n, struct hf__buf **ret_object);
