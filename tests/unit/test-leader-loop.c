/* SPDX-License-Identifier: Apache-2.0 */
/* Electors from end to end, over the fake API server. */
#undef NDEBUG
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <holdfast/health.h>
#include <holdfast/leader.h>
#include <holdfast/metrics.h>

#include "base/json.h"
#include "elector_fixture.h"
#include "leader/electors.h"

/* CG31, PN02, PN08, CR10, CR14 */
static void test_a_stop_releases_and_another_takes_over(void **state) {
        struct fake_api *api = fake_api_new();
        struct elector_fixture *a = elector_fixture_start(api, "a", ELECTOR_WRITES);
        ELECTOR_AWAIT(a, elector_fixture_leads);
        ELECTOR_AWAIT(a, elector_fixture_has_written);
        struct elector_fixture *b = elector_fixture_start(api, "b", ELECTOR_WRITES);
        ELECTOR_AWAIT(b, elector_fixture_runs_local);
        ELECTOR_AWAIT(b, elector_fixture_knows_holder);
        assert_true(hf_elector_may_act(a->elector));
        assert_false(hf_elector_may_act(b->elector));
        uint64_t iterations = hf_electors_iterations(a->electors);
        elector_fixture_stop(a);
        assert_true(hf_electors_iterations(a->electors) > iterations);
        assert_false(hf_elector_may_act(a->elector));
        ELECTOR_AWAIT(b, elector_fixture_leads);
        ELECTOR_AWAIT(b, elector_fixture_has_written);
        elector_fixture_stop(b);
        /* the last commit is b's release */
        assert_string_equal(api->store.commits[api->store.n_commits - 1].holder, "");
        for (size_t i = 0; i < api->store.n_commits; i++)
                assert_int_not_equal(strncmp(api->store.commits[i].key, "events/", 7),
                                     0); /* none were configured */
        assert_true(elector_fixture_check_commits(api) >= 2);
        assert_int_equal(a->n_started, 1);
        elector_fixture_free(a);
        elector_fixture_free(b);
        fake_api_free(api);
}

#define THIEF_ACQUIRED "2020-01-01T00:00:00.000000Z"

/* Asserts that the Lease is a's again after the thief's record, and counts on from it. */
static void assert_taken_from_thief(struct fake_api *api) {
        struct hf__json *lease = NULL;
        char *text = fake_api_get(api, ELECTOR_FIXTURE_KEY);
        assert_non_null(text);
        assert_int_equal(hf__json_parse(text, strlen(text), &lease, NULL), 0);
        const struct hf__json *spec = hf__json_get(lease, "spec");
        assert_string_equal(hf__json_string(spec, "holderIdentity"), "a");
        assert_true(strcmp(hf__json_string(spec, "acquireTime"), THIEF_ACQUIRED) > 0);
        int64_t transitions = 0;
        assert_true(hf__json_i64(spec, "leaseTransitions", &transitions));
        assert_int_equal(transitions, 8);
        (void)hf__json_free(lease);
        free(text);
}

/* PN04, PN06, A03, A10 */
static void test_terms_alternate_under_overwrites_and_deletions(void **state) {
        struct fake_api *api = fake_api_new();
        struct elector_fixture *a = elector_fixture_start(api, "a", ELECTOR_WRITES);
        struct hf_leader_info info = {.size = sizeof info};
        uint64_t term = 0;
        for (int round = 1; round <= 3; round++) {
                ELECTOR_AWAIT(a, elector_fixture_leads);
                hf_elector_info(a->elector, &info);
                assert_true(info.term > term);
                term = info.term;
                if (round == 3)
                        assert_taken_from_thief(api);
                elector_fixture_lock(a);
                a->n_written = 0;
                elector_fixture_unlock(a);
                ELECTOR_AWAIT(a, elector_fixture_has_written);
                if (round % 2)
                        fake_api_delete(api, ELECTOR_FIXTURE_KEY);
                else
                        fake_api_put(api, ELECTOR_FIXTURE_KEY,
                                     "{\"metadata\":{\"name\":\"lead\"},\"spec\":{"
                                     "\"holderIdentity\":\"x\",\"leaseDurationSeconds\":1,"
                                     "\"acquireTime\":\"" THIEF_ACQUIRED "\","
                                     "\"leaseTransitions\":7}}");
                ELECTOR_AWAIT(a, elector_fixture_follows);
        }
        ELECTOR_AWAIT(a, elector_fixture_leads);
        hf_elector_info(a->elector, &info);
        assert_true(info.n_terms >= 4);
        assert_true(info.term > term && info.valid_until > 0);
        assert_non_null(strstr(info.last_end, "Lease"));
        elector_fixture_stop(a);
        assert_int_equal(a->n_started, info.n_terms);
        elector_fixture_check_commits(api);
        elector_fixture_free(a);
        fake_api_free(api);
}

static void look_at_health(void *ctx, const char *name, bool healthy, const char *reason) {
        if (!healthy)
                (void)snprintf(ctx, 200, "%s: %s", name, reason);
}

/* The fixture whose electors may have been leaked; volatile, so that leak checkers find it. */
static struct elector_fixture *volatile kept;

static void test_a_stuck_controller_is_named_and_nothing_released(void **state) {
        struct fake_api *api = fake_api_new();
        struct hf_status status = {0};
        char health[200] = "";
        assert_int_equal(hf_health_new(&api->host.health), 0);
        struct elector_fixture *a = elector_fixture_start(api, "a", ELECTOR_IGNORES_TOKENS);
        ELECTOR_AWAIT(a, elector_fixture_leads);
        assert_int_equal(hf_health_each(api->host.health, HF_LIVEZ, look_at_health, health), 0);
        assert_int_equal(hf_electors_stop(a->electors, &status), HF_E_STUCK);
        assert_non_null(strstr(status.message, "worker"));
        status = (struct hf_status){0};
        /* a second call returns the same */
        assert_int_equal(hf_electors_stop(a->electors, &status), HF_E_STUCK);
        assert_non_null(strstr(status.message, "worker"));
        assert_true(elector_fixture_is_stuck(a));
        assert_false(hf_elector_may_act(a->elector));
        assert_int_equal(hf_health_each(api->host.health, HF_LIVEZ, look_at_health, health), 1);
        assert_non_null(strstr(health, "leaderElection: controller worker"));
        for (size_t i = 0; i < api->store.n_commits; i++)
                assert_string_equal(api->store.commits[i].holder, "a");
        struct hf_health *checks = api->host.health;
        assert_null(hf_electors_free(a->electors)); /* the controller still runs: they are leaked */
        assert_false(hf_elector_may_act(a->elector));
        elector_fixture_lock(a);
        a->may_end = true;
        elector_fixture_unlock(a);
        ELECTOR_AWAIT(a, elector_fixture_may_end);
        ELECTOR_AWAIT(a, elector_fixture_has_ended);
        hf_client_free(&a->client->base);
        kept = a;
        hf_health_free(checks);
        fake_api_free(api);
}

static bool lease_is_renewed_once(void *ctx) {
        return ((struct elector_fixture *)ctx)->api->store.n_commits >= 2;
}

static void *stop_main(void *ctx) {
        elector_fixture_stop(ctx);
        return NULL;
}

/* CR01, CR16 */
static void test_a_drain_lets_work_finish_while_renewals_go_on(void **state) {
        struct fake_api *api = fake_api_new();
        struct elector_fixture *a = elector_fixture_start(api, "a", ELECTOR_WRITES_AT_DRAIN);
        pthread_t thread;
        ELECTOR_AWAIT(a, elector_fixture_leads);
        ELECTOR_AWAIT(a, lease_is_renewed_once);
        assert_int_equal(pthread_create(&thread, NULL, stop_main, a), 0);
        ELECTOR_AWAIT(a, elector_fixture_drains);
        assert_true(hf_elector_may_act(a->elector));
        elector_fixture_lock(a);
        a->may_end = true;
        elector_fixture_unlock(a);
        pthread_join(thread, NULL);
        assert_int_equal(a->last_error, 0);
        assert_int_equal(a->n_written, 1);
        /* The last two commits: the write of the work, then the release. */
        assert_int_equal(strncmp(api->store.commits[api->store.n_commits - 2].key, "configmaps/",
                                 11),
                         0);
        assert_string_equal(api->store.commits[api->store.n_commits - 1].holder, "");
        elector_fixture_free(a);
        fake_api_free(api);
}

static bool was_unfenced(void *ctx) { return ((struct elector_fixture *)ctx)->n_unfenced > 0; }
static bool was_refused(void *ctx) { return ((struct elector_fixture *)ctx)->last_error != 0; }

static void test_a_second_stop_waits_for_the_first(void **state) {
        struct fake_api *api = fake_api_new();
        struct elector_fixture *a = elector_fixture_start(api, "a", ELECTOR_WRITES_AT_DRAIN);
        pthread_t first, second;
        ELECTOR_AWAIT(a, elector_fixture_leads);
        assert_int_equal(pthread_create(&first, NULL, stop_main, a), 0);
        ELECTOR_AWAIT(a, elector_fixture_drains);
        /* it asserts that all work has ended */
        assert_int_equal(pthread_create(&second, NULL, stop_main, a), 0);
        elector_fixture_lock(a);
        a->may_end = true;
        elector_fixture_unlock(a);
        pthread_join(first, NULL);
        pthread_join(second, NULL);
        assert_int_equal(elector_fixture_state(a), HF_STOPPED);
        elector_fixture_free(a);
        fake_api_free(api);
}

/*
 * on_change hangs, although it must not. The stop ends at its limit, reports this every time, and
 * frees nothing that the loop uses.
 */
struct hang {
        atomic_bool hangs, entered;
};
static void hang_on_change(void *ctx, const struct hf_leader_info *info) {
        struct hang *hang = ctx;
        const struct hf_clock *clock = hf_clock_system();
        atomic_store(&hang->entered, true);
        for (hf_nsec until = hf_now(clock) + ELECTOR_FIXTURE_PATIENCE;
             atomic_load(&hang->hangs) && hf_now(clock) < until;)
                (void)hf_cancel_wait(hf_cancel_never(), hf_now(clock) + 5 * HF_NSEC_PER_MSEC);
}

static void test_a_loop_that_hangs_does_not_hang_the_stop(void **state) {
        struct fake_api *api = fake_api_new();
        struct elector_fixture *a = elector_fixture_new(api, "a", ELECTOR_WRITES, false);
        struct hf_elector *other = NULL;
        struct hf_status status = {0};
        struct hang hang = {.hangs = true};
        struct hf_elector_config config = elector_fixture_config(a, NULL, 0);
        config.name = "other";
        config.on_change = hang_on_change;
        config.ctx = &hang;
        assert_int_equal(hf_electors_add(a->electors, &config, &other, &status), 0);
        assert_int_equal(hf_electors_start(a->electors, NULL), 0);
        while (!atomic_load(&hang.entered))
                (void)hf_cancel_wait(hf_cancel_never(),
                                     hf_now(hf_clock_system()) + HF_NSEC_PER_MSEC);
        assert_int_equal(hf_electors_stop(a->electors, &status), HF_E_STUCK);
        assert_non_null(strstr(status.message, "loop"));
        assert_int_equal(hf_electors_stop(a->electors, &status), HF_E_STUCK);
        assert_null(hf_electors_free(a->electors));   /* the loop still runs: they are leaked */
        assert_false(hf_elector_may_act(a->elector)); /* the validity has ended by itself */
        atomic_store(&hang.hangs, false);
        pthread_join(a->electors->thread, NULL); /* it continues, handles the stop, and ends */
        assert_true(a->electors->loop_over);
        /* now they may be freed, for the leak checkers */
        a->electors->state = HF__ELECTORS_STOPPED;
        elector_fixture_free(a);
        fake_api_free(api);
}

/* CR02, PN05 */
static void test_after_a_loss_writes_are_refused_at_once(void **state) {
        struct fake_api *api = fake_api_new();
        struct elector_fixture *a = elector_fixture_start(api, "a", ELECTOR_WRITES_AFTER_LOSS);
        ELECTOR_AWAIT(a, elector_fixture_leads);
        fake_api_put(api, ELECTOR_FIXTURE_KEY,
                     "{\"metadata\":{\"name\":\"lead\"},\"spec\":{\"holderIdentity\":\"x\","
                     "\"leaseDurationSeconds\":1}}");
        ELECTOR_AWAIT(a, was_refused);
        assert_int_equal(a->last_error, HF_E_NOT_LEADER);
        assert_int_equal(a->n_written, 0);
        elector_fixture_lock(a);
        a->work = ELECTOR_WRITES;
        elector_fixture_unlock(a);
        elector_fixture_stop(a);
        elector_fixture_free(a);
        fake_api_free(api);
}

/* A04, A18 */
static void test_a_hung_api_ends_the_term_and_does_not_hold_up_the_stop(void **state) {
        struct fake_api *api = fake_api_new();
        struct hf_status status = {0};
        struct elector_fixture *a = elector_fixture_start(api, "a", ELECTOR_WRITES);
        ELECTOR_AWAIT(a, elector_fixture_leads);
        fake_api_client_set_mode(a->client, FAKE_API_HANGS);
        /* The work has ended although its own writes hung. */
        ELECTOR_AWAIT(a, elector_fixture_follows);
        assert_int_equal(a->n_running, 0);
        assert_false(hf_elector_may_act(a->elector));
        int r = hf_electors_stop(a->electors, &status); /* while everything still hangs */
        assert_true(r == 0 || r == HF_E_TIMEOUT);
        assert_int_equal(a->n_overlaps, 0);
        elector_fixture_free(a);
        fake_api_free(api);
}

static void test_refusals_end_the_term_and_it_leads_again_later(void **state) {
        struct fake_api *api = fake_api_new();
        struct elector_fixture *a = elector_fixture_start(api, "a", ELECTOR_WRITES);
        ELECTOR_AWAIT(a, elector_fixture_leads);
        fake_api_client_refuse_writes(a->client, HF_E_FORBIDDEN, 0);
        ELECTOR_AWAIT(a, elector_fixture_follows);
        fake_api_client_set_mode(a->client, FAKE_API_RESPONDS);
        ELECTOR_AWAIT(a, elector_fixture_leads_again);
        elector_fixture_stop(a);
        elector_fixture_check_commits(api);
        elector_fixture_free(a);
        fake_api_free(api);
}

static void test_a_hand_over_goes_to_the_named_participant(void **state) {
        struct fake_api *api = fake_api_new();
        struct elector_fixture *a = elector_fixture_start(api, "a", ELECTOR_WRITES);
        ELECTOR_AWAIT(a, elector_fixture_leads);
        struct elector_fixture *b = elector_fixture_start(api, "b", ELECTOR_WRITES),
                               *c = elector_fixture_start(api, "c", ELECTOR_WRITES);
        ELECTOR_AWAIT(b, elector_fixture_knows_holder);
        ELECTOR_AWAIT(c, elector_fixture_knows_holder);
        assert_int_equal(hf_elector_hand_over(b->elector, "c"), HF_E_NOT_LEADER);
        assert_int_equal(hf_elector_hand_over(a->elector, "not an identity"), -EINVAL);
        assert_int_equal(hf_elector_hand_over(a->elector, "c"), 0);
        ELECTOR_AWAIT(c, elector_fixture_leads);
        assert_int_equal(b->n_started, 0);
        char *text = fake_api_get(api, ELECTOR_FIXTURE_KEY);
        assert_null(strstr(text, "successor")); /* removed by the acquire */
        free(text);
        elector_fixture_stop(b);
        elector_fixture_stop(a);
        elector_fixture_stop(c);
        elector_fixture_free(a);
        elector_fixture_free(b);
        elector_fixture_free(c);
        fake_api_free(api);
}

static void test_a_server_without_fences_ends_the_term_unless_accepted(void **state) {
        struct fake_api *api = fake_api_new();
        struct elector_fixture *a =
                elector_fixture_new(api, "a", ELECTOR_WRITES,
                                    true); /* a server without fences is accepted */
        assert_int_equal(hf_electors_start(a->electors, NULL), 0);
        ELECTOR_AWAIT(a, elector_fixture_leads);
        ELECTOR_AWAIT(a, elector_fixture_has_written);
        assert_int_equal(elector_fixture_state(a), HF_LEADING);
        elector_fixture_stop(a);
        elector_fixture_free(a);
        a = elector_fixture_new(api, "b", ELECTOR_WRITES, false);
        a->client->ignores_fences = true;
        assert_int_equal(hf_electors_start(a->electors, NULL), 0);
        /* in this term or a later one: the term may end before the response */
        ELECTOR_AWAIT(a, was_unfenced);
        ELECTOR_AWAIT(a, elector_fixture_leads_again);
        elector_fixture_stop(a);
        elector_fixture_free(a);
        fake_api_free(api);
}

static void test_a_failing_controller_is_run_again(void **state) {
        struct fake_api *api = fake_api_new();
        struct elector_fixture *a = elector_fixture_start(api, "a", ELECTOR_FAILS_TWICE);
        ELECTOR_AWAIT(a, elector_fixture_leads);
        ELECTOR_AWAIT(a, elector_fixture_was_run_thrice);
        struct hf_leader_info info = {.size = sizeof info};
        hf_elector_info(a->elector, &info);
        assert_int_equal(info.n_terms, 1); /* it was one term all the time */
        elector_fixture_stop(a);
        elector_fixture_free(a);
        fake_api_free(api);
}

/* CR19 */
static void test_two_electors_share_a_loop(void **state) {
        struct fake_api *api = fake_api_new();
        struct elector_fixture *a = elector_fixture_new(api, "a", ELECTOR_WRITES, false);
        struct hf_elector *other = NULL;
        struct hf_status status = {0};
        struct hf_controller controllers[] = {{.size = sizeof(struct hf_controller),
                                               .name = "worker",
                                               .run = elector_fixture_run_worker,
                                               .ctx = a}};
        struct hf_elector_config config = elector_fixture_config(a, controllers, 1);
        assert_int_equal(hf_electors_add(a->electors, &config, &other, &status), HF_E_EXISTS);
        config.name = "other";
        assert_int_equal(hf_electors_add(a->electors, &config, &other, &status), HF_E_EXISTS);
        assert_non_null(strstr(status.message, "worker"));
        config.n_controllers = 0;
        config.ctx = a;
        assert_int_equal(hf_electors_add(a->electors, &config, &other, &status), 0);
        assert_int_equal(hf_electors_start(a->electors, NULL), 0);
        assert_int_equal(hf_electors_add(a->electors, &config, &other, &status), HF_E_CLOSED);
        ELECTOR_AWAIT(a, elector_fixture_leads);
        struct elector_fixture second = {.api = api, .elector = other, .n_running = 1};
        /* a term without controllers is a term too */
        ELECTOR_AWAIT(&second, elector_fixture_leads);
        elector_fixture_stop(a);
        char *text = fake_api_get(api, "leases/kube-system/other");
        assert_non_null(strstr(text, "\"holderIdentity\":\"\""));
        free(text);
        elector_fixture_free(a);
        fake_api_free(api);
}

/* Electors that never started have no descriptors, so their end closes none of the host's. */
static void test_electors_that_did_not_start_close_no_descriptor(void **state) {
        const struct hf_host host = {.size = sizeof host};
        struct hf_electors *electors;

        if (fcntl(0, F_GETFD) < 0) /* the test runs without a standard input */
                assert_int_equal(open("/dev/null", O_RDONLY), 0);
        assert_int_equal(hf_electors_new(&host, &electors), 0);
        assert_null(hf_electors_free(electors));
        assert_true(fcntl(0, F_GETFD) >= 0);
}

/* CG17, CG60, CG61, CR06, CR07, CR13, A05 */
static void test_bad_configurations_are_refused_with_a_message(void **state) {
        struct fake_api *api = fake_api_new();
        struct elector_fixture *a = elector_fixture_new(api, "a", ELECTOR_WRITES, false);
        struct hf_status status = {0};
        struct hf_elector_config good = elector_fixture_config(a, NULL, 0), bad;
        const char *labels[] = {"no-value", NULL},
                   *identities[] = {"", "has space", "line\nbreak", "caf\xc3\xa9", NULL};
        char long_identity[HF_IDENTITY_MAX + 2];
        good.name = "other";
        for (size_t i = 0; i < 4; i++) {
                bad = good;
                bad.identity = identities[i];
                assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), HF_E_INVALID);
                assert_non_null(strstr(status.message, "identity"));
        }
        memset(long_identity, 'x', sizeof long_identity);
        long_identity[sizeof long_identity - 1] = '\0';
        bad = good;
        bad.identity = long_identity;
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), HF_E_INVALID);
        bad = good;
        bad.ns = NULL;
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "not the namespace and name of a Lease"));
        bad = good;
        bad.name = NULL;
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), HF_E_INVALID);
        bad = good;
        bad.client = NULL;
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), -EINVAL);
        assert_non_null(strstr(status.message, "has no client"));
        bad = good;
        bad.name = "Upper";
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), HF_E_INVALID);
        bad = good;
        bad.labels = labels;
        bad.n_labels = 1;
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), HF_E_INVALID);
        bad = good;
        bad.timing = (struct hf_leader_timing){.lease_duration = 10 * HF_NSEC_PER_SEC,
                                               .renew_deadline = 9 * HF_NSEC_PER_SEC};
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status),
                         HF_E_INVALID);                           /* A05: 10/9/2 */
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0); /* never started */
        /* and it cannot be started any more */
        assert_int_equal(hf_electors_start(a->electors, &status), HF_E_CLOSED);
        elector_fixture_free(a);
        fake_api_free(api);
}

static void test_the_hook_pair_starts_and_stops_everything(void **state) {
        struct fake_api *api = fake_api_new();
        struct hf_hooks *hooks = NULL;
        struct hf_status status = {0};
        assert_int_equal(hf_metrics_new(&api->host.metrics), 0);
        struct elector_fixture *a = elector_fixture_new(api, "a", ELECTOR_WRITES, false);
        assert_int_equal(hf_hooks_new(&api->host, &a->client->base, &hooks), 0);
        assert_int_equal(hf_controllers_install(hooks, a->electors, NULL, 0, &status), 0);
        assert_int_equal(hf_controllers_install(hooks, a->electors, NULL, 0, &status), HF_E_EXISTS);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        ELECTOR_AWAIT(a, elector_fixture_leads);
        struct hf_metric *master =
                hf_metrics_get(api->host.metrics, HF_METRIC_GAUGE, "leader_election_master_status",
                               "", "name=\"lead\"");
        assert_non_null(master);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_fire_stopped(hooks);
        hf_hooks_free(hooks);
        assert_int_equal(a->n_running + a->n_local_running, 0);
        struct hf_metrics *metrics = api->host.metrics;
        elector_fixture_free(a);
        hf_metrics_free(metrics);
        fake_api_free(api);
}

/* The test leaves a stuck thread alone on purpose, so the sanitizer must not report it. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "report_thread_leaks=0"; }

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_stop_releases_and_another_takes_over),
                cmocka_unit_test(test_terms_alternate_under_overwrites_and_deletions),
                cmocka_unit_test(test_a_stuck_controller_is_named_and_nothing_released),
                cmocka_unit_test(test_a_drain_lets_work_finish_while_renewals_go_on),
                cmocka_unit_test(test_a_second_stop_waits_for_the_first),
                cmocka_unit_test(test_a_loop_that_hangs_does_not_hang_the_stop),
                cmocka_unit_test(test_after_a_loss_writes_are_refused_at_once),
                cmocka_unit_test(test_a_hung_api_ends_the_term_and_does_not_hold_up_the_stop),
                cmocka_unit_test(test_refusals_end_the_term_and_it_leads_again_later),
                cmocka_unit_test(test_a_hand_over_goes_to_the_named_participant),
                cmocka_unit_test(test_a_server_without_fences_ends_the_term_unless_accepted),
                cmocka_unit_test(test_a_failing_controller_is_run_again),
                cmocka_unit_test(test_two_electors_share_a_loop),
                cmocka_unit_test(test_electors_that_did_not_start_close_no_descriptor),
                cmocka_unit_test(test_bad_configurations_are_refused_with_a_message),
                cmocka_unit_test(test_the_hook_pair_starts_and_stops_everything),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
