/* SPDX-License-Identifier: Apache-2.0 */
/* The Warning header of a deprecated version. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "server/handlers/rest/rest_request.h"

#define WARNING_MAX 256 /* bytes of a deprecationWarning that the validation accepts */

static void test_the_longest_warning_is_sent_whole(void **state) {
        char warning[WARNING_MAX + 1], expected[2 * WARNING_MAX + 16] = "299 - \"";
        char text[HFD_REST_WARNING_MAX];
        struct hfd_header header;

        memset(warning, '"', WARNING_MAX);
        warning[WARNING_MAX] = '\0';
        for (size_t i = 0; i < WARNING_MAX; i++)
                strcat(expected, "\\\"");
        strcat(expected, "\"");
        const struct hfd_resource resource = {.deprecation = warning};
        const struct hfd_request request = {.resource = &resource};
        assert_int_equal(hfd_rest_deprecation_header(&request, text, &header), 1);
        assert_string_equal(header.name, "warning");
        assert_string_equal(header.value, expected);
}

/* Without a text of its own, a custom kind's warning names group, version and kind. */
static void test_the_longest_names_are_sent_whole(void **state) {
        char group[254], version[64], kind[64], warning[512], expected[528];
        char text[HFD_REST_WARNING_MAX];
        struct hfd_header header;

        memset(group, 'g', sizeof group);
        memset(version, 'v', sizeof version);
        memset(kind, 'K', sizeof kind);
        group[sizeof group - 1] = version[sizeof version - 1] = kind[sizeof kind - 1] = '\0';
        (void)snprintf(warning, sizeof warning, "%s/%s %s is deprecated", group, version, kind);
        (void)snprintf(expected, sizeof expected, "299 - \"%s\"", warning);
        const struct hfd_resource resource = {.deprecation = warning};
        const struct hfd_request request = {.resource = &resource};
        assert_int_equal(hfd_rest_deprecation_header(&request, text, &header), 1);
        assert_string_equal(header.value, expected);
}

/* Such a text can come from the store only. */
static void test_a_text_that_is_too_long_is_cut_after_a_character(void **state) {
        static const char *const ends[] = {"", "a", "\"", "\xe2\x82\xac"};
        char warning[HFD_REST_WARNING_MAX + 16], text[HFD_REST_WARNING_MAX];
        struct hfd_header header;

        for (size_t n = HFD_REST_WARNING_MAX - 20; n < HFD_REST_WARNING_MAX; n++)
                for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
                        memset(warning, 'w', n);
                        (void)snprintf(&warning[n], 16, "%s%s", ends[i], "\xe2\x82\xac!");
                        const struct hfd_resource resource = {.deprecation = warning};
                        const struct hfd_request request = {.resource = &resource};
                        assert_int_equal(hfd_rest_deprecation_header(&request, text, &header), 1);
                        size_t size = strlen(header.value);
                        assert_true(hf__utf8_valid(header.value, size));
                        assert_true(size < HFD_REST_WARNING_MAX);
                        assert_int_equal(header.value[size - 1], '"');
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_longest_warning_is_sent_whole),
                cmocka_unit_test(test_the_longest_names_are_sent_whole),
                cmocka_unit_test(test_a_text_that_is_too_long_is_cut_after_a_character),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
