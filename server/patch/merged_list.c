/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of lists that a strategic merge patch merges. handlers/openapi.c publishes them from
 * this table, because the client that computes a patch and the server that applies it have to agree
 * on them.
 */
#include "server/patch/merged_list.h"

#include <stddef.h>
#include <string.h>

static const struct hfd_merged_list merged_lists[] = {
        {NULL, "metadata.finalizers", NULL},
        {NULL, "metadata.ownerReferences", "uid"},
        {"Namespace", "status.conditions", "type"},
        {"ServiceAccount", "secrets", "name"},
};

const struct hfd_merged_list *hfd_merged_list_find(const char *kind, const char *path) {
        for (size_t i = 0; i < sizeof merged_lists / sizeof merged_lists[0]; i++) {
                const struct hfd_merged_list *list = &merged_lists[i];
                if (strcmp(list->path, path) == 0 && (!list->kind || strcmp(list->kind, kind) == 0))
                        return list;
        }
        return NULL;
}
