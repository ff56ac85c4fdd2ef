/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds elements that occur twice in lists of type set or map.
 *
 * Invariants: as in Kubernetes, the second occurrence of an element gets a cause, and further ones
 * do not. The time grows with n log n: equal elements are neighbours after sorting (canonical.h).
 */
#include "server/resources/custom/schema/check/list_types.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/custom/schema/check/canonical.h"

/* The cause shows a text in quotes, and anything else as its identity. */
static void report_repeated(const struct hfd_check_report *report, const struct hfd_place *list,
                            const struct hfd_identity *identity) {
        const struct hfd_place place = {.up = list, .index = identity->index};
        char field[HFD_REPORT_PATH_MAX], text[HFD_REPORT_VALUE_MAX];

        hfd_check_report_field(report, &place, field);
        if (hf__json_is_string(identity->element))
                hfd_check_report_value(identity->element, text);
        hfd_cause_duplicate(report->causes, field,
                            hf__json_is_string(identity->element) ? text : identity->text);
}

/* For qsort: pointers to identities by the index of the element. */
static int compare_places(const void *a, const void *b) {
        const struct hfd_identity *x = *(const struct hfd_identity *const *)a,
                                  *y = *(const struct hfd_identity *const *)b;

        return (x->index > y->index) - (x->index < y->index);
}

/* Collects the second element of each run of equal ones into `list`, in the order of the elements,
 * and returns their number. `list` has room for all identities. */
static size_t find_repeated(const struct hfd_identities *identities,
                            const struct hfd_identity **list) {
        size_t n = 0;

        for (size_t i = 1; i < identities->n; i++) {
                const struct hfd_identity *identity = &identities->list[i];
                if (strcmp(identity[-1].text, identity->text) != 0)
                        continue;
                if (i >= 2 && strcmp(identity[-2].text, identity->text) == 0)
                        continue;
                list[n++] = identity;
        }
        qsort(list, n, sizeof(void *), compare_places);
        return n;
}

/* Whether no element is repeated. keys: of a list of type map; NULL: the list is a set. */
static bool check_unique(const struct hfd_check_report *report, bool records,
                         const struct hf__json *array, const char *const *keys,
                         const struct hfd_place *place) {
        struct hfd_identities identities;
        const struct hfd_identity **repeated = NULL;
        size_t n = 0;
        int r;

        if (!hf__json_first(array) || !hf__json_next(hf__json_first(array)))
                return true;
        r = hfd_identities_init(&identities, array, keys);
        if (r == 0)
                repeated = malloc(identities.n * sizeof(void *));
        if (repeated)
                n = find_repeated(&identities, repeated);
        else
                hfd_causes_no_memory(report->causes);
        for (size_t i = 0; i < n && records && !hfd_check_report_is_full(report); i++)
                report_repeated(report, place, repeated[i]);
        bool valid = repeated && n == 0;
        free(repeated);
        hfd_identities_done(&identities);
        return valid;
}

/* The elements of a list of type map must be objects before they can be compared by their keys.
 * Null counts as an object without keys. Only the first other element gets a cause. */
static bool check_map(const struct hfd_check_report *report, bool records,
                      const struct hfd_custom_node *node, const struct hf__json *array,
                      const struct hfd_place *place) {
        struct hfd_place element = {.up = place};
        char field[HFD_REPORT_PATH_MAX], text[HFD_REPORT_VALUE_MAX];

        for (const struct hf__json *m = hf__json_first(array); m;
             m = hf__json_next(m), element.index++) {
                if (hf__json_is_object(m) || hf__json_is_null(m))
                        continue;
                if (records && !hfd_check_report_is_full(report)) {
                        hfd_check_report_field(report, &element, field);
                        hfd_check_report_value(m, text);
                        hfd_cause_invalid(report->causes, field, text,
                                          "must be an object for an array of list-type map");
                }
                return false;
        }
        return check_unique(report, records, array, node->fields->list_keys, place);
}

static bool check_elements(const struct hfd_check_report *report, bool records,
                           const struct hfd_custom_node *node, const struct hf__json *array,
                           const struct hfd_place *place) {
        bool valid = true;
        size_t i = 0;

        if (node->list_type == HFD_LIST_SET)
                valid = check_unique(report, records, array, NULL, place);
        else if (node->list_type == HFD_LIST_MAP && node->fields->list_keys)
                valid = check_map(report, records, node, array, place);
        for (const struct hf__json *m = hf__json_first(array); m && (valid || records);
             m = hf__json_next(m), i++) {
                const struct hfd_place below = {.up = place, .index = i};
                if (!node->items)
                        break;
                valid = hfd_check_list_types(report, records, node->items, m, &below) && valid;
        }
        return valid;
}

bool hfd_check_list_types(const struct hfd_check_report *report, bool records,
                          const struct hfd_custom_node *node, const struct hf__json *value,
                          const struct hfd_place *place) {
        bool valid = true;

        if (!node)
                return true;
        if (hf__json_is_array(value))
                return check_elements(report, records, node, value, place);
        if (!hf__json_is_object(value))
                return true;
        for (const struct hf__json *m = hf__json_first(value); m && (valid || records);
             m = hf__json_next(m)) {
                const struct hfd_custom_property *property =
                        hfd_custom_property(node, hf__json_key(m));
                const struct hfd_place below = {.up = place,
                                                .key = hf__json_key(m),
                                                .in = property ? node->fields : NULL};
                valid = hfd_check_list_types(report, records,
                                             property ? property->node : node->values, m, &below) &&
                        valid;
        }
        return valid;
}
