/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placeholders for stored values that are not valid objects, or that cannot be decrypted. The
 * placeholder of a sealed value has the reason as its bytes.
 *
 * Invariant: every invalid or sealed value of a known resource has a placeholder, under its key.
 * Without it each audit of the cache would take the missing object for a lost event, and have the
 * cache filled again.
 */
#include "server/cacher/state/stored_value.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "server/cacher/state/cacher_state.h"
#include "server/resources/rows/resource_table.h"
#include "server/storage/sealed.h"

/* How many sealed values are logged between two fillings of the cache. All values may be sealed, so
 * there is a limit. */
#define LOGGED_MAX 10

static struct hfd_object *sealed_placeholder(struct hfd_cacher *cacher,
                                             const struct hfd_resource *resource,
                                             const struct hfd_kv *kv, const char *why) {
        unsigned n = atomic_fetch_add(&cacher->n_sealed_logged, 1);

        if (n < LOGGED_MAX)
                hf_log(&cacher->host->log, HF_LOG_ERROR, "cacher",
                       "unable to transform key \"%s\": %s; reads that include it fail%s", kv->key,
                       why, n + 1 == LOGGED_MAX ? "; further ones are not logged" : "");
        return hfd_object_sealed(resource, kv->key, kv->mod_revision, why);
}

struct hfd_object *hfd_stored_value_placeholder(struct hfd_cacher *cacher,
                                                const struct hfd_resource *resource,
                                                const struct hfd_kv *kv) {
        assert(kv->key && resource);
        const char *why = hfd_kv_sealed(kv);

        if (why)
                return sealed_placeholder(cacher, resource, kv, why);
        if (hfd_object_check(resource, kv->value) != HF_E_INVALID)
                return NULL; /* memory ran out, here or when the object was made */
        hf_log(&cacher->host->log, HF_LOG_ERROR, "cacher",
               "the value stored at %s is not a valid object; it is not served", kv->key);
        return hfd_object_unreadable(resource, kv->key, kv->mod_revision);
}

bool hfd_stored_value_set_placeholder(struct hfd_object_tree *tree, const char *key,
                                      struct hfd_object *placeholder) {
        struct hfd_object *old = NULL;
        bool stored = true;

        assert(tree && key);
        if (placeholder)
                stored = hfd_object_tree_put(tree, placeholder, &old) == 0;
        else if (tree->root) /* usually NULL, which saves the search */
                stored = hfd_object_tree_remove(tree, key, &old) == 0;
        hfd_object_unref(old);
        return stored;
}

/* ---- sealed values ---- */

bool hfd_stored_value_find_sealed(const struct hfd_object_tree *unreadable, const char *prefix,
                                  const struct hfd_resource *resource,
                                  const struct hfd_scope *scope,
                                  struct hfd_sealed_value *ret_sealed) {
        static const struct hfd_scope all = {0};
        const struct hfd_object *found = NULL;
        struct hfd_object_iter iter;
        char key[HFD_KEY_MAX];

        if (!unreadable->root || /* nearly always */
            hfd_object_key(prefix, resource, scope->prefix, key) != 0)
                return false;
        if (scope->exact) {
                found = hfd_object_tree_find(unreadable, key);
        } else {
                size_t n = strlen(key);
                hfd_object_iter_init(&iter, unreadable, &all, key);
                do /* over the invalid values of the scope */
                        found = hfd_object_iter_next(&iter);
                while (found && strncmp(found->path, key, n) == 0 && !found->bytes);
                if (found && strncmp(found->path, key, n) != 0)
                        found = NULL;
        }
        if (!found || !found->bytes)
                return false;
        (void)snprintf(ret_sealed->key, sizeof ret_sealed->key, "%s", found->path);
        (void)snprintf(ret_sealed->why, sizeof ret_sealed->why, "%s", found->bytes->data);
        return true;
}

bool hfd_stored_value_is_sealed_locked(struct hfd_cacher *cacher, const char *key) {
        hf__mutex_assert_held(&cacher->mu);
        const struct hfd_object *found =
                cacher->unreadable.root ? hfd_object_tree_find(&cacher->unreadable, key) : NULL;

        return found && found->bytes;
}

struct hfd_object *hfd_stored_value_get(struct hfd_cacher *cacher,
                                        const struct hfd_resource *resource, const char *path,
                                        bool *ret_is_sealed, struct hfd_sealed_value *ret_sealed) {
        const struct hfd_object_tree *tree = &cacher->trees[hfd_resource_index(resource)];
        struct hfd_scope scope;

        *ret_is_sealed = false;
        pthread_mutex_lock(&cacher->mu);
        struct hfd_object *object = hfd_object_ref(hfd_object_tree_find(tree, path));
        if (!object && cacher->unreadable.root) {
                scope = (struct hfd_scope){.exact = true};
                (void)snprintf(scope.prefix, sizeof scope.prefix, "%s", path);
                *ret_is_sealed = hfd_stored_value_find_sealed(&cacher->unreadable, cacher->prefix,
                                                              resource, &scope, ret_sealed);
        }
        pthread_mutex_unlock(&cacher->mu);
        return object;
}
