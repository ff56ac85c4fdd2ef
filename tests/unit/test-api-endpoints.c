/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoints beside the API: health, version and metrics. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <holdfast/metrics.h>

#include "base/json.h"
#include "fake_request.h"
#include "server/filters/request_context.h"
#include "server/handlers/healthz.h"
#include "server/handlers/metrics_handler.h"
#include "server/handlers/version_handler.h"

static struct hf_host host = {.size = sizeof host};
static struct hfd_router *router;
static struct hfd_healthz *healthz;
static struct hfd_metrics_handler *metrics;
static bool etcd_is_well, user_is_admin;
static int n_ready;

static bool check_etcd(void *ctx, char *reason, size_t max_reason) {
        snprintf(reason, max_reason, "etcd is asleep");
        return etcd_is_well;
}
static void on_ready(void *ctx) { n_ready++; }

static int set_up(void **state) {
        n_ready = 0;
        etcd_is_well = true;
        assert(hf_metrics_new(&host.metrics) == 0 && hf_health_new(&host.health) == 0 &&
               hfd_router_new(&router) == 0);
        assert(hfd_healthz_new(&host, on_ready, NULL, &healthz) == 0);
        assert(hfd_healthz_install(healthz, router) == 0);
        assert(hfd_metrics_handler_new(&host, NULL, &metrics) == 0);
        assert(hfd_router_add(router, "/metrics", hfd_metrics_handle, metrics) == 0);
        assert(hfd_router_add(router, "/version", hfd_version_handle, NULL) == 0);
        assert(hf_health_add(host.health, "etcd", HF_HEALTHZ | HF_READYZ, check_etcd, NULL) == 0);
        assert(hf_health_add(host.health, "poststarthook/a", HF_LIVEZ | HF_READYZ, check_etcd,
                             NULL) == 0);
        return 0;
}

static int tear_down(void **state) {
        healthz = hfd_healthz_free(healthz);
        metrics = hfd_metrics_handler_free(metrics);
        router = hfd_router_free(router);
        host.health = hf_health_free(host.health);
        host.metrics = hf_metrics_free(host.metrics);
        return 0;
}

static struct hfd_http_request *get(const char *path, const char *query) {
        struct hfd_http_request *request = fake_request_new("GET", path, query);
        struct hfd_request_context *context;
        assert(hfd_request_context_new(NULL, request, "", &context) == 0);
        context->is_admin = user_is_admin;
        hfd_http_handler handler = NULL;
        void *ctx = NULL;
        assert(hfd_router_find(router, path, &handler, &ctx) == 0);
        handler(ctx, request);
        return request;
}

static void expect(const char *path, const char *query, int code, const char *body) {
        struct hfd_http_request *request = get(path, query);
        assert_int_equal(request->code, code);
        assert_string_equal(request->body, body);
        assert_string_equal(request->content_type, "text/plain; charset=utf-8");
        assert_non_null(strstr(request->headers, "x-content-type-options: nosniff\n"));
        fake_request_free(request);
}

static void test_health_endpoints_list_their_checks(void **state) {
        expect("/healthz", "", 200, "ok");
        expect("/livez/", "", 200, "ok");
        expect("/readyz", "verbose", 200,
               "[+]ping ok\n[+]etcd ok\n[+]poststarthook/a ok\nreadyz check passed\n");
        expect("/livez", "verbose=1", 200,
               "[+]ping ok\n[+]poststarthook/a ok\nlivez check passed\n");
        expect("/readyz/etcd", "", 200, "ok");
        expect("/readyz/poststarthook/a", "", 200, "ok");
        expect("/livez/etcd", "", 404, "404 page not found\n");
}

static void test_a_failing_check_is_listed_without_its_reason(void **state) {
        etcd_is_well = false;
        expect("/healthz", "", 500,
               "[+]ping ok\n[-]etcd failed: reason withheld\nhealthz check failed\n");
        expect("/healthz/etcd", "", 500, "internal server error: reason withheld\n");
        user_is_admin = true;
        expect("/healthz/etcd", "", 500, "internal server error: etcd is asleep\n");
        user_is_admin = false;
        expect("/healthz/ping", "", 200, "ok");
        expect("/healthz", "exclude=etcd", 200, "ok");
        expect("/healthz", "verbose&exclude=etcd&exclude=x&exclude=y&exclude=x", 200,
               "[+]ping ok\n[+]etcd excluded: ok\nwarn: some health checks cannot be excluded: no "
               "matches for \"x\",\"y\"\nhealthz check "
               "passed\n");
}

static void expect_metrics(const char *path, const char *const lines[], bool found) {
        struct hfd_http_request *request = get(path, "");

        assert_int_equal(request->code, 200);
        assert_string_equal(request->content_type, "text/plain; version=0.0.4; charset=utf-8");
        for (size_t i = 0; lines[i]; i++)
                assert_int_equal(strstr(request->body, lines[i]) != NULL, found);
        fake_request_free(request);
}

static bool is_well(void *ctx, char *reason, size_t max_reason) { return true; }

static void test_results_of_checks_are_metrics(void **state) {
        const char *const results[] =
                {"# TYPE kubernetes_healthcheck gauge\n",
                 "\nkubernetes_healthcheck{name=\"etcd\",type=\"healthz\"} 0\n",
                 "\nkubernetes_healthcheck{name=\"ping\",type=\"healthz\"} 1\n",
                 "# TYPE kubernetes_healthchecks_total counter\n",
                 "\nkubernetes_healthchecks_total{name=\"etcd\",type=\"healthz\",status="
                 "\"success\"} 2\n",
                 "\nkubernetes_healthchecks_total{name=\"etcd\",type=\"healthz\",status=\"error\"} "
                 "1\n",
                 "\nkubernetes_healthchecks_total{name=\"ping\",type=\"healthz\",status="
                 "\"success\"} 3\n",
                 "\nkubernetes_healthchecks_total{name=\"a\\\"\\\\\\nb\",type=\"livez\",status="
                 "\"success\"} 1\n",
                 "\nprocess_start_time_seconds ",
                 NULL};
        const char *const absent[] = {"readyz", "poststarthook/a\",type=\"healthz", NULL};
        const char *const elsewhere[] = {"kubernetes_healthcheck", NULL};

        assert_int_equal(hf_health_add(host.health, "a\"\\\nb", HF_LIVEZ, is_well, NULL), 0);
        fake_request_free(get("/healthz", ""));
        fake_request_free(get("/healthz/", "verbose"));
        etcd_is_well = false;
        fake_request_free(get("/healthz", ""));
        fake_request_free(get("/livez", ""));
        /* An excluded check and a check that is asked for alone do not count, as in Kubernetes. */
        fake_request_free(get("/healthz", "exclude=etcd&exclude=ping"));
        fake_request_free(get("/readyz/etcd", ""));
        expect_metrics("/metrics/slis", results, true);
        expect_metrics("/metrics/slis", absent, false);
        expect_metrics("/metrics", elsewhere, false);
}

static void test_too_many_excludes_are_refused(void **state) {
        char query[2048] = "";
        for (int i = 0; i < 40; i++)
                sprintf(query + strlen(query), "exclude=c%d&", i);
        struct hfd_http_request *request = get("/healthz", query);
        assert_int_equal(request->code, 400);
        fake_request_free(request);
}

static void test_on_ready_is_called_once(void **state) {
        etcd_is_well = false;
        fake_request_free(get("/readyz", ""));
        fake_request_free(get("/readyz", "exclude=etcd&exclude=poststarthook/a"));
        fake_request_free(get("/healthz", ""));
        assert_int_equal(n_ready, 0);
        etcd_is_well = true;
        fake_request_free(get("/livez", ""));
        assert_int_equal(n_ready, 0);
        fake_request_free(get("/readyz", ""));
        fake_request_free(get("/readyz", ""));
        assert_int_equal(n_ready, 1);
}

static void test_version_has_the_versions_of_kubernetes_and_holdfast(void **state) {
        struct hfd_http_request *request = get("/version", "");
        struct hf__json *json = NULL;
        assert_int_equal(request->code, 200);
        assert_string_equal(request->content_type, "application/json");
        assert_int_equal(hf__json_parse(request->body, request->n_body, &json, NULL), 0);
        assert_string_equal(hf__json_string(json, "major"), "1");
        assert_string_equal(hf__json_string(json, "minor"), "36");
        assert_string_equal(hf__json_string(json, "gitVersion"), "v1.36.0+holdfast-" HFD_VERSION);
        hf__json_free(json);
        fake_request_free(request);
}

static double metric(const char *text, const char *name) {
        char line[128];
        snprintf(line, sizeof line, "\n%s ", name);
        const char *at = strstr(text, line);
        return at ? strtod(at + strlen(line), NULL) : -1;
}

static void test_metrics_include_process_metrics(void **state) {
        struct hfd_http_request *request = get("/metrics", "");
        const struct hf_clock *clock = hf_clock_system();
        double now = (double)clock->real(clock->ctx) / 1e9;
        assert_int_equal(request->code, 200);
        assert_string_equal(request->content_type, "text/plain; version=0.0.4; charset=utf-8");
        assert_true(metric(request->body, "process_resident_memory_bytes") > 100e3);
        assert_true(metric(request->body, "process_open_fds") >= 3);
        assert_true(metric(request->body, "process_cpu_seconds_total") > 0);
        double started = metric(request->body, "process_start_time_seconds");
        assert_true(started > now - 600 && started < now + 1);
        fake_request_free(request);
}

static void test_other_methods_than_get_are_refused(void **state) {
        hfd_http_handler handler = NULL;
        void *ctx = NULL;
        struct hfd_http_request *request = fake_request_new("POST", "/version", "");
        assert_int_equal(hfd_router_find(router, "/version", &handler, &ctx), 0);
        handler(ctx, request);
        assert_int_equal(request->code, 405);
        fake_request_free(request);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_health_endpoints_list_their_checks, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_failing_check_is_listed_without_its_reason,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_results_of_checks_are_metrics, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_too_many_excludes_are_refused, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_on_ready_is_called_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_version_has_the_versions_of_kubernetes_and_holdfast, set_up,
                        tear_down),
                cmocka_unit_test_setup_teardown(test_metrics_include_process_metrics, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_other_methods_than_get_are_refused, set_up,
                                                tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
