/* SPDX-License-Identifier: Apache-2.0 */
/* Times, durations and ages as text. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/time_format.h"

static void test_times_with_microseconds_round_trip(void **state) {
        static const struct {
                int64_t usec;
                const char *text;
        } cases[] = {
                {0, "1970-01-01T00:00:00.000000Z"},
                {-1, "1969-12-31T23:59:59.999999Z"},
                {INT64_C(951782400000001), "2000-02-29T00:00:00.000001Z"},
                {INT64_C(1795228560123456), "2026-11-21T02:36:00.123456Z"},
                {INT64_C(-62135596800000000), "0001-01-01T00:00:00.000000Z"},
                {INT64_C(253402300799999999), "9999-12-31T23:59:59.999999Z"},
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char text[HF__MICROTIME_MAX];
                int64_t usec = 1;
                hf__microtime_format(cases[i].usec, text);
                assert_string_equal(text, cases[i].text);
                assert_int_equal(hf__microtime_parse(text, &usec), 0);
                assert_int_equal(usec, cases[i].usec);
        }
}

static void test_every_day_round_trips(void **state) {
        for (int64_t day = -800000; day < 2900000; day += 13) {
                char text[HF__MICROTIME_MAX];
                int64_t sec;
                if (day * 86400 < INT64_C(-62135596800) || day * 86400 > INT64_C(253402300799))
                        continue;
                hf__time_format(day * 86400 + 7, text);
                assert_int_equal(hf__time_parse(text, &sec), 0);
                assert_int_equal(sec, day * 86400 + 7);
        }
}

static void test_time_zones_are_converted(void **state) {
        int64_t usec, sec;
        assert_int_equal(hf__microtime_parse("2026-11-21T03:36:00.000000+01:00", &usec), 0);
        assert_int_equal(usec, INT64_C(1795228560000000));
        assert_int_equal(hf__time_parse("2026-11-20T21:06:00-05:30", &sec), 0);
        assert_int_equal(sec, INT64_C(1795228560));
}

static void test_invalid_times_are_refused(void **state) {
        static const char *const texts[] = {
                "",
                "2026-11-21T02:36:00Z",
                "2026-11-21T02:36:00.0Z",
                "2026-11-21T02:36:00.0000000Z",
                "2026-11-21 02:36:00.000000Z",
                "2026-13-21T02:36:00.000000Z",
                "2026-02-29T02:36:00.000000Z",
                "1900-02-29T02:36:00.000000Z",
                "2026-11-31T02:36:00.000000Z",
                "2026-11-21T24:36:00.000000Z",
                "2026-11-21T02:60:00.000000Z",
                "2026-11-21T02:36:60.000000Z",
                "2026-11-21T02:36:00.000000",
                "2026-11-21T02:36:00.000000z",
                "2026-11-21T02:36:00.000000Zx",
                "2026-11-21T02:36:00.000000+0100",
                "2026-11-21T02:36:00.000000+24:00",
                "-026-11-21T02:36:00.000000Z",
        };
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                int64_t usec = 5;
                assert_int_equal(hf__microtime_parse(texts[i], &usec), -EINVAL);
                assert_int_equal(usec, 5);
        }
        int64_t sec;
        assert_int_equal(hf__time_parse("2026-11-21T02:36:00.000000Z", &sec), -EINVAL);
        assert_int_equal(hf__time_parse("2026-11-21T02:36:00Z", &sec), 0);
        assert_int_equal(sec, INT64_C(1795228560));
}

static void test_durations_are_parsed_and_formatted(void **state) {
        static const struct {
                const char *text;
                hf_nsec value;
                const char *formatted;
        } cases[] = {
                {"0", 0, "0s"},
                {"15s", 15 * HF_NSEC_PER_SEC, "15s"},
                {"1m30s", 90 * HF_NSEC_PER_SEC, "1m30s"},
                {"250ms", 250 * HF_NSEC_PER_MSEC, "250ms"},
                {"1.5h", 5400 * HF_NSEC_PER_SEC, "1h30m0s"},
                {"2.5s", 2500 * HF_NSEC_PER_MSEC, "2.5s"},
                {"1us", 1000, "1\xc2\xb5s"},
                {"1.5\xc2\xb5s", 1500, "1.5\xc2\xb5s"},
                {"1\xce\xbcs", 1000, "1\xc2\xb5s"},
                {"7ns", 7, "7ns"},
                {".5s", 500 * HF_NSEC_PER_MSEC, "500ms"},
                {"1.s", HF_NSEC_PER_SEC, "1s"},
                {"+3s", 3 * HF_NSEC_PER_SEC, "3s"},
                {"0.1s", 100 * HF_NSEC_PER_MSEC, "100ms"},
                {"0.000000001s", 1, "1ns"},
                {"0.3333333333333333333h", 1200 * HF_NSEC_PER_SEC, "20m0s"}, /* as in Go */
                {"0.99999999999999999999999s", HF_NSEC_PER_SEC, "1s"},
                {"1h", 3600 * HF_NSEC_PER_SEC, "1h0m0s"},
                {"1m0.000000001s", 60 * HF_NSEC_PER_SEC + 1, "1m0.000000001s"},
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char text[32];
                hf_nsec value = -1;
                assert_int_equal(hf__duration_parse(cases[i].text, &value), 0);
                assert_int_equal(value, cases[i].value);
                hf__duration_format(value, text);
                assert_string_equal(text, cases[i].formatted);
                assert_int_equal(hf__duration_parse(text, &value), 0);
                assert_int_equal(value, cases[i].value);
        }
}

static void test_ages_are_written_as_kubectl_writes_them(void **state) {
        static const struct {
                int64_t seconds;
                const char *text;
        } ages[] = {{-5, "0s"},        {119, "119s"},        {184, "3m4s"},    {10800, "3h"},
                    {180000, "2d2h"},  {63071999, "729d"},   {63072000, "2y"}, {63158400, "2y1d"},
                    {252288000, "8y"}, {251942400, "7y361d"}};
        char text[HF__AGE_MAX];

        for (size_t i = 0; i < sizeof ages / sizeof ages[0]; i++) {
                hf__age_format(ages[i].seconds, text);
                assert_string_equal(text, ages[i].text);
        }
        hf__age_format(INT64_MAX, text); /* no overflow */
}

static void test_the_longest_duration_fits_its_buffer(void **state) {
        char text[32];
        hf_nsec value;
        hf__duration_format(INT64_MAX, text);
        assert_string_equal(text, "2562047h47m16.854775807s");
        assert_int_equal(hf__duration_parse(text, &value), 0);
        assert_int_equal(value, INT64_MAX);
}

static void test_invalid_durations_are_refused(void **state) {
        static const char *const texts[] = {"",         "s",
                                            "5",        "-5s",
                                            "5 s",      "5x",
                                            ".s",       "1.2.3s",
                                            "3s4",      "99999999999999999999s",
                                            "2562048h", "+",
                                            "-0",       "1e3s"};
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                hf_nsec value = 5;
                assert_int_equal(hf__duration_parse(texts[i], &value), -EINVAL);
                assert_int_equal(value, 5);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_times_with_microseconds_round_trip),
                cmocka_unit_test(test_every_day_round_trips),
                cmocka_unit_test(test_time_zones_are_converted),
                cmocka_unit_test(test_invalid_times_are_refused),
                cmocka_unit_test(test_durations_are_parsed_and_formatted),
                cmocka_unit_test(test_ages_are_written_as_kubectl_writes_them),
                cmocka_unit_test(test_the_longest_duration_fits_its_buffer),
                cmocka_unit_test(test_invalid_durations_are_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
