/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A phase in a term: which requests it sends, what it reports, how it ends, and how it treats a
 * ledger that is lost or not ours. test-bootstrap-phase-failures.c has its failures, and
 * test-bootstrap-run.c has the real functions of the term and the elector.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/bootstrap.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "bootstrap/phase_run.h"
#include "phase_fixture.h"
#include "text_asserts.h"

/* ---- an empty store ---- */

static void test_each_step_is_written_then_recorded(void **state) {
        struct phase_fixture *f = phase_fixture_new();
        struct hf_bootstrap_info info = {.size = sizeof info};

        assert_false(phase_fixture_is_settled(f));
        assert_metric(f->host.metrics, "holdfast_bootstrap_complete{phase=\"zero\"} 0");
        assert_metric(f->host.metrics,
                      "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"kept\"} 0");
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_string_equal(f->requests, FIRST_READ CREATE_STEP NEW_LEDGER CREATE_STEP OLD_LEDGER
                                                 OLD_LEDGER CHECK);
        assert_string_equal(f->progress, "begun ConfigMap/default/a 0/2\n"
                                         "applied ConfigMap/default/a 0/2\n"
                                         "recorded ConfigMap/default/a 1/2\n"
                                         "applied ConfigMap/default/b 1/2\n"
                                         "recorded ConfigMap/default/b 2/2\n"
                                         "complete - 2/2 complete\n");
        assert_int_equal(f->n_started, 1);
        assert_string_equal(f->first_ready, "not complete: 0 of 2 steps are done");
        assert_string_equal(f->ready, "healthy");
        assert_true(phase_fixture_is_settled(f));
        assert_metric(f->host.metrics, "holdfast_bootstrap_complete{phase=\"zero\"} 1");
        assert_metric(f->host.metrics,
                      "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"created\"} 2");
        assert_string_equal(f->log, "6 bootstrap: zero: ConfigMap/default/a created\n"
                                    "6 bootstrap: zero: ConfigMap/default/b created\n"
                                    "5 bootstrap: zero: complete, by version 1.0.0\n");
        hf_bootstrap_info(f->bootstrap, 0, &info);
        assert_false(info.running);
        assert_true(info.complete);
        assert_string_equal(info.step, "");
        assert_int_equal(f->now - PHASE_FIXTURE_BEGIN,
                         5 * SEC); /* the first check that the ledger exists */
        phase_fixture_free(f);
}

static void test_the_ledger_says_what_was_done_and_when(void **state) {
        struct phase_fixture *f = phase_fixture_new();
        const char *phase = "zero";
        struct hf__ledger ledger;
        struct hf__json *json;

        assert_int_equal(phase_fixture_lead(f), 0);
        const char *text = phase_fixture_text(f, PHASE_FIXTURE_LEDGER);
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        assert_int_equal(hf__ledger_read(json, &phase, 1, &ledger, NULL), 0);
        const struct hf__ledger_entry *entry = hf__ledger_find(&ledger, "ConfigMap/default/a");
        assert_string_equal(entry->phase, "zero");
        assert_string_equal(entry->version, "1.0.0");
        assert_memory_equal(entry->at, "2026-01-02T03:04:05", 19);
        assert_int_equal(strlen(entry->applied), HF__HASH_DIGITS);
        const struct hf__ledger_completed *completed = hf__ledger_find_completed(&ledger, "zero");
        assert_string_equal(completed->version, "1.0.0");
        assert_memory_equal(completed->at, "2026-01-02T03:04:05", 19);
        hf__ledger_done(&ledger);
        hf__json_free(json);
        phase_fixture_free(f);
}

/* A program started again finds everything done, and writes nothing. */
static void test_a_phase_that_is_complete_only_reads(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        assert_int_equal(phase_fixture_lead(f), 0);
        phase_fixture_load(f, "1.0.0", PHASE_FIXTURE_CONFIGMAP("a", "1"),
                           PHASE_FIXTURE_CONFIGMAP("b", "1"));
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_string_equal(f->requests, FIRST_READ CHECK);
        assert_string_equal(f->progress, "");
        assert_int_equal(f->n_started, 1);
        assert_true(phase_fixture_is_settled(f));
        assert_metric(f->host.metrics, "holdfast_bootstrap_complete{phase=\"zero\"} 1");
        phase_fixture_free(f);
}

/* In a later term of the same process nobody waits for the phase. */
static void test_a_settled_phase_begins_a_moment_later(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(f->now - PHASE_FIXTURE_BEGIN, 5 * SEC);
        assert_true(phase_fixture_is_settled(f));
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(f->now - PHASE_FIXTURE_BEGIN, 5 * SEC + 100 * MSEC);
        assert_string_equal(f->requests, FIRST_READ CHECK);
        phase_fixture_free(f);
}

/* Only a server with one revision for all collections knows which read is not older than a
 * Lease. */
static void test_the_first_read_is_consistent_unless_the_revision_is_known(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        f->acquired_at = "";
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_memory_equal(f->requests, SAFE_READ, strlen(SAFE_READ));
        phase_fixture_free(f);
}

/* ---- what exists already ---- */

static void put(struct phase_fixture *f, const char *name, const char *text) {
        char *key = fake_store_key("configmaps", "default", name);

        (void)fake_store_put(&f->store, key, text, NULL);
        free(key);
}

static void test_objects_of_users_are_found_and_left_alone(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        put(f, "a", PHASE_FIXTURE_CONFIGMAP("a", "mine"));
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_string_equal(f->requests,
                            FIRST_READ CREATE_STEP READ("a")
                                    NEW_LEDGER CREATE_STEP OLD_LEDGER OLD_LEDGER CHECK);
        assert_in(phase_fixture_text(f, "configmaps/default/a"), "\"mine\"");
        assert_metric(f->host.metrics,
                      "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"found\"} 1");
        phase_fixture_free(f);
}

static void test_an_upgrade_replaces_what_nobody_has_edited(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        assert_int_equal(phase_fixture_lead(f), 0);
        put(f, "b", PHASE_FIXTURE_CONFIGMAP("b", "edited"));
        phase_fixture_load(f, "2.0.0", PHASE_FIXTURE_CONFIGMAP("a", "2"),
                           PHASE_FIXTURE_CONFIGMAP("b", "2"));
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_string_equal(f->requests, FIRST_READ READ("a") REPLACE("a") OLD_LEDGER READ("b")
                                                 OLD_LEDGER OLD_LEDGER CHECK);
        assert_in(phase_fixture_text(f, "configmaps/default/a"), "\"k\":\"2\"");
        assert_in(phase_fixture_text(f, "configmaps/default/b"), "\"k\":\"edited\"");
        assert_metric(f->host.metrics,
                      "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"updated\"} 1");
        assert_metric(f->host.metrics,
                      "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"kept\"} 1");
        /* The ledger has the hash of the written content, so the next upgrade replaces the object
         * again. */
        phase_fixture_load(f, "3.0.0", PHASE_FIXTURE_CONFIGMAP("a", "3"), NULL);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_in(phase_fixture_text(f, "configmaps/default/a"), "\"k\":\"3\"");
        phase_fixture_free(f);
}

/* A newer version with the same manifests only marks the phase complete. */
static void test_an_upgrade_without_changes_begins_with_settled_steps(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        assert_int_equal(phase_fixture_lead(f), 0);
        phase_fixture_load(f, "2.0.0", PHASE_FIXTURE_CONFIGMAP("a", "1"),
                           PHASE_FIXTURE_CONFIGMAP("b", "1"));
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_string_equal(f->requests, FIRST_READ OLD_LEDGER CHECK);
        assert_string_equal(f->progress, "begun - 2/2 complete\ncomplete - 2/2 complete\n");
        phase_fixture_free(f);
}

static void test_an_upgrade_does_not_bring_back_what_was_deleted(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        assert_int_equal(phase_fixture_lead(f), 0);
        (void)fake_store_delete(&f->store, "configmaps/default/a", NULL);
        phase_fixture_load(f, "2.0.0", PHASE_FIXTURE_CONFIGMAP("a", "2"),
                           PHASE_FIXTURE_CONFIGMAP("b", "1"));
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_string_equal(f->requests, FIRST_READ READ("a") OLD_LEDGER OLD_LEDGER CHECK);
        assert_null(fake_store_find(&f->store, "configmaps/default/a"));
        assert_metric(f->host.metrics,
                      "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"deleted\"} 1");
        phase_fixture_free(f);
}

/* The stamp shows that the object is ours. A dry run shows how the server stores the content, so
 * that a later upgrade can tell an edit. */
static void test_a_create_whose_reply_was_lost_is_recorded_as_ours(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        phase_fixture_fail(f, PHASE_LOST, HF_E_TIMEOUT, 0, 1);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_in(f->requests, FIRST_READ CREATE_STEP);
        assert_in(f->requests, SAFE_READ CREATE_STEP READ("a") DRY_RUN("a")
                                       NEW_LEDGER CREATE_STEP OLD_LEDGER OLD_LEDGER CHECK);
        assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/a"), 1);
        assert_metric(f->host.metrics,
                      "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"created\"} 2");
        phase_fixture_load(f, "2.0.0", PHASE_FIXTURE_CONFIGMAP("a", "2"),
                           PHASE_FIXTURE_CONFIGMAP("b", "1"));
        phase_fixture_fail(f, PHASE_NO_FAULT, 0, 0, 0);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_in(phase_fixture_text(f, "configmaps/default/a"), "\"k\":\"2\"");
        phase_fixture_free(f);
}

/* ---- the end of a term ---- */

static void test_the_end_of_the_term_ends_the_phase_at_once(void **state) {
        static const int errors[] = {HF_E_NOT_LEADER, HF_E_STALE_TERM, HF_E_UNFENCED,
                                     HF_E_CANCELED};

        for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
                for (unsigned n = 0; n < 5; n++) {
                        struct phase_fixture *f = phase_fixture_new();
                        phase_fixture_fail(f, PHASE_REFUSED, errors[i], n, 1);
                        assert_int_equal(phase_fixture_lead(f), errors[i]);
                        /* The create of b is sent before the record of a is answered. */
                        assert_int_equal(f->n_writes, n == 1 ? 3 : n + 1);
                        assert_int_equal(f->n_started, 0);
                        assert_false(phase_fixture_is_settled(f));
                        assert_null(strstr(f->progress, "failing"));
                        phase_fixture_free(f);
                }
}

/* The next object is created while a record is written. If the record is refused, the object is
 * there, and its step is recorded as ours. */
static void test_an_object_that_was_created_ahead_is_recorded_later(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        phase_fixture_fail(f, PHASE_REFUSED, HF_E_CONFLICT, 1, 1);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/a"), 1);
        assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/b"), 1);
        assert_metric(f->host.metrics,
                      "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"created\"} 2");
        phase_fixture_free(f);
}

/* If the create is refused instead, only that is repeated. */
static void test_a_create_ahead_that_fails_is_repeated(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        phase_fixture_fail(f, PHASE_REFUSED, HF_E_UNAVAILABLE, 2, 1);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/a"), 1);
        assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/b"), 1);
        assert_int_equal(phase_fixture_n_commits(f, PHASE_FIXTURE_LEDGER), 3);
        phase_fixture_free(f);
}

/* A drain must not come between a write and its record. */
static void test_a_drain_ends_the_phase_between_two_steps(void **state) {
        static const struct {
                unsigned request; /* the drain fires before this request is answered */
                unsigned n_writes;
        } cases[] = {{1, 0}, {2, 2}, {3, 2}, {4, 4}, {5, 4}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct phase_fixture *f = phase_fixture_new();
                f->drain_at_request = cases[i].request;
                assert_int_equal(phase_fixture_lead(f), HF_E_CANCELED);
                assert_int_equal(f->n_writes, cases[i].n_writes);
                assert_int_equal(f->n_started, 0);
                /* The next term goes on where this one ended. */
                f->drain_at_request = 0;
                assert_int_equal(phase_fixture_lead(f), 0);
                assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/a"), 1);
                assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/b"), 1);
                assert_int_equal(phase_fixture_n_commits(f, PHASE_FIXTURE_LEDGER), 3);
                phase_fixture_free(f);
        }
}

static void test_a_failure_while_draining_ends_the_phase(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        phase_fixture_fail(f, PHASE_REFUSED, HF_E_UNAVAILABLE, 0, 1);
        f->drain_at_request = 2;
        assert_int_equal(phase_fixture_lead(f), HF_E_UNAVAILABLE);
        assert_int_equal(f->n_requests, 2);
        phase_fixture_free(f);
}

/* ---- a ledger that is lost, or not ours ---- */

static void test_a_deleted_ledger_is_written_again(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        phase_fixture_set_elector(f);
        f->ledger_at_check = "";
        f->drain_at_check = 3;
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(f->now - PHASE_FIXTURE_BEGIN, 15 * SEC);
        assert_in(f->log, "4 bootstrap: zero: the ledger was deleted: writing it again\n");
        /* The ledger exists; only the check has read an old state. So nothing is written. */
        assert_int_equal(phase_fixture_n_commits(f, PHASE_FIXTURE_LEDGER), 3);
        (void)fake_store_delete(&f->store, PHASE_FIXTURE_LEDGER, NULL);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(phase_fixture_n_commits(f, "configmaps/default/a"), 1);
        phase_fixture_free(f);
}

/* Deletes the ledger when it is complete for the first time. */
static void delete_when_complete(void *ctx, enum hf_bootstrap_point point,
                                 const struct hf_bootstrap_info *info) {
        struct phase_fixture *f = ctx;

        phase_fixture_on_progress(ctx, point, info);
        if (point == HF_BOOTSTRAP_COMPLETE && f->n_checks == 0) {
                (void)fake_store_delete(&f->store, PHASE_FIXTURE_LEDGER, NULL);
                phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 20);
        }
}

/* Other instances wait for the ledger, and this one has completed the phase: it keeps the Lease. */
static void test_a_ledger_is_written_again_however_often_that_fails(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        phase_fixture_set_elector(f);
        f->drain_at_check = 2;
        f->bootstrap->on_progress = delete_when_complete;
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(f->n_fault, 0);
        assert_int_equal(f->n_step_downs, 0);
        assert_int_equal(f->n_started, 2);
        assert_in(f->progress, "begun ConfigMap/default/a 0/2 complete\n"
                               "failing ConfigMap/default/a 0/2 failing complete\n");
        phase_fixture_free(f);
}

static void test_a_completion_ends_a_row_of_failures(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        f->drain_at_check = 2;
        f->bootstrap->on_progress = delete_when_complete;
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 4, 1); /* the first completion */
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_in(f->log, "zero fails, try 1: ledger ");
        assert_in(f->log, "zero fails, try 1: dir/a.json");
        phase_fixture_free(f);
}

/* After the second failure, one read succeeds, and the next one fails. */
static void fail_after_completion(void *ctx, enum hf_bootstrap_point point,
                                  const struct hf_bootstrap_info *info) {
        phase_fixture_on_progress(ctx, point, info);
        if (point == HF_BOOTSTRAP_FAILING && info->n_failures == 2)
                phase_fixture_fail(ctx, PHASE_REFUSED, HF_E_FORBIDDEN, 1, 1);
}

/* A phase that is found complete writes nothing. */
static void test_a_complete_ledger_ends_a_row_of_failures(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        f->drain_at_check = 2;
        assert_int_equal(phase_fixture_lead(f), 0);
        f->bootstrap->on_progress = fail_after_completion;
        f->faults_reads = true;
        f->ledger_at_check = "";
        f->drain_at_check = f->n_checks + 2;
        phase_fixture_fail(f, PHASE_REFUSED, HF_E_FORBIDDEN, 0, 2);
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(f->n_fault, 0);
        const char *first = strstr(f->log, "zero fails, try 1: ledger ");
        assert_non_null(first);
        assert_in(first, "the ledger was deleted: writing it again\n");
        assert_in(strstr(first, "writing it again"), "zero fails, try 1: ledger ");
        phase_fixture_free(f);
}

static void test_a_new_row_of_work_is_reported_as_begun(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        f->drain_at_check = 2;
        f->bootstrap->on_progress = delete_when_complete;
        assert_int_equal(phase_fixture_lead(f), 0);
        const char *first = strstr(f->progress, "begun ");
        assert_non_null(first);
        assert_non_null(strstr(first + 1, "begun "));
        assert_null(strstr(strstr(first + 1, "begun ") + 1, "begun "));
        phase_fixture_free(f);
}

static void test_only_a_ledger_without_the_phase_counts_as_lost(void **state) {
        static const struct {
                const char *text;
                bool lost;
        } cases[] = {
                {"{\"data\":{\"format\":\"1\"}}", true},
                {"{\"data\":{\"format\":\"1\",\"steps\":\"\"}}", true},
                {"{\"data\":{\"format\":\"1\",\"other.completed\":\"1.0.0 now\"}}", true},
                {"{\"data\":{\"format\":\"1\",\"zero.completed\":\"1.0.0 now\"}}", false},
                {"{\"data\":{\"format\":\"1\",\"zero\\u002ecompleted\":\"1.0.0 now\"}}", false},
                {"{\"data\":{\"format\":\"1\",\"zero.completed\": \"1.0.0 now\"}}", false},
                {"{\"data\":{\"format\":\"1\",\"zero.completed\":\"\"}}", true},
                {"{\"data\":{\"format\":\"2\"}}", false},
                {"{\"data\":{}}", false},
                {"{\"data\":", false},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct phase_fixture *f = phase_fixture_new();
                f->ledger_at_check = cases[i].text;
                f->drain_at_check = 2;
                assert_int_equal(phase_fixture_lead(f), 0);
                assert_int_equal(f->n_started, cases[i].lost ? 2 : 1);
                assert_int_equal(strstr(f->log, "was deleted") != NULL, cases[i].lost);
                phase_fixture_free(f);
        }
}

static void put_ledger(struct phase_fixture *f, const char *data) {
        char text[512];

        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"holdfast-bootstrap\",\"namespace\":"
                       "\"kube-system\"},\"data\":{%s}}",
                       data);
        (void)fake_store_put(&f->store, PHASE_FIXTURE_LEDGER, text, NULL);
}

static void test_a_ledger_of_a_newer_format_is_left_alone(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        put_ledger(f, "\"format\":\"2\",\"zero.completed\":\"9.0.0 now\"");
        assert_int_equal(phase_fixture_lead(f), 0);
        assert_int_equal(f->n_writes, 0);
        assert_int_equal(f->n_started, 1);
        /* If the newer program has not completed the phase, this one cannot either. */
        put_ledger(f, "\"format\":\"2\"");
        f->drain_at = 1;
        assert_int_equal(phase_fixture_lead(f), HF_E_CANCELED);
        assert_int_equal(f->n_writes, 0);
        assert_in(f->last_info.message,
                  "ledger kube-system/holdfast-bootstrap: it is in the format "
                  "of a newer version, which has not completed the phase");
        phase_fixture_free(f);
}

static void test_a_ledger_that_cannot_be_read_is_a_failure(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        put_ledger(f, "\"format\":\"1\",\"steps\":\"{\"");
        f->drain_at = 1;
        assert_int_equal(phase_fixture_lead(f), HF_E_CANCELED);
        assert_int_equal(f->n_writes, 0);
        assert_in(f->last_info.message,
                  "ledger kube-system/holdfast-bootstrap: data.steps, line 1: "
                  "the record is not JSON");
        phase_fixture_free(f);
}

/* Puts a ledger with as many records as it may have, all by this version. The first one is of the
 * step a, and the others are of steps that this program does not have: old-1, old-2 and so on. */
static void put_full_ledger(struct phase_fixture *f, const char *version) {
        struct hf__ledger ledger = {0};
        struct hf__strbuf text = {0};
        char step[32];

        for (unsigned i = 0; i < HF__LEDGER_RECORDS_MAX; i++) {
                struct hf__ledger_entry entry = {.step = step,
                                                 .phase = "zero",
                                                 .outcome = HF__OUTCOME_CREATED,
                                                 .at = "2026-01-01T00:00:00Z"};
                if (i == 0)
                        (void)snprintf(step, sizeof step, "ConfigMap/default/a");
                else
                        (void)snprintf(step, sizeof step, "old-%u", i);
                (void)snprintf(entry.version, sizeof entry.version, "%s", version);
                memset(entry.hash, 'e', HF__HASH_DIGITS);
                assert_int_equal(hf__ledger_add(&ledger, &entry), 0);
        }
        assert_int_equal(hf__ledger_write(&ledger, NULL, "kube-system", "holdfast-bootstrap",
                                          &text),
                         0);
        (void)fake_store_put(&f->store, PHASE_FIXTURE_LEDGER, text.data, NULL);
        hf__strbuf_done(&text);
        hf__ledger_done(&ledger);
}

static struct hf__ledger read_ledger(struct phase_fixture *f) {
        const char *text = phase_fixture_text(f, PHASE_FIXTURE_LEDGER), *phase = "zero";
        struct hf__ledger ledger;
        struct hf__json *json;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        assert_int_equal(hf__ledger_read(json, &phase, 1, &ledger, NULL), 0);
        hf__json_free(json);
        return ledger;
}

static void test_a_full_ledger_drops_the_oldest_record_of_no_step(void **state) {
        for (int any_order = 0; any_order < 2; any_order++) {
                struct phase_fixture *f = phase_fixture_new();

                f->any_order = any_order;
                phase_fixture_load(f, "1.0.0", PHASE_FIXTURE_CONFIGMAP("a", "1"),
                                   PHASE_FIXTURE_CONFIGMAP("b", "1"));
                put_full_ledger(f, "0.9.0");
                assert_int_equal(phase_fixture_lead(f), 0);
                struct hf__ledger ledger = read_ledger(f);
                assert_int_equal(ledger.n_entries, HF__LEDGER_RECORDS_MAX);
                assert_non_null(hf__ledger_find(&ledger, "ConfigMap/default/a"));
                assert_non_null(hf__ledger_find(&ledger, "ConfigMap/default/b"));
                assert_null(hf__ledger_find(&ledger, "old-1"));
                assert_non_null(hf__ledger_find(&ledger, "old-2"));
                assert_non_null(hf__ledger_find_completed(&ledger, "zero"));
                assert_in(f->log, "6 bootstrap: zero: the ledger is full: dropping the record of "
                                  "old-1, which this version does not have\n");
                hf__ledger_done(&ledger);
                phase_fixture_free(f);
        }
}

/* The ledger stays readable, and the records of a newer version stay in it. */
static void test_a_full_ledger_of_a_newer_version_is_a_failure(void **state) {
        struct phase_fixture *f = phase_fixture_new();

        put_full_ledger(f, "2.0.0");
        f->drain_at = 1;
        assert_int_equal(phase_fixture_lead(f), HF_E_TOO_LARGE);
        assert_in(f->last_info.message, "the ledger is full: 2000 records");
        struct hf__ledger ledger = read_ledger(f);
        assert_int_equal(ledger.n_entries, HF__LEDGER_RECORDS_MAX);
        assert_null(hf__ledger_find(&ledger, "ConfigMap/default/b"));
        assert_non_null(hf__ledger_find(&ledger, "old-1"));
        hf__ledger_done(&ledger);
        phase_fixture_free(f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_step_is_written_then_recorded),
                cmocka_unit_test(test_the_ledger_says_what_was_done_and_when),
                cmocka_unit_test(test_a_phase_that_is_complete_only_reads),
                cmocka_unit_test(test_a_settled_phase_begins_a_moment_later),
                cmocka_unit_test(test_the_first_read_is_consistent_unless_the_revision_is_known),
                cmocka_unit_test(test_objects_of_users_are_found_and_left_alone),
                cmocka_unit_test(test_an_upgrade_replaces_what_nobody_has_edited),
                cmocka_unit_test(test_an_upgrade_without_changes_begins_with_settled_steps),
                cmocka_unit_test(test_an_upgrade_does_not_bring_back_what_was_deleted),
                cmocka_unit_test(test_a_create_whose_reply_was_lost_is_recorded_as_ours),
                cmocka_unit_test(test_the_end_of_the_term_ends_the_phase_at_once),
                cmocka_unit_test(test_an_object_that_was_created_ahead_is_recorded_later),
                cmocka_unit_test(test_a_create_ahead_that_fails_is_repeated),
                cmocka_unit_test(test_a_drain_ends_the_phase_between_two_steps),
                cmocka_unit_test(test_a_failure_while_draining_ends_the_phase),
                cmocka_unit_test(test_a_deleted_ledger_is_written_again),
                cmocka_unit_test(test_a_ledger_is_written_again_however_often_that_fails),
                cmocka_unit_test(test_a_completion_ends_a_row_of_failures),
                cmocka_unit_test(test_a_complete_ledger_ends_a_row_of_failures),
                cmocka_unit_test(test_a_new_row_of_work_is_reported_as_begun),
                cmocka_unit_test(test_only_a_ledger_without_the_phase_counts_as_lost),
                cmocka_unit_test(test_a_ledger_of_a_newer_format_is_left_alone),
                cmocka_unit_test(test_a_ledger_that_cannot_be_read_is_a_failure),
                cmocka_unit_test(test_a_full_ledger_drops_the_oldest_record_of_no_step),
                cmocka_unit_test(test_a_full_ledger_of_a_newer_version_is_a_failure),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
