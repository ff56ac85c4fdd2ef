/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stored values that are not valid objects, because another program has written them, and encrypted
 * values that this instance cannot decrypt (sealed values). They are not served. The cache keeps a
 * placeholder for each of them, because the audit of the cache (sync/cache_audit.h) compares all
 * keys of the cache with those of the store.
 *
 * An invalid value is as good as missing. A sealed one is not: its object exists, and a client that
 * took it for deleted might delete or create others. So reads of a range that has a sealed value
 * fail, and so do new watches of it.
 */
#include "server/cacher/history/object_tree.h"
#include "server/storage/store.h"

struct hfd_cacher;
struct hfd_scope;

/*
 * Called when no object could be created from a stored value. If the value is invalid or sealed,
 * logs it (sealed values only up to a limit) and returns a placeholder, whose reference the caller
 * owns. NULL: memory ran out, so the caller must fill the cache again.
 */
struct hfd_object *hfd_stored_value_placeholder(struct hfd_cacher *cacher,
                                                const struct hfd_resource *resource,
                                                const struct hfd_kv *kv);
/*
 * Stores the placeholder of key, and consumes the reference to it. placeholder NULL: the key now
 * has a valid object or was deleted, so an existing placeholder is dropped. tree: `unreadable` of
 * the cacher, under its lock, or of a listing. False: out of memory.
 */
bool hfd_stored_value_set_placeholder(struct hfd_object_tree *tree, const char *key,
                                      struct hfd_object *placeholder);

/* A value that cannot be decrypted. */
struct hfd_sealed_value {
        char key[HFD_KEY_MAX];
        char why[80]; /* one of the short texts of hfd_kv_sealed; a longer one would be cut off */
};
/*
 * Whether a value in the scope is sealed; *ret_sealed is the first. unreadable: the cacher's tree,
 * under its lock, or that of a snapshot. prefix: of the store's keys. Logarithmic, unless there are
 * invalid values.
 */
bool hfd_stored_value_find_sealed(const struct hfd_object_tree *unreadable, const char *prefix,
                                  const struct hfd_resource *resource,
                                  const struct hfd_scope *scope,
                                  struct hfd_sealed_value *ret_sealed);
/* Whether the value of the key is sealed. The cacher's lock is held. */
bool hfd_stored_value_is_sealed_locked(struct hfd_cacher *cacher, const char *key);
/*
 * Returns a reference to the object at path, as readers see it: a write of this instance counts
 * once the store's watch has delivered it. NULL: not cached; or, if *ret_is_sealed, its value is
 * sealed. Thread: any; not under the lock.
 */
struct hfd_object *hfd_stored_value_get(struct hfd_cacher *cacher,
                                        const struct hfd_resource *resource, const char *path,
                                        bool *ret_is_sealed, struct hfd_sealed_value *ret_sealed);
