/* SPDX-License-Identifier: Apache-2.0 */
/* Each format of strings accepts and refuses what Kubernetes accepts and refuses. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/resources/custom/schema/formats/formats.h"

static const struct {
        const char *format;
        const char *good[10], *bad[14];
} rows[] = {
        {"date",
         {"2026-11-24", "2024-02-29"},
         {"", "2026-2-1", "2026-02-29", "2026-13-01", "2026-11-24T", "2026/11/24"}},
        {"date-time",
         {"2026-11-24T00:00:00Z", "2026-11-24t23:59:59.123z", "2026-11-24T00:00:00+01:00",
          "2026-11-24T00:00:00\u00b75Z", "2026-11-24T00:00:00+12+01:00", "2026-11-24T00:00:00ZTx"},
         {"", "2026-11-24", "2026-11-24T24:00:00Z", "2026-11-24T00:60:00Z", "2026-11-24T00:00:00",
          "2026-11-24 00:00:00Z", "2026-11-24T00:00:00+1:00", "2026-11-24T00:00:00.Z",
          "2026-11-24T00:00:00\n5Z", "2026-11-24T00:00T:00Z", "2026-11-24T00:00:00.5Zx"}},
        {"duration",
         {"1h30m", "-1.5s", "0", "2 days", "1 week", "22 ns", "+3ms", "at 5 sec"},
         {"", "1", "s", "h1", "1.5", "1 lightyear"}},
        {"uuid",
         {"123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"},
         {"", "123e4567-e89b-12d3-a456-42661417400", "123e4567-e89b-12d3-a456-4266141740000",
          "123e4567--e89b12d3-a456-426614174000", "g23e4567-e89b-12d3-a456-426614174000",
          "-123e4567e89b12d3a456426614174000"}},
        {"uuid3",
         {"123e4567-e89b-32d3-a456-426614174000"},
         {"123e4567-e89b-42d3-a456-426614174000"}},
        {"uuid4",
         {"123e4567-e89b-42d3-a456-426614174000"},
         {"123e4567-e89b-42d3-c456-426614174000"}},
        {"uuid5",
         {"123e4567-e89b-52d3-B456-426614174000"},
         {"123e4567-e89b-12d3-a456-426614174000"}},
        {"ipv4",
         {"10.0.0.1", "010.0.0.1", "::ffff:1.2.3.4"},
         {"", "10.0.0", "10.0.0.256", "10.0.0.1.1", "1.2.3.", "a.b.c.d", "::1"}},
        {"ipv6", {"::1", "fe80::1", "::ffff:1.2.3.4"}, {"", "10.0.0.1", "1::2::3", "fe80::1%eth0"}},
        {"cidr",
         {"10.0.0.0/8", "::/0", "fe80::/128"},
         {"", "10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/", "/8", "10.0.0.0/8x"}},
        {"mac",
         {"00:00:5e:00:53:01", "00-00-5E-00-53-01", "0000.5e00.5301", "02:00:5e:10:00:00:00:01"},
         {"", "00:00:5e:00:53", "00:00:5e:00:53:0g", "00:00-5e:00:53:01", "00:00:5e:00:53:01:"}},
        {"uri",
         {"http://example.com/a?b#c", "/path", "mailto:a@b", "http://[::1]:80/", "*",
          "http://u:p@h:1/%20", "a:b", "http://h%25%C3/"},
         {"", "path", "example.com/a", "http://a b/", "http://h:x/", "http://h/%zz", ":x",
          "http://[::1", "1a:b", "http://h%41/", "http://h%C3%4", "http://h%C3%zz/"}},
        {"email",
         {"a@b", "a.b@c.d", "Some Name <a@b>", "\"q q\"@b", "a@[1.2.3.4]", "<a@b>"},
         {"", "a", "@b", "a@", "a@b c", "a..b@c", "a@b>", "Name <a@b", "\"q@b", "a b@c"}},
        {"hostname",
         {"a", "example.com", "1a.example.org", "a-b", "caf\u00e9.fr"},
         {"", "-a", "a-.com", "a..com", "example.c", "a_b", "a.com.", "example.c0m", "a b"}},
        {"byte", {"YQ==", "YWI=", "YWJj"}, {"", "YQ", "YQ=", "Y===", "YW-j", "YQ==YQ=="}},
        {"bsonobjectid", {"507f1f77bcf86cd799439011"}, {"", "507f1f77bcf86cd79943901", "x"}},
        {"isbn10", {"0321751043", "0-321-75104-3", "080442957X"}, {"", "0321751044", "032175104"}},
        {"isbn13", {"978-0321751041"}, {"", "978-0321751042", "0321751043"}},
        {"isbn", {"0321751043", "978 0321751041"}, {"1"}},
        {"creditcard", {"4111-1111-1111-1111", "378282246310005"}, {"", "4111111111111112", "1"}},
        {"ssn", {"111-11-1111", "111 11 1111"}, {"", "111111111", "111-11-11111", "11a-11-1111"}},
        {"hexcolor", {"#fff", "FFFFFF"}, {"", "#ff", "#fffff", "#ggg"}},
        {"rgbcolor",
         {"rgb(0,128,255)", "rgb( 1 , 2 , 3 )"},
         {"", "rgb(256,0,0)", "rgb(00,0,0)", "rgb(1,2)", "rgb(1,2,3"}},
        {"password", {"", "x"}, {NULL}},
        {"k8s-short-name", {"a", "a-b1"}, {"", "-a", "a-", "a.b", "A"}},
        {"k8s-long-name", {"a", "a-b.c1"}, {"", ".a", "a.", "a..b", "a-.b", "a.-b", "A"}},
        {"unknown", {"", "x"}, {NULL}},
};

static void test_formats(void **state) {
        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                for (const char *const *text = rows[i].good; text < rows[i].good + 10; text++)
                        if (*text && !hfd_custom_format_matches(rows[i].format, *text))
                                fail_msg("%s refuses %s", rows[i].format, *text);
                for (const char *const *text = rows[i].bad; text < rows[i].bad + 14; text++)
                        if (*text && hfd_custom_format_matches(rows[i].format, *text))
                                fail_msg("%s accepts %s", rows[i].format, *text);
        }
}

/* Looking at the rest of the host at each escape would take some minutes. */
static void test_a_host_of_escapes_is_checked_in_linear_time(void **state) {
        static char text[1024 * 1024] = "http://";
        size_t n = strlen(text);

        (void)state;
        for (; n + 3 < sizeof text; n += 3)
                memcpy(text + n, "%C3", 3);
        assert_true(hfd_custom_format_matches("uri", text));
        text[n - 1] = 'x';
        assert_false(hfd_custom_format_matches("uri", text));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_formats),
                cmocka_unit_test(test_a_host_of_escapes_is_checked_in_linear_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
