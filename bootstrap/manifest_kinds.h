/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The kinds of objects that manifests may have. Immutable once they are copied.
 * Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/bootstrap.h>

struct hf__manifest_kind {
        char *api_version, *kind, *plural; /* owned */
        char *group, *version;             /* owned; the parts of api_version; group "" = core */
        bool namespaced;
};

struct hf__manifest_kinds {
        struct hf__manifest_kind *list; /* owned; steps point into it, so it is never moved */
        size_t n;
};

/* Copies the array with its strings. *ret_kinds is set on success only. 0 or -ENOMEM. */
int hf__manifest_kinds_copy(const struct hf_bootstrap_kind *kinds, size_t n,
                            struct hf__manifest_kinds *ret_kinds);
/* NULL: there is no such kind. Borrowed from kinds. */
const struct hf__manifest_kind *hf__manifest_kinds_find(const struct hf__manifest_kinds *kinds,
                                                        const char *api_version, const char *kind);
/* Frees the contents. Accepts a zeroed struct. */
void hf__manifest_kinds_done(struct hf__manifest_kinds *kinds);
