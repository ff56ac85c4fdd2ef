/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The kinds of objects that manifests may have. Immutable once they are copied.
 * Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/bootstrap.h>

struct hf__kind {
        char *api_version, *kind, *plural; /* owned */
        char *group, *version;             /* owned; the parts of api_version; group "" = core */
        bool namespaced;
};

struct hf__kinds {
        struct hf__kind *list; /* owned; steps point into it, so it is never moved */
        size_t n;
};

/* Copies the array with its strings. *ret_kinds is set on success only. 0 or -ENOMEM. */
int hf__kinds_copy(const struct hf_bootstrap_kind *kinds, size_t n, struct hf__kinds *ret_kinds);
/* NULL: there is no such kind. Borrowed from kinds. */
const struct hf__kind *hf__kinds_find(const struct hf__kinds *kinds, const char *api_version,
                                      const char *kind);
/* Frees the contents. Accepts a zeroed struct. */
void hf__kinds_done(struct hf__kinds *kinds);
