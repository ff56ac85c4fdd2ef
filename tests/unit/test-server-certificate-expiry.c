/* SPDX-License-Identifier: Apache-2.0 */
/* When generated certificates are renewed. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/certificates/certificate_expiry.h"
#include "server/server.h"

#define NOW_UNIX INT64_C(1800000000)
#define NOW      (100 * HF_NSEC_PER_SEC) /* boot time */

static hf_nsec read_real(void *ctx) { return NOW_UNIX * HF_NSEC_PER_SEC; }
static const struct hf_clock clock_of_test = {.size = sizeof clock_of_test, .real = read_real};

static struct hfd_server *server_with(int64_t renew_at) {
        static struct hfd_server server;

        server.host = (struct hf_host){.size = sizeof server.host, .clock = &clock_of_test};
        atomic_store(&server.renew_certificates_at, renew_at);
        return &server;
}

static void test_a_renewal_is_due_when_its_time_has_passed(void **state) {
        struct hfd_server *server = server_with(NOW_UNIX + 10);
        hf_nsec due = NOW + 11 * HF_NSEC_PER_SEC, next_try = 0;

        assert_int_equal(hfd_certificate_expiry_next(server, NOW, 0), due);
        assert_false(hfd_certificate_expiry_is_due(server, NOW, &next_try));
        server = server_with(NOW_UNIX - 10);
        assert_true(hfd_certificate_expiry_is_due(server, NOW, &next_try));
        assert_int_equal(next_try, NOW + 24 * 3600 * HF_NSEC_PER_SEC);
        assert_false(hfd_certificate_expiry_is_due(server, NOW, &next_try));
        assert_int_equal(hfd_certificate_expiry_next(server, NOW, next_try), next_try);
}

static void test_nothing_is_due_without_generated_certificates(void **state) {
        assert_int_equal(hfd_certificate_expiry_next(server_with(0), NOW, 0), HF_NSEC_NEVER);
}

/* RFC 5280 has this end for certificates that do not expire. It is too far for nanoseconds. */
static void test_a_certificate_of_the_year_9999_is_not_due(void **state) {
        struct hfd_server *server = server_with(INT64_C(253402300799));
        hf_nsec next_try = 0;

        assert_int_equal(hfd_certificate_expiry_next(server, NOW, 0), HF_NSEC_NEVER);
        assert_false(hfd_certificate_expiry_is_due(server, NOW, &next_try));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_renewal_is_due_when_its_time_has_passed),
                cmocka_unit_test(test_nothing_is_due_without_generated_certificates),
                cmocka_unit_test(test_a_certificate_of_the_year_9999_is_not_due),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
