/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in a Lease that another program may have written (leader/lease_record.h), at their
 * limits. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "leader/lease_record.h"

#define ELLIPSIS "\xe2\x80\xa6"

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

/* Reads the text with the value in place of its percent sign. */
static struct hf__record read_text(const char *with_percent, const char *value) {
        const char *percent = strchr(with_percent, '%');
        struct hf__record record;
        char text[2000];

        assert_non_null(percent);
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(percent - with_percent), with_percent,
                       value, percent + 1);
        struct hf__json *json = parse(text);
        assert_int_equal(hf__lease_read(json, &record), 0);
        hf__json_free(json);
        return record;
}

static const char *repeated(size_t n) {
        static char text[HF_IDENTITY_MAX + 2];

        assert_true(n < sizeof text);
        memset(text, 'h', n);
        text[n] = '\0';
        return text;
}

/* The longest identity is kept. A longer one is cut, so it is equal to no identity. */
static void test_only_a_holder_that_is_too_long_is_cut(void **state) {
        static const char template[] = "{\"spec\":{\"holderIdentity\":\"%\"}}";

        struct hf__record record = read_text(template, repeated(HF_IDENTITY_MAX));
        assert_string_equal(record.holder, repeated(HF_IDENTITY_MAX));
        record = read_text(template, repeated(HF_IDENTITY_MAX + 1));
        assert_int_equal(strlen(record.holder), HF_IDENTITY_MAX);
        assert_string_equal(record.holder + HF_IDENTITY_MAX - strlen(ELLIPSIS), ELLIPSIS);
        record = read_text(template, "\xc3\xa9");
        assert_string_equal(record.holder, "\xc3\xa9");
}

static void test_a_request_that_is_too_long_is_ignored(void **state) {
        static const char template[] =
                "{\"metadata\":{\"annotations\":{\"" HF__HAND_OVER_ANNOTATION "\":\"%\"}}}";

        struct hf__record record = read_text(template, repeated(HF_IDENTITY_MAX));
        assert_string_equal(record.hand_over_to, repeated(HF_IDENTITY_MAX));
        record = read_text(template, repeated(HF_IDENTITY_MAX + 1));
        assert_string_equal(record.hand_over_to, "");
}

static void test_a_time_without_decimals_is_read(void **state) {
        static const char template[] = "{\"spec\":{\"renewTime\":\"%\"}}";

        assert_true(read_text(template, "2026-01-01T00:00:00Z").renew_us == 1767225600000000);
        assert_true(read_text(template, "2026-01-01T00:00:00.000007Z").renew_us ==
                    1767225600000007);
        assert_int_equal(read_text(template, "2026-01-01").renew_us, 0);
}

static void test_a_revision_is_a_number_or_text(void **state) {
        static const struct {
                const char *text;
                uint64_t number;
        } rows[] =
                {{"0", 0},  {"07", 7}, {"9", 9},  {"10", 10}, {"18446744073709551615", UINT64_MAX},
                 {"-7", 0}, {" 7", 0}, {"+7", 0}, {"7 ", 0},  {"7a", 0},
                 {"a7", 0}, {":7", 0}, {"/7", 0}, {"", 0}};
        static const char template[] = "{\"metadata\":{\"resourceVersion\":\"%\"}}";

        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                errno = ERANGE; /* of an earlier call */
                struct hf__record record = read_text(template, rows[i].text);
                assert_true(record.rv_number == rows[i].number);
                assert_string_equal(record.rv, rows[i].text);
        }
}

static void test_the_uid_and_a_preferred_holder_are_read(void **state) {
        assert_string_equal(read_text("{\"metadata\":{\"uid\":\"%\"}}", "u-1").uid, "u-1");
        assert_true(read_text("{\"spec\":{\"preferredHolder\":\"%\"}}", "b").preferred);
        assert_false(read_text("{\"spec\":{\"preferredHolder\":\"%\"}}", "").preferred);
        assert_false(read_text("{\"spec\":{\"%\":1}}", "other").preferred);
        assert_false(read_text("{\"%\":1}", "other").preferred);
}

/* ---- the process that wrote a record ---- */

static bool process_of(const char *annotation, const char *holder, int64_t acquire_us,
                       char *process, size_t max) {
        char text[400];

        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"annotations\":{\"" HF__PROCESS_ANNOTATION "\":%s}}}",
                       annotation);
        struct hf__json *json = parse(text);
        errno = ERANGE; /* of an earlier call */
        bool known = hf__lease_process(json, holder, acquire_us, process, max);
        hf__json_free(json);
        return known;
}

static void test_the_process_counts_only_for_its_record(void **state) {
        static const struct {
                const char *annotation, *process; /* NULL = not known */
        } rows[] = {
                {"\"123 host_1 p q\"", "p q"},
                {"\"123 host_1 p\"", "p"},
                {"\"123 host_1 \"", NULL},
                {"\"123 host_1\"", NULL},
                {"\"123 host_12 p\"", NULL},
                {"\"123 host_2 p\"", NULL},
                {"\"123 host p\"", NULL},
                {"\"124 host_1 p\"", NULL},
                {"\"1234 host_1 p\"", NULL},
                {"\"12 host_1 p\"", NULL},
                {"\"123xhost_1 p\"", NULL},
                {"\"123\"", NULL},
                {"\" 123 host_1 p\"", NULL},
                {"\"+123 host_1 p\"", NULL},
                {"\"0123 host_1 p\"", NULL},
                {"\"\"", NULL},
                {"\"x\"", NULL},
                {"7", NULL},
                {"\"99999999999999999999 host_1 p\"", NULL},
        };
        char process[8];

        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                bool known = process_of(rows[i].annotation, "host_1", 123, process, sizeof process);
                assert_int_equal(known, rows[i].process != NULL);
                if (known)
                        assert_string_equal(process, rows[i].process);
        }
        assert_true(process_of("\"1 a p\"", "a", 1, process, sizeof process));
        assert_true(process_of("\"9 a p\"", "a", 9, process, sizeof process));
        assert_false(process_of("\"9223372036854775808 a p\"", "a", INT64_MAX, process,
                                sizeof process)); /* larger than INT64_MAX */
        assert_true(process_of("\"1 a 1234567\"", "a", 1, process, sizeof process));
        assert_false(process_of("\"1 a 12345678\"", "a", 1, process, sizeof process));
}

static char *write_text(const char *last, const struct hf__record *record, const char *process) {
        struct hf__json *json = parse(last);
        struct hf__strbuf out = {0};

        hf__lease_write(json, "kube-system", "lead", record, NULL, process, &out);
        assert_int_equal(out.error, 0);
        hf__json_free(json);
        return out.data;
}

static bool describes(const char *text, const char *process) {
        struct hf__json *json = parse(text);
        char known[20];
        bool does = hf__lease_process(json, "me", 5, known, sizeof known) &&
                    strcmp(known, process) == 0;

        hf__json_free(json);
        return does;
}

static void test_a_process_is_described_from_the_acquire_to_the_release(void **state) {
        struct hf__record record = {.exists = true,
                                    .holder = "me",
                                    .duration_s = 15,
                                    .acquire_us = 5,
                                    .cause = HF__CAUSE_EXPIRED,
                                    .rv = "7"};

        char *acquired = write_text("{\"metadata\":{\"resourceVersion\":\"7\"}}", &record, "mine");
        assert_true(describes(acquired, "mine"));
        record.cause = HF__CAUSE_NONE;
        char *renewed = write_text(acquired, &record, "mine");
        assert_true(describes(renewed, "mine"));
        /* A process without a lock file takes the Lease. The old description must not count as that
         * of the new holder. */
        record.cause = HF__CAUSE_RELEASED;
        char *taken = write_text(renewed, &record, NULL);
        assert_null(strstr(taken, HF__PROCESS_ANNOTATION));
        record.cause = HF__CAUSE_NONE;
        record.holder[0] = '\0';
        char *released = write_text(renewed, &record, "mine");
        assert_null(strstr(released, HF__PROCESS_ANNOTATION));
        free(acquired);
        free(renewed);
        free(taken);
        free(released);
}

/* A record without a revision is written without one, and so replaces any stored version. */
static void test_an_unknown_revision_is_not_written(void **state) {
        const struct hf__record record = {.exists = true, .holder = "me"};

        char *text = write_text("{\"metadata\":{\"resourceVersion\":\"7\"}}", &record, NULL);
        assert_null(strstr(text, "resourceVersion"));
        free(text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_only_a_holder_that_is_too_long_is_cut),
                cmocka_unit_test(test_a_request_that_is_too_long_is_ignored),
                cmocka_unit_test(test_a_time_without_decimals_is_read),
                cmocka_unit_test(test_a_revision_is_a_number_or_text),
                cmocka_unit_test(test_the_uid_and_a_preferred_holder_are_read),
                cmocka_unit_test(test_the_process_counts_only_for_its_record),
                cmocka_unit_test(test_a_process_is_described_from_the_acquire_to_the_release),
                cmocka_unit_test(test_an_unknown_revision_is_not_written),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
