/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Removes from an object the fields that a manager does not apply any more. Thread: owner only. */
#include "server/apply/sets/fields.h"

struct hf__json;
struct hfd_schema;

/* An object or a list that is empty because all that was in it has been removed. */
struct hfd_emptied {
        struct hf__json *container, *value;
        struct hfd_emptied *next;
};

/*
 * Removes the fields in `last` that are not in `owned`. last: the fields that the manager applied
 * before. owned: the fields that it applies now, and all that other managers own. A field is
 * removed with all that is in it. An element of a list that stays keeps its keys. *ret_emptied: the
 * objects and lists that have become empty and are still in object, in memory of scratch. The
 * caller first compares object with the previous version, and then removes the emptied objects and
 * lists by hfd_prune_emptied. So the comparison does not count them as removed, and the managers
 * that own them keep them. (In Kubernetes they are null until the object is stored, with the same
 * effect.) Returns whether something was removed. When memory is exhausted, scratch->failed is set.
 */
bool hfd_prune(struct hf__arena *scratch, const struct hfd_schema *schema, struct hf__json *object,
               const struct hfd_fields *last, const struct hfd_fields *owned,
               struct hfd_emptied **ret_emptied);
/* Removes the emptied objects and lists from the object. Call once. */
void hfd_prune_emptied(struct hfd_emptied *emptied);
