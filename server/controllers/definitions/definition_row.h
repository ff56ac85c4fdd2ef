/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the controllers need to know of a CustomResourceDefinition. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#include "server/controllers/kinds/kind_set.h"

struct hf__buf;
struct hf__json;

/*
 * The kind that the definition makes, in the version in which its objects are read: the storage
 * version, or if that is not served, the first one that is. False: its objects are not served. The
 * strings of the row are borrowed from the definition.
 */
bool hfd_definition_row(const struct hf__json *definition, struct hfd_kind_row *ret_row);

/* The same for a definition whose objects are not served any more, or not yet: in the storage
 * version, with the names that were accepted. */
bool hfd_definition_storage_row(const struct hf__json *definition, struct hfd_kind_row *ret_row);

/* A hf__informer_transform_fn: leaves out what a definition says of the fields of its objects, and
 * what is large in its metadata. */
int hfd_definition_reduce(const char *object, size_t n, struct hf__buf **ret_object);
