/* SPDX-License-Identifier: Apache-2.0 */
/* The address that an instance publishes. */
#undef NDEBUG
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/process/advertise.h"

static void test_a_given_address_is_published(void **state) {
        static const char *const cases[][3] = {
                {"", "127.0.0.1", "127.0.0.1"},
                {"", "2001:db8::7", "2001:db8::7"},
                {"192.0.2.7", "0.0.0.0", "192.0.2.7"},
                {"2001:db8::7", "127.0.0.1", "2001:db8::7"},
        };
        char address[INET6_ADDRSTRLEN];
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                hfd_advertise_address(cases[i][0], cases[i][1], address);
                assert_string_equal(address, cases[i][2]);
        }
}

/* The published address depends on the host. Other hosts must be able to connect to it, which they
 * cannot with a wildcard. */
static void test_a_wildcard_is_never_published(void **state) {
        static const char *const wildcards[] = {"0.0.0.0", "::", "0::0"};
        char address[INET6_ADDRSTRLEN];
        struct in6_addr v6;
        struct in_addr v4;
        for (size_t i = 0; i < sizeof wildcards / sizeof wildcards[0]; i++) {
                hfd_advertise_address("", wildcards[i], address);
                if (inet_pton(AF_INET, address, &v4) == 1)
                        assert_int_not_equal(v4.s_addr, INADDR_ANY);
                else
                        assert_true(inet_pton(AF_INET6, address, &v6) == 1 &&
                                    !IN6_IS_ADDR_UNSPECIFIED(&v6));
        }
        hfd_advertise_address("", "0.0.0.0", address);
        assert_null(strchr(address, ':'));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_given_address_is_published),
                cmocka_unit_test(test_a_wildcard_is_never_published),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
