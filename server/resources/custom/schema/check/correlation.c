/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the old children that the children of a new value replace (correlation.h).
 *
 * Invariant: all children together cost about as much as sorting them, n log n. Members mostly have
 * the same order in both values, so the next old member is tried first, and an index is made only
 * when that fails.
 */
#include "server/resources/custom/schema/check/correlation.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"

void hfd_correlation_init(struct hfd_correlation *correlation,
                          const struct hfd_custom_node *structure, const struct hf__json *old,
                          struct hfd_causes *causes) {
        memset(correlation, 0, sizeof *correlation);
        correlation->structure = structure;
        correlation->old = old;
        correlation->causes = causes;
        correlation->next = hf__json_first(old);
}

void hfd_correlation_done(struct hfd_correlation *correlation) {
        if (correlation->index)
                hf__json_index_done(correlation->index);
        if (correlation->identities)
                hfd_identities_done(correlation->identities);
        free(correlation->index);
        free(correlation->identities);
}

const struct hf__json *hfd_correlation_member(struct hfd_correlation *correlation,
                                              const char *key) {
        const struct hf__json *member = correlation->next;

        if (!hf__json_is_object(correlation->old))
                return NULL;
        if (!member || strcmp(hf__json_key(member), key) != 0) {
                if (!correlation->index) {
                        correlation->index = calloc(1, sizeof *correlation->index);
                        if (!correlation->index) {
                                hfd_causes_no_memory(correlation->causes);
                                return NULL;
                        }
                        (void)hfd_causes_check(correlation->causes,
                                               hf__json_index_init(correlation->index,
                                                                   correlation->old, NULL));
                }
                const struct hf__json_index_entry *entry =
                        hf__json_index_find(correlation->index, key);
                member = entry ? entry->item : NULL;
        }
        if (member)
                correlation->next = hf__json_next(member);
        return member;
}

/* The identities of the old elements are made when the first element asks for one. */
const struct hf__json *hfd_correlation_element(struct hfd_correlation *correlation,
                                               const struct hf__json *element) {
        const struct hfd_custom_node *structure = correlation->structure;
        const struct hf__json *found = NULL;
        struct hf__strbuf text = {0};

        if (!structure || structure->list_type != HFD_LIST_MAP || !structure->fields->list_keys ||
            !hf__json_is_array(correlation->old) || !hf__json_is_object(element))
                return NULL;
        if (!correlation->identities) {
                correlation->identities = calloc(1, sizeof *correlation->identities);
                if (!correlation->identities) {
                        hfd_causes_no_memory(correlation->causes);
                        return NULL;
                }
                int r = hfd_identities_init(correlation->identities, correlation->old,
                                            structure->fields->list_keys);
                if (!hfd_causes_check(correlation->causes, r))
                        correlation->identities->n = 0;
        }
        if (hfd_causes_check(correlation->causes,
                             hfd_identity_print(element, structure->fields->list_keys, &text)))
                found = hfd_identities_find(correlation->identities, text.data);
        hf__strbuf_done(&text);
        return hf__json_is_object(found) ? found : NULL;
}

const struct hfd_custom_node *hfd_custom_member(const struct hfd_custom_node *structure,
                                                const char *key) {
        const struct hfd_custom_property *property = hfd_custom_property(structure, key);

        if (property)
                return property->node;
        return structure ? structure->values : NULL;
}
