/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The form that objects of custom resources have in memory: that of their storage version, pruned
 * and with defaults, so that reads need not parse them. In the store they may have any form that
 * earlier definitions allowed. An object keeps those bytes, too, if they differ: after a change of
 * the definition, members that were pruned may be valid again, and defaults may differ. A row
 * (resource.h) stands for one version of a kind; the storage row is that of the storage version.
 *
 * If a webhook converts the kind, objects keep the version that they have in the store, if the kind
 * still has it, and have the form of its row. Pure. Thread: any.
 */
#include "server/resources/objects/object.h"

/* The schema by which an object is decoded first: it checks the metadata, and keeps all other
 * members. The kind's own schema prunes them afterwards. */
extern const struct hfd_schema hfd_custom_meta_schema;

/*
 * Brings stored bytes, or the served bytes of an object, into the form of row, which is a storage
 * row. If a webhook converts the kind, and the kind has the version of the bytes: into the form of
 * that version. The caller owns the result, which is a new reference to bytes if they have the form
 * already. NULL = out of memory, or bytes are not a valid object (hfd_object_check).
 */
struct hf__buf *hfd_custom_object_bytes(const struct hfd_resource *row, struct hf__buf *bytes);
/* An object from stored bytes, in the form that hfd_custom_object_bytes gives them. stored is
 * borrowed. The caller owns the reference. NULL = out of memory, or an invalid object. */
struct hfd_object *hfd_custom_object_new(const struct hfd_resource *row, const char *path,
                                         uint64_t revision, struct hf__buf *stored);
/* A copy of the object in the form of another storage row, such as that of a newer definition. The
 * caller owns the reference. NULL = out of memory, or an invalid object. */
struct hfd_object *hfd_custom_object_reform(const struct hfd_resource *row,
                                            const struct hfd_object *object);
/* Makes the object from json, the webhook's conversion of source to the version of row. json is
 * pruned, and gets no further defaults, as in Kubernetes; it stays the caller's. The caller owns
 * the reference. NULL = out of memory. */
struct hfd_object *hfd_custom_object_converted(const struct hfd_resource *row,
                                               const struct hfd_object *source,
                                               struct hf__json *json);
