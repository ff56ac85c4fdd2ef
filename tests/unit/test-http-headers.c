/* SPDX-License-Identifier: Apache-2.0 */
/* Which headers of a response are sent. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/http/request/response_header.h"

/* The bytes that are accepted in names and values. RFC 9110 (5.6.2) allows fewer in names, and
 * names in upper case are accepted too. */
static bool may_be_in_name(unsigned char c) { return c > ' ' && c < 0x7f && c != ':'; }
static bool may_be_in_value(unsigned char c) { return (c >= ' ' && c != 0x7f) || c == '\t'; }

static void test_each_byte_is_checked_at_each_place(void **state) {
        for (size_t n = 1; n < 20; n++)
                for (size_t at = 0; at < n; at++)
                        for (unsigned c = 1; c < 256; c++) {
                                struct hfd_checked_header header;
                                char text[32];

                                memset(text, 'a', n);
                                text[n] = '\0';
                                text[at] = (char)c;
                                assert_int_equal(hfd_header_check(text, "v", &header),
                                                 may_be_in_name((unsigned char)c));
                                assert_int_equal(hfd_header_check("name", text, &header),
                                                 may_be_in_value((unsigned char)c));
                        }
}

static void test_the_server_decides_about_the_framing(void **state) {
        static const char *const framing[] = {"content-length", "connection", "transfer-encoding",
                                              ""};
        struct hfd_checked_header header = {0};

        for (size_t i = 0; i < sizeof framing / sizeof framing[0]; i++)
                assert_false(hfd_header_check(framing[i], "1", &header));
        assert_null(header.name);
        assert_true(hfd_header_check("content-lengths", "", &header));
        assert_int_equal(header.n_name, 15);
        assert_int_equal(header.n_value, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_byte_is_checked_at_each_place),
                cmocka_unit_test(test_the_server_decides_about_the_framing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
