/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of bootstrap around its core, over the fake API server: each write fails once or loses
 * its reply; the hook; the release after failures.
 */
#undef NDEBUG
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/bootstrap.h>
#include <holdfast/health.h>

#include "bootstrap_fixture.h"

/* ---- faults ---- */

/* Runs the bootstrap with one fault. Returns whether a request met the fault. */
static bool once(enum bootstrap_fault fault, int countdown) {
        struct bootstrap_fixture *f = bootstrap_fixture_new(fault, countdown, 0, 0);
        struct hf_bootstrap_info info = {.size = sizeof info};

        bootstrap_fixture_install(f);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        for (size_t i = 0; i < 2; i++) {
                hf_bootstrap_info(f->bootstrap, i, &info);
                assert_true(info.complete);
                assert_int_equal(info.n_steps, 1);
        }
        assert_int_equal(bootstrap_fixture_n_commits(f, "configmaps/default/a"), 1);
        assert_int_equal(bootstrap_fixture_n_commits(f, "configmaps/default/b"), 1);
        /* two records, two completions */
        assert_int_equal(bootstrap_fixture_n_commits(f,
                                                     "configmaps/kube-system/holdfast-bootstrap"),
                         4);
        bootstrap_fixture_assert_fenced(f);
        bool hit = atomic_load(&f->client.hit);
        bootstrap_fixture_free(f);
        return hit;
}

static void test_bootstrap_completes_when_any_write_fails_once(void **state) {
        int n = 0;

        while (once(BOOTSTRAP_FAULT_NOT_SENT, n))
                n++;
        assert_int_equal(n, 6); /* two objects, the ledger four times */
}

static void test_bootstrap_completes_when_any_reply_is_lost_once(void **state) {
        int n = 0;

        while (once(BOOTSTRAP_FAULT_REPLY_LOST, n))
                n++;
        assert_int_equal(n, 6);
}

static void test_after_a_conflict_the_ledger_is_read_again_after_a_pause(void **state) {
        struct bootstrap_fixture *f = bootstrap_fixture_new(BOOTSTRAP_FAULT_CONFLICT, 3, 0, 0);

        bootstrap_fixture_install(f);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        /* the three conflicts, then the record */
        assert_int_equal(strncmp(bootstrap_fixture_calls(), "WpGWpGWpGW", 10), 0);
        /* One conflict is not a failure, because others may write the ledger. Further ones are
         * failures. */
        pthread_mutex_lock(&f->mu);
        assert_int_equal(f->points[HF_BOOTSTRAP_FAILING], 2);
        pthread_mutex_unlock(&f->mu);
        assert_int_equal(bootstrap_fixture_n_commits(f, "configmaps/default/a"), 1);
        assert_int_equal(bootstrap_fixture_n_commits(f,
                                                     "configmaps/kube-system/holdfast-bootstrap"),
                         4);
        bootstrap_fixture_free(f);
}

/* ---- the hook ---- */

static void *shut_down(void *ctx) {
        struct bootstrap_fixture *f = ctx;
        /* An open watch shows that the hook waits. */
        fake_api_await_watch(f->api, 1);
        hf_hooks_shut_down(f->hooks);
        return NULL;
}

static void test_a_hook_waits_until_the_shutdown(void **state) {
        struct bootstrap_fixture *f = bootstrap_fixture_new(BOOTSTRAP_FAULT_NONE, -1, 0, 0);
        struct hf_status status = {0};
        pthread_t thread;

        assert_int_equal(hf_bootstrap_install(f->bootstrap, f->hooks, NULL, 0, NULL), 0);
        /* both hooks, both phases */
        assert_int_equal(hf_health_each(f->host.health, HF_READYZ, NULL, NULL), 4);
        /* only the hooks */
        assert_int_equal(hf_health_each(f->host.health, HF_LIVEZ, NULL, NULL), 2);
        assert_int_equal(pthread_create(&thread, NULL, shut_down, f), 0);
        assert_int_equal(hf_hooks_start(f->hooks, &status), HF_E_CANCELED);
        assert_int_equal(pthread_join(thread, NULL), 0);
        (void)hf_hooks_stop(f->hooks, &status);
        bootstrap_fixture_free(f);
}

static void *complete(void *ctx) {
        struct bootstrap_fixture *f = ctx;
        fake_api_await_watch(f->api, 1);
        fake_api_put(f->api, "configmaps/kube-system/holdfast-bootstrap",
                     "{\"metadata\":{},\"data\":{\"format\":\"1\"}}");
        fake_api_put(f->api, "configmaps/kube-system/holdfast-bootstrap",
                     "{\"metadata\":{},\"data\":{\"format\":\"77\",\"zero.completed\":\"9.0.0 "
                     "now\",\"one.completed\":\"9.0.0 now\"}}");
        return NULL;
}

/*
 * A process that does not contend becomes ready when another process, of any version, completes the
 * phase.
 */
static void test_a_hook_is_done_when_another_process_completes_the_phase(void **state) {
        struct bootstrap_fixture *f = bootstrap_fixture_new(BOOTSTRAP_FAULT_NONE, -1, 0, 0);
        struct hf_bootstrap_info info = {.size = sizeof info};
        pthread_t thread;

        assert_int_equal(hf_bootstrap_install(f->bootstrap, f->hooks, NULL, 0, NULL), 0);
        assert_int_equal(pthread_create(&thread, NULL, complete, f), 0);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(hf_health_each(f->host.health, HF_READYZ, NULL, NULL), 0);
        for (size_t i = 0; i < 2; i++) {
                hf_bootstrap_info(f->bootstrap, i, &info);
                assert_true(info.complete && info.n_settled == 1);
        }
        bootstrap_fixture_free(f);
}

/* The leader reads the ledger when it begins to lead. Its own version need never complete. */
static void test_a_leader_without_hooks_knows_that_an_older_version_was_complete(void **state) {
        struct bootstrap_fixture *f = bootstrap_fixture_new(BOOTSTRAP_FAULT_REFUSED, -1, 0, 0);
        struct hf_bootstrap_info info = {.size = sizeof info};

        fake_api_put(f->api, "configmaps/kube-system/holdfast-bootstrap",
                     "{\"metadata\":{},\"data\":{\"format\":\"1\","
                     "\"zero.completed\":\"0.9.0 now\"}}");
        bootstrap_fixture_add_elector(f);
        assert_int_equal(hf_controllers_install(f->hooks, f->electors, NULL, 0, NULL), 0);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        bootstrap_fixture_await(f, HF_BOOTSTRAP_FAILING, 1);
        hf_bootstrap_info(f->bootstrap, 0, &info);
        assert_true(info.complete && info.n_settled == 0);
        hf_bootstrap_info(f->bootstrap, 1, &info);
        assert_false(info.complete);
        bootstrap_fixture_free(f);
}

static void test_a_hook_with_a_time_limit_lets_the_start_go_on(void **state) {
        struct bootstrap_fixture *f = bootstrap_fixture_new(BOOTSTRAP_FAULT_NONE, -1, 1, 0);
        struct hf_bootstrap_info info = {.size = sizeof info};

        assert_int_equal(hf_bootstrap_install(f->bootstrap, f->hooks, NULL, 0, NULL), 0);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        hf_bootstrap_info(f->bootstrap, 0, &info);
        assert_false(info.complete);
        bootstrap_fixture_free(f);
}

/* ---- the ledger is deleted ---- */

/* If the ledger stayed deleted, a process that starts later would not become ready in this term. */
static void test_a_deleted_ledger_is_recreated_in_the_same_term(void **state) {
        struct bootstrap_fixture *f = bootstrap_fixture_new(BOOTSTRAP_FAULT_NONE, -1, 0, 0);
        struct hf_leader_info info = {.size = sizeof info};

        bootstrap_fixture_install(f);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        bootstrap_fixture_await(f, HF_BOOTSTRAP_COMPLETE, 2);
        fake_api_delete(f->api, "configmaps/kube-system/holdfast-bootstrap");
        bootstrap_fixture_await(f, HF_BOOTSTRAP_COMPLETE, 4);
        hf_elector_info(f->elector, &info);
        assert_int_equal(info.n_terms, 1);
        assert_int_equal(bootstrap_fixture_n_commits(f, "configmaps/default/a"), 1);
        assert_int_equal(bootstrap_fixture_n_commits(f, "configmaps/default/b"), 1);
        bootstrap_fixture_free(f);
}

/* ---- the ledger's namespace is missing ---- */

/* The server refuses the create of the ledger as not found. That is a failure, not a conflict. */
static void test_a_missing_namespace_of_the_ledger_is_a_failure(void **state) {
        struct bootstrap_fixture *f = bootstrap_fixture_new(BOOTSTRAP_FAULT_NO_NAMESPACE, -1, 1, 0);
        struct hf_bootstrap_info info = {.size = sizeof info};

        bootstrap_fixture_install(f);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        bootstrap_fixture_await(f, HF_BOOTSTRAP_FAILING, 1);
        hf_bootstrap_info(f->bootstrap, 0, &info);
        assert_true(info.failing);
        assert_false(info.complete);
        bootstrap_fixture_free(f);
}

/* ---- releasing after failures ---- */

static void test_a_leader_that_keeps_failing_releases_and_tries_again(void **state) {
        struct bootstrap_fixture *f = bootstrap_fixture_new(BOOTSTRAP_FAULT_REFUSED, -1, 1, 1);
        struct hf_leader_info info = {.size = sizeof info};

        bootstrap_fixture_install(f);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        bootstrap_fixture_await(f, HF_BOOTSTRAP_GAVE_WAY, 2);
        hf_elector_info(f->elector, &info);
        assert_true(info.n_terms >= 2);
        assert_int_equal(bootstrap_fixture_n_commits(f, "configmaps/default/a"), 0);
        pthread_mutex_lock(&f->api->mu);
        unsigned n_released = 0, n_events = 0;
        for (size_t i = 0; i < f->api->store.n_commits; i++) {
                n_released += strcmp(f->api->store.commits[i].key, "leases/default/lead") == 0 &&
                              !f->api->store.commits[i].holder[0];
                n_events += strncmp(f->api->store.commits[i].key,
                                    "events/kube-system/holdfast-bootstrap.", 38) == 0;
        }
        pthread_mutex_unlock(&f->api->mu);
        assert_true(n_released >= 1);
        assert_true(n_events >= 2);
        pthread_mutex_lock(&f->mu);
        assert_int_equal(f->points[HF_BOOTSTRAP_APPLIED], 0);
        pthread_mutex_unlock(&f->mu);
        bootstrap_fixture_free(f);
}

static void test_a_ledger_that_always_conflicts_makes_the_leader_give_way(void **state) {
        struct bootstrap_fixture *f =
                bootstrap_fixture_new(BOOTSTRAP_FAULT_CONFLICT, INT_MAX, 1, 1);

        bootstrap_fixture_install(f);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        bootstrap_fixture_await(f, HF_BOOTSTRAP_GAVE_WAY, 1);
        bootstrap_fixture_free(f);
}

/* ---- configurations that are refused ---- */

static void test_bad_configurations_are_refused(void **state) {
        static const struct hf_bootstrap_kind kinds[] = {{"v1", "ConfigMap", "configmaps", true}};
        const struct hf_bootstrap_phase good = {.size = sizeof good, .name = "a"},
                                        twice[] = {{.size = sizeof(struct hf_bootstrap_phase),
                                                    .name = "a"},
                                                   {.size = sizeof(struct hf_bootstrap_phase),
                                                    .name = "a"}},
                                        bad = {.size = sizeof bad, .name = "A b"};
        const struct hf_bootstrap_config fine = {.size = sizeof fine,
                                                 .version = "1",
                                                 .kinds = kinds,
                                                 .n_kinds = 1,
                                                 .phases = &good,
                                                 .n_phases = 1};
        const struct hf_host host = {.size = sizeof host};
        struct hf_bootstrap *bootstrap;
        struct hf_status status = {0};
        struct hf_bootstrap_config config = fine;

        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), 0);
        assert_int_equal(hf_bootstrap_n_phases(bootstrap), 1);
        hf_bootstrap_free(bootstrap);
        config.version = "one";
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), HF_E_INVALID);
        assert_string_equal(status.message, "bootstrap: \"one\" is not a version");
        config = fine;
        config.n_phases = 0;
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), HF_E_INVALID);
        config = fine;
        config.phases = twice;
        config.n_phases = 2;
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), HF_E_INVALID);
        assert_string_equal(status.message, "bootstrap: there are two phases a");
        config = fine;
        config.phases = &bad;
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), HF_E_INVALID);
        config = fine;
        config.size = 0;
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), -EINVAL);
        assert_null(hf_bootstrap_free(NULL));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bootstrap_completes_when_any_write_fails_once),
                cmocka_unit_test(test_bootstrap_completes_when_any_reply_is_lost_once),
                cmocka_unit_test(test_a_hook_waits_until_the_shutdown),
                cmocka_unit_test(test_a_hook_is_done_when_another_process_completes_the_phase),
                cmocka_unit_test(
                        test_a_leader_without_hooks_knows_that_an_older_version_was_complete),
                cmocka_unit_test(test_a_hook_with_a_time_limit_lets_the_start_go_on),
                cmocka_unit_test(test_a_deleted_ledger_is_recreated_in_the_same_term),
                cmocka_unit_test(test_a_missing_namespace_of_the_ledger_is_a_failure),
                cmocka_unit_test(test_a_leader_that_keeps_failing_releases_and_tries_again),
                cmocka_unit_test(test_after_a_conflict_the_ledger_is_read_again_after_a_pause),
                cmocka_unit_test(test_a_ledger_that_always_conflicts_makes_the_leader_give_way),
                cmocka_unit_test(test_bad_configurations_are_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
