/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes objects of the values that the store delivers. Pure. Thread: any. */
#include "server/resources/objects/object.h"
#include "server/storage/store.h"

/* As hfd_object_new, with the revision and the value of kv; the object is stale if kv is. NULL also
 * if the value could not be decrypted (hfd_kv_sealed). kv has a value. */
struct hfd_object *hfd_stored_object_new(const struct hfd_resource *resource, const char *path,
                                         const struct hfd_kv *kv);
