/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures in a phase: when the phase tries again, what it reports, and when it releases the Lease
 * for another instance. The clock jumps, so the pauses are exact.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/bootstrap.h>

#include "bootstrap/phase.h"
#include "bootstrap/phase_run.h"
#include "phase_fixture.h"
#include "text_asserts.h"

/* ---- failures ---- */

/* Asserts the times of the first n writes, in milliseconds after the very first one. */
static void assert_writes_at(const struct phase_fixture *f, const hf_nsec *times, size_t n) {
        assert_true(f->n_writes >= n);
        for (size_t i = 0; i < n; i++)
                assert_int_equal((f->write_times[i] - f->write_times[0]) / MSEC, times[i]);
}

static void test_the_pause_after_a_failure_doubles_up_to_ten_seconds(void **state) {
        static const hf_nsec times[] = {0,    100,   300,   700,   1500, 3100,
                                        6300, 12700, 22700, 32700, 42700};
        struct phase_fixture *f = phase_fixture_new();
        struct hf_bootstrap_info info = {.size = sizeof info};

        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 10);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_writes_at(f, times, sizeof times / sizeof times[0]);
        assert_metric(f->host.metrics, "holdfast_bootstrap_step_failures_total{phase=\"zero\"} 10");
        assert_metric(f->host.metrics, "holdfast_bootstrap_failing{phase=\"zero\"} 0");
        assert_int_equal(f->last_info.n_failures, 0);
        assert_string_equal(f->last_info.message, "");
        hf_bootstrap_info(f->bootstrap, 0, &info);
        assert_int_equal(info.n_failures, 0);
        assert_string_equal(info.message, "");
        assert_false(info.failing);
        /* After each failure the ledger is read again, with a consistent read. */
        assert_in(f->requests, FIRST_READ CREATE_STEP);
        assert_in(f->requests, SAFE_READ CREATE_STEP SAFE_READ CREATE_STEP SAFE_READ);
        phase_fixture_free(f);
}

static void test_a_failure_names_the_manifest_the_step_and_the_reason(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 5);
        f->drain_at = 1400 * MSEC; /* during the fifth pause */
        assert_int_equal(phase_fixture_lead(f), HF_E_CANCELED);
        assert_string_equal(f->last_info.message,
                            "dir/a.json: document 1, line 1 (ConfigMap/default/a): the test says: "
                            "forbidden");
        assert_string_equal(f->last_info.step, "ConfigMap/default/a");
        assert_int_equal(f->last_info.n_failures, 5);
        assert_true(f->last_info.failing && f->last_info.running);
        assert_in(f->reason, "zero fails at ConfigMap/default/a: dir/a.json");
        assert_in(f->ready, "not complete, it fails at ConfigMap/default/a: dir/a.json");
        assert_metric(f->host.metrics,
                      "holdfast_bootstrap_failing{phase=\"zero\"} 0"); /* the term is over */
        /* The log has the first, second, fourth failure ... */
        assert_in(f->log, "4 bootstrap: zero fails, try 1: dir/a.json: document 1, line 1 "
                          "(ConfigMap/default/a): the test says: forbidden\n");
        assert_in(f->log, "zero fails, try 2: ");
        assert_null(strstr(f->log, "try 3: "));
        assert_in(f->log, "zero fails, try 4: ");
        assert_null(strstr(f->log, "try 5: "));
        assert_int_equal(f->n_started, 0);
        assert_false(phase_fixture_is_settled(f));
        struct hf_bootstrap_info info = {
                .size = sizeof info}; /* the info of a phase whose term has ended */
        hf_bootstrap_info(f->bootstrap, 0, &info);
        assert_false(info.failing || info.running);
        assert_int_equal(info.n_failures, 0);
        assert_string_equal(info.step, "");
        assert_string_equal(info.message, "");
        phase_fixture_free(f);
}

/* A message names the object first. If it is long, only what follows the name fits. */
static void test_a_long_message_begins_after_the_name_of_the_object(void **state) {
        static const char place[] = "dir/a.json: document 1, line 1 (ConfigMap/default/a): ",
                          what[] = "is invalid: data: Too long";
        char message[400], name[400], expected[600];

        memset(name, 'n', sizeof name);
        for (int n_name = 1; n_name < 300; n_name += 149) {
                struct phase_fixture *f = phase_fixture_new();
                int n = snprintf(message, sizeof message, "ConfigMap \"%.*s\" %s", n_name, name,
                                 what);
                f->message = message;
                phase_fixture_fail(f, PHASE_REFUSED, HF_E_INVALID, 0, 1);
                assert_int_equal(phase_fixture_lead(f), 0);
                (void)snprintf(expected, sizeof expected, "%s%s\n", place,
                               n > 180 ? what : message);
                assert_in(f->log, expected);
                phase_fixture_free(f);
        }
        /* Without such a name the end is left out. */
        struct phase_fixture *f = phase_fixture_new();
        name[300] = '\0';
        f->message = name;
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_INVALID, 0, 1);
        assert_int_equal(phase_fixture_lead(f), 0);
        (void)snprintf(expected, sizeof expected, "%s%.180s\n", place, name);
        assert_in(f->log, expected);
        phase_fixture_free(f);
}

static void test_a_failure_of_the_ledger_names_it(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        f->faults_reads = true;
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_UNAVAILABLE, 0, 1);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_in(f->log,
                  "zero fails, try 1: ledger kube-system/holdfast-bootstrap: the test says: ");
        assert_in(f->progress, "failing - 0/2 failing\nbegun ConfigMap/default/a 0/2 failing\n");
        assert_in(f->reason, "healthy");
        phase_fixture_free(f);
}

static void test_a_failure_of_the_ledger_after_one_of_a_step_names_the_ledger(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        f->faults_all = true;
        /* The create fails, and then the next read. */
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_UNAVAILABLE, 1, 2);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_in(f->log, "try 1: dir/a.json");
        assert_in(f->log, "try 2: ledger kube-system/holdfast-bootstrap: ");
        assert_in(f->progress, "failing ConfigMap/default/a 0/2 failing\nfailing - 0/2 failing\n");
        phase_fixture_free(f);
}

static void test_any_read_may_be_refused_or_garbled(void **state) {
        for (unsigned n = 0; n < 3; n++)
                for (unsigned i = 0; i < 2; i++) {
                        struct phase_fixture *f = phase_fixture_new();
                        assert_int_equal(phase_fixture_lead(f), 0);
                        phase_fixture_load(f, "2.0.0", PHASE_FIXTURE_CONFIGMAP("a", "2"),
                                           PHASE_FIXTURE_CONFIGMAP("b", "2"));
                        f->faults_reads = true;
                        phase_fixture_fail(f, i == 0 ? PHASE_REFUSED : PHASE_GARBLED,
                                           HF_E_UNAVAILABLE, n, 1);
                        assert_int_equal(phase_fixture_lead(f), 0);
                        assert_int_equal(f->n_fault, 0);
                        assert_in(f->progress, " failing");
                        assert_in(phase_fixture_text(f, "configmaps/default/a"), "\"k\":\"2\"");
                        assert_in(phase_fixture_text(f, "configmaps/default/b"), "\"k\":\"2\"");
                        assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/a"), 2);
                        assert_int_equal(phase_fixture_n_commits(f, PHASE_FIXTURE_LEDGER), 6);
                        phase_fixture_free(f);
                }
}

static void test_an_event_counts_the_failures_that_are_logged(void **state) {
        struct phase_fixture *f = phase_fixture_new();
        const char *key = NULL;

        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 5);
        assert_int_equal(phase_fixture_lead(f), 0);
        for (size_t i = 0; i < f->store.n_objects; i++)
                if (strncmp(f->store.objects[i]->key, "events/", 7) == 0) {
                        assert_null(key); /* one Event for each phase and step */
                        key = f->store.objects[i]->key;
                }
        assert_non_null(key);
        assert_memory_equal(key, "events/kube-system/holdfast-bootstrap.", 38);
        assert_int_equal(strlen(key), 38 + 16);
        const char *text = phase_fixture_text(f, key);
        assert_in(text, "\"count\":3");
        assert_in(text, "\"firstTimestamp\":\"2026-01-02T03:04:05");
        assert_in(text, "\"lastTimestamp\":\"2026-01-02T03:04:05");
        assert_in(text, "\"reason\":\"BootstrapFailed\"");
        assert_in(text, "\"type\":\"Warning\"");
        assert_in(text, "dir/a.json: document 1, line 1 (ConfigMap/default/a): the test says: "
                        "forbidden");
        assert_in(text, "\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                        "\"namespace\":\"kube-system\",\"name\":\"holdfast-bootstrap\"}");
        /* Under another leader, much later, the count continues. */
        f->epoch = 3600 * SEC;
        phase_fixture_load(f, "2.0.0", PHASE_FIXTURE_CONFIGMAP("a", "2"), NULL);
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 1);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_in(phase_fixture_text(f, key), "\"count\":4");
        assert_in(phase_fixture_text(f, key), "\"firstTimestamp\":\"2026-01-02T03:04:05");
        assert_in(phase_fixture_text(f, key), "\"lastTimestamp\":\"2026-01-02T04:04:05");
        phase_fixture_free(f);
}

int __real_hf__json_set_i64(struct hf__json *object, const char *path, int64_t value);
int __wrap_hf__json_set_i64(struct hf__json *object, const char *path, int64_t value);

static bool memory_is_short; /* for the count of an Event */

int __wrap_hf__json_set_i64(struct hf__json *object, const char *path, int64_t value) {
        return memory_is_short ? -ENOMEM : __real_hf__json_set_i64(object, path, value);
}

static void test_an_event_is_written_whole_or_not_at_all(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        memory_is_short = true;
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 1);
        assert_int_equal(phase_fixture_lead(f), 0);
        memory_is_short = false;
        assert_in(f->requests, "GET events/");
        assert_null(strstr(f->requests, "CREATE events/"));
        assert_in(f->log, "zero fails, try 1: ");
        phase_fixture_free(f);
}

static void test_a_server_that_asks_for_patience_gets_it_up_to_ten_seconds(void **state) {
        static const struct {
                unsigned retry_after_s;
                hf_nsec times[4];
        } cases[] = {{2, {0, 2000, 4000, 6000}}, {3600, {0, 10000, 20000, 30000}}};

        for (size_t i = 0; i < 2; i++) {
                struct phase_fixture *f = phase_fixture_new();
                f->retry_after_s = cases[i].retry_after_s;
                phase_fixture_fail(f, PHASE_REFUSED, HF_E_TOO_MANY, 0, 3);
                assert_int_equal(phase_fixture_lead(f), 0);
                assert_writes_at(f, cases[i].times, 4);
                phase_fixture_free(f);
        }
}

/* Failures of different steps are not in a row, so the next pause is the shortest one again. */
static void test_a_step_that_succeeds_ends_a_row_of_failures(void **state) {
        static const hf_nsec times[] = {0, 100, 300, 300, 300, 400};
        struct phase_fixture *f = phase_fixture_new();

        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 2);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_writes_at(f, times, 3);
        /* Between two steps: create a, record a, create b (fails), create b, record b, complete. */
        phase_fixture_load(f, "2.0.0", PHASE_FIXTURE_CONFIGMAP("c", "1"),
                           PHASE_FIXTURE_CONFIGMAP("d", "1"));
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 2, 1);
        assert_int_equal(phase_fixture_lead(f), 0);
        static const hf_nsec later[] = {0, 0, 0, 100, 100, 100};
        assert_writes_at(f, later, 6);
        assert_in(f->progress, "failing ConfigMap/default/d 1/2 failing complete\n"
                               "applied ConfigMap/default/d 1/2 failing complete\n"
                               "recorded ConfigMap/default/d 2/2 complete\n");
        phase_fixture_free(f);
}

/* When step a is recorded, the object of step b exists: lets the record of b fail. */
static void fail_second_record(void *ctx, enum hf_bootstrap_point point,
                               const struct hf_bootstrap_info *info) {
        struct phase_fixture *f = ctx;

        phase_fixture_on_progress(ctx, point, info);
        if (point == HF_BOOTSTRAP_RECORDED && info->n_settled == 1)
                phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 1);
}

static void test_a_record_ends_a_row_of_failures(void **state) {
        /* create a (fails twice), record a, create b, record b (fails) and again, complete */
        static const hf_nsec times[] = {0, 100, 300, 300, 300, 300, 400, 400};
        struct phase_fixture *f = phase_fixture_new();

        f->bootstrap->on_progress = fail_second_record;
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 2);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(f->n_fault, 0);
        assert_writes_at(f, times, sizeof times / sizeof times[0]);
        assert_in(f->log, "zero fails, try 2: ");
        assert_in(f->log, "zero fails, try 1: dir/b.json: document 1, line 1 ");
        phase_fixture_free(f);
}

/* Each object is created once and recorded once, whichever of the writes gets a bad reply. */
static void test_any_write_may_be_lost_refused_or_garbled(void **state) {
        static const struct {
                enum phase_fault fault;
                int error;
        } cases[] = {{PHASE_REFUSED, HF_E_UNAVAILABLE},
                     {PHASE_LOST, HF_E_TIMEOUT},
                     {PHASE_LOST, HF_E_UNAVAILABLE},
                     {PHASE_GARBLED, 0},
                     {PHASE_REFUSED, HF_E_CONFLICT},
                     {PHASE_REFUSED, HF_E_NOT_FOUND},
                     {PHASE_UNSENT, -ENOMEM}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                for (unsigned n = 0; n < 5; n++) {
                        struct phase_fixture *f = phase_fixture_new();
                        phase_fixture_fail(f, cases[i].fault, cases[i].error, n, 1);
                        assert_int_equal(phase_fixture_lead(f), 0);
                        assert_int_equal(f->n_fault, 0);
                        assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/a"), 1);
                        assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/b"), 1);
                        /* two records and one completion */
                        assert_int_equal(phase_fixture_n_commits(f, PHASE_FIXTURE_LEDGER), 3);
                        assert_true(f->n_started >= 1);
                        assert_true(phase_fixture_is_settled(f));
                        struct hf_bootstrap_info info = {.size = sizeof info};
                        hf_bootstrap_info(f->bootstrap, 0, &info);
                        assert_true(info.complete && !info.failing);
                        phase_fixture_free(f);
                }
}

/* The same during an upgrade, where objects and the ledger exist. */
static void test_any_write_of_an_upgrade_may_be_lost_refused_or_garbled(void **state) {
        static const struct {
                enum phase_fault fault;
                int error;
        } cases[] = {{PHASE_REFUSED, HF_E_UNAVAILABLE},
                     {PHASE_LOST, HF_E_TIMEOUT},
                     {PHASE_GARBLED, 0},
                     {PHASE_REFUSED, HF_E_CONFLICT},
                     {PHASE_REFUSED, HF_E_NOT_FOUND},
                     {PHASE_UNSENT, -ENOMEM}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                for (unsigned n = 0; n < 5; n++) {
                        struct phase_fixture *f = phase_fixture_new();
                        assert_int_equal(phase_fixture_lead(f), 0);
                        phase_fixture_load(f, "2.0.0", PHASE_FIXTURE_CONFIGMAP("a", "2"),
                                           PHASE_FIXTURE_CONFIGMAP("b", "2"));
                        phase_fixture_fail(f, cases[i].fault, cases[i].error, n, 1);
                        assert_int_equal(phase_fixture_lead(f), 0);
                        assert_int_equal(f->n_fault, 0);
                        assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/a"), 2);
                        assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/b"), 2);
                        assert_int_equal(phase_fixture_n_commits(f, PHASE_FIXTURE_LEDGER), 6);
                        assert_in(phase_fixture_text(f, "configmaps/default/a"), "\"k\":\"2\"");
                        assert_in(phase_fixture_text(f, PHASE_FIXTURE_LEDGER),
                                  "\"zero.completed\":\"2.0.0 ");
                        assert_int_equal(f->now - PHASE_FIXTURE_BEGIN < 10 * SEC, true);
                        phase_fixture_free(f);
                }
}

/* If any version has completed the phase, the controllers that need it do not wait. */
static void test_others_start_although_an_upgrade_fails(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        assert_int_equal(phase_fixture_lead(f), 0);
        phase_fixture_load(f, "2.0.0", PHASE_FIXTURE_CONFIGMAP("c", "1"), NULL);
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 3);
        f->drain_at = 50 * MSEC;
        assert_int_equal(phase_fixture_lead(f), HF_E_CANCELED);
        assert_true(f->n_started > 0);
        phase_fixture_free(f);
}

/* ---- giving way ---- */

/* After each release the phase waits ten seconds for a drain. None comes in this test. */
static void test_a_phase_that_keeps_failing_releases_the_lease_ever_more_rarely(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        phase_fixture_set_elector(f);
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 300);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_true(f->n_step_downs > 8);
        for (unsigned i = 0; i < f->n_step_downs; i++) {
                /* 15 s, doubled up to ten minutes */
                hf_nsec after = i > 5 ? 600 * SEC : (15 * SEC) << i;
                assert_true(f->step_downs[i] >= after);
                if (i == 0)
                        assert_true(f->step_downs[i] < after + 10 * SEC);
                if (i == 7) /* past the longest time, each failure releases */
                        assert_true(f->step_downs[i] < f->step_downs[i - 1] + 40 * SEC);
        }
        /* The phase waits ten seconds for the drain, and then pauses for ten seconds. */
        for (unsigned i = 0; i < f->n_writes; i++)
                assert_true(f->write_times[i] <= f->step_downs[0] ||
                            f->write_times[i] >= f->step_downs[0] + 20 * SEC);
        char line[120];
        (void)snprintf(line, sizeof line, "holdfast_bootstrap_gave_way_total{phase=\"zero\"} %u",
                       f->n_step_downs);
        assert_metric(f->host.metrics, line);
        assert_in(f->log, "4 bootstrap: zero keeps failing: releasing the Lease, so that another "
                          "instance may try\n");
        assert_in(f->progress, "gave way ConfigMap/default/a 0/2 failing\n");
        /* The phase is complete now, so the next row of failures begins with 15 s again. */
        phase_fixture_load(f, "2.0.0", PHASE_FIXTURE_CONFIGMAP("c", "1"), NULL);
        phase_fixture_set_elector(f);
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 9);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(f->n_step_downs, 1);
        phase_fixture_free(f);
}

static void test_the_time_to_give_way_is_kept_between_terms_until_success(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        phase_fixture_set_elector(f);
        f->drain_at = 15 * SEC;
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 100);
        assert_int_equal(phase_fixture_lead(f), HF_E_CANCELED);
        assert_int_equal(f->n_step_downs, 1);
        f->drain_at = 29 * SEC;
        assert_int_equal(phase_fixture_lead(f), HF_E_CANCELED);
        assert_int_equal(f->n_step_downs, 1); /* after 30 s, not after 15 */
        assert_true(f->step_downs[0] >= 30 * SEC);
        f->drain_at = 0;
        f->n_fault = 0;
        assert_int_equal(phase_fixture_lead(f), 0);
        (void)fake_store_delete(&f->store, PHASE_FIXTURE_LEDGER, NULL);
        (void)fake_store_delete(&f->store, "configmaps/default/a", NULL);
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 9);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(f->n_step_downs, 1);
        assert_true(f->step_downs[0] < 30 * SEC);
        phase_fixture_free(f);
}

/* A host may begin with a longer time than the one that doubling ends with. */
static void test_a_long_time_to_give_way_stays(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        phase_fixture_set_elector(f);
        f->bootstrap->phases[0].give_way_after = 3600 * SEC;
        f->drain_at = 3600 * SEC;
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 1000);
        assert_int_equal(phase_fixture_lead(f), HF_E_CANCELED);
        assert_int_equal(f->n_step_downs, 1);
        assert_true(f->bootstrap->phases[0].give_way_after == 3600 * SEC);
        phase_fixture_free(f);
}

static void test_a_lease_that_cannot_be_released_is_kept(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        phase_fixture_set_elector(f);
        f->step_down_result = HF_E_BUSY;
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 12);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_true(f->n_step_downs > 1);
        assert_metric(f->host.metrics, "holdfast_bootstrap_gave_way_total{phase=\"zero\"} 0");
        assert_null(strstr(f->progress, "gave way"));
        phase_fixture_free(f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_pause_after_a_failure_doubles_up_to_ten_seconds),
                cmocka_unit_test(test_a_failure_names_the_manifest_the_step_and_the_reason),
                cmocka_unit_test(test_a_long_message_begins_after_the_name_of_the_object),
                cmocka_unit_test(test_a_failure_of_the_ledger_names_it),
                cmocka_unit_test(test_a_failure_of_the_ledger_after_one_of_a_step_names_the_ledger),
                cmocka_unit_test(test_any_read_may_be_refused_or_garbled),
                cmocka_unit_test(test_an_event_counts_the_failures_that_are_logged),
                cmocka_unit_test(test_an_event_is_written_whole_or_not_at_all),
                cmocka_unit_test(test_a_server_that_asks_for_patience_gets_it_up_to_ten_seconds),
                cmocka_unit_test(test_a_step_that_succeeds_ends_a_row_of_failures),
                cmocka_unit_test(test_a_record_ends_a_row_of_failures),
                cmocka_unit_test(test_any_write_may_be_lost_refused_or_garbled),
                cmocka_unit_test(test_any_write_of_an_upgrade_may_be_lost_refused_or_garbled),
                cmocka_unit_test(test_others_start_although_an_upgrade_fails),
                cmocka_unit_test(
                        test_a_phase_that_keeps_failing_releases_the_lease_ever_more_rarely),
                cmocka_unit_test(test_the_time_to_give_way_is_kept_between_terms_until_success),
                cmocka_unit_test(test_a_long_time_to_give_way_stays),
                cmocka_unit_test(test_a_lease_that_cannot_be_released_is_kept),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
