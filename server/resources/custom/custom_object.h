/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The form that objects of custom resources have in memory: that of their storage version, pruned
 * and with defaults, so that reads need not parse them. In the store they may have any form that
 * earlier definitions allowed. Pure. Thread: any.
 */
#include "server/resources/object.h"

/* Apart from metadata, it keeps everything: what is decoded before the schema prunes. */
extern const struct hfd_schema hfd_custom_meta_schema;

/*
 * Brings stored bytes, or the served bytes of an object, into the form of row, which is a storage
 * row. NULL = out of memory, or bytes are not a valid object (hfd_object_check).
 */
struct hf__buf *hfd_custom_object_bytes(const struct hfd_resource *row,
                                        const struct hf__buf *bytes);
/* The object again, in the form of another storage row. NULL as above. */
struct hfd_object *hfd_custom_object_reform(const struct hfd_resource *row,
                                            const struct hfd_object *object);
