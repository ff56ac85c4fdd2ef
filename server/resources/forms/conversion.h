/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Converts the objects of a kind that is served in two group versions, such as Events. Each version
 * is a row of the table of resources, but both serve the same objects. One row stores the objects.
 * The other row has a conversion (struct hfd_conversion), which says how its form differs from the
 * stored form:
 *
 *      store, cacher, queues of watches   the stored form, under the row that stores the objects
 *      requests, responses                the form of the row that the client has named
 *
 * A read converts an object when it renders the object. A write converts the current object before
 * it changes the object, and converts the new object when it encodes the object. In between, the
 * schema, patches, apply and the strategy work with the form of the requested row.
 *
 * In the store, an entry of managedFields names the fields as the version that has written them
 * does. A write translates the entries of the other version to the names of its own version, and
 * back when it encodes the object. So both versions share the owners of fields.
 *
 * The versions of a custom resource differ in their apiVersion only (conversion None). An object of
 * a custom resource that was read before its definition changed may have the form of the earlier
 * definition. hfd_conversion_parse and hfd_conversion_object compare the two forms
 * (hfd_custom_same_form), and bring such an object into the present form first.
 *
 * If a webhook converts the kind, the functions here cannot convert, because they cannot wait: they
 * leave the object in its version. registry/convert converts before an object comes here for a
 * client (hfd_conversion_is_pending).
 *
 * For the row that stores the objects, hfd_conversion_object costs nothing, unless it must unpack
 * the object (packed.h) or give it the form of a newer definition. For another version of a custom
 * resource it copies the bytes. For a built-in kind, hfd_conversion_parse and hfd_conversion_encode
 * search the table of resources for another version. If there is none, they only parse and encode.
 *
 * A conversion renames members of the object, or has functions that do more. Pure, except for
 * reference counts. Thread: any.
 */
#include "server/resources/objects/object.h"
#include "server/resources/resource.h"

/* The row under which the objects of a row are stored. Of a custom resource: the row of the storage
 * version, borrowed from its kind. Of any other row: the row that its conversion names, or the row
 * itself if it has none. */
const struct hfd_resource *hfd_resource_stored(const struct hfd_resource *row);
/*
 * Writes to out how the row calls a field: stored is the path of the field in the stored form
 * ("involvedObject.kind"), out the path in the form of the row ("regarding.kind").
 */
void hfd_conversion_field(const struct hfd_resource *row, const char *stored, char *out,
                          size_t max_out);

/* Whether a webhook converts the objects of the kind. */
bool hfd_conversion_is_elsewhere(const struct hfd_resource *row);
/* Whether the webhook must be called before the object can be shown in the version of row, or the
 * object still has the form of an older definition, so that this is not known. */
bool hfd_conversion_is_pending(const struct hfd_resource *row, const struct hfd_object *object);
/* For a write that changes only metadata: the row of the version in which the object is written. It
 * is row itself, unless a webhook converts the kind. */
const struct hfd_resource *hfd_conversion_row(const struct hfd_resource *row,
                                              const struct hfd_object *object);

/* Parses a stored object for a write to this row; the caller frees the result. If a webhook
 * converts the kind, the object has the version of row already (hfd_conversion_row). NULL = out of
 * memory, or the object's bytes are malformed. */
struct hf__json *hfd_conversion_parse(const struct hfd_resource *row,
                                      const struct hfd_object *object);
/* The same for an update (object.h): managedFields may be a raw value, unless its entries may need
 * a translation. */
struct hf__json *hfd_conversion_parse_for_update(const struct hfd_resource *row,
                                                 const struct hfd_object *object);
/* Encodes an object that has the form of the row, in the stored form. If a webhook converts the
 * kind, the bytes keep the version of row: a caller that stores another version must call the
 * webhook (registry/write/convert.c). NULL = out of memory. */
struct hf__buf *hfd_conversion_encode(const struct hfd_resource *row, const struct hf__json *json);
/* A new reference to the object in the form of the row, for a read; its bytes are not packed. It is
 * the same object if nothing has to change. NULL = out of memory, the object's bytes are malformed,
 * or object is NULL. */
struct hfd_object *hfd_conversion_object(const struct hfd_resource *row, struct hfd_object *object);
