/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a Lease: its entries, its limits, and when it is replaced. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "leader/lease_history.h"
#include "leader/lease_record.h"

#define AT INT64_C(1795225000123456)

static struct hf__record begins(enum hf__cause cause, const char *holder, const char *previous) {
        struct hf__record record = {.exists = true,
                                    .rv = "7",
                                    .duration_s = 15,
                                    .acquire_us = AT,
                                    .renew_us = AT,
                                    .cause = cause,
                                    .gap_us = 12345};

        snprintf(record.holder, sizeof record.holder, "%s", holder);
        strcpy(record.previous, previous);
        return record;
}

/* The text after it was read and written. The caller frees it. */
static char *append(const char *text, const struct hf__record *record) {
        struct hf__strbuf out = {0};

        hf__lease_history_append(text, record, &out);
        assert_int_equal(out.error, 0);
        return out.data;
}

static void test_the_first_entry_is_written(void **state) {
        struct hf__record record = begins(HF__CAUSE_EXPIRED, "b", "a");
        char *text = append(NULL, &record);

        assert_string_equal(text, "[{\"at\":\"2026-11-21T01:36:40.123456Z\",\"holder\":\"b\","
                                  "\"previous\":\"a\",\"cause\":\"expired\","
                                  "\"gapMs\":12}]");
        free(text);
}

static void test_a_history_survives_the_round_trip(void **state) {
        struct hf__record record = begins(HF__CAUSE_HANDED_OVER, "quo\"te", "");
        struct hf__lease_history_entry list[HF__LEASE_HISTORY_MAX];
        char *text = append(NULL, &record);

        assert_int_equal(hf__lease_history_read(text, list), 1);
        assert_int_equal(list[0].at_us, AT);
        assert_int_equal(list[0].gap_ms, 12);
        assert_string_equal(list[0].holder, "quo\"te");
        assert_string_equal(list[0].previous, "");
        assert_string_equal(list[0].cause, "handed-over");
        free(text);
}

static void test_the_newest_eight_entries_are_kept(void **state) {
        struct hf__lease_history_entry list[HF__LEASE_HISTORY_MAX];
        char *text = NULL, holder[8];

        for (int i = 0; i < 20; i++) {
                snprintf(holder, sizeof holder, "h%d", i);
                struct hf__record record = begins(HF__CAUSE_EXPIRED, holder, "x");
                char *next = append(text, &record);
                free(text);
                text = next;
        }
        assert_int_equal(hf__lease_history_read(text, list), HF__LEASE_HISTORY_MAX);
        assert_string_equal(list[0].holder, "h12");
        assert_string_equal(list[7].holder, "h19");
        free(text);
}

/* Control characters have six bytes each as text, and quotes two. So eight entries have more bytes
 * than a reader accepts. */
static void test_long_entries_displace_older_ones(void **state) {
        struct hf__lease_history_entry list[HF__LEASE_HISTORY_MAX];
        char *text = NULL, holder[HF_IDENTITY_MAX + 1], previous[HF_IDENTITY_MAX + 1];

        memset(holder, '"', HF_IDENTITY_MAX);
        memset(previous, '\1', HF_IDENTITY_MAX);
        previous[HF_IDENTITY_MAX] = '\0';
        for (int i = 0; i < 20; i++) {
                snprintf(holder + HF_IDENTITY_MAX - 2, 3, "%02d", i);
                struct hf__record record = begins(HF__CAUSE_EXPIRED, holder, previous);
                char *next = append(text, &record);
                free(text);
                text = next;
                assert_true(strlen(text) <= HF__LEASE_HISTORY_MAX_BYTES);
                unsigned n = hf__lease_history_read(text, list);
                assert_int_equal(n, i < 7 ? i + 1 : 7);
                assert_string_equal(list[n - 1].holder, holder);
        }
        free(text);
}

static void test_a_longer_foreign_history_is_truncated(void **state) {
        struct hf__lease_history_entry list[HF__LEASE_HISTORY_MAX];
        struct hf__strbuf text = {0};

        for (int i = 0; i < 30; i++)
                hf__strbuf_printf(&text,
                                  "%s{\"at\":\"2026-11-21T01:36:40.123456Z\",\"holder\":\"h%d\","
                                  "\"previous\":\"\",\"cause\":\"of "
                                  "tomorrow\",\"gapMs\":1}",
                                  i ? "," : "[", i);
        hf__strbuf_putc(&text, ']');
        assert_int_equal(hf__lease_history_read(text.data, list), HF__LEASE_HISTORY_MAX);
        assert_string_equal(list[7].holder, "h29");
        assert_string_equal(list[7].cause, "of tomorrow");
        hf__strbuf_done(&text);
}

#define ENTRY(at, holder, cause, gap)                                                              \
        "[{\"at\":\"" at "\",\"holder\":\"" holder "\",\"previous\":\"\",\"cause\":\"" cause       \
        "\",\"gapMs\":" gap "}]"
#define GOOD_AT "2026-11-21T01:36:40.123456Z"
#define GOOD                                                                                       \
        "{\"at\":\"" GOOD_AT "\",\"holder\":\"a\",\"previous\":\"\",\"cause\":\"c\",\"gapMs\":1}"

static void test_a_malformed_history_is_replaced(void **state) {
        static const char *const texts[] = {
                "",
                "x",
                "{}",
                "[1]",
                "[{}]",
                "null",
                (ENTRY("yesterday", "a", "c", "1")),
                (ENTRY(GOOD_AT, "a", "longer than any cause can be", "1")),
                (ENTRY(GOOD_AT, "a", "one more than fits in it", "1")),
                (ENTRY(GOOD_AT, "a", "c", "-1")),
                (ENTRY(GOOD_AT, "a", "c", "\"1\"")),
                "[" GOOD ",{}]", /* one bad entry is enough, wherever it is */
        };
        struct hf__record record = begins(HF__CAUSE_RELEASED, "b", "a");
        struct hf__lease_history_entry list[HF__LEASE_HISTORY_MAX];
        char *fresh = append(NULL, &record);

        /* the valid form, from which the bad ones differ */
        assert_int_equal(hf__lease_history_read(ENTRY(GOOD_AT, "a", "c", "1"), list), 1);
        assert_int_equal(hf__lease_history_read(ENTRY(GOOD_AT, "a", "as much as fits into it", "1"),
                                                list),
                         1);
        assert_int_equal(strlen(list[0].cause), sizeof list[0].cause - 1);

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                assert_int_equal(hf__lease_history_read(texts[i], list), 0);
                char *text = append(texts[i], &record);
                assert_string_equal(text, fresh);
                free(text);
        }
        free(fresh);
}

static void test_a_huge_history_is_not_parsed(void **state) {
        struct hf__lease_history_entry list[HF__LEASE_HISTORY_MAX];
        char *text = malloc(HF__LEASE_HISTORY_MAX_BYTES + 2);

        memset(text, ' ', HF__LEASE_HISTORY_MAX_BYTES + 1);
        memcpy(text, "[]", 2);
        text[HF__LEASE_HISTORY_MAX_BYTES + 1] = '\0';
        assert_int_equal(hf__lease_history_read(text, list), 0);
        /* one that is as long as it may be is read */
        memset(text, ' ', HF__LEASE_HISTORY_MAX_BYTES);
        memcpy(text, "[" GOOD "]", sizeof "[" GOOD "]" - 1);
        assert_int_equal(hf__lease_history_read(text, list), 0);
        text[HF__LEASE_HISTORY_MAX_BYTES] = '\0';
        assert_int_equal(hf__lease_history_read(text, list), 1);
        free(text);
}

static void test_the_releasing_holder_is_read_from_the_history(void **state) {
        struct hf__record first = begins(HF__CAUSE_CREATED, "a", ""),
                          second = begins(HF__CAUSE_RELEASED, "b", "");
        struct hf__lease_history_entry list[HF__LEASE_HISTORY_MAX];
        char *text = append(NULL, &first), *next = append(text, &second);

        assert_int_equal(hf__lease_history_read(next, list), 2);
        assert_string_equal(list[1].previous, "a");
        free(text);
        free(next);
}

/* ---- on the Lease ---- */

static char *write_lease(const char *last_text, const struct hf__record *record) {
        struct hf__json *last = NULL;
        struct hf__strbuf out = {0};

        if (last_text)
                assert_int_equal(hf__json_parse(last_text, strlen(last_text), &last, NULL), 0);
        hf__lease_write(last, "ns", "lead", record, NULL, NULL, &out);
        assert_int_equal(out.error, 0);
        hf__json_free(last);
        return out.data;
}

static unsigned history_of(const char *lease_text, struct hf__lease_history_entry *list) {
        struct hf__json *lease = NULL;

        assert_int_equal(hf__json_parse(lease_text, strlen(lease_text), &lease, NULL), 0);
        const struct hf__json *text = hf__json_get(hf__json_path(lease, "metadata.annotations"),
                                                   HF__LEASE_HISTORY_ANNOTATION);
        unsigned n = hf__lease_history_read(text ? hf__json_text(text) : NULL, list);
        hf__json_free(lease);
        return n;
}

static void test_only_a_write_that_begins_a_term_adds_an_entry(void **state) {
        struct hf__record record = begins(HF__CAUSE_EXPIRED, "b", "a");
        struct hf__lease_history_entry list[HF__LEASE_HISTORY_MAX];
        char *taken = write_lease("{\"metadata\":{\"annotations\":{\"else\":\"kept\"}}}", &record);

        assert_non_null(strstr(taken, "\"else\":\"kept\""));
        record.cause = HF__CAUSE_NONE; /* a renewal */
        char *renewed = write_lease(taken, &record);
        assert_string_equal(renewed, taken);
        assert_int_equal(history_of(renewed, list), 1);
        free(taken);
        free(renewed);
}

static void test_a_history_outlives_the_lease(void **state) {
        struct hf__record record = begins(HF__CAUSE_CREATED, "a", "");
        struct hf__lease_history_entry list[HF__LEASE_HISTORY_MAX];
        char *first = write_lease(NULL, &record);

        record = begins(HF__CAUSE_DELETED, "b", "a");
        record.exists = false; /* so this acquire creates the Lease */
        char *second = write_lease(first, &record);
        assert_int_equal(history_of(second, list), 2);
        assert_string_equal(list[1].cause, "deleted");
        assert_null(strstr(second, "resourceVersion"));
        free(first);
        free(second);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_first_entry_is_written),
                cmocka_unit_test(test_a_history_survives_the_round_trip),
                cmocka_unit_test(test_the_newest_eight_entries_are_kept),
                cmocka_unit_test(test_long_entries_displace_older_ones),
                cmocka_unit_test(test_a_longer_foreign_history_is_truncated),
                cmocka_unit_test(test_a_malformed_history_is_replaced),
                cmocka_unit_test(test_a_huge_history_is_not_parsed),
                cmocka_unit_test(test_the_releasing_holder_is_read_from_the_history),
                cmocka_unit_test(test_only_a_write_that_begins_a_term_adds_an_entry),
                cmocka_unit_test(test_a_history_outlives_the_lease),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
