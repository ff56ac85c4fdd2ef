/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goes through an object and its old version, and evaluates the rules of each part.
 *
 * Invariants: a part is compared with its counterpart in the old object only where there is one:
 * the same property, the same key of a map, the same keys of a list that is a map. Counterparts are
 * found in logarithmic time. A part makes a value only if it cannot take it from the part above
 * (part_values.h). When the uppermost part that has made values has been checked, with all parts
 * below it, all values are freed. The recursion follows the object and nested allOf, and its frames
 * are small, because the large ones, those of hfd_rule_run_node, are not part of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/custom/rules/custom_rules.h"
#include "server/resources/custom/rules/part_values.h"
#include "server/resources/custom/rules/rule_node.h"
#include "server/resources/custom/rules/rule_run.h"
#include "server/resources/custom/rules/rule_schema.h"

/* kube-apiserver's limit for all rules of one object together. The estimates that limit the rules
 * of a definition do not know the object, and may be too low. */
#define OBJECT_COST_MAX 10000000
/* The same for steps of work, which costs do not count: about half a second. A rule may be
 * evaluated for each of thousands of elements, each time with much work and little cost. The limit
 * is enough to search a whole object of 3 MiB for some ten patterns. */
#define OBJECT_WORK_MAX 30000000

/* The members of an object, or the elements of a list that is a map, in the order of their keys. */
struct index {
        struct index_entry *entries;
        size_t n;
};

struct index_entry {
        const char *key;
        char *made; /* the key, if the index owns it */
        const struct hf__json *json;
        size_t place; /* in the container: of equal keys the first one counts */
};

static void check_node(struct hfd_rule_run *run, const struct hfd_rule_node *node,
                       const struct hf__json *object, const struct hf__json *old,
                       struct hfd_rule_correlation correlation, struct hfd_part_values values);

/* ---- the old object ---- */

static int compare_entries(const void *a, const void *b) {
        const struct index_entry *one = a;
        const struct index_entry *other = b;
        int r = strcmp(one->key, other->key);

        return r != 0 ? r : (one->place > other->place) - (one->place < other->place);
}

static void index_done(struct index *index) {
        for (size_t i = 0; i < index->n; i++)
                free(index->entries[i].made);
        free(index->entries);
        *index = (struct index){.entries = NULL};
}

/* The text of the keys of an element: their JSON, in which texts have quotes, so that no two
 * combinations of keys have the same text. NULL: one of them is missing or no scalar, or out of
 * memory (*ret_failed). */
static char *key_of(const struct hfd_rule_node *list, const struct hf__json *element,
                    bool *ret_failed) {
        HF__CLEANUP(hf__strbuf_done) struct hf__strbuf text = {0};

        for (size_t i = 0; i < list->n_keys; i++) {
                const struct hf__json *key = hf__json_get(element, list->keys[i]);

                if (!key || hf__json_is_null(key) || hf__json_is_object(key) ||
                    hf__json_is_array(key))
                        return NULL;
                hf__strbuf_putc(&text, ' ');
                hf__json_print(key, &text);
        }
        if (text.error != 0) {
                *ret_failed = true;
                return NULL;
        }
        return HF__TAKE(text.data);
}

/* An index of old; of elements with the same keys the first counts. list NULL: old is an object. */
static void index_init(struct index *index, struct hfd_rule_run *run,
                       const struct hfd_rule_node *list, const struct hf__json *old) {
        size_t place = 0;

        *index = (struct index){.entries = NULL};
        if (!hf__json_first(old) || (list && list->n_keys == 0))
                return;
        index->entries = calloc(hf__json_count(old), sizeof *index->entries);
        run->failed = run->failed || !index->entries;
        for (const struct hf__json *m = hf__json_first(old); m && !run->failed;
             m = hf__json_next(m)) {
                struct index_entry *entry = &index->entries[index->n];

                entry->made = list ? key_of(list, m, &run->failed) : NULL;
                entry->key = list ? entry->made : hf__json_key(m);
                entry->json = m;
                entry->place = place++;
                index->n += entry->key ? 1 : 0;
        }
        if (index->n > 0)
                qsort(index->entries, index->n, sizeof *index->entries, compare_entries);
        run->stopped = run->stopped || run->failed;
}

static const struct index_entry *index_find(const struct index *index, const char *key) {
        size_t low = 0;
        size_t high = index->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(index->entries[middle].key, key) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < index->n && strcmp(index->entries[low].key, key) == 0 ? &index->entries[low]
                                                                           : NULL;
}

/* ---- the parts of an object ---- */

/* Goes from the correlation of a part to that of one below, whose values are `pair`. */
static struct hfd_rule_correlation correlation_below(struct hfd_rule_correlation above,
                                                     struct hfd_rule_pair *pair,
                                                     const char *property) {
        if (!above.current)
                return above;
        /* Without `nearest`, the part above is the whole object. Both objects are in the version of
         * the request, whatever was sent and stored. So apiVersion and kind would always equal
         * their counterparts, and Kubernetes gives them none. */
        if (!above.nearest && property &&
            (strcmp(property, "apiVersion") == 0 || strcmp(property, "kind") == 0))
                return (struct hfd_rule_correlation){.current = NULL};
        return (struct hfd_rule_correlation){.current = pair->old ? pair : NULL,
                                             .nearest = above.current};
}

/* A part that is checked: its object and old version, and what its parts need of it. */
struct checked {
        const struct hf__json *object;
        const struct hf__json *old; /* NULL = none */
        struct hfd_rule_correlation correlation;
        const struct hfd_part_values *values;
};

/* Checks the part `json`, which is at the position `at` of the part above. property: its name in an
 * object; NULL: it is an element of a list. found: its old version; NULL = none. */
static void check_part(struct hfd_rule_run *run, const struct hfd_rule_node *node,
                       const struct checked *above, const char *property,
                       const struct hf__json *json, size_t at, const struct index_entry *found) {
        struct hfd_rule_pair pair = {.object = json, .old = found ? found->json : NULL};

        /* If keys occur twice, an element may get the old form of another one. It may then differ
         * from that form even if both lists are equal. */
        if (found && (property || found->place == at))
                pair.around = above->correlation.current;
        check_node(run, node, pair.object, pair.old,
                   correlation_below(above->correlation, &pair, property),
                   hfd_part_values_below(above->values, property, at,
                                         found ? found->place : SIZE_MAX));
}

static const struct hfd_rule_node *property_of(const struct hfd_rule_node *node, const char *name) {
        size_t low = 0;
        size_t high = node->n_properties;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int r = strcmp(node->properties[middle]->name, name);

                if (r == 0)
                        return node->properties[middle];
                if (r < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

/* A property with rules has a node of its own; other members have that of additionalProperties, if
 * there is one. Members without a node are passed over: they need neither a path nor a search for
 * their old version. */
static void check_members(struct hfd_rule_run *run, const struct hfd_rule_node *node,
                          const struct checked *part) {
        size_t n = run->path.n, at = 0;
        struct index index;

        index_init(&index, run, NULL, hf__json_is_object(part->old) ? part->old : NULL);
        for (const struct hf__json *m = hf__json_first(part->object); m && !run->stopped;
             m = hf__json_next(m), at++) {
                const char *key = hf__json_key(m);
                const struct hfd_rule_node *child = property_of(node, key);

                if (!child && !node->values)
                        continue;
                if (child)
                        hf__strbuf_puts(&run->path, n > 0 ? "." : "");
                else
                        hf__strbuf_putc(&run->path, '[');
                hf__strbuf_puts(&run->path, key);
                if (!child)
                        hf__strbuf_putc(&run->path, ']');
                check_part(run, child ? child : node->values, part, key, m, at,
                           index_find(&index, key));
                hfd_rule_path_cut(&run->path, n);
        }
        index_done(&index);
}

static void check_elements(struct hfd_rule_run *run, const struct hfd_rule_node *node,
                           const struct checked *part) {
        size_t n = run->path.n, at = 0;
        struct index index;

        index_init(&index, run, node, hf__json_is_array(part->old) ? part->old : NULL);
        for (const struct hf__json *m = hf__json_first(part->object); m && !run->stopped;
             m = hf__json_next(m), at++) {
                char *key = index.n > 0 ? key_of(node, m, &run->failed) : NULL;
                const struct index_entry *found = key ? index_find(&index, key) : NULL;

                free(key);
                hf__strbuf_printf(&run->path, "[%zu]", at);
                check_part(run, node->items, part, NULL, m, at, found);
                hfd_rule_path_cut(&run->path, n);
        }
        index_done(&index);
}

static void check_node(struct hfd_rule_run *run, const struct hfd_rule_node *node,
                       const struct hf__json *object, const struct hf__json *old,
                       struct hfd_rule_correlation correlation, struct hfd_part_values values) {
        const struct checked part = {object, hf__json_is_null(old) ? NULL : old, correlation,
                                     &values};
        const bool had_values = run->has_values;

        /* The rules of the part above deal with null. */
        if (hf__json_is_null(object) || run->stopped)
                return;
        hfd_rule_run_node(run, node, object, part.old, correlation, &values);
        /* As in Kubernetes, a rule in an allOf is reported even if its part is as it was, unless
         * the part above is as it was too. So the pair of this part is not passed on. */
        for (size_t i = 0; i < node->n_all_of; i++) {
                /* What a branch makes is no use to the next one, and must not pile up. */
                const struct hf__arena_mark mark = hf__arena_mark(&run->values);
                check_node(run, node->all_of[i], object, part.old,
                           (struct hfd_rule_correlation){.nearest = correlation.nearest}, values);
                hf__arena_rewind(&run->values, mark);
        }
        if (hf__json_is_object(object) && (node->n_properties > 0 || node->values))
                check_members(run, node, &part);
        else if (hf__json_is_array(object) && node->items)
                check_elements(run, node, &part);
        /* The uppermost part that has made values frees those of all parts below. */
        if (!had_values && run->has_values) {
                hf__arena_deinit(&run->values);
                run->has_values = false;
        }
}

/* Whether the object is so wrong that rules would say nothing useful, as in kube-apiserver: a rule
 * may rely on types, on required fields and on limits of size, on which its estimated cost is
 * based. */
static bool is_blocked(const struct hfd_causes *causes) {
        static const char *const reasons[] = {"FieldValueNotSupported", "FieldValueRequired",
                                              "FieldValueTooLong", "FieldValueTooMany",
                                              "FieldValueTypeInvalid"};

        for (size_t i = 0; i < causes->n; i++)
                for (size_t k = 0; k < sizeof reasons / sizeof reasons[0]; k++)
                        if (strcmp(causes->items[i].reason, reasons[k]) == 0)
                                return true;
        return false;
}

int hfd_custom_rules_check(const struct hfd_custom_rules *rules, const struct hf__json *object,
                           const struct hf__json *old, struct hfd_causes *causes) {
        struct hfd_rule_pair pair = {.object = object, .old = old};
        struct hfd_rule_run run = {.causes = causes,
                                   .budget = OBJECT_COST_MAX,
                                   .work_budget = OBJECT_WORK_MAX};

        if (!rules)
                return 0;
        if (is_blocked(causes)) {
                hfd_cause_invalid(causes, "<nil>", "null",
                                  "some validation rules were not checked because the object was "
                                  "invalid; correct the existing errors to complete validation");
                return 0;
        }
        hf__arena_init(&run.values);
        hf__arena_init(&run.evaluation);
        check_node(&run, rules->root, object, old,
                   (struct hfd_rule_correlation){.current = old ? &pair : NULL},
                   (struct hfd_part_values){.declared = NULL});
        hf__arena_deinit(&run.values);
        hf__arena_deinit(&run.evaluation);
        hf__strbuf_done(&run.path);
        return run.failed || run.path.error != 0 ? -ENOMEM : 0;
}
