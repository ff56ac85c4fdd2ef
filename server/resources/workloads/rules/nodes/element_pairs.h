/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds repeated elements in a list whose elements must differ in at least one of two members, such
 * as the key and the effect of a node's taints. Pure. Thread: owner only. */
#include <stdbool.h>
#include <stddef.h>

#include "base/json_index.h"

struct hf__json;
struct hfd_causes;
struct hfd_schema;

struct hfd_element_pairs {
        struct hf__json *texts;      /* owned: an array with a text for each element */
        const struct hf__json *next; /* the text of the next element; NULL = no more */
        struct hf__json_index by_text;
        size_t n_seen; /* elements before `next` */
};

/* first, second: the members, which are texts. An absent one counts as "". The list may be freed
 * afterwards. 0 or -ENOMEM; after success the caller calls hfd_element_pairs_done. */
int hfd_element_pairs_init(struct hfd_element_pairs *pairs, const struct hf__json *list,
                           const char *first, const char *second);
void hfd_element_pairs_done(struct hfd_element_pairs *pairs);
/* Looks at the next element, which must exist; the first call looks at the first one. Returns
 * whether an earlier element has the same pair. */
bool hfd_element_pairs_repeat(struct hfd_element_pairs *pairs);
/* Adds the cause "Duplicate value: ELEMENT", with the detail after it (NULL = none). The element is
 * shown as Kubernetes' Go type. schema: that of the list. */
void hfd_element_refuse_repeated(const struct hfd_schema *schema, const struct hf__json *element,
                                 const char *field, const char *detail, struct hfd_causes *causes);
