/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stored values that are not valid objects, because another program has written them. They are not
 * served. The cache keeps a placeholder for each of them, because the audit compares all keys of
 * the cache with those of the store.
 */
#include "server/cacher/object_tree.h"
#include "server/storage/store.h"

struct hfd_cacher;

/*
 * Called when no object could be created from a stored value. If the value is invalid, logs it and
 * returns a placeholder, whose reference the caller owns. NULL: memory ran out, so the caller must
 * fill the cache again.
 */
struct hfd_object *hfd_stored_value_placeholder(struct hfd_cacher *cacher,
                                                const struct hfd_resource *resource,
                                                const struct hfd_kv *kv);
/*
 * Stores the placeholder of key, and consumes the reference to it. placeholder NULL: the key now
 * has a valid object or was deleted, so an existing placeholder is dropped. False: out of memory.
 * The cacher's lock guards the cacher's tree.
 */
bool hfd_stored_value_set_placeholder(struct hfd_object_tree *tree, const char *key,
                                      struct hfd_object *placeholder);
