/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log without memory or without random bytes from the kernel. */
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
#include "server/auth/write_file.h"
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

/* Handles a request of ann, who impersonates bob. is_short: the memory ends while bob is noted. */
static void impersonate(struct hfd_audit *audit, bool is_short) {
        static const struct hfd_attributes attributes = {.verb = "get",
                                                         .group = "",
                                                         .resource = "things",
                                                         .subresource = "",
                                                         .ns = "",
                                                         .name = "",
                                                         .path = "",
                                                         .is_resource = true};
        struct hfd_http_request *request = fake_request_new("GET", "/api/v1/things", "");
        struct hfd_request_context *context;
        struct hfd_user ann = {.n_groups = 0}, bob = {.n_groups = 0};

        assert_true(hfd_user_set_name(&ann, "ann") && hfd_user_set_name(&bob, "bob"));
        assert_int_equal(hfd_request_context_new(NULL, request, "ann", &context), 0);
        hfd_audit_filter_init(context, audit);
        hfd_audit_filter_begin(context, &ann, &attributes);
        if (is_short)
                failing_memory_arm(0);
        hfd_audit_filter_impersonated(context, &bob, "");
        assert_true(failing_memory_hit() || !is_short);
        failing_memory_disarm();
        hfd_audit_filter_decided(context, true, NULL);
        hfd_audit_filter_end(context, 200);
        hfd_http_request_reply(request, 200, "text/plain", NULL, 0, NULL);
        hfd_http_request_unref(request);
        fake_request_free(request);
}

static void find_lost(void *ctx, const char *text, size_t n) {
        const char *line = strstr(text, "\napiserver_audit_error_total{plugin=\"log\"} ");

        *(int *)ctx = line ? atoi(strrchr(line, '}') + 1) : -1;
}

/* Without the impersonated user, the event would say that ann herself has acted. */
static void test_no_event_lacks_the_impersonated_user(void **state) {
        struct hf_status status = {0};
        struct hfd_audit *audit;
        char *text = NULL;
        int n_lost = -1;

        assert_int_equal(make_audit(&audit, &status), 0);
        impersonate(audit, true);
        impersonate(audit, false);
        hfd_audit_free(audit);
        assert_int_equal(hfd_read_file(log_path, &text, NULL), 0);
        assert_non_null(strstr(text, "\"impersonatedUser\":{\"username\":\"bob\"}"));
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* one event */
        free(text);
        hf_metrics_write(host.metrics, find_lost, &n_lost);
        assert_int_equal(n_lost, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_missing_random_bytes_are_not_missing_memory,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_no_event_lacks_the_impersonated_user, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
