/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The causes of an object that its schema refuses.
 *
 * Invariants: the texts are those of Kubernetes, because clients show them and tests compare them.
 * A cause that is there already is not added again, because several schemas (of an allOf) may
 * refuse a value for the same reason. Once the causes are full, nothing is printed: a list of a
 * million wrong elements must not take a million paths. Every text has a fixed size and is cut to
 * fit, because keys and values come from clients.
 */
#include "server/resources/custom/schema/check/check_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/quote.h"
#include "base/strbuf.h"

#define DETAIL_MAX 420 /* bytes of a message, or of its part after the path, with the NUL */
#define KEY_MAX    120 /* bytes of a key that are shown */

/* Appends the steps from the root to the place. It calls itself for the steps above, as many as the
 * object is deep. An error stays in the buffer. */
static void put_steps(const struct hfd_place *place, bool has_brackets, struct hf__strbuf *out) {
        if (!place->up)
                return;
        put_steps(place->up, has_brackets, out);
        if (!place->key) {
                hf__strbuf_printf(out, "[%zu]", place->index);
        } else if (has_brackets && !place->in) {
                hf__strbuf_printf(out, "[%.*s]", KEY_MAX, place->key);
        } else {
                if (out->n > 0)
                        hf__strbuf_putc(out, '.');
                hf__strbuf_add(out, place->key, strnlen(place->key, KEY_MAX));
        }
}

static void print_steps(const struct hfd_place *place, bool has_brackets, const char *prefix,
                        char *path) {
        struct hf__strbuf out = {0};

        hf__strbuf_puts(&out, prefix);
        put_steps(place, has_brackets, &out);
        (void)snprintf(path, HFD_REPORT_PATH_MAX, "%s", out.data ? out.data : "");
        hf__strbuf_done(&out);
}

bool hfd_check_report_is_full(const struct hfd_check_report *report) {
        return report->causes->n == HFD_CAUSES_MAX;
}

void hfd_check_report_path(const struct hfd_place *place, char path[HFD_REPORT_PATH_MAX]) {
        print_steps(place, false, "", path);
}

void hfd_check_report_field(const struct hfd_check_report *report, const struct hfd_place *place,
                            char field[HFD_REPORT_PATH_MAX]) {
        print_steps(place, true, report->prefix, field);
}

/* Writes the field of a cause that this file adds. Kubernetes writes these fields without brackets
 * around the keys of maps, and "<nil>" for an empty field. */
static void body_field(const struct hfd_check_report *report, const struct hfd_place *place,
                       char *field) {
        print_steps(place, false, report->prefix, field);
        if (!*field)
                (void)snprintf(field, HFD_REPORT_PATH_MAX, "<nil>");
}

void hfd_check_report_value(const struct hf__json *value, char text[HFD_REPORT_VALUE_MAX]) {
        struct hf__strbuf out = {0};

        if (hf__json_is_string(value)) {
                hfd_quote(hf__json_text(value), text, HFD_REPORT_VALUE_MAX);
                return;
        }
        hf__json_print(value, &out);
        (void)snprintf(text, HFD_REPORT_VALUE_MAX, "%s", out.data ? out.data : "null");
        hf__strbuf_done(&out);
}

/* Removes the cause that was added last if an earlier one is equal to it. n_before: how many causes
 * there were before; if the causes were full, none was added. */
static void drop_repeated(struct hfd_causes *causes, size_t n_before) {
        const struct hfd_cause *last = &causes->items[n_before];

        for (size_t i = 0; causes->n > n_before && i < n_before; i++)
                if (strcmp(causes->items[i].field, last->field) == 0 &&
                    strcmp(causes->items[i].text, last->text) == 0)
                        causes->n = n_before;
}

/* Adds a cause with the message "PATH in body DETAIL". */
static void add_body(const struct hfd_check_report *report, const struct hfd_place *place,
                     const char *value, bool is_type, const char *detail) {
        char field[HFD_REPORT_PATH_MAX], path[HFD_REPORT_PATH_MAX], text[DETAIL_MAX + 200];
        size_t n_before = report->causes->n;

        body_field(report, place, field);
        hfd_check_report_path(place, path);
        (void)snprintf(text, sizeof text, "%s in body %s", path, detail);
        if (is_type)
                hfd_cause_type_invalid(report->causes, field, value, text);
        else
                hfd_cause_invalid(report->causes, field, value, text);
        drop_repeated(report->causes, n_before);
}

void hfd_check_report_invalid(const struct hfd_check_report *report, const struct hfd_place *place,
                              const struct hf__json *value, const char *format, ...) {
        char text[HFD_REPORT_VALUE_MAX], detail[DETAIL_MAX];
        va_list args;

        if (hfd_check_report_is_full(report))
                return;
        va_start(args, format);
        (void)vsnprintf(detail, sizeof detail, format, args);
        va_end(args);
        hfd_check_report_value(value, text);
        add_body(report, place, text, false, detail);
}

void hfd_check_report_count(const struct hfd_check_report *report, const struct hfd_place *place,
                            size_t n, const char *format, ...) {
        char text[32], detail[DETAIL_MAX];
        va_list args;

        if (hfd_check_report_is_full(report))
                return;
        va_start(args, format);
        (void)vsnprintf(detail, sizeof detail, format, args);
        va_end(args);
        (void)snprintf(text, sizeof text, "%zu", n);
        add_body(report, place, text, false, detail);
}

/* Kubernetes has one message for two mistakes: a wrong type, and a text without the format that its
 * schema demands. */
static void report_type(const struct hfd_check_report *report, const struct hfd_place *place,
                        const char *wanted, const char *shown) {
        char quoted[HFD_REPORT_VALUE_MAX], detail[DETAIL_MAX];

        if (hfd_check_report_is_full(report))
                return;
        hfd_quote(shown, quoted, sizeof quoted);
        (void)snprintf(detail, sizeof detail, "must be of type %.60s: %s", wanted, quoted);
        add_body(report, place, quoted, true, detail);
}

void hfd_check_report_type(const struct hfd_check_report *report, const struct hfd_place *place,
                           const char *wanted, const char *found) {
        report_type(report, place, wanted, found);
}

void hfd_check_report_format(const struct hfd_check_report *report, const struct hfd_place *place,
                             const char *format, const char *text) {
        report_type(report, place, format, text);
}

void hfd_check_report_required(const struct hfd_check_report *report,
                               const struct hfd_place *place) {
        char field[HFD_REPORT_PATH_MAX];
        size_t n_before = report->causes->n;

        if (hfd_check_report_is_full(report))
                return;
        body_field(report, place, field);
        hfd_cause_required(report->causes, field, NULL);
        drop_repeated(report->causes, n_before);
}

void hfd_check_report_too_long(const struct hfd_check_report *report, const struct hfd_place *place,
                               int64_t max) {
        char field[HFD_REPORT_PATH_MAX], detail[64];
        size_t n_before = report->causes->n;

        if (hfd_check_report_is_full(report))
                return;
        body_field(report, place, field);
        (void)snprintf(detail, sizeof detail, "may not be more than %" PRId64 " %s", max,
                       max == 1 ? "byte" : "bytes");
        hfd_cause_too_long(report->causes, field, detail);
        drop_repeated(report->causes, n_before);
}

void hfd_check_report_too_many(const struct hfd_check_report *report, const struct hfd_place *place,
                               size_t n, int64_t max) {
        char field[HFD_REPORT_PATH_MAX];
        size_t n_before = report->causes->n;

        if (hfd_check_report_is_full(report))
                return;
        body_field(report, place, field);
        hfd_cause_too_many(report->causes, field, n, max);
        drop_repeated(report->causes, n_before);
}

/* Writes the values of an enum, each in quotes, also those that are not texts. The first value
 * that does not fit, and all after it, are left out. */
static void print_enum(const struct hf__json *values, char *out, size_t max) {
        char quoted[HFD_REPORT_VALUE_MAX];
        struct hf__strbuf text = {0};
        size_t n = 0;

        out[0] = '\0';
        for (const struct hf__json *m = hf__json_first(values); m; m = hf__json_next(m)) {
                hf__strbuf_reset(&text);
                if (!hf__json_is_string(m))
                        hf__json_print(m, &text);
                const char *shown = hf__json_is_string(m) ? hf__json_text(m) : text.data;
                hfd_quote(shown ? shown : "", quoted, sizeof quoted);
                size_t length = strlen(quoted);
                if (n + length + 3 > max) /* with ", " and the NUL */
                        break;
                n += (size_t)snprintf(out + n, max - n, "%s%s", n > 0 ? ", " : "", quoted);
        }
        hf__strbuf_done(&text);
}

void hfd_check_report_enum(const struct hfd_check_report *report, const struct hfd_place *place,
                           const struct hf__json *value, const struct hf__json *values) {
        char field[HFD_REPORT_PATH_MAX], text[HFD_REPORT_VALUE_MAX], supported[DETAIL_MAX];
        size_t n_before = report->causes->n;

        if (hfd_check_report_is_full(report))
                return;
        body_field(report, place, field);
        hfd_check_report_value(value, text);
        print_enum(values, supported, sizeof supported);
        hfd_cause_unsupported(report->causes, field, text, supported);
        drop_repeated(report->causes, n_before);
}

void hfd_check_report_detail(const struct hfd_check_report *report, const struct hfd_place *place,
                             const char *value, const char *detail) {
        char field[HFD_REPORT_PATH_MAX];
        size_t n_before = report->causes->n;

        if (hfd_check_report_is_full(report))
                return;
        body_field(report, place, field);
        hfd_cause_invalid(report->causes, field, value, detail);
        drop_repeated(report->causes, n_before);
}

void hfd_check_report_message(const struct hfd_check_report *report, const char *format, ...) {
        const char *prefix = report->prefix;
        char detail[DETAIL_MAX];
        size_t n_before = report->causes->n;
        va_list args;

        if (hfd_check_report_is_full(report))
                return;
        va_start(args, format);
        (void)vsnprintf(detail, sizeof detail, format, args);
        va_end(args);
        hfd_cause_invalid(report->causes, *prefix ? prefix : "<nil>", "\"\"", detail);
        drop_repeated(report->causes, n_before);
}
