/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * metadata.managedFields: who owns which fields of an object. There is one entry for each manager.
 * A manager that applies is identified by its name and subresource; a manager that writes in
 * another way, by its name, apiVersion and subresource. Thread: owner only.
 */
#include "server/apply/sets/fields.h"

struct hf__json;

struct hfd_manager {
        /* Borrowed. subresource "" = the object itself; time NULL = not known. */
        const char *name, *subresource, *api_version, *time;
        bool applies;
        const struct hfd_fields *fields;
        /* Borrowed; the entry from which this was decoded. NULL = none, or it is outdated. */
        struct hf__json *entry;
};

struct hfd_managers {
        struct hfd_manager *at; /* memory of scratch */
        size_t n, space;
};

/* Whether a and b are the same manager, apart from their fields and times. */
bool hfd_manager_is_same(const struct hfd_manager *a, const struct hfd_manager *b);
/* Sets the fields. If they differ from the previous ones, the entry is outdated. */
void hfd_manager_set_fields(struct hfd_manager *manager, const struct hfd_fields *fields);
/* The manager in the list that is the same as `like`; NULL = there is none. */
struct hfd_manager *hfd_managers_find(const struct hfd_managers *managers,
                                      const struct hfd_manager *like);
/* Appends a manager. Pointers to the other managers are invalid afterwards. NULL: memory is
 * exhausted. */
struct hfd_manager *hfd_managers_add(struct hf__arena *scratch, struct hfd_managers *managers,
                                     const struct hfd_manager *manager);
/*
 * Decodes a list, from which the result borrows texts and entries. NULL or null = an empty list. If
 * a manager has several entries, the last one counts. 0; -ENOMEM; HF_E_INVALID: list is no array
 * (a raw value, see json.h, is none), or an entry is malformed.
 */
int hfd_managers_decode(struct hf__arena *scratch, struct hf__json *list,
                        struct hfd_managers *ret_managers);
/* Decodes one entry, apart from its fields, which become NULL. 0, or HF_E_INVALID: it is malformed.
 */
int hfd_manager_decode(struct hf__json *entry, struct hfd_manager *ret_manager);
/* The union of the sets of n managers. */
const struct hfd_fields *hfd_managers_union(struct hf__arena *scratch,
                                            const struct hfd_manager *managers, size_t n);
/* Removes the managers that own nothing; the others may move. */
void hfd_managers_drop_empty(struct hfd_managers *managers);
/* < 0, 0 or > 0: the order of the times of their last changes. */
int hfd_managers_order_of_times(const struct hfd_manager *a, const struct hfd_manager *b);
/* < 0, 0 or > 0: the order of their entries in metadata.managedFields. */
int hfd_managers_order_in_list(const struct hfd_manager *a, const struct hfd_manager *b);
/*
 * Makes the list for metadata.managedFields, in Kubernetes' order; sorts managers. list: the list
 * from which managers was decoded; NULL = there is none. Entries that are not outdated are moved
 * out of it. *ret_list NULL: there are no managers. 0 or -ENOMEM. The caller frees both lists.
 */
int hfd_managers_encode(struct hfd_managers *managers, struct hf__json *list,
                        struct hf__json **ret_list);
