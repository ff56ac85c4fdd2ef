/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds, for each child of a new value, the child of the old value that it replaces. Members
 * correspond by key, and elements of a list of type map by their keys. Other elements replace none.
 * Thread: owner only.
 */
#include "base/json_index.h"
#include "server/resources/custom/schema/check/canonical.h"
#include "server/resources/custom/schema/compile/node.h"

struct hfd_causes;

struct hfd_correlation {
        const struct hf__json *old;        /* the old value; NULL = none corresponds */
        const struct hf__json *next;       /* the member of old after the one that was found last */
        struct hf__json_index *index;      /* of members; owned; NULL = not needed yet */
        struct hfd_identities *identities; /* of elements; owned; NULL = not needed yet */
        const struct hfd_custom_node *structure; /* NULL = not known */
        struct hfd_causes *causes;               /* borrowed; they note if memory runs out */
};

/* structure: the node of the value in the structure of the schema, which says how its elements are
 * identified. All arguments are borrowed until hfd_correlation_done. */
void hfd_correlation_init(struct hfd_correlation *correlation,
                          const struct hfd_custom_node *structure, const struct hf__json *old,
                          struct hfd_causes *causes);
void hfd_correlation_done(struct hfd_correlation *correlation);
/* The old member or element. NULL: there is none, or memory ran out, which the causes say. */
const struct hf__json *hfd_correlation_member(struct hfd_correlation *correlation, const char *key);
const struct hf__json *hfd_correlation_element(struct hfd_correlation *correlation,
                                               const struct hf__json *element);
/* The node of a member in the structure; NULL = not known. structure may be NULL. */
const struct hfd_custom_node *hfd_custom_member(const struct hfd_custom_node *structure,
                                                const char *key);
