/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The lists that a strategic merge patch merges element by element, of the kinds that are served.
 * All other lists are replaced. In Kubernetes these are the fields with patchStrategy "merge".
 * Pure. Thread: any.
 */

struct hfd_merged_list {
        const char *kind; /* NULL = every kind */
        const char *path; /* in the object, with dots */
        const char *key;  /* elements with the same value of it are the same; NULL = of scalars */
};

/* The list at a path of a kind; static. NULL: it is not merged. */
const struct hfd_merged_list *hfd_merged_list_find(const char *kind, const char *path);
