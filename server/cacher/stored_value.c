/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that are not objects. Each has a placeholder, by key, so that the audit does not take the
 * missing object for a lost event and refill the cache again and again.
 */
#include "server/cacher/stored_value.h"

#include "server/cacher/cacher_private.h"

struct hfd_object *hfd_stored_value_mark(struct hfd_cacher *cacher,
                                         const struct hfd_resource *resource,
                                         const struct hfd_kv *kv) {
        if (hfd_object_check(kv->value) != HF_E_INVALID)
                return NULL; /* it is valid: there was no memory for it */
        hf_log(&cacher->host->log, HF_LOG_ERROR, "cacher",
               "the value stored at %s is not a valid object; it is not served", kv->key);
        return hfd_object_unreadable(resource, kv->key, kv->mod_revision);
}

bool hfd_stored_value_remember(struct hfd_object_tree *tree, const char *key,
                               struct hfd_object *mark) {
        struct hfd_object *old = NULL;
        bool good = true;

        if (mark)
                good = hfd_object_tree_put(tree, mark, &old) == 0;
        else if (tree->n > 0) /* almost always 0: the search is saved */
                old = hfd_object_tree_remove(tree, key);
        hfd_object_unref(old);
        return good;
}
