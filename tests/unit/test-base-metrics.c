/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as Prometheus text, and the list of health checks. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>
#include <holdfast/health.h>
#include <holdfast/metrics.h>

#include "base/strbuf.h"

static void collect_text(void *ctx, const char *text, size_t n) { hf__strbuf_add(ctx, text, n); }
static void *add_many(void *ctx) {
        for (int i = 0; i < 1000; i++)
                hf_metric_add(ctx, 1);
        return NULL;
}
static void set_gauge(void *ctx) { hf_metric_set(ctx, 2.5); }

static void test_metrics_are_written_as_prometheus_text(void **state) {
        struct hf_metrics *metrics;
        struct hf__strbuf out = {0};
        pthread_t thread[2];

        assert_int_equal(hf_metrics_new(&metrics), 0);
        struct hf_metric *counter =
                hf_metrics_get(metrics, HF_METRIC_COUNTER, "c_total", "Counts.", "a=\"b\"");
        struct hf_metric *gauge = hf_metrics_get(metrics, HF_METRIC_GAUGE, "g", "Gauges.", "");
        struct hf_metric *histogram =
                hf_metrics_get(metrics, HF_METRIC_HISTOGRAM, "h_seconds", "Times.", "");
        assert_ptr_equal(counter, hf_metrics_get(metrics, HF_METRIC_COUNTER, "c_total", "Counts.",
                                                 "a=\"b\""));
        assert_null(hf_metrics_get(metrics, HF_METRIC_GAUGE, "c_total", "", ""));
        for (int i = 0; i < 2; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, add_many, counter), 0);
        for (int i = 0; i < 2; i++)
                pthread_join(thread[i], NULL);
        hf_metric_observe(histogram, 0.002);
        hf_metric_observe(histogram, 100);
        assert_int_equal(hf_metrics_add_collector(metrics, set_gauge, gauge), 0);
        hf_metrics_write(metrics, collect_text, &out);
        assert_non_null(
                strstr(out.data,
                       "# HELP c_total Counts.\n# TYPE c_total counter\nc_total{a=\"b\"} 2000\n"));
        assert_non_null(strstr(out.data, "\ng 2.5\n"));
        assert_non_null(strstr(out.data, "h_seconds_bucket{le=\"0.001\"} 0\n"));
        assert_non_null(strstr(out.data, "h_seconds_bucket{le=\"0.0025\"} 1\n"));
        assert_non_null(strstr(out.data, "h_seconds_bucket{le=\"+Inf\"} 2\nh_seconds_sum "
                                         "100.002\nh_seconds_count 2\n"));
        hf_metrics_remove_collector(metrics, set_gauge, gauge);
        hf_metric_add(NULL, 1);
        assert_null(hf_metrics_get(NULL, HF_METRIC_GAUGE, "x", "", ""));
        hf__strbuf_done(&out);
        hf_metrics_free(metrics);
}

static bool check(void *ctx, char *reason, size_t max_reason) {
        if (*(int *)ctx)
                return true;
        memcpy(reason, "sick", 5);
        return false;
}
static void print_check(void *ctx, const char *name, bool healthy, const char *reason) {
        hf__strbuf_printf(ctx, "%s=%d%s;", name, healthy, reason);
}

static void test_a_full_registry_makes_no_families(void **state) {
        struct hf_metrics *metrics;
        struct hf__strbuf out = {0};
        char name[32];

        assert_int_equal(hf_metrics_new(&metrics), 0);
        for (int i = 0; i <= HF_METRICS_MAX; i++) {
                (void)snprintf(name, sizeof name, "m_%d", i);
                struct hf_metric *metric =
                        hf_metrics_get(metrics, HF_METRIC_COUNTER, name, "Counts.", "");
                assert_true((metric != NULL) == (i < HF_METRICS_MAX));
        }
        hf_metrics_write(metrics, collect_text, &out);
        assert_non_null(strstr(out.data, "# TYPE m_4095 "));
        assert_null(strstr(out.data, "m_4096"));
        hf__strbuf_done(&out);
        hf_metrics_free(metrics);
}

static void test_health_checks_are_enumerated(void **state) {
        struct hf_health *health;
        struct hf__strbuf out = {0};
        int good = 1, bad = 0;

        assert_int_equal(hf_health_new(&health), 0);
        assert_int_equal(hf_health_add(health, "b", HF_LIVEZ | HF_READYZ, check, &good), 0);
        assert_int_equal(hf_health_add(health, "a", HF_READYZ, check, &bad), 0);
        assert_int_equal(hf_health_add(health, "a", HF_READYZ, check, &bad), HF_E_EXISTS);
        assert_int_equal(hf_health_each(health, HF_READYZ, print_check, &out), 1);
        assert_string_equal(out.data, "b=1;a=0sick;");
        assert_int_equal(hf_health_each(health, HF_LIVEZ, NULL, NULL), 0);
        hf_health_remove(health, "a");
        hf_health_remove(health, "nobody");
        assert_int_equal(hf_health_each(health, HF_READYZ, NULL, NULL), 0);
        hf__strbuf_done(&out);
        hf_health_free(health);
}

int main(void) {
        const struct CMUnitTest tests[] = {cmocka_unit_test(
                                                   test_metrics_are_written_as_prometheus_text),
                                           cmocka_unit_test(test_a_full_registry_makes_no_families),
                                           cmocka_unit_test(test_health_checks_are_enumerated)};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
