/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Objects from what the store delivers. Pure. Thread: any. */
#include "server/resources/object.h"
#include "server/storage/store.h"

/* As hfd_object_new, with the revision and the value of kv, and whether the value is stale. NULL
 * also if the value could not be decrypted (hfd_kv_sealed). */
struct hfd_object *hfd_stored_object_new(const struct hfd_resource *resource, const char *path,
                                         const struct hfd_kv *kv);
