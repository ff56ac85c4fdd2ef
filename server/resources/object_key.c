/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of objects. A key can be converted to a path and back without loss: a name never contains a
 * slash (request_info.c and meta_validation.c refuse one), so the path of a namespaced object has
 * exactly one.
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

/*
 * The slot of a key "GROUP/PLURAL/[NAMESPACE/]NAME" whose group has a dot. As above.
 */
static const struct hfd_resource *parse_custom_key(struct hfd_custom_table *table, const char *key,
                                                   const char **ret_path) {
        char group[HF_NAME_MAX + 1], plural[HF_NAME_MAX + 1];
        const struct hfd_resource *slot;
        size_t n_group = strcspn(key, "/");

        *ret_path = key;
        if (n_group >= sizeof group || key[n_group] != '/' || !memchr(key, '.', n_group))
                return NULL;
        const char *at = key + n_group + 1;
        size_t n_plural = strcspn(at, "/");
        if (n_plural == 0 || n_plural >= sizeof plural || at[n_plural] != '/')
                return NULL;
        const char *path = at + n_plural + 1, *slash = strchr(path, '/');
        if (!*path || *path == '/' || (slash && (!slash[1] || strchr(slash + 1, '/'))))
                return NULL;
        memcpy(group, key, n_group);
        group[n_group] = '\0';
        memcpy(plural, at, n_plural);
        plural[n_plural] = '\0';
        int r = hfd_custom_table_slot(table, group, plural, &slot);
        *ret_path = r == 0 ? path : NULL;
        return slot;
}

const struct hfd_resource *hfd_object_key_parse(const char *prefix, struct hfd_custom_table *table,
                                                const char *key, const char **ret_path) {
        size_t n, n_prefix = strlen(prefix);
        const struct hfd_resource *rows = hfd_resources(&n);

        *ret_path = key;
        if (strncmp(key, prefix, n_prefix) != 0 || key[n_prefix] != '/')
                return NULL;
        key += n_prefix + 1;
        for (size_t i = 0; i < n; i++) {
                /* The row that stores the objects. */
                bool stores = rows[i].storage && !rows[i].conversion;
                size_t n_storage = stores ? strlen(rows[i].storage) : 0;
                if (n_storage == 0 || strncmp(key, rows[i].storage, n_storage) != 0 ||
                    key[n_storage] != '/')
                        continue;
                *ret_path = key + n_storage + 1;
                bool has_ns = strchr(*ret_path, '/') != NULL;
                return **ret_path && has_ns == rows[i].namespaced ? &rows[i] : NULL;
        }
        return table ? parse_custom_key(table, key, ret_path) : NULL;
}
