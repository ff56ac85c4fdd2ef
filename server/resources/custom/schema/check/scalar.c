/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks single values: the type of a value, texts, and enums.
 *
 * Invariants: the texts of the causes are those of Kubernetes. The count n_matched
 * (struct hfd_checked) is that of Kubernetes' validator as well, because it decides which
 * alternative of an anyOf or oneOf is reported.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "cel/regex/regex.h"
#include "server/resources/custom/schema/check/value_check.h"
#include "server/resources/custom/schema/compile/canonical_text.h"
#include "server/resources/custom/schema/formats/formats.h"

const struct hfd_custom_limit *hfd_next_limit(const struct hfd_custom_node *node, uint32_t *at,
                                              enum hfd_custom_limit_kind kind) {
        while (*at < node->n_limits && node->limits[*at].kind < kind)
                (*at)++;
        if (*at == node->n_limits || node->limits[*at].kind != kind)
                return NULL;
        return &node->limits[*at];
}

/* ---- types ---- */

/* Whether the value is a number without a fraction: 1.0 is an integer, too. */
static bool is_whole(const struct hf__json *value) {
        double number = hf__json_number(value);

        return hf__json_is_number(value) && number == floor(number) && isfinite(number);
}

/* The name of the value's type. *ret_format: the format of a number in memory, as Kubernetes calls
 * it; "" for other values. Static storage. */
static const char *type_of(const struct hf__json *value, const char **ret_format) {
        int64_t integer;

        *ret_format = "";
        if (hf__json_is_null(value))
                return "null";
        if (hf__json_is_string(value))
                return "string";
        if (hf__json_is_bool(value))
                return "boolean";
        if (hf__json_is_array(value))
                return "array";
        if (hf__json_is_object(value))
                return "object";
        if (hf__json_integer(value, &integer)) {
                *ret_format = "int64";
                return "integer";
        }
        *ret_format = "float64";
        return "number";
}

/* The type that the schema asks for, as messages show it. */
static const char *wanted_type(const struct hfd_custom_node *node) {
        static const char *const names[] =
                {[HFD_CUSTOM_NONE] = "",           [HFD_CUSTOM_OBJECT] = "object",
                 [HFD_CUSTOM_ARRAY] = "array",     [HFD_CUSTOM_STRING] = "string",
                 [HFD_CUSTOM_INTEGER] = "integer", [HFD_CUSTOM_NUMBER] = "number",
                 [HFD_CUSTOM_BOOLEAN] = "boolean"};

        return node->int_or_string ? "integer,string" : names[node->type];
}

/* Whether the value has the type that the node asks for: a type, or an integer or a string
 * (int_or_string). */
static bool has_type(const struct hfd_custom_node *node, const struct hf__json *value) {
        const bool any = node->int_or_string;

        switch ((enum hfd_custom_type)node->type) {
        case HFD_CUSTOM_NONE: return any && (hf__json_is_string(value) || is_whole(value));
        case HFD_CUSTOM_OBJECT: return hf__json_is_object(value);
        case HFD_CUSTOM_ARRAY: return hf__json_is_array(value);
        case HFD_CUSTOM_STRING: return hf__json_is_string(value);
        case HFD_CUSTOM_INTEGER: return is_whole(value);
        case HFD_CUSTOM_NUMBER: return hf__json_is_number(value);
        case HFD_CUSTOM_BOOLEAN: return hf__json_is_bool(value);
        }
        return false;
}

bool hfd_check_type(struct hfd_check *check, const struct hfd_custom_node *node,
                    struct hfd_checked *checked) {
        const struct hf__json *value = checked->value;
        const bool has_types = node->type != HFD_CUSTOM_NONE || node->int_or_string,
                   is_null = hf__json_is_null(value);
        uint32_t at = 0;
        const struct hfd_custom_limit *format = hfd_next_limit(node, &at, HFD_LIMIT_FORMAT);
        const char *found_format, *found = type_of(value, &found_format);

        if (!has_types && !format && !is_null)
                return true; /* Kubernetes has no such check then, so it does not count */
        checked->n_matched += is_null ? 0 : 1;
        if (is_null ? !has_types || node->nullable : has_type(node, value)) {
                checked->n_matched++;
                return true;
        }
        /* A schema with a format and without a type accepts any text. */
        if (!has_types && hf__json_is_string(value)) {
                checked->n_matched++;
                return true;
        }
        if (!checked->records)
                return false;
        /* If the schema has a format, Kubernetes' message compares the format of the value, not its
         * type, unless the value is null, a text or a list. */
        if (format && !is_null && !hf__json_is_string(value) && !hf__json_is_array(value))
                hfd_check_report_type(&check->report, checked->place, format->as.format,
                                      found_format);
        else
                hfd_check_report_type(&check->report, checked->place, wanted_type(node), found);
        return false;
}

/* ---- texts ---- */

/* Counts code points: all bytes of UTF-8 that do not continue a character. */
static int64_t count_characters(const char *text) {
        int64_t n = 0;

        for (; *text; text++)
                n += ((unsigned char)*text & 0xc0) != 0x80;
        return n;
}

/* Nothing matches a pattern that cannot be compiled. */
static bool check_pattern(struct hfd_check *check, const struct hfd_custom_pattern *pattern,
                          const struct hfd_checked *checked) {
        const char *text = hf__json_text(checked->value);

        if (pattern->regex &&
            hf__cel_regex_find(pattern->regex, &check->run, text, strlen(text), 0, NULL, NULL))
                return true;
        if (!checked->records || check->run.failed != 0) /* hfd_check_done reports the failure */
                return false;
        if (pattern->regex)
                hfd_check_report_invalid(&check->report, checked->place, checked->value,
                                         "should match '%s'", pattern->text);
        else
                hfd_check_report_invalid(&check->report, checked->place, checked->value,
                                         "should match '%s, but pattern is invalid: %s'",
                                         pattern->text, pattern->error);
        return false;
}

/* Checks the length and the pattern. Kubernetes reports only the first mistake. at: the position
 * among the node's limits, which are in the order of their kinds (hfd_next_limit). */
static bool check_shape(struct hfd_check *check, const struct hfd_custom_node *node,
                        const struct hfd_checked *checked, uint32_t *at) {
        const char *text = hf__json_text(checked->value);
        const struct hfd_custom_limit *limit;

        limit = hfd_next_limit(node, at, HFD_LIMIT_MAX_LENGTH);
        if (limit && count_characters(text) > limit->as.count) {
                if (checked->records)
                        hfd_check_report_too_long(&check->report, checked->place, limit->as.count);
                return false;
        }
        limit = hfd_next_limit(node, at, HFD_LIMIT_MIN_LENGTH);
        if (limit && count_characters(text) < limit->as.count) {
                if (checked->records)
                        hfd_check_report_invalid(&check->report, checked->place, checked->value,
                                                 "should be at least %lld chars long",
                                                 (long long)limit->as.count);
                return false;
        }
        limit = hfd_next_limit(node, at, HFD_LIMIT_PATTERN);
        return !limit || check_pattern(check, limit->as.pattern, checked);
}

bool hfd_check_text(struct hfd_check *check, const struct hfd_custom_node *node,
                    struct hfd_checked *checked) {
        uint32_t at = 0;
        bool valid = check_shape(check, node, checked, &at);
        const struct hfd_custom_limit *format = hfd_next_limit(node, &at, HFD_LIMIT_FORMAT);

        checked->n_matched++;
        if (!format || node->type == HFD_CUSTOM_INTEGER || node->type == HFD_CUSTOM_NUMBER)
                return valid;
        checked->n_matched++;
        if (hfd_custom_format_matches(format->as.format, hf__json_text(checked->value)))
                return valid;
        if (checked->records)
                hfd_check_report_format(&check->report, checked->place, format->as.format,
                                        hf__json_text(checked->value));
        return false;
}

/* ---- enums ---- */

/* Searches a text or a number in the sorted values of an enum. */
static bool is_among_sorted(const struct hfd_custom_limit *limit, const struct hf__json *value) {
        uint32_t low = 0, high = limit->n;

        while (low < high) {
                const uint32_t middle = low + (high - low) / 2;
                const int order = hfd_custom_scalar_compare(limit->as.sorted[middle], value);
                if (order == 0)
                        return true;
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return false;
}

/* Searches a value that is neither a text nor a number by its canonical text. A value whose text is
 * longer than those of the enum is not printed to its end. limit NULL: the enum has no such values.
 */
static bool is_among_others(struct hfd_check *check, const struct hfd_custom_limit *limit,
                            const struct hf__json *value) {
        struct hf__strbuf text = {0};
        bool found = false;

        if (!limit)
                return false;
        text.max = limit->as.texts[limit->n - 1].n;
        if (hfd_causes_check(check->report.causes, hfd_canonical_text(value, &text))) {
                const struct hfd_custom_text wanted = {text.n, text.data};
                found = bsearch(&wanted, limit->as.texts, limit->n, sizeof wanted,
                                hfd_custom_text_compare) != NULL;
        }
        hf__strbuf_done(&text);
        return found;
}

/* The limits of a node that say what an enum has. */
struct enumeration {
        /* NULL = there is none. An enum of many values always has `sorted`. */
        const struct hfd_custom_limit *all, *sorted, *others;
};

/* As in Kubernetes, null never matches an enum, even if it is in the list. */
static bool is_in_enum(struct hfd_check *check, const struct enumeration *enumeration,
                       const struct hf__json *value) {
        const bool is_scalar = hf__json_is_string(value) || hf__json_is_number(value);

        if (hf__json_is_null(value))
                return false;
        if (enumeration->sorted)
                return is_scalar ? is_among_sorted(enumeration->sorted, value)
                                 : is_among_others(check, enumeration->others, value);
        for (const struct hf__json *m = hf__json_first(enumeration->all->as.values); m;
             m = hf__json_next(m))
                if (hfd_causes_equal(check->report.causes, m, value))
                        return true;
        return false;
}

bool hfd_check_enum(struct hfd_check *check, const struct hfd_custom_node *node,
                    struct hfd_checked *checked) {
        struct enumeration enumeration;
        uint32_t at = 0;

        enumeration.all = hfd_next_limit(node, &at, HFD_LIMIT_ENUM);
        enumeration.sorted = hfd_next_limit(node, &at, HFD_LIMIT_ENUM_SORTED);
        enumeration.others = hfd_next_limit(node, &at, HFD_LIMIT_ENUM_OTHERS);
        if (!enumeration.all || is_in_enum(check, &enumeration, checked->value))
                return true;
        if (checked->records)
                hfd_check_report_enum(&check->report, checked->place, checked->value,
                                      enumeration.all->as.values);
        return false;
}
