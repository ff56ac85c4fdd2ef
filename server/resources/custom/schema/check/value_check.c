/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks values against nodes, the parts of a compiled schema.
 *
 * How alternatives are reported: each one is first checked without adding causes. If an anyOf or
 * oneOf has no valid alternative, the best one is checked again and adds its causes. So no causes
 * have to be collected, and a list of any length costs no memory.
 *
 * Ratcheting, as in Kubernetes: if a part is invalid, and the old object has an equal part at the
 * same place, the causes of the part are removed again. Value validations (allOf and so on) belong
 * to the part that contains them; the children below them are parts of their own.
 *
 * Invariant: the recursion is as deep as object and schema are nested. Functions with large buffers
 * for texts are not inlined into the functions that recurse.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/custom/schema/check/correlation.h"
#include "server/resources/custom/schema/check/value_check.h"

/* At most this many required names are looked up in an object without an index. */
#define FEW 8
/* The most work that all searches for patterns in one object may take is the sum of two amounts:
 * PATTERN_WORK_PER_BYTE for each byte of its texts, which is enough for 64 small patterns or for
 * one of about 170 alternatives; and PATTERN_WORK_MIN, so that small objects do not reach the limit
 * in practice. The unit is that of hf__cel_regex_find, about 20 ns. An object that needs more is
 * refused, except in some updates of only its metadata and status (custom_schema.c). */
#define PATTERN_WORK_PER_BYTE 64
#define PATTERN_WORK_MIN      ((uint64_t)1 << 22)

/* The state that the checks of one value share (see hfd_check_value). */
struct scope {
        struct hfd_check *check;
        const struct hfd_custom_node *structure;
        const struct hf__json *old;
};

static bool check_node(const struct scope *scope, const struct hfd_custom_node *node,
                       struct hfd_checked *checked);

/* ---- anyOf, oneOf, allOf, not ---- */

/* Checks an alternative. records: the check may add causes. *ret_matched: its n_matched. */
static bool try_schema(const struct scope *scope, const struct hfd_custom_node *node,
                       const struct hfd_checked *checked, bool records, size_t *ret_matched) {
        struct hfd_checked trial = *checked;

        trial.n_matched = 0;
        trial.records = records && checked->records;
        bool valid = check_node(scope, node, &trial);
        *ret_matched = trial.n_matched;
        return valid;
}

/* Adds a cause with the path in quotes and a text. */
__attribute__((noinline)) static void report_path_message(const struct scope *scope,
                                                          const struct hfd_checked *checked,
                                                          const char *text) {
        char path[HFD_REPORT_PATH_MAX], quoted[HFD_REPORT_VALUE_MAX];

        if (!checked->records || hfd_check_report_is_full(&scope->check->report))
                return;
        hfd_check_report_path(checked->place, path);
        hfd_quote(path, quoted, sizeof quoted);
        hfd_check_report_message(&scope->check->report, "%s %s", quoted, text);
}

/* The result of trying the alternatives of anyOf or oneOf. */
struct trials {
        size_t n_valid;
        size_t n_first;                     /* n_matched of the first valid alternative */
        const struct hfd_custom_node *best; /* NULL = an alternative is valid */
        size_t n_best;                      /* n_matched of `best` */
};

static struct trials try_schemas(const struct scope *scope, const struct hfd_custom_limit *limit,
                                 const struct hfd_checked *checked, bool stops_at_first) {
        struct trials trials = {0};

        for (uint32_t i = 0; i < limit->n; i++) {
                size_t n;
                if (try_schema(scope, limit->as.nodes[i], checked, false, &n)) {
                        if (trials.n_valid++ == 0)
                                trials.n_first = n;
                        trials.best = NULL;
                        if (stops_at_first)
                                break;
                } else if (trials.n_valid == 0 && (!trials.best || n > trials.n_best)) {
                        trials.best = limit->as.nodes[i];
                        trials.n_best = n;
                }
        }
        return trials;
}

/* Reports why the best alternative is refused. */
static void report_best(const struct scope *scope, const struct trials *trials,
                        struct hfd_checked *checked) {
        size_t ignored;

        checked->n_matched += trials->n_best;
        if (trials->best && checked->records)
                (void)try_schema(scope, trials->best, checked, true, &ignored);
}

static bool check_any_of(const struct scope *scope, const struct hfd_custom_limit *limit,
                         struct hfd_checked *checked) {
        const struct trials trials = try_schemas(scope, limit, checked, true);

        if (trials.n_valid > 0) {
                checked->n_matched += trials.n_first;
                return true;
        }
        report_path_message(scope, checked, "must validate at least one schema (anyOf)");
        report_best(scope, &trials, checked);
        return false;
}

static bool check_one_of(const struct scope *scope, const struct hfd_custom_limit *limit,
                         struct hfd_checked *checked) {
        const struct trials trials = try_schemas(scope, limit, checked, false);
        char text[120];

        if (trials.n_valid == 1) {
                checked->n_matched += trials.n_first;
                return true;
        }
        if (trials.n_valid == 0)
                (void)snprintf(text, sizeof text,
                               "must validate one and only one schema (oneOf). Found none valid");
        else
                (void)snprintf(text, sizeof text,
                               "must validate one and only one schema (oneOf). Found %zu valid "
                               "alternatives",
                               trials.n_valid);
        report_path_message(scope, checked, text);
        if (trials.n_valid == 0)
                report_best(scope, &trials, checked);
        return false;
}

static bool check_all_of(const struct scope *scope, const struct hfd_custom_limit *limit,
                         struct hfd_checked *checked) {
        size_t n_valid = 0;

        for (uint32_t i = 0; i < limit->n; i++) {
                size_t n;
                n_valid += try_schema(scope, limit->as.nodes[i], checked, true, &n);
                checked->n_matched += n;
        }
        if (n_valid == limit->n)
                return true;
        report_path_message(scope, checked,
                            n_valid == 0 ? "must validate all the schemas (allOf). None validated"
                                         : "must validate all the schemas (allOf)");
        return false;
}

/* The limits are asked for in the order of their kinds (hfd_next_limit). The 2 is what Kubernetes'
 * validator counts for this step. */
static bool check_combinations(const struct scope *scope, const struct hfd_custom_node *node,
                               struct hfd_checked *checked) {
        const struct hfd_custom_limit *limit;
        uint32_t at = 0;
        bool valid = true;
        size_t n;

        limit = hfd_next_limit(node, &at, HFD_LIMIT_ANY_OF);
        if (limit)
                valid = check_any_of(scope, limit, checked);
        limit = hfd_next_limit(node, &at, HFD_LIMIT_ONE_OF);
        if (limit)
                valid = check_one_of(scope, limit, checked) && valid;
        limit = hfd_next_limit(node, &at, HFD_LIMIT_ALL_OF);
        if (limit)
                valid = check_all_of(scope, limit, checked) && valid;
        limit = hfd_next_limit(node, &at, HFD_LIMIT_NOT);
        if (limit && try_schema(scope, limit->as.nodes[0], checked, false, &n)) {
                report_path_message(scope, checked, "must not validate the schema (not)");
                valid = false;
        }
        checked->n_matched += 2;
        return valid;
}

/* ---- arrays and objects ---- */

/* Checks a member or an element. old: the child that it replaces; NULL = none. */
static bool check_child(const struct scope *scope, const struct hfd_custom_node *node,
                        const struct hfd_custom_node *structure, const struct hf__json *old,
                        const struct hf__json *child, const struct hfd_place *place,
                        struct hfd_checked *checked) {
        struct hfd_checked below = {.value = child, .place = place, .records = checked->records};
        bool valid = hfd_check_value(scope->check, node, structure, old, &below);

        checked->n_matched += below.n_matched;
        /* If a member differs from its old one, so does the object. An element proves nothing about
         * its list: where two elements have the same keys, `old` may be another element than the
         * one that had this place. */
        checked->differs = checked->differs || (place->key && below.differs);
        return valid;
}

/* *ret_n: the number of elements. */
static bool check_items(const struct scope *scope, const struct hfd_custom_node *node,
                        struct hfd_checked *checked, size_t *ret_n) {
        struct hfd_place place = {.up = checked->place};
        struct hfd_correlation correlation;
        bool valid = true;

        hfd_correlation_init(&correlation, scope->structure, scope->old,
                             scope->check->report.causes);
        for (const struct hf__json *m = hf__json_first(checked->value); m;
             m = hf__json_next(m), place.index++) {
                if (!node->items)
                        continue;
                const struct hf__json *old = hfd_correlation_element(&correlation, m);
                valid = check_child(scope, node->items,
                                    scope->structure ? scope->structure->items : NULL, old, m,
                                    &place, checked) &&
                        valid;
        }
        hfd_correlation_done(&correlation);
        *ret_n = place.index;
        return valid;
}

static bool check_array(const struct scope *scope, const struct hfd_custom_node *node,
                        struct hfd_checked *checked) {
        const struct hfd_check_report *report = &scope->check->report;
        const struct hfd_custom_limit *limit;
        uint32_t at = 0;
        size_t n;
        bool valid = check_items(scope, node, checked, &n);

        checked->n_matched += 2;
        limit = hfd_next_limit(node, &at, HFD_LIMIT_MIN_ITEMS);
        if (limit && (int64_t)n < limit->as.count) {
                if (checked->records)
                        hfd_check_report_count(report, checked->place, n,
                                               "should have at least %lld items",
                                               (long long)limit->as.count);
                valid = false;
        }
        limit = hfd_next_limit(node, &at, HFD_LIMIT_MAX_ITEMS);
        if (limit && (int64_t)n > limit->as.count) {
                if (checked->records)
                        hfd_check_report_too_many(report, checked->place, n, limit->as.count);
                valid = false;
        }
        return valid;
}

/* Members are counted only if a limit may need it, because that goes through all of them. The last
 * limit of a node shows whether it can have a MAX_PROPERTIES. */
static bool check_size(const struct scope *scope, const struct hfd_custom_node *node,
                       const struct hfd_checked *checked) {
        const struct hfd_check_report *report = &scope->check->report;
        uint32_t at = 0;
        const struct hfd_custom_limit *limit = hfd_next_limit(node, &at, HFD_LIMIT_MIN_PROPERTIES);
        bool valid = true;
        size_t n = 0;

        if (limit || (node->n_limits > 0 &&
                      node->limits[node->n_limits - 1].kind >= HFD_LIMIT_MAX_PROPERTIES))
                n = hf__json_count(checked->value);
        if (limit && (int64_t)n < limit->as.count) {
                if (checked->records)
                        hfd_check_report_count(report, checked->place, n,
                                               "should have at least %lld properties",
                                               (long long)limit->as.count);
                valid = false;
        }
        limit = hfd_next_limit(node, &at, HFD_LIMIT_MAX_PROPERTIES);
        if (limit && (int64_t)n > limit->as.count) {
                if (checked->records)
                        hfd_check_report_too_many(report, checked->place, n, limit->as.count);
                valid = false;
        }
        return valid;
}

__attribute__((noinline)) static void
report_forbidden(const struct scope *scope, const struct hfd_checked *checked, const char *key) {
        char path[HFD_REPORT_PATH_MAX], quoted[HFD_REPORT_VALUE_MAX], detail[400];

        if (!checked->records || hfd_check_report_is_full(&scope->check->report))
                return;
        hfd_check_report_path(checked->place, path);
        hfd_quote(key, quoted, sizeof quoted);
        (void)snprintf(detail, sizeof detail, "%s.%.120s in body is a forbidden property", path,
                       key);
        hfd_check_report_detail(&scope->check->report, checked->place, quoted, detail);
}

static bool check_required(const struct scope *scope, const struct hfd_custom_node *node,
                           const struct hfd_checked *checked) {
        uint32_t at = 0;
        const struct hfd_custom_limit *limit = hfd_next_limit(node, &at, HFD_LIMIT_REQUIRED);
        struct hf__json_index index;
        bool valid = true;

        if (!limit)
                return true;
        const bool few = limit->n <= FEW;
        if (!few) /* if memory runs out, no name is found, and the causes say why */
                (void)hfd_causes_check(scope->check->report.causes,
                                       hf__json_index_init(&index, checked->value, NULL));
        for (uint32_t i = 0; i < limit->n; i++) {
                const char *name = limit->as.names[i];
                if (few ? hf__json_get(checked->value, name) != NULL
                        : hf__json_index_find(&index, name) != NULL)
                        continue;
                const struct hfd_place place = {.up = checked->place, .key = name};
                valid = false;
                if (checked->records)
                        hfd_check_report_required(&scope->check->report, &place);
        }
        if (!few)
                hf__json_index_done(&index);
        return valid;
}

static bool check_members(const struct scope *scope, const struct hfd_custom_node *node,
                          struct hfd_checked *checked) {
        struct hfd_correlation correlation;
        bool valid = true;

        hfd_correlation_init(&correlation, scope->structure, scope->old,
                             scope->check->report.causes);
        for (const struct hf__json *m = hf__json_first(checked->value); m; m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                const struct hfd_custom_property *property = hfd_custom_property(node, key);
                const struct hfd_place place = {.up = checked->place, .key = key};
                const struct hfd_custom_node *below = property ? property->node : node->values,
                                             *structure = hfd_custom_member(scope->structure, key);
                if (!below) {
                        if (node->additional == HFD_CUSTOM_ADDITIONAL_FORBIDDEN) {
                                report_forbidden(scope, checked, key);
                                valid = false;
                        }
                        continue;
                }
                const struct hf__json *old =
                        structure ? hfd_correlation_member(&correlation, key) : NULL;
                /* At the root, kind and apiVersion are never ratcheted: the server sets them to
                 * those of the request in both objects, so they are always equal. */
                if (!checked->place->up &&
                    (strcmp(key, "kind") == 0 || strcmp(key, "apiVersion") == 0))
                        old = NULL;
                valid = check_child(scope, below, structure, old, m, &place, checked) && valid;
        }
        hfd_correlation_done(&correlation);
        return valid;
}

/* ---- values ---- */

/* All checks of one value against one node. The order is that of Kubernetes' causes. */
static bool check_node(const struct scope *scope, const struct hfd_custom_node *node,
                       struct hfd_checked *checked) {
        struct hfd_check *check = scope->check;
        const struct hf__json *value = checked->value;
        bool valid = hfd_check_type(check, node, checked);

        if (hf__json_is_null(value))
                return hfd_check_enum(check, node, checked) && valid;
        valid = check_combinations(scope, node, checked) && valid;
        if (hf__json_is_string(value))
                valid = hfd_check_text(check, node, checked) && valid;
        if (hf__json_is_number(value))
                valid = hfd_check_number(check, node, checked) && valid;
        if (hf__json_is_array(value))
                valid = check_array(scope, node, checked) && valid;
        valid = hfd_check_enum(check, node, checked) && valid;
        checked->n_matched++;
        if (hf__json_is_object(value)) {
                valid = check_size(scope, node, checked) && valid;
                valid = check_members(scope, node, checked) && valid;
                valid = check_required(scope, node, checked) && valid;
                checked->n_matched++;
        }
        checked->n_matched++;
        return valid;
}

bool hfd_check_value(struct hfd_check *check, const struct hfd_custom_node *node,
                     const struct hfd_custom_node *structure, const struct hf__json *old,
                     struct hfd_checked *checked) {
        const struct scope scope = {check, structure, old};
        const size_t n_before = check->report.causes->n;

        if (check_node(&scope, node, checked))
                return true;
        /* If a member differs, so does the object. Otherwise the part is compared with the old one.
         * hfd_compared_equal remembers its results for objects and lists, so each of them is
         * compared only once, however many parts around it are invalid. */
        if (old && !checked->differs)
                checked->differs = !hfd_compared_equal(&check->compared, check->report.causes,
                                                       checked->value, old);
        if (!old || checked->differs)
                return false;
        check->report.causes->n = n_before;
        return true;
}

/* The bytes of all texts in a value. */
static uint64_t count_bytes(const struct hf__json *value) {
        uint64_t n = hf__json_is_string(value) ? strlen(hf__json_text(value)) : 0;

        for (const struct hf__json *m = hf__json_first(value); m; m = hf__json_next(m))
                n += count_bytes(m);
        return n;
}

void hfd_check_init(struct hfd_check *check, struct hfd_causes *causes, const char *prefix,
                    const struct hf__json *value) {
        memset(&check->run, 0, sizeof check->run);
        hf__arena_init(&check->arena);
        hfd_compared_init(&check->compared, &check->arena);
        check->report = (struct hfd_check_report){.causes = causes, .prefix = prefix};
        check->run.arena = &check->arena;
        check->run.cost_limit = UINT64_MAX;
        check->run.work_limit = PATTERN_WORK_MIN + PATTERN_WORK_PER_BYTE * count_bytes(value);
        check->run.bytes_limit = SIZE_MAX;
}

void hfd_check_done(struct hfd_check *check, bool accepted) {
        const char *prefix = check->report.prefix;

        (void)hfd_causes_check(check->report.causes, check->run.failed);
        /* If the work has exceeded its limit, the result of the check means nothing: a text that
         * was not searched may be in a `not`, or in a part that is as it was. */
        if (check->run.failed > 0 && !accepted)
                hfd_cause_invalid(check->report.causes, *prefix ? prefix : "<nil>", "null",
                                  "the patterns of the schema need too much work for its texts");
        hfd_compared_done(&check->compared);
        hf__arena_deinit(&check->arena);
}
