/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The three patches of the field: JSON patch (RFC 6902), merge patch (RFC 7386), and the strategic
 * merge patch, which knows of some lists by which key their elements are the same. Pure.
 *
 * Each changes *document in place, or puts another one in its place. 0; -ENOMEM; HF_E_INVALID: it
 * cannot be applied, why says why; HF_E_TOO_LARGE: the patch asks for more copies or comparisons
 * than a request may. After a failure *document is half patched, and still the caller's to free.
 */
#include <stddef.h>

#include "server/resources/resource.h"

#define HFD_PATCH_OPS_MAX 10000
#define HFD_PATCH_WHY     240

enum hfd_patch { HFD_PATCH_JSON, HFD_PATCH_MERGE, HFD_PATCH_STRATEGIC };

/* patch: an array of at most HFD_PATCH_OPS_MAX operations. */
int hfd_patch_json(struct hf__json **document, const struct hf__json *patch,
                   char why[HFD_PATCH_WHY]);
/* patch: an object, here and below; its keys are unique. */
int hfd_patch_merge(struct hf__json **document, const struct hf__json *patch);
int hfd_patch_strategic(const struct hfd_resource *resource, struct hf__json **document,
                        const struct hf__json *patch, char why[HFD_PATCH_WHY]);

/* Whether the strategic merge patch merges the list at this path; *ret_key: by this key of its
 * elements, NULL = of scalars. */
bool hfd_list_is_merged(const char *kind, const char *path, const char **ret_key);

/*
 * An object that is changed member by member, each found without a search through all of them. Keys
 * that were added since need not be found: the patch that does it has each key once.
 */
struct hfd_members {
        struct hf__json *object;  /* borrowed */
        struct hf__json **by_key; /* owned, sorted; NULL: few enough to look at each */
        struct hf__json *gone;    /* owned; what was dropped, whose keys the order still needs */
        size_t n;
};
int hfd_members_init(struct hfd_members *members,
                     struct hf__json *object); /* 0 or -ENOMEM; done is called in any case */
void hfd_members_done(struct hfd_members *members);
struct hf__json *hfd_members_find(const struct hfd_members *members,
                                  const char *key);                         /* NULL = none */
int hfd_members_drop(struct hfd_members *members, struct hf__json *member); /* 0 or -ENOMEM */
int hfd_members_set(struct hfd_members *members, const char *key,
                    struct hf__json *value); /* takes value; 0 or -ENOMEM */
