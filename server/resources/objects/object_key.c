/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of objects.
 *
 * Invariant: a path can be converted to a key and back without loss. A namespace or a name that a
 * client sends never contains a slash, because request_info.c and meta_validation.c refuse it. So
 * the path of a namespaced object has exactly one slash. Only another program can store a path with
 * more. Of a built-in resource the further slashes then belong to the name; of a custom resource
 * hfd_object_key_custom refuses the key.
 */
#include "server/resources/objects/object_key.h"

#include <assert.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/strbuf.h"
#include "server/resources/custom/custom_table.h"
#include "server/resources/rows/resource_table.h"

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

/* The rest of the key after the row's own part; NULL: the key is not one of this row. If a kind has
 * several versions, only one of their rows stores the objects. */
static const char *path_in_row(const struct hfd_resource *row, const char *key) {
        if (!row->storage || row->conversion)
                return NULL;
        size_t n = strlen(row->storage);
        return strncmp(key, row->storage, n) == 0 && key[n] == '/' ? key + n + 1 : NULL;
}

/* Finds the row of the table that stores the key, and the rest of it. NULL: there is none. */
static const struct hfd_resource *find_row(const char *key, const char **ret_path) {
        /* Often the next key is of the same kind. A row of the table stays where it is. */
        static _Thread_local const struct hfd_resource *last;

        *ret_path = last ? path_in_row(last, key) : NULL;
        if (*ret_path)
                return last;
        for (size_t i = 0; i < hfd_resources_count(); i++) {
                *ret_path = path_in_row(hfd_resource_at(i), key);
                if (!*ret_path)
                        continue;
                last = hfd_resource_at(i);
                return last;
        }
        return NULL;
}

const struct hfd_resource *hfd_object_key_parse(const char *prefix, struct hfd_custom_table *table,
                                                const char *key, const char **ret_path) {
        size_t n_prefix = strlen(prefix);
        const struct hfd_resource *slot = NULL;
        struct hfd_custom_key custom;

        *ret_path = key;
        if (strncmp(key, prefix, n_prefix) != 0 || key[n_prefix] != '/')
                return NULL;
        const struct hfd_resource *row = find_row(key + n_prefix + 1, ret_path);
        if (row) {
                bool has_ns = strchr(*ret_path, '/') != NULL;
                return **ret_path && has_ns == row->namespaced ? row : NULL;
        }
        *ret_path = key;
        if (!table || !hfd_object_key_custom(prefix, key, &custom))
                return NULL;
        int r = hfd_custom_table_slot(table, custom.group, custom.plural, &slot);
        *ret_path = r == 0 ? custom.path : NULL;
        return r == 0 ? slot : NULL;
}
