/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A kind that is served in two group versions, such as Events: each is a row of the table of
 * resources, but the objects are the same. One row stores them; the other one has a conversion,
 * which says how its form differs from the stored form:
 *
 *      store, cacher, watches' queues   the stored form, under the row that stores
 *      requests, bodies, responses      the form of the row that the client has named
 *
 * A read converts an object when it is rendered, a write converts the current object before it is
 * changed, and the new one before it is encoded. In between, everything works with the form of the
 * requested row: schema, patches, apply, strategy. Objects of rows without a conversion pass
 * unchanged and cost nothing.
 *
 * The owners of fields (managedFields) are stored as the writer names the fields. A write sees
 * those of the other version in its own names, so that both versions share the owners.
 *
 * The versions of a custom resource differ in their apiVersion only (conversion None). An object
 * of one that was read before its definition changed may have the form of another version or kind;
 * so its rendering compares both.
 *
 * Today a conversion renames members of the object. One that changes values would add functions to
 * struct hfd_conversion. Pure, except that objects are counted. Thread: any.
 */
#include "server/resources/object.h"
#include "server/resources/resource.h"

/* The row under which the objects of a row are stored: the row itself if it has no conversion. */
const struct hfd_resource *hfd_resource_stored(const struct hfd_resource *row);
/*
 * The name of a field in the stored form ("involvedObject.kind") as the row calls it
 * ("regarding.kind"), for selectors.
 */
void hfd_conversion_field(const struct hfd_resource *row, const char *stored, char *out,
                          size_t max_out);

/* Reads an object for a write by this row; the caller frees it. NULL = as hfd_object_parse. */
struct hf__json *hfd_conversion_parse(const struct hfd_resource *row,
                                      const struct hfd_object *object);
/* Encodes an object that has the form of the row, for the store. NULL = out of memory. */
struct hf__buf *hfd_conversion_encode(const struct hfd_resource *row, const struct hf__json *json);
/* A reference to the object in the form of the row: the same object if it has that form. NULL = out
 * of memory, or object is NULL. */
struct hfd_object *hfd_conversion_object(const struct hfd_resource *row, struct hfd_object *object);
