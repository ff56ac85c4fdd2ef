/* SPDX-License-Identifier: Apache-2.0 */
/* Electors end to end over an API in memory. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "leader_node.h"

/* CG31, PN02, PN08, CR10, CR14 */
static void test_a_stop_hands_over_by_releasing(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", WRITES);
        AWAIT(a, leads);
        AWAIT(a, has_written);
        struct node *b = node_start(api, "b", WRITES);
        AWAIT(b, instance_runs);
        AWAIT(b, knows_holder);
        assert_true(hf_elector_may_act(a->elector));
        assert_false(hf_elector_may_act(b->elector));
        uint64_t iterations = hf_electors_iterations(a->electors);
        node_stop(a);
        assert_true(hf_electors_iterations(a->electors) > iterations);
        assert_false(hf_elector_may_act(a->elector));
        AWAIT(b, leads);
        AWAIT(b, has_written);
        node_stop(b);
        assert_string_equal(api->commits[api->n_commits - 1].holder,
                            ""); /* b has released, as its last commit */
        for (size_t i = 0; i < api->n_commits; i++)
                assert_int_not_equal(strncmp(api->commits[i].key, "events/", 7),
                                     0); /* none were asked for */
        assert_true(check_witness(api) >= 2);
        assert_int_equal(a->n_started, 1);
        node_free(a);
        node_free(b);
        fake_api_free(api);
}

/* PN04, PN06, A03, A10 */
static void test_terms_alternate_under_overwrites_and_deletions(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", WRITES);
        for (int round = 1; round <= 3; round++) {
                AWAIT(a, leads);
                lock_api(a);
                a->n_written = 0;
                unlock_api(a);
                AWAIT(a, has_written);
                if (round % 2)
                        fake_delete(api, KEY);
                else
                        fake_put(api, KEY,
                                 "{\"metadata\":{\"name\":\"lead\"},\"spec\":{\"holderIdentity\":"
                                 "\"x\",\"leaseDurationSeconds\":1}}");
                AWAIT(a, follows);
        }
        AWAIT(a, leads);
        struct hf_leader_info info;
        hf_elector_info(a->elector, &info);
        assert_true(info.n_terms >= 4);
        assert_true(info.term > 0 && info.valid_until > 0);
        assert_non_null(strstr(info.last_end, "Lease"));
        node_stop(a);
        assert_int_equal(a->n_started, info.n_terms);
        check_witness(api);
        node_free(a);
        fake_api_free(api);
}

static void look_at_health(void *ctx, const char *name, bool healthy, const char *reason) {
        if (!healthy)
                (void)snprintf(ctx, 200, "%s: %s", name, reason);
}

/* Where the node is kept whose electors may have been left as they are. Volatile, so that leak
 * checkers find it. */
static struct node *volatile kept;

static void test_a_stuck_controller_is_named_and_nothing_released(void **state) {
        struct fake_api *api = fake_api_new();
        struct hf_status status = {0};
        char health[200] = "";
        assert_int_equal(hf_health_new(&api->host.health), 0);
        struct node *a = node_start(api, "a", IGNORES_TOKENS);
        AWAIT(a, leads);
        assert_int_equal(hf_health_each(api->host.health, HF_LIVEZ, look_at_health, health), 0);
        assert_int_equal(hf_electors_stop(a->electors, &status), HF_E_STUCK);
        assert_non_null(strstr(status.message, "worker"));
        status = (struct hf_status){0};
        assert_int_equal(hf_electors_stop(a->electors, &status),
                         HF_E_STUCK); /* asked again it says the same */
        assert_non_null(strstr(status.message, "worker"));
        assert_true(is_stuck(a));
        assert_false(hf_elector_may_act(a->elector));
        assert_int_equal(hf_health_each(api->host.health, HF_LIVEZ, look_at_health, health), 1);
        assert_non_null(strstr(health, "leaderElection: controller worker"));
        for (size_t i = 0; i < api->n_commits; i++)
                assert_string_equal(api->commits[i].holder, "a");
        lock_api(a);
        a->let_go = true;
        unlock_api(a);
        AWAIT(a, is_let_go);
        AWAIT(a, has_ended); /* its thread is about to exit: what it may touch until then stays */
        struct hf_health *checks = api->host.health;
        hf_electors_free(a->electors);
        hf_client_free(&a->client->base);
        kept = a;
        hf_health_free(checks);
        fake_api_free(api);
}

static bool lease_is_renewed_once(void *ctx) { return ((struct node *)ctx)->api->n_commits >= 2; }

static void *stop_main(void *ctx) {
        node_stop(ctx);
        return NULL;
}

static void test_a_drain_lets_work_finish_while_renewals_go_on(void **state) { /* CR01, CR16 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", WRITES_AT_DRAIN);
        pthread_t thread;
        AWAIT(a, leads);
        AWAIT(a, lease_is_renewed_once);
        assert_int_equal(pthread_create(&thread, NULL, stop_main, a), 0);
        AWAIT(a, drains);
        assert_true(hf_elector_may_act(a->elector));
        lock_api(a);
        a->let_go = true;
        unlock_api(a);
        pthread_join(thread, NULL);
        assert_int_equal(a->last_error, 0);
        assert_int_equal(a->n_written, 1);
        /* The last two commits: the work's write, then the release. */
        assert_int_equal(strncmp(api->commits[api->n_commits - 2].key, "configmaps/", 11), 0);
        assert_string_equal(api->commits[api->n_commits - 1].holder, "");
        node_free(a);
        fake_api_free(api);
}

static bool was_unfenced(void *ctx) { return ((struct node *)ctx)->n_unfenced > 0; }
static bool was_refused(void *ctx) { return ((struct node *)ctx)->last_error != 0; }

static void test_a_second_stop_waits_for_the_first(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", WRITES_AT_DRAIN);
        pthread_t first, second;
        AWAIT(a, leads);
        assert_int_equal(pthread_create(&first, NULL, stop_main, a), 0);
        AWAIT(a, drains);
        assert_int_equal(pthread_create(&second, NULL, stop_main, a),
                         0); /* it asserts that all work has ended */
        lock_api(a);
        a->let_go = true;
        unlock_api(a);
        pthread_join(first, NULL);
        pthread_join(second, NULL);
        assert_int_equal(state_of(a), HF_STOPPED);
        node_free(a);
        fake_api_free(api);
}

/* on_change may hang, against the contract: the stop then ends by its bound, says so for good, and
 * nothing is freed under the loop. */
struct hang {
        atomic_bool hangs, entered;
};
static void hang_on_change(void *ctx, const struct hf_leader_info *info) {
        struct hang *hang = ctx;
        const struct hf_clock *clock = hf_clock_system();
        atomic_store(&hang->entered, true);
        for (hf_nsec until = hf_now(clock) + GUARD;
             atomic_load(&hang->hangs) && hf_now(clock) < until;)
                (void)hf_cancel_wait(hf_cancel_never(), hf_now(clock) + 5 * HF_NSEC_PER_MSEC);
}

static void test_a_loop_that_hangs_does_not_hang_the_stop(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_new(api, "a", WRITES, false);
        struct hf_elector *other = NULL;
        struct hf_status status = {0};
        struct hang hang = {.hangs = true};
        struct hf_elector_config config = config_of(a, NULL, 0);
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
        assert_null(hf_electors_free(a->electors));   /* the loop is alive: it leaks them */
        assert_false(hf_elector_may_act(a->elector)); /* validity has ended by itself */
        atomic_store(&hang.hangs, false);
        pthread_join(a->electors->thread, NULL); /* it goes on, is told to stop, and ends */
        assert_true(a->electors->loop_over);
        a->electors->state =
                HF__ELECTORS_STOPPED; /* now they may be freed, for the leak checkers */
        node_free(a);
        fake_api_free(api);
}

static void test_after_a_loss_writes_are_refused_at_once(void **state) { /* CR02, PN05 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", TRIES_AFTER_LOSS);
        AWAIT(a, leads);
        fake_put(api, KEY,
                 "{\"metadata\":{\"name\":\"lead\"},\"spec\":{\"holderIdentity\":\"x\","
                 "\"leaseDurationSeconds\":1}}");
        AWAIT(a, was_refused);
        assert_int_equal(a->last_error, HF_E_NOT_LEADER);
        assert_int_equal(a->n_written, 0);
        lock_api(a);
        a->habit = WRITES;
        unlock_api(a);
        node_stop(a);
        node_free(a);
        fake_api_free(api);
}

/* A04, A18 */
static void test_a_hung_api_ends_the_term_and_does_not_hold_up_the_stop(void **state) {
        struct fake_api *api = fake_api_new();
        struct hf_status status = {0};
        struct node *a = node_start(api, "a", WRITES);
        AWAIT(a, leads);
        fake_set_mode(a->client, FAKE_HANG, false, 0, 0);
        AWAIT(a, follows); /* joined: the work was let go although its own writes hung */
        assert_int_equal(a->n_running, 0);
        assert_false(hf_elector_may_act(a->elector));
        int r = hf_electors_stop(a->electors, &status); /* while everything still hangs */
        assert_true(r == 0 || r == HF_E_TIMEOUT);
        assert_int_equal(a->n_overlaps, 0);
        node_free(a);
        fake_api_free(api);
}

static void test_refusals_end_the_term_and_it_comes_back(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", WRITES);
        AWAIT(a, leads);
        fake_set_mode(a->client, FAKE_REFUSE, true, HF_E_FORBIDDEN, 0);
        AWAIT(a, follows);
        fake_set_mode(a->client, FAKE_OK, false, 0, 0);
        AWAIT(a, has_two_terms);
        node_stop(a);
        check_witness(api);
        node_free(a);
        fake_api_free(api);
}

static void test_a_hand_over_reaches_the_named_one(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", WRITES);
        AWAIT(a, leads);
        struct node *b = node_start(api, "b", WRITES), *c = node_start(api, "c", WRITES);
        AWAIT(b, knows_holder);
        AWAIT(c, knows_holder);
        assert_int_equal(hf_elector_hand_over(b->elector, "c"), HF_E_NOT_LEADER);
        assert_int_equal(hf_elector_hand_over(a->elector, "not an identity"), -EINVAL);
        assert_int_equal(hf_elector_hand_over(a->elector, "c"), 0);
        AWAIT(c, leads);
        assert_int_equal(b->n_started, 0);
        char *text = fake_get(api, KEY);
        assert_null(strstr(text, "successor")); /* gone with the acquire */
        free(text);
        node_stop(b);
        node_stop(a);
        node_stop(c);
        node_free(a);
        node_free(b);
        node_free(c);
        fake_api_free(api);
}

static void test_a_server_without_fences_ends_the_term_unless_accepted(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_new(api, "a", WRITES, true); /* accepted */
        assert_int_equal(hf_electors_start(a->electors, NULL), 0);
        AWAIT(a, leads);
        AWAIT(a, has_written);
        assert_int_equal(state_of(a), HF_LEADING);
        node_stop(a);
        node_free(a);
        a = node_new(api, "b", WRITES, false);
        a->client->no_echo = true;
        assert_int_equal(hf_electors_start(a->electors, NULL), 0);
        AWAIT(a, was_unfenced); /* in this term or a later one: its end may be quicker than the
                                   answer */
        AWAIT(a, has_two_terms);
        node_stop(a);
        node_free(a);
        fake_api_free(api);
}

static void test_a_failing_controller_is_run_again(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a", FAILS_TWICE);
        AWAIT(a, leads);
        AWAIT(a, started_thrice);
        struct hf_leader_info info;
        hf_elector_info(a->elector, &info);
        assert_int_equal(info.n_terms, 1); /* it was one term all the time */
        node_stop(a);
        node_free(a);
        fake_api_free(api);
}

static void test_two_electors_share_a_loop(void **state) { /* CR19 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_new(api, "a", WRITES, false);
        struct hf_elector *other = NULL;
        struct hf_status status = {0};
        struct hf_controller controllers[] = {{.name = "worker", .run = run, .ctx = a}};
        struct hf_elector_config config = config_of(a, controllers, 1);
        assert_int_equal(hf_electors_add(a->electors, &config, &other, &status), HF_E_EXISTS);
        config.name = "other";
        assert_int_equal(hf_electors_add(a->electors, &config, &other, &status), HF_E_EXISTS);
        assert_non_null(strstr(status.message, "worker"));
        config.n_controllers = 0;
        config.ctx = a;
        assert_int_equal(hf_electors_add(a->electors, &config, &other, &status), 0);
        assert_int_equal(hf_electors_start(a->electors, NULL), 0);
        assert_int_equal(hf_electors_add(a->electors, &config, &other, &status), HF_E_CLOSED);
        AWAIT(a, leads);
        struct node second = {.api = api, .elector = other, .n_running = 1};
        AWAIT(&second, leads); /* a term without controllers is a term */
        node_stop(a);
        char *text = fake_get(api, "leases/kube-system/other");
        assert_non_null(strstr(text, "\"holderIdentity\":\"\""));
        free(text);
        node_free(a);
        fake_api_free(api);
}

/* CG17, CG60, CG61, CR06, CR07, CR13, A05 */
static void test_wrong_configurations_are_refused_with_a_line(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_new(api, "a", WRITES, false);
        struct hf_status status = {0};
        struct hf_elector_config good = config_of(a, NULL, 0), bad;
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
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status), HF_E_INVALID);
        bad = good;
        bad.timing = (struct hf_leader_timing){.lease_duration = 10 * HF_NSEC_PER_SEC,
                                               .renew_deadline = 9 * HF_NSEC_PER_SEC};
        assert_int_equal(hf_electors_add(a->electors, &bad, NULL, &status),
                         HF_E_INVALID);                                         /* A05: 10/9/2 */
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);               /* never started */
        assert_int_equal(hf_electors_start(a->electors, &status), HF_E_CLOSED); /* nor will it be */
        node_free(a);
        fake_api_free(api);
}

static void test_the_hook_pair_starts_and_stops_everything(void **state) {
        struct fake_api *api = fake_api_new();
        struct hf_hooks *hooks = NULL;
        struct hf_status status = {0};
        assert_int_equal(hf_metrics_new(&api->host.metrics), 0);
        struct node *a = node_new(api, "a", WRITES, false);
        assert_int_equal(hf_hooks_new(&api->host, &a->client->base, &hooks), 0);
        assert_int_equal(hf_controllers_install(hooks, a->electors, NULL, &status), 0);
        assert_int_equal(hf_controllers_install(hooks, a->electors, NULL, &status), HF_E_EXISTS);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        AWAIT(a, leads);
        struct hf_metric *master =
                hf_metrics_get(api->host.metrics, HF_METRIC_GAUGE, "leader_election_master_status",
                               "", "name=\"lead\"");
        assert_non_null(master);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_stopped(hooks);
        hf_hooks_free(hooks);
        assert_int_equal(a->n_running + a->n_instance_running, 0);
        struct hf_metrics *metrics = api->host.metrics;
        node_free(a);
        hf_metrics_free(metrics);
        fake_api_free(api);
}

/* A stuck thread is left as it is, on purpose: that it is never joined is no finding here. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "report_thread_leaks=0"; }

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_stop_hands_over_by_releasing),
                cmocka_unit_test(test_terms_alternate_under_overwrites_and_deletions),
                cmocka_unit_test(test_a_stuck_controller_is_named_and_nothing_released),
                cmocka_unit_test(test_a_drain_lets_work_finish_while_renewals_go_on),
                cmocka_unit_test(test_a_second_stop_waits_for_the_first),
                cmocka_unit_test(test_a_loop_that_hangs_does_not_hang_the_stop),
                cmocka_unit_test(test_after_a_loss_writes_are_refused_at_once),
                cmocka_unit_test(test_a_hung_api_ends_the_term_and_does_not_hold_up_the_stop),
                cmocka_unit_test(test_refusals_end_the_term_and_it_comes_back),
                cmocka_unit_test(test_a_hand_over_reaches_the_named_one),
                cmocka_unit_test(test_a_server_without_fences_ends_the_term_unless_accepted),
                cmocka_unit_test(test_a_failing_controller_is_run_again),
                cmocka_unit_test(test_two_electors_share_a_loop),
                cmocka_unit_test(test_wrong_configurations_are_refused_with_a_line),
                cmocka_unit_test(test_the_hook_pair_starts_and_stops_everything),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
