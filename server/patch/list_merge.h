/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Merges a list of a strategic merge patch into a list of the document. Elements are matched by
 * their identity (merge_keys.h). Indexes find identities, so a merge takes n log n time for lists
 * of n elements. Pure. Thread: owner only.
 */
#include <stdbool.h>

#include "server/patch/patch.h"

struct hf__json;

struct hfd_list_merge {
        const char *path; /* of the list, for messages */
        const char *key;  /* the member that identifies an element; NULL = a list of scalars */
        struct hfd_patch_outcome *outcome;
        /* Merges an element of the patch into an element of target. Both are objects, and are
         * merged as objects outside of lists are. Not called for a list of scalars. 0 or an error
         * of patch.h. */
        int (*merge_element)(void *ctx, struct hf__json *target, const struct hf__json *patch);
        void *ctx;
        bool is_new; /* the document has no such list, so target is empty */
};

/*
 * Checks the types of all elements of patch and order; then merges patch into target, an array, and
 * sorts target by order, or by patch if order is NULL. Either patch or order may be NULL. The
 * results are those in patch.h.
 */
int hfd_list_merge_apply(const struct hfd_list_merge *merge, struct hf__json *target,
                         const struct hf__json *patch, const struct hf__json *order);
/* Removes the strings that are in the array `scalars` from target, an array. The results are those
 * in patch.h. */
int hfd_list_merge_delete_scalars(struct hfd_patch_outcome *outcome, struct hf__json *target,
                                  const struct hf__json *scalars);
