/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of objects.
 *
 * Invariant: a path can be converted to a key and back without loss. A namespace or a name never
 * contains a slash, because request_info.c and meta_validation.c refuse it. So the path of a
 * namespaced object has exactly one slash.
 */
#include "server/resources/object_key.h"

#include <assert.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/strbuf.h"
#include "server/resources/custom/custom_table.h"

void hfd_object_path(const struct hfd_resource *resource, const char *ns, const char *name,
                     char path[HFD_PATH_MAX]) {
        bool namespaced = resource->namespaced;

        assert(strlen(ns) <= HF_NAME_MAX &&
               strlen(name) <= HF_NAME_MAX); /* so that the path fits */
        (void)hf__join(path, HFD_PATH_MAX, namespaced ? ns : "", namespaced ? "/" : "", name, NULL);
}

void hfd_object_scope(const struct hfd_resource *resource, const char *ns, const char *name,
                      struct hfd_scope *ret_scope) {
        bool any_ns = !resource->namespaced || !*ns;

        ret_scope->exact =
                name && *name && strlen(name) <= HF_NAME_MAX && (*ns || !resource->namespaced);
        if (ret_scope->exact)
                hfd_object_path(resource, ns, name, ret_scope->prefix);
        else
                (void)hf__join(ret_scope->prefix, sizeof ret_scope->prefix, any_ns ? "" : ns,
                               any_ns ? "" : "/", NULL);
}

int hfd_object_key(const char *prefix, const struct hfd_resource *resource, const char *path,
                   char key[HFD_KEY_MAX]) {
        size_t n = hf__join(key, HFD_KEY_MAX, prefix, "/", resource->storage, "/", path, NULL);

        return n > 0 ? 0 : HF_E_TOO_LARGE;
}

bool hfd_object_key_custom(const char *prefix, const char *key, struct hfd_custom_key *ret_custom) {
        size_t n_prefix = strlen(prefix);

        if (strncmp(key, prefix, n_prefix) != 0 || key[n_prefix] != '/')
                return false;
        const char *group = key + n_prefix + 1;
        size_t n_group = strcspn(group, "/");
        if (n_group >= sizeof ret_custom->group || group[n_group] != '/' ||
            !memchr(group, '.', n_group))
                return false;
        const char *plural = group + n_group + 1;
        size_t n_plural = strcspn(plural, "/");
        if (n_plural == 0 || n_plural >= sizeof ret_custom->plural || plural[n_plural] != '/')
                return false;
        const char *path = plural + n_plural + 1, *slash = strchr(path, '/');
        if (!*path || *path == '/' || (slash && (!slash[1] || strchr(slash + 1, '/'))))
                return false;
        memcpy(ret_custom->group, group, n_group);
        ret_custom->group[n_group] = '\0';
        memcpy(ret_custom->plural, plural, n_plural);
        ret_custom->plural[n_plural] = '\0';
        ret_custom->path = path;
        return true;
}

const struct hfd_resource *hfd_object_key_parse(const char *prefix, struct hfd_custom_table *table,
                                                const char *key, const char **ret_path) {
        size_t n_prefix = strlen(prefix);
        const struct hfd_resource *slot = NULL;
        struct hfd_custom_key custom;

        *ret_path = key;
        if (strncmp(key, prefix, n_prefix) != 0 || key[n_prefix] != '/')
                return NULL;
        const char *below = key + n_prefix + 1;
        for (size_t i = 0; i < hfd_resources_count(); i++) {
                const struct hfd_resource *row = hfd_resource_at(i);
                /* If a kind has several versions, only one of their rows stores the objects. */
                bool stores = row->storage && !row->conversion;
                size_t n_storage = stores ? strlen(row->storage) : 0;
                if (n_storage == 0 || strncmp(below, row->storage, n_storage) != 0 ||
                    below[n_storage] != '/')
                        continue;
                *ret_path = below + n_storage + 1;
                bool has_ns = strchr(*ret_path, '/') != NULL;
                return **ret_path && has_ns == row->namespaced ? row : NULL;
        }
        if (!table || !hfd_object_key_custom(prefix, key, &custom))
                return NULL;
        int r = hfd_custom_table_slot(table, custom.group, custom.plural, &slot);
        *ret_path = r == 0 ? custom.path : NULL;
        return r == 0 ? slot : NULL;
}
