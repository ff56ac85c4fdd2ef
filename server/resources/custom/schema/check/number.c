/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks numbers against their format (int32, int64, float), multipleOf, minimum and maximum.
 *
 * Invariants: the results and texts are those of Kubernetes, also where they surprise: a whole
 * number of 64 bits is compared as an integer, with the bound cut to an integer; if the type of the
 * field cannot have the bound, every value is refused.
 */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "cel/values/number_text.h"
#include "server/resources/custom/schema/check/value_check.h"

#define NUMBER_TEXT_MAX 40 /* an int64 or a double has at most 24 characters */

/* A number while it is checked. */
struct number {
        struct hfd_check *check;
        const struct hfd_custom_node *node;
        struct hfd_checked *checked;
        const char *format; /* "" = none */
        double real;        /* its value */
        int64_t integer;    /* its value, too, if is_integer */
        bool is_integer;    /* the JSON is a whole number of 64 bits */
};

static void print_double(double value, char text[NUMBER_TEXT_MAX]) {
        struct hf__strbuf out = {0};

        hf__cel_double_print(&out, value);
        (void)snprintf(text, NUMBER_TEXT_MAX, "%s", out.data ? out.data : "");
        hf__strbuf_done(&out);
}

/* A bound as an integer, without its fraction. Bounds outside of the range of an int64 become its
 * ends: converting them would be undefined. */
static int64_t cut_double(double value) {
        if (value >= 9223372036854775808.0)
                return INT64_MAX;
        return value < -9223372036854775808.0 ? INT64_MIN : (int64_t)value;
}

/* exact: the type of the field can have the bound. Then Kubernetes prints the bound as an integer
 * if the value is an integer. */
static void print_bound(const struct number *number, double bound, bool exact,
                        char text[NUMBER_TEXT_MAX]) {
        if (number->is_integer && exact)
                (void)snprintf(text, NUMBER_TEXT_MAX, "%" PRId64, cut_double(bound));
        else
                print_double(bound, text);
}

/* Whether an integer field with this format can have the value. */
static bool is_in_integers(double value, const char *format) {
        if (value != floor(value) || !isfinite(value))
                return false;
        if (strcmp(format, "int32") == 0)
                return value >= INT32_MIN && value <= INT32_MAX;
        return value >= -9223372036854775808.0 && value < 9223372036854775808.0;
}

/* Whether the type and the format of the field can have this value: the number itself, or a bound
 * or multipleOf of the schema. If not, adds a cause (if checked->records). what: what the value is,
 * for the message. */
static bool is_in_range(const struct number *number, double value, const char *what) {
        const bool is_integer_type = number->node->type == HFD_CUSTOM_INTEGER;
        char path[HFD_REPORT_PATH_MAX];

        if (is_integer_type && is_in_integers(value, number->format))
                return true;
        if (!is_integer_type && (strcmp(number->format, "float") != 0 || fabs(value) <= FLT_MAX))
                return true;
        if (!number->checked->records || hfd_check_report_is_full(&number->check->report))
                return false;
        hfd_check_report_path(number->checked->place, path);
        if (*number->format)
                hfd_check_report_message(&number->check->report,
                                         "%s value must be of type %s with format %s in %s", what,
                                         is_integer_type ? "integer" : "number", number->format,
                                         path);
        else
                hfd_check_report_message(&number->check->report,
                                         "%s value must be of type integer (default format) in %s",
                                         what, path);
        return false;
}

/* The nearest whole number; only the double just below 0.5, and its negative, are rounded away from
 * zero. round() would do, but for it alone the program would load libm. */
static double nearest_whole(double value) {
        if (!(fabs(value) < 0x1p52)) /* it is whole already, or infinite, or NaN */
                return value;
        return (double)(int64_t)(value + (value < 0 ? -0.5 : 0.5));
}

/* Quotients are rounded. So a quotient counts as whole within an error of 1e-9 (a relative
 * error for quotients above 1), as in Kubernetes. exact: as in print_bound. */
static bool is_multiple(const struct number *number, double factor, bool exact) {
        if (number->is_integer && exact)
                return number->integer % cut_double(factor) == 0;
        double quotient = factor < 1 ? 1 / factor * number->real : number->real / factor;
        double nearest = nearest_whole(quotient), gap = fabs(quotient - nearest);
        double size = fabs(quotient) > 1 ? fabs(quotient) : 1;

        /* Above this, every double is whole. Kubernetes takes none of these for a multiple. */
        if (!(size <= 0x1p53 - 1))
                return false;
        return gap == 0 || gap < 1e-9 * size;
}

static bool check_multiple(const struct number *number, const struct hfd_custom_limit *limit) {
        const double factor = limit->as.number;
        const bool exact = is_in_range(number, factor, "MultipleOf");
        char text[NUMBER_TEXT_MAX], path[HFD_REPORT_PATH_MAX], detail[HFD_REPORT_PATH_MAX + 90];
        const struct hfd_check_report *report = &number->check->report;

        print_bound(number, factor, exact, text);
        if (factor <= 0 || (number->is_integer && exact && cut_double(factor) <= 0)) {
                if (!number->checked->records || hfd_check_report_is_full(report))
                        return false;
                hfd_check_report_path(number->checked->place, path);
                (void)snprintf(detail, sizeof detail,
                               "factor MultipleOf declared for %s must be positive: %s", path,
                               text);
                hfd_check_report_detail(report, number->checked->place, text, detail);
                return false;
        }
        if (is_multiple(number, factor, exact))
                return exact;
        if (number->checked->records)
                hfd_check_report_invalid(report, number->checked->place, number->checked->value,
                                         "should be a multiple of %s", text);
        return false;
}

/* -1, 0 or 1: the number is below the bound, equal to it, or above. */
static int compare_to_bound(const struct number *number, double bound, bool exact) {
        if (number->is_integer && exact) {
                int64_t integer = cut_double(bound);
                return (number->integer > integer) - (number->integer < integer);
        }
        return (number->real > bound) - (number->real < bound);
}

static bool check_bound(const struct number *number, const struct hfd_custom_limit *limit) {
        const bool is_minimum = limit->kind == HFD_LIMIT_MINIMUM;
        const bool exact = is_in_range(number, limit->as.number,
                                       is_minimum ? "Minimum boundary" : "Maximum boundary");
        int order = compare_to_bound(number, limit->as.number, exact);
        char text[NUMBER_TEXT_MAX];

        if (!is_minimum)
                order = -order;
        if (order > 0 || (order == 0 && !limit->exclusive))
                return exact;
        if (!number->checked->records)
                return false;
        print_bound(number, limit->as.number, exact, text);
        hfd_check_report_invalid(&number->check->report, number->checked->place,
                                 number->checked->value, "should be %s than %s%s",
                                 is_minimum ? "greater" : "less",
                                 limit->exclusive ? "" : "or equal to ", text);
        return false;
}

bool hfd_check_number(struct hfd_check *check, const struct hfd_custom_node *node,
                      struct hfd_checked *checked) {
        uint32_t at = 0;
        const bool is_typed = node->type == HFD_CUSTOM_INTEGER || node->type == HFD_CUSTOM_NUMBER;
        const struct hfd_custom_limit *limit = hfd_next_limit(node, &at, HFD_LIMIT_FORMAT);
        struct number number = {.check = check,
                                .node = node,
                                .checked = checked,
                                .format = limit && is_typed ? limit->as.format : "",
                                .real = hf__json_number(checked->value)};
        number.is_integer = hf__json_integer(checked->value, &number.integer);

        checked->n_matched += 2;
        /* An integer of 64 bits is in the range of all formats except int32. */
        bool valid = number.is_integer && strcmp(number.format, "int32") != 0
                             ? true
                             : is_in_range(&number, number.real, "Checked");
        limit = hfd_next_limit(node, &at, HFD_LIMIT_MULTIPLE_OF);
        if (limit)
                valid = check_multiple(&number, limit) && valid;
        limit = hfd_next_limit(node, &at, HFD_LIMIT_MINIMUM);
        if (limit)
                valid = check_bound(&number, limit) && valid;
        limit = hfd_next_limit(node, &at, HFD_LIMIT_MAXIMUM);
        if (limit)
                valid = check_bound(&number, limit) && valid;
        return valid;
}
