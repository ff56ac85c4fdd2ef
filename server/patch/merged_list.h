/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The lists that a strategic merge patch merges element by element, for all kinds that are served.
 * In Kubernetes these are the fields with patchStrategy "merge". All other lists are replaced.
 * Pure. Thread: any.
 */

struct hfd_merged_list {
        const char *kind; /* NULL = every kind */
        const char *path; /* members from the object to the list, separated by dots */
        const char *key;  /* the member that identifies an element; NULL = a list of scalars */
};

/* Returns the list at this path of the kind; static. NULL: the list is not merged. */
const struct hfd_merged_list *hfd_merged_list_find(const char *kind, const char *path);
