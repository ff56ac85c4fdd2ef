/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stored values that are not valid objects, because another program has written them. They are not
 * served. The cache keeps a placeholder for each, because the audit compares all keys of the cache
 * with those of the store.
 */
#include "server/cacher/object_tree.h"
#include "server/storage/store.h"

struct hfd_cacher;

/*
 * Called for a stored value that is not a valid object. NULL: out of memory, refill the cache.
 * Otherwise logs it and returns a placeholder, which the caller must keep.
 */
struct hfd_object *hfd_stored_value_placeholder(struct hfd_cacher *cacher,
                                                const struct hfd_resource *resource,
                                                const struct hfd_kv *kv);
/*
 * Stores mark as the placeholder of key, and takes its reference. mark NULL: the key now has a
 * valid object or was deleted, so any placeholder is dropped. False: out of memory.
 */
bool hfd_stored_value_set_placeholder(struct hfd_object_tree *tree, const char *key,
                                      struct hfd_object *mark);
