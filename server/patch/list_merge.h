/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Merges a list of a strategic merge patch into a list of the document. The types of the patch's
 * elements are checked first. After that only an element's identity matters: the string under the
 * merge key, or the element itself if it is a string. Indexes find identities, so the time grows
 * with n log n of the lengths of the lists. Pure. Thread: the owner of the arguments.
 */
#include "server/patch/patch.h"

struct hf__json;

struct hfd_list_merge {
        const char *path; /* of the list, for messages */
        const char *key;  /* the member that identifies an element; NULL = a list of scalars */
        struct hfd_patch_outcome *outcome;
        /* Merges two elements, which are objects, as an object of a patch is merged. */
        int (*merge_element)(void *ctx, struct hf__json *target, const struct hf__json *patch);
        void *ctx;
};

/*
 * Merges patch into target and sorts target by `order`, or by patch if order is NULL. One of the
 * two may be NULL. The results are those in patch.h.
 */
int hfd_list_merge_apply(const struct hfd_list_merge *merge, struct hf__json *target,
                         const struct hf__json *patch, const struct hf__json *order);
/* Removes the scalars that are in the array `scalars` from target, an array. */
int hfd_list_merge_delete_scalars(struct hfd_patch_outcome *outcome, struct hf__json *target,
                                  const struct hf__json *scalars);
