/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placeholders for stored values that are not valid objects.
 *
 * Invariant: every invalid value has a placeholder, under its key. Without it the audit would take
 * the missing object for a lost event, and fill the cache again after every audit.
 */
#include "server/cacher/sync/stored_value.h"

#include "server/cacher/cacher_private.h"

struct hfd_object *hfd_stored_value_placeholder(struct hfd_cacher *cacher,
                                                const struct hfd_resource *resource,
                                                const struct hfd_kv *kv) {
        if (hfd_object_check(kv->value) != HF_E_INVALID)
                return NULL; /* the value is valid, so memory ran out */
        hf_log(&cacher->host->log, HF_LOG_ERROR, "cacher",
               "the value stored at %s is not a valid object; it is not served", kv->key);
        return hfd_object_unreadable(resource, kv->key, kv->mod_revision);
}

bool hfd_stored_value_set_placeholder(struct hfd_object_tree *tree, const char *key,
                                      struct hfd_object *placeholder) {
        struct hfd_object *old = NULL;
        bool stored = true;

        if (placeholder)
                stored = hfd_object_tree_put(tree, placeholder, &old) == 0;
        else if (tree->root) /* usually NULL, which saves the search */
                stored = hfd_object_tree_remove(tree, key, &old) == 0;
        hfd_object_unref(old);
        return stored;
}
