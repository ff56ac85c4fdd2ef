/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of the bootstrap, and their order. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bootstrap/version.h"

static void test_invalid_versions_are_refused(void **state) {
        static const char *const good[] = {"0",          "1.2",
                                           "1.2.3",      "0.1.0",
                                           "1.0.0-rc.1", "1.0.0-alpha-2.x+build.5",
                                           "1.0+5",      "99999999999",
                                           "1.0.0-0",    "1.0.0-SNAPSHOT"};
        static const char *const bad[] =
                {"",
                 "v1.0",
                 "1.",
                 "1..2",
                 "1.2.3.4",
                 "1.2.3-",
                 "1.2.3-a..b",
                 "1.2.3 ",
                 "1.2.3+",
                 "a",
                 "1.0.0-0123456789012345678901234567890123456789012345678901234567890123456789"};

        for (size_t i = 0; i < sizeof good / sizeof *good; i++)
                assert_true(hf__version_valid(good[i]));
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
                assert_false(hf__version_valid(bad[i]));
        assert_false(hf__version_valid(NULL));
        char longest[HF__VERSION_MAX + 2];
        memset(longest, '1', sizeof longest);
        longest[HF__VERSION_MAX] = '\0';
        assert_true(hf__version_valid(longest));
        longest[HF__VERSION_MAX] = '1';
        longest[HF__VERSION_MAX + 1] = '\0';
        assert_false(hf__version_valid(longest));
}

/* semver 11: each is less than the next one. */
static void test_versions_are_ordered(void **state) {
        static const char *const rising[] = {"0.1",
                                             "0.2.0-1",
                                             "0.2.0-1.1",
                                             "0.2.0-2",
                                             "0.2.0-11",
                                             "0.2.0-a",
                                             "0.2.0-alpha",
                                             "0.2.0-alpha.1",
                                             "0.2.0-alpha.beta",
                                             "0.2.0-beta",
                                             "0.2.0-rc",
                                             "0.2.0-rc.2",
                                             "0.2.0-rc.2.x",
                                             "0.2.0-rc.11",
                                             "0.2.0-rc0",
                                             "0.2.0-rc00",
                                             "0.2.0-rc1",
                                             "0.2",
                                             "0.2.1",
                                             "0.10.0",
                                             "1",
                                             "1.0.1",
                                             "2.0.0",
                                             "10.0.0",
                                             "123456789012345678901.0"};
        const size_t n = sizeof rising / sizeof *rising;

        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < n; k++) {
                        int order = hf__version_compare(rising[i], rising[k]);
                        assert_int_equal(order < 0 ? -1 : order > 0, i < k ? -1 : i > k);
                }
}

/* Also where more text follows, which does not belong to the pre-release. */
static void test_a_pre_release_with_fewer_identifiers_is_older(void **state) {
        assert_true(hf__version_compare("1.0.0-rc+2", "1.0.0-rc.1") < 0);
        assert_true(hf__version_compare("1.0.0-rc.1", "1.0.0-rc+2") > 0);
}

static void test_equal_versions_compare_as_equal(void **state) {
        assert_int_equal(hf__version_compare("1", "1.0.0"), 0);
        assert_int_equal(hf__version_compare("1.0", "1.0.0+7"), 0);
        assert_int_equal(hf__version_compare("1.0.0-rc.01", "1.0.0-rc.1"), 0);
        assert_int_equal(hf__version_compare("1.0.0-rc.1+a", "1.0.0-rc.1+b"), 0);
        assert_int_equal(hf__version_compare("01.2.3", "1.2.3"), 0);
        assert_int_equal(hf__version_compare("1.2.3", "001.02.03"), 0);
        assert_int_equal(hf__version_compare("0.0", "00.000"), 0);
        assert_true(hf__version_compare("010", "9") > 0);
        assert_true(hf__version_compare("9", "010") < 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_invalid_versions_are_refused),
                cmocka_unit_test(test_versions_are_ordered),
                cmocka_unit_test(test_a_pre_release_with_fewer_identifiers_is_older),
                cmocka_unit_test(test_equal_versions_compare_as_equal),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
