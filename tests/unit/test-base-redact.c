/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords in messages. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/redact.h"

static void test_a_password_is_hidden(void **state) {
        static const struct {
                const char *text, *shown;
        } cases[] = {
                {"http://me:secret@host:1", "http://***@host:1"},
                {"http://token@host", "http://***@host"},
                {"me:secret@host", "***@host"},
                {"http://me:se/c,r@et@host/path", "http://***@host/path"},
                {"http://a,http://me:secret@b,http://c", "http://***@b,http://c"},
                {"http://@host", "http://***@host"},
                {"a:b@c://d", "***@c://d"},
                {"me:se://cret@host", "***@host"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char shown[64];

                assert_string_equal(hf__redact(cases[i].text, shown, sizeof shown), cases[i].shown);
        }
}

static void test_other_text_is_kept(void **state) {
        static const char *const texts[] = {"", "http://host:1", "/run/holdfastd@a.service/tokens",
                                            "@", "a@b:c"};

        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                char shown[64];

                assert_string_equal(hf__redact(texts[i], shown, sizeof shown), texts[i]);
        }
}

static void test_long_text_is_cut(void **state) {
        char shown[10];

        assert_string_equal(hf__redact("http://host:2379", shown, sizeof shown), "http://ho");
        assert_string_equal(hf__redact("http://me:secret@h", shown, sizeof shown), "http://**");
        assert_string_equal(hf__redact("x", shown, 1), "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_password_is_hidden),
                cmocka_unit_test(test_other_text_is_kept),
                cmocka_unit_test(test_long_text_is_cut),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
