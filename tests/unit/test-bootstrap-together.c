/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A phase whose steps may be done in any order: which requests it sends, what it reports, and what
 * it does when one of them fails. test-bootstrap-plan.c has every crash.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/bootstrap.h>

#include "phase_fixture.h"
#include "text_asserts.h"

static struct phase_fixture *fixture(void) {
        struct phase_fixture *f = phase_fixture_new();

        f->any_order = true;
        phase_fixture_load(f, "1.0.0", PHASE_FIXTURE_CONFIGMAP("a", "1"),
                           PHASE_FIXTURE_CONFIGMAP("b", "1"));
        return f;
}

static void test_the_steps_are_created_and_then_recorded_in_one_write(void **state) {
        struct phase_fixture *f = fixture();

        assert_int_equal(phase_fixture_lead(f), 0);
        assert_string_equal(f->requests, FIRST_READ CREATE_STEP CREATE_STEP NEW_LEDGER CHECK);
        assert_string_equal(f->progress, "begun ConfigMap/default/a 0/2\n"
                                         "applied ConfigMap/default/a 0/2\n"
                                         "applied ConfigMap/default/b 0/2\n"
                                         "recorded ConfigMap/default/a 1/2\n"
                                         "recorded ConfigMap/default/b 2/2\n"
                                         "complete - 2/2 complete\n");
        assert_int_equal(f->n_started, 1);
        assert_true(phase_fixture_is_settled(f));
        assert_metric(f->host.metrics, "holdfast_bootstrap_complete{phase=\"zero\"} 1");
        assert_metric(f->host.metrics,
                      "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"created\"} 2");
        assert_string_equal(f->log, "6 bootstrap: zero: ConfigMap/default/a created\n"
                                    "6 bootstrap: zero: ConfigMap/default/b created\n"
                                    "5 bootstrap: zero: complete, by version 1.0.0\n");
        /* The next term and the next version find the complete records in the ledger. */
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(f->n_writes, 0);
        phase_fixture_load(f, "2.0.0", PHASE_FIXTURE_CONFIGMAP("a", "2"),
                           PHASE_FIXTURE_CONFIGMAP("b", "1"));
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_string_equal(f->requests,
                            FIRST_READ READ("a") REPLACE("a") OLD_LEDGER OLD_LEDGER CHECK);
        assert_in(phase_fixture_text(f, "configmaps/default/a"), "\"k\":\"2\"");
        phase_fixture_free(f);
}

/* The phase is in use, so each step that a new version adds is recorded before the next one. */
static void test_steps_of_a_later_version_follow_one_another(void **state) {
        struct phase_fixture *f = fixture();

        assert_int_equal(phase_fixture_lead(f), 0);
        phase_fixture_load(f, "2.0.0", PHASE_FIXTURE_CONFIGMAP("c", "1"),
                           PHASE_FIXTURE_CONFIGMAP("d", "1"));
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_in(f->progress, "applied ConfigMap/default/c 0/2 complete\n"
                               "recorded ConfigMap/default/c 1/2 complete\n"
                               "applied ConfigMap/default/d 1/2 complete\n"
                               "recorded ConfigMap/default/d 2/2 complete\n");
        phase_fixture_free(f);
}

/* Each object is created once, and the ledger says so, whichever write gets a bad reply. */
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
                for (unsigned n = 0; n < 3; n++)
                        for (unsigned n_faults = 1; n_faults < 4; n_faults++) {
                                struct phase_fixture *f = fixture();
                                phase_fixture_fail(f, cases[i].fault, cases[i].error, n, n_faults);
                                assert_int_equal(phase_fixture_lead(f), 0);
                                assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/a"),
                                                 1);
                                assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/b"),
                                                 1);
                                assert_in_range(phase_fixture_n_commits(f, PHASE_FIXTURE_LEDGER), 1,
                                                3);
                                assert_true(phase_fixture_is_settled(f));
                                const char *ledger = phase_fixture_text(f, PHASE_FIXTURE_LEDGER);
                                assert_in(ledger, "ConfigMap/default/a");
                                assert_in(ledger, "ConfigMap/default/b");
                                assert_in(ledger, "\"zero.completed\":\"1.0.0 ");
                                assert_null(strstr(ledger, "found"));
                                phase_fixture_free(f);
                        }
}

/* If one step fails, the objects of the others are recorded all the same, and not created again. */
static void test_a_step_that_fails_does_not_keep_the_others_from_being_recorded(void **state) {
        struct phase_fixture *f = fixture();

        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 1);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_in(f->progress, "begun ConfigMap/default/a 0/2\n"
                               "applied ConfigMap/default/b 0/2\n"
                               "recorded ConfigMap/default/b 0/2\n"
                               "failing ConfigMap/default/a 0/2 failing\n"
                               "applied ConfigMap/default/a 0/2 failing\n"
                               "recorded ConfigMap/default/a 2/2\n"
                               "complete - 2/2 complete\n");
        assert_in(f->log,
                  "zero fails, try 1: dir/a.json: document 1, line 1 (ConfigMap/default/a): "
                  "the test says: forbidden\n");
        assert_int_equal(f->n_writes, 5);
        phase_fixture_free(f);
}

static void test_a_step_that_cannot_be_sent_is_named(void **state) {
        struct phase_fixture *f = fixture();

        phase_fixture_fail(f, PHASE_UNSENT, -ENOMEM, 1, 1);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_in(f->log, "zero fails, try 1: dir/b.json: document 1, line 1 "
                          "(ConfigMap/default/b): the request could not be started: "
                          "Cannot allocate memory\n");
        assert_in(f->progress, "applied ConfigMap/default/a 0/2\n"
                               "recorded ConfigMap/default/a 1/2\n"
                               "failing ConfigMap/default/b 1/2 failing\n");
        phase_fixture_free(f);
}

/* The objects exist, and only their records cannot be written. */
static void test_a_record_that_fails_names_the_ledger(void **state) {
        struct phase_fixture *f = fixture();

        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 2, 1);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_in(f->log, "zero fails, try 1: ledger kube-system/holdfast-bootstrap: the test "
                          "says: forbidden\n");
        assert_in(f->progress, "failing - 0/2 failing\n");
        phase_fixture_free(f);
}

/* The failures after a record are a row of their own, with the shortest pause. */
static void test_a_record_ends_a_row_of_failures(void **state) {
        /* a and b fail; a fails, b, its record; a, its record, which completes the phase */
        static const hf_nsec times[] = {0, 0, 100, 100, 100, 200, 200};
        struct phase_fixture *f = fixture();

        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 3);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(f->n_writes, sizeof times / sizeof times[0]);
        for (size_t i = 0; i < f->n_writes; i++)
                assert_int_equal((f->write_times[i] - f->write_times[0]) / MSEC, times[i]);
        assert_null(strstr(f->log, "try 2"));
        phase_fixture_free(f);
}

/* The second step fails all the time, the first one does not: the failures are in a row. */
static void test_a_phase_whose_step_keeps_failing_gives_way(void **state) {
        struct phase_fixture *f = fixture();

        phase_fixture_set_elector(f);
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 1, 1);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(f->n_step_downs, 0);
        phase_fixture_free(f);
        f = fixture();
        phase_fixture_set_elector(f);
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 300);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_true(f->n_step_downs > 1);
        assert_int_equal(f->step_downs[0] / SEC, 22); /* the first pause that ends after 15 s */
        phase_fixture_free(f);
}

static void test_an_object_of_a_user_is_found_and_the_other_step_done(void **state) {
        struct phase_fixture *f = fixture();

        (void)fake_store_put(&f->store, "configmaps/default/a",
                             PHASE_FIXTURE_CONFIGMAP("a", "mine"), NULL);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_string_equal(f->requests,
                            FIRST_READ CREATE_STEP CREATE_STEP NEW_LEDGER CREATE_STEP READ("a")
                                    OLD_LEDGER OLD_LEDGER CHECK);
        assert_in(phase_fixture_text(f, "configmaps/default/a"), "\"mine\"");
        assert_metric(f->host.metrics,
                      "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"found\"} 1");
        assert_metric(f->host.metrics,
                      "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"created\"} 1");
        phase_fixture_free(f);
}

/* A leader that died, or lost its term, has created both objects and recorded none. The next one
 * learns this from the first refusal, and then goes on with one object after another. */
static void test_the_next_leader_recognizes_what_was_not_recorded(void **state) {
        struct phase_fixture *f = fixture();

        phase_fixture_fail(f, PHASE_REFUSED, HF_E_NOT_LEADER, 2, 1);
        assert_int_equal(phase_fixture_lead(f), HF_E_NOT_LEADER);
        assert_int_equal(phase_fixture_n_commits(f, PHASE_FIXTURE_LEDGER), 0);
        phase_fixture_fail(f, PHASE_NO_FAULT, 0, 0, 0);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_string_equal(f->requests, FIRST_READ CREATE_STEP CREATE_STEP CREATE_STEP READ("a")
                                                 DRY_RUN("a") NEW_LEDGER CREATE_STEP READ("b")
                                                         DRY_RUN("b") OLD_LEDGER OLD_LEDGER CHECK);
        assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/a"), 1);
        assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/b"), 1);
        assert_metric(f->host.metrics,
                      "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"created\"} 2");
        phase_fixture_free(f);
}

static void test_the_end_of_the_term_ends_the_phase_at_once(void **state) {
        static const int errors[] = {HF_E_NOT_LEADER, HF_E_STALE_TERM, HF_E_UNFENCED,
                                     HF_E_CANCELED};

        for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
                for (unsigned n = 0; n < 3; n++) {
                        struct phase_fixture *f = fixture();
                        phase_fixture_fail(f, PHASE_REFUSED, errors[i], n, 1);
                        assert_int_equal(phase_fixture_lead(f), errors[i]);
                        /* Both creates are sent; nothing is recorded after a refusal. */
                        assert_int_equal(f->n_writes, n < 2 ? 2 : 3);
                        assert_int_equal(phase_fixture_n_commits(f, PHASE_FIXTURE_LEDGER), 0);
                        assert_int_equal(f->n_started, 0);
                        assert_null(strstr(f->progress, "failing"));
                        phase_fixture_free(f);
                }
}

/* A drain must not come between the creates and their record. */
static void test_a_drain_does_not_leave_objects_without_a_record(void **state) {
        for (unsigned n = 1; n < 5; n++) {
                struct phase_fixture *f = fixture();
                f->drain_at_request = n;
                assert_int_equal(phase_fixture_lead(f), HF_E_CANCELED);
                assert_int_equal(f->n_writes, n == 1 ? 0 : 3);
                f->drain_at_request = 0;
                assert_int_equal(phase_fixture_lead(f), 0);
                assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/a"), 1);
                assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/b"), 1);
                assert_int_equal(phase_fixture_n_commits(f, PHASE_FIXTURE_LEDGER), 1);
                phase_fixture_free(f);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_steps_are_created_and_then_recorded_in_one_write),
                cmocka_unit_test(test_steps_of_a_later_version_follow_one_another),
                cmocka_unit_test(test_any_write_may_be_lost_refused_or_garbled),
                cmocka_unit_test(
                        test_a_step_that_fails_does_not_keep_the_others_from_being_recorded),
                cmocka_unit_test(test_a_step_that_cannot_be_sent_is_named),
                cmocka_unit_test(test_a_record_that_fails_names_the_ledger),
                cmocka_unit_test(test_a_record_ends_a_row_of_failures),
                cmocka_unit_test(test_a_phase_whose_step_keeps_failing_gives_way),
                cmocka_unit_test(test_an_object_of_a_user_is_found_and_the_other_step_done),
                cmocka_unit_test(test_the_next_leader_recognizes_what_was_not_recorded),
                cmocka_unit_test(test_the_end_of_the_term_ends_the_phase_at_once),
                cmocka_unit_test(test_a_drain_does_not_leave_objects_without_a_record),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
