/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log when the memory or the kernel's random bytes run short. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <cmocka.h>

#include <holdfast/error.h>
#include <holdfast/metrics.h>

#include "failing_memory.h"
#include "fake_request.h"
#include "server/audit/audit.h"
#include "server/auth/files.h"
#include "server/filters/audit.h"

static const char policy[] = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
                             "omitStages: [RequestReceived]\nrules:\n- level: Metadata\n";
static struct hf_host host = {.size = sizeof host};
static char directory[64], policy_path[128], log_path[128];

/* The linker redirects getrandom here. */
static bool has_no_random;
ssize_t __real_getrandom(void *buf, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *buf, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *buf, size_t n, unsigned flags) {
        if (!has_no_random)
                return __real_getrandom(buf, n, flags);
        errno = ENOSYS;
        return -1;
}

static int set_up(void **state) {
        (void)snprintf(directory, sizeof directory, "/tmp/test-audit-XXXXXX");
        assert_non_null(mkdtemp(directory));
        (void)snprintf(policy_path, sizeof policy_path, "%s/policy", directory);
        (void)snprintf(log_path, sizeof log_path, "%s/log", directory);
        assert_int_equal(hfd_write_file(policy_path, policy, 0600, NULL), 0);
        return hf_metrics_new(&host.metrics);
}

static int tear_down(void **state) {
        host.metrics = hf_metrics_free(host.metrics);
        (void)unlink(log_path);
        return unlink(policy_path) | rmdir(directory);
}

static int make_audit(struct hfd_audit **ret_audit, struct hf_status *reterr_status) {
        const struct hfd_audit_config config = {.policy_file = policy_path,
                                                .log = {.path = log_path}};

        return hfd_audit_new(&host, &config, ret_audit, reterr_status);
}

static void test_missing_random_bytes_are_not_missing_memory(void **state) {
        struct hf_status status = {0};
        struct hfd_audit *audit = NULL;

        has_no_random = true;
        int r = make_audit(&audit, &status);
        has_no_random = false;
        assert_int_equal(r, -EIO);
        assert_non_null(strstr(status.message, "random"));
        assert_null(strstr(status.message, "memory"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_missing_random_bytes_are_not_missing_memory,
                                                set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
