/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of kinds that manifests may contain, copied from the configuration.
 *
 * Invariant: after hf__manifest_kinds_copy the table does not change, so threads need no lock.
 */
#include "bootstrap/manifest_kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* 0 or -ENOMEM. After an error the kind is copied in part; the texts that it has are owned. */
static int copy_kind(const struct hf_bootstrap_kind *from, struct hf__manifest_kind *kind) {
        const char *slash = strchr(from->api_version, '/');

        kind->namespaced = from->namespaced;
        kind->api_version = strdup(from->api_version);
        kind->kind = strdup(from->kind);
        kind->plural = strdup(from->plural);
        kind->group = slash ? strndup(from->api_version, (size_t)(slash - from->api_version))
                            : strdup("");
        kind->version = strdup(slash ? slash + 1 : from->api_version);
        if (!kind->api_version || !kind->kind || !kind->plural || !kind->group || !kind->version)
                return -ENOMEM;
        return 0;
}

int hf__manifest_kinds_copy(const struct hf_bootstrap_kind *kinds, size_t n,
                            struct hf__manifest_kinds *ret_kinds) {
        struct hf__manifest_kinds copies = {.list = calloc(n ? n : 1, sizeof *copies.list)};
        int r = copies.list ? 0 : -ENOMEM;

        /* A kind that is copied in part is counted too, so that it is freed. */
        for (; r == 0 && copies.n < n; copies.n++)
                r = copy_kind(&kinds[copies.n], &copies.list[copies.n]);
        if (r != 0)
                hf__manifest_kinds_done(&copies);
        else
                *ret_kinds = copies;
        return r;
}

const struct hf__manifest_kind *hf__manifest_kinds_find(const struct hf__manifest_kinds *kinds,
                                                        const char *api_version, const char *kind) {
        for (size_t i = 0; i < kinds->n; i++)
                if (strcmp(kinds->list[i].api_version, api_version) == 0 &&
                    strcmp(kinds->list[i].kind, kind) == 0)
                        return &kinds->list[i];
        return NULL;
}

void hf__manifest_kinds_done(struct hf__manifest_kinds *kinds) {
        for (size_t i = 0; i < kinds->n; i++) {
                struct hf__manifest_kind *kind = &kinds->list[i];
                free(kind->api_version);
                free(kind->kind);
                free(kind->plural);
                free(kind->group);
                free(kind->version);
        }
        free(kinds->list);
        *kinds = (struct hf__manifest_kinds){0};
}
