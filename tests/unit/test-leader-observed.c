/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an elector shows to the outside: health, metrics, Events, the leader; and that it leaves
 * nothing behind. Over the fake API server, in real time with short timings. Tests wait for events,
 * with a limit far above what they take.
 */
#undef NDEBUG
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_api_client.h"

#include <holdfast/health.h>
#include <holdfast/leader.h>
#include <holdfast/metrics.h>

#include "base/strbuf.h"
#include "leader/electors.h"

#define GUARD (20 * HF_NSEC_PER_SEC) /* how long a test waits at most */

struct fixture {
        struct hf_host host; /* its own checks and metrics */
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_electors *electors;
        struct hf_elector *elector;
        bool works; /* guarded by api->mu: the controller has run */
};

static int idle(struct hf_term *term, void *ctx) {
        struct fixture *f = ctx;
        pthread_mutex_lock(&f->api->mu);
        f->works = true;
        pthread_mutex_unlock(&f->api->mu);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        return 0;
}

static void on_change(void *ctx, const struct hf_leader_info *info) {
        struct fixture *f = ctx;
        pthread_mutex_lock(&f->api->mu);
        pthread_cond_broadcast(&f->api->changed);
        pthread_mutex_unlock(&f->api->mu);
}

static struct fixture *fixture_start_by(const struct hf_clock *clock, struct fake_api *api,
                                        const char *identity) {
        struct fixture *f = calloc(1, sizeof *f);
        struct hf_controller worker = {.size = sizeof worker,
                                       .name = "worker",
                                       .run = idle,
                                       .ctx = f};
        f->api = api;
        f->host = (struct hf_host){.size = sizeof f->host, .clock = clock};
        f->client = fake_api_client_new(api);
        assert_int_equal(hf_health_new(&f->host.health), 0);
        assert_int_equal(hf_metrics_new(&f->host.metrics), 0);
        struct hf_elector_config config = {.size = sizeof config,
                                           .ns = "kube-system",
                                           .name = "lead",
                                           .identity = identity,
                                           .client = &f->client->base,
                                           .timing = {.lease_duration = 2 * HF_NSEC_PER_SEC,
                                                      .renew_deadline = 1 * HF_NSEC_PER_SEC,
                                                      .retry_period = 200 * HF_NSEC_PER_MSEC,
                                                      .request_timeout = 300 * HF_NSEC_PER_MSEC},
                                           .controllers = &worker,
                                           .n_controllers = 1,
                                           .events = true,
                                           .on_change = on_change,
                                           .ctx = f};
        assert_int_equal(hf_electors_new(&f->host, &f->electors), 0);
        assert_int_equal(hf_electors_add(f->electors, &config, &f->elector, NULL), 0);
        assert_int_equal(hf_electors_start(f->electors, NULL), 0);
        return f;
}

static struct fixture *fixture_start(struct fake_api *api, const char *identity) {
        return fixture_start_by(NULL, api, identity);
}

static void fixture_free(struct fixture *f) {
        hf_electors_free(f->electors);
        hf_client_free(&f->client->base);
        hf_health_free(f->host.health);
        hf_metrics_free(f->host.metrics);
        free(f);
}

/* Waits until test(f). It polls, because not all of that is signalled. */
static void await_at(struct fixture *f, bool (*test)(struct fixture *f), int line) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + GUARD;
        while (!test(f)) {
                if (hf_now(clock) > until)
                        fail_msg("line %d: the condition did not become true within the time limit",
                                 line);
                pthread_mutex_lock(&f->api->mu);
                (void)clock->wait(clock->ctx, &f->api->changed, &f->api->mu,
                                  hf_now(clock) + 10 * HF_NSEC_PER_MSEC);
                pthread_mutex_unlock(&f->api->mu);
        }
}
#define AWAIT(f, test) await_at((f), test, __LINE__)

static struct hf_leader_info info_of(struct fixture *f) {
        struct hf_leader_info info = {.size = sizeof info};
        hf_elector_info(f->elector, &info);
        return info;
}
static bool leads(struct fixture *f) {
        pthread_mutex_lock(&f->api->mu);
        bool works = f->works;
        pthread_mutex_unlock(&f->api->mu);
        return works && info_of(f).state == HF_LEADING;
}
static bool follows_somebody(struct fixture *f) {
        struct hf_leader_info info = info_of(f);
        return info.state == HF_FOLLOWING && info.holder[0];
}
static bool is_stopped(struct fixture *f) { return info_of(f).state == HF_STOPPED; }

static void add_check(void *ctx, const char *name, bool healthy, const char *reason) {
        char *text = ctx;
        size_t n = strlen(text);
        (void)snprintf(text + n, 600 - n, "%s %s %s\n", name, healthy ? "ok" : "failed",
                       healthy ? "" : reason);
}
static bool health_says(struct fixture *f, unsigned endpoint, const char *words) {
        char text[600] = "";
        (void)hf_health_each(f->host.health, endpoint, add_check, text);
        return strstr(text, words) != NULL;
}
static bool lock_failed(struct fixture *f) {
        return health_says(f, HF_HEALTHZ, "leaderElection-lock failed");
}
static bool lock_is_ok(struct fixture *f) {
        return health_says(f, HF_HEALTHZ, "leaderElection-lock ok");
}

static void add_text(void *ctx, const char *text, size_t n) { hf__strbuf_add(ctx, text, n); }

/* The value of the metric whose line begins with `name`. -1 = there is none. */
static double metric(struct fixture *f, const char *name) {
        struct hf__strbuf text = {0};
        double value = -1;
        hf_metrics_write(f->host.metrics, add_text, &text);
        hf__strbuf_putc(&text, '\0');
        for (const char *line = text.data; line;
             line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
                if (strncmp(line, name, strlen(name)) == 0) {
                        const char *end = strchr(line, '}');
                        value = strtod(end ? end + 1 : line + strlen(name), NULL);
                }
        hf__strbuf_done(&text);
        return value;
}

/* ---- health ---- */

/* Scenarios of docs/parity.md: CG21, CG24, CG25. */
static void test_health_is_good_during_and_after_a_term(void **state) {
        struct fake_api *api = fake_api_new();
        struct fixture *a = fixture_start(api, "a");
        assert_true(health_says(a, HF_LIVEZ, "leaderElection ok")); /* before anything is known */
        assert_true(lock_is_ok(a));
        AWAIT(a, leads);
        assert_true(health_says(a, HF_LIVEZ, "leaderElection ok"));
        /* no restart repairs a lock that cannot be reached */
        assert_false(health_says(a, HF_LIVEZ, "lock"));
        assert_false(health_says(a, HF_READYZ, "leaderElection"));
        assert_true(lock_is_ok(a));
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        assert_true(health_says(a, HF_HEALTHZ, "leaderElection ok") && lock_is_ok(a));
        fixture_free(a);
        fake_api_free(api);
}

/*
 * docs/parity.md, CG22, CG25: If the loop hangs, the deadline of the gate passes, and then the
 * lease expires. The check reads the published state and does not need the loop.
 */
static void test_a_leader_long_expired_is_unhealthy(void **state) {
        struct fake_api *api = fake_api_new();
        struct fixture *a = fixture_start(api, "a");
        const struct hf_clock *clock = hf_clock_system();
        AWAIT(a, leads);
        /* the loop has ended, so the test may set its fields */
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        a->elector->info.state = HF_LEADING;
        /* the validity is over, the lease is not yet */
        hf__gate_open(&a->elector->gate, hf_now(clock) - 500 * HF_NSEC_PER_MSEC);
        assert_true(health_says(a, HF_LIVEZ, "leaderElection ok"));
        hf__gate_open(&a->elector->gate, hf_now(clock) - 1100 * HF_NSEC_PER_MSEC);
        assert_true(health_says(a, HF_LIVEZ,
                                "leaderElection failed failed election to renew leadership on "
                                "lease kube-system/lead"));
        hf__gate_shut(&a->elector->gate);
        a->elector->info.state = HF_STOPPED;
        fixture_free(a);
        fake_api_free(api);
}

/* Scenario of docs/parity.md: CG23. */
static void test_a_standby_that_cannot_reach_the_lock_reports_it(void **state) {
        struct fake_api *api = fake_api_new();
        struct fixture *a = fixture_start(api, "a");
        AWAIT(a, leads);
        struct fixture *b = fixture_start(api, "b");
        AWAIT(b, follows_somebody);
        assert_true(lock_is_ok(b));
        fake_api_client_set_mode(b->client, FAKE_API_HANGS);
        AWAIT(b, lock_failed);
        assert_true(health_says(b, HF_HEALTHZ, "lease kube-system/lead has not been reached for"));
        /* Livez stays healthy, so the process is not restarted because of that. */
        assert_true(health_says(b, HF_LIVEZ, "leaderElection ok"));
        assert_true(metric(b, "holdfast_leader_lock_silence_seconds") > 1);
        fake_api_client_set_mode(b->client, FAKE_API_RESPONDS);
        AWAIT(b, lock_is_ok);
        assert_int_equal(hf_electors_stop(b->electors, NULL), 0);
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        fixture_free(b);
        fixture_free(a);
        fake_api_free(api);
}

static bool knows_of_the_collision(struct fixture *f) { return info_of(f).identity_taken; }

/* Scenarios of docs/parity.md: A11, ET05. */
static void test_a_process_with_the_same_identity_is_reported_and_left_alone(void **state) {
        struct fake_api *api = fake_api_new();
        struct fixture *a = fixture_start(api, "same");
        AWAIT(a, leads);
        uint64_t term = info_of(a).term;
        struct fixture *b = fixture_start(api, "same");
        AWAIT(b, knows_of_the_collision);
        assert_true(health_says(b, HF_HEALTHZ,
                                "leaderElection-lock failed lease kube-system/lead is held by "
                                "another process"));
        assert_true(health_says(b, HF_LIVEZ, "leaderElection ok"));
        assert_true(metric(b, "holdfast_leader_identity_collisions_total") == 1);
        /* its stop releases nothing, because the Lease belongs to the other process */
        assert_int_equal(hf_electors_stop(b->electors, NULL), 0);
        assert_int_equal(info_of(a).term, term);
        assert_true(hf_elector_may_act(a->elector));
        pthread_mutex_lock(&api->mu);
        for (size_t i = 0; i < api->store.n_commits; i++)
                if (strcmp(api->store.commits[i].key, "leases/kube-system/lead") == 0)
                        assert_string_equal(api->store.commits[i].holder, "same");
        pthread_mutex_unlock(&api->mu);
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        fixture_free(b);
        fixture_free(a);
        fake_api_free(api);
}

/* ---- metrics ---- */

static bool was_leaderless(struct fixture *f) {
        return metric(f, "holdfast_leader_leaderless_seconds_total") > 0;
}
static bool failed_by_refusal(struct fixture *f) {
        return metric(f, "holdfast_leader_failed_operations_total{lease=\"kube-system/"
                         "lead\",reason=\"refused\"}") > 0;
}

/* Scenario of docs/parity.md: A08. */
static void test_metrics_follow_a_term(void **state) {
        struct fake_api *api = fake_api_new();
        struct fixture *a = fixture_start(api, "a");
        AWAIT(a, leads);
        double term = (double)info_of(a).term;
        assert_true(metric(a, "leader_election_master_status{name=\"lead\"}") == 1);
        assert_true(metric(a, "holdfast_leader_term{lease=\"kube-system/lead\"}") == term);
        assert_true(metric(a, "holdfast_leader_lease_remaining_seconds") > 0);
        assert_true(metric(a, "holdfast_leader_transitions_total") == 1);
        assert_true(metric(a, "holdfast_leader_renew_duration_seconds_count") >= 1);
        assert_true(metric(a, "holdfast_leader_handover_gap_seconds") == 0);
        assert_true(metric(a, "leader_election_slowpath_total{name=\"lead\"}") == 0);
        assert_true(metric(a, "holdfast_leader_fenced_writes_refused_total") == 0);
        assert_true(metric(a, "holdfast_leader_stuck") == 0);
        assert_false(was_leaderless(a) &&
                     metric(a, "holdfast_leader_leaderless_seconds_total") > 1);
        fake_api_client_refuse_writes(a->client, HF_E_FORBIDDEN, 0);
        AWAIT(a, failed_by_refusal);
        fake_api_client_set_mode(a->client, FAKE_API_RESPONDS);
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        assert_true(metric(a, "leader_election_master_status{name=\"lead\"}") == 0);
        assert_true(metric(a, "holdfast_leader_term{lease=\"kube-system/lead\"}") == 0);
        assert_true(metric(a, "holdfast_leader_lease_remaining_seconds") == 0);
        assert_true(metric(a, "holdfast_leader_stop_duration_seconds_count") == 1);
        fixture_free(a);
        fake_api_free(api);
}

static void test_time_without_a_leader_is_counted(void **state) {
        struct fake_api *api = fake_api_new();
        fake_api_put(api, "leases/kube-system/lead",
                     "{\"metadata\":{\"name\":\"lead\"},\"spec\":{\"holderIdentity\":\"x\","
                     "\"leaseDurationSeconds\":1}}");
        struct fixture *a = fixture_start(api, "a");
        AWAIT(a, follows_somebody);
        fake_api_client_set_mode(a->client, FAKE_API_HANGS);
        AWAIT(a, was_leaderless); /* x is dead, and nobody can take over */
        assert_true(metric(a, "leader_election_master_status{name=\"lead\"}") == 0);
        fake_api_client_set_mode(a->client, FAKE_API_RESPONDS);
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        fixture_free(a);
        fake_api_free(api);
}

/* ---- Events ---- */

static bool has_object(struct fake_api *api, const char *key, const char *words) {
        char *text = fake_api_get(api, key);
        bool has = text && strstr(text, words);
        free(text);
        return has;
}
static bool has_begin_event(struct fixture *f) {
        return has_object(f->api, "events/kube-system/lead.leader-0-became", "\"a became leader\"");
}
static bool has_end_event(struct fixture *f) {
        return has_object(f->api, "events/kube-system/lead.leader-0-stopped",
                          "\"a stopped leading\"");
}
static bool does_not_lead(struct fixture *f) { return info_of(f).state != HF_LEADING; }

/* Scenario of docs/parity.md: CG30. */
static void test_events_name_each_leader(void **state) {
        struct fake_api *api = fake_api_new();
        struct fixture *a = fixture_start(api, "a");
        AWAIT(a, leads);
        AWAIT(a, has_begin_event);
        assert_false(has_end_event(a));
        fake_api_put(api, "leases/kube-system/lead",
                     "{\"metadata\":{\"name\":\"lead\"},\"spec\":{\"holderIdentity\":\"x\","
                     "\"leaseDurationSeconds\":60}}");
        AWAIT(a, does_not_lead);
        AWAIT(a, has_end_event);
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        assert_true(is_stopped(a));
        fixture_free(a);
        fake_api_free(api);
}

/* ---- threads ---- */

static int n_threads(void) {
        DIR *tasks = opendir("/proc/self/task");
        int n = 0;
        assert_non_null(tasks);
        while (readdir(tasks))
                n++;
        closedir(tasks);
        return n;
}

/* Scenario of docs/parity.md: CR20. */
static void test_no_thread_is_left(void **state) {
        struct fake_api *api = fake_api_new();
        int before = n_threads();
        for (int i = 0; i < 3; i++) {
                struct fixture *a = fixture_start(api, "a");
                if (i)
                        AWAIT(a, leads);
                assert_true(n_threads() > before);
                assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
                fixture_free(a);
                assert_int_equal(n_threads(), before);
        }
        fake_api_free(api);
}

struct reader {
        struct fixture *f;
        atomic_bool over;
        unsigned long n;
};

static void *reader_main(void *ctx) {
        struct reader *reader = ctx;
        for (; !atomic_load(&reader->over); reader->n++) {
                (void)health_says(reader->f, HF_HEALTHZ, "ok");
                (void)info_of(reader->f);
                (void)hf_elector_may_act(reader->f->elector);
                (void)metric(reader->f, "holdfast_leader_term");
        }
        return NULL;
}

/*
 * docs/parity.md, CG20: Another thread reads all information all the time while terms begin and
 * end. The thread sanitizer checks this.
 */
static void test_information_can_be_read_at_any_time(void **state) {
        struct fake_api *api = fake_api_new();
        struct fixture *a = fixture_start(api, "a");
        struct reader reader = {.f = a};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, reader_main, &reader), 0);
        for (int i = 0; i < 3; i++) {
                AWAIT(a, leads);
                hf_elector_end_term(a->elector);
                AWAIT(a, does_not_lead);
        }
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        atomic_store(&reader.over, true);
        pthread_join(thread, NULL);
        assert_true(reader.n > 0);
        fixture_free(a);
        fake_api_free(api);
}

/*
 * A clock that ends the term when the loop reads it after the acquire, before the loop knows that
 * it has acquired the Lease.
 */
static struct ender {
        _Atomic(struct fixture *) f;
        char acquired[64]; /* the acquireTime of the first acquire; guarded by the api's mu */
} ender;

static hf_nsec end_term_and_tell_time(void *ctx) {
        struct fixture *f = atomic_load(&ender.f);
        if (f) {
                pthread_mutex_lock(&f->api->mu);
                const struct fake_object *lease =
                        fake_store_find(&f->api->store, "leases/kube-system/lead");
                bool ends = lease && !ender.acquired[0];
                if (ends)
                        strcpy(ender.acquired, lease->acquired);
                pthread_mutex_unlock(&f->api->mu);
                if (ends)
                        hf_elector_end_term(f->elector);
        }
        return hf_clock_system()->real(hf_clock_system()->ctx);
}

static bool is_taken_anew(struct fixture *f) {
        pthread_mutex_lock(&f->api->mu);
        const struct fake_object *lease =
                fake_store_find(&f->api->store, "leases/kube-system/lead");
        bool anew = lease && ender.acquired[0] && strcmp(lease->acquired, ender.acquired) != 0;
        pthread_mutex_unlock(&f->api->mu);
        return anew;
}

static void test_a_term_can_be_ended_before_the_loop_knows_of_it(void **state) {
        struct hf_clock clock = *hf_clock_system();
        struct fake_api *api = fake_api_new();
        clock.real = end_term_and_tell_time;
        struct fixture *a = fixture_start_by(&clock, api, "a");
        atomic_store(&ender.f, a);
        AWAIT(a, is_taken_anew);
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        atomic_store(&ender.f, NULL);
        fixture_free(a);
        fake_api_free(api);
}

/* ---- elections ---- */

static bool sees_b(struct fixture *f) { return strcmp(info_of(f).holder, "b") == 0; }
static bool sees_c(struct fixture *f) { return strcmp(info_of(f).holder, "c") == 0; }

/* Scenario of docs/parity.md: ET01. */
static void test_each_election_is_seen_by_all(void **state) {
        struct fake_api *api = fake_api_new();
        struct fixture *fixtures[3];
        fixtures[0] = fixture_start(api, "a");
        AWAIT(fixtures[0], leads);
        fixtures[1] = fixture_start(api, "b");
        fixtures[2] = fixture_start(api, "c");
        uint64_t term = info_of(fixtures[0]).term;
        for (int i = 1; i < 3; i++)
                AWAIT(fixtures[i], follows_somebody);
        assert_int_equal(hf_elector_hand_over(fixtures[0]->elector, "b"), 0);
        for (int i = 0; i < 3; i++)
                AWAIT(fixtures[i], sees_b);
        AWAIT(fixtures[1], leads);
        assert_true(info_of(fixtures[1]).term > term);
        term = info_of(fixtures[1]).term;
        assert_int_equal(hf_elector_hand_over(fixtures[1]->elector, "c"), 0);
        for (int i = 0; i < 3; i++)
                AWAIT(fixtures[i], sees_c);
        AWAIT(fixtures[2], leads);
        assert_true(info_of(fixtures[2]).term > term);
        for (int i = 0; i < 3; i++)
                assert_int_equal(hf_electors_stop(fixtures[i]->electors, NULL), 0);
        for (int i = 0; i < 3; i++)
                fixture_free(fixtures[i]);
        fake_api_free(api);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_health_is_good_during_and_after_a_term),
                cmocka_unit_test(test_a_leader_long_expired_is_unhealthy),
                cmocka_unit_test(test_a_standby_that_cannot_reach_the_lock_reports_it),
                cmocka_unit_test(test_a_process_with_the_same_identity_is_reported_and_left_alone),
                cmocka_unit_test(test_metrics_follow_a_term),
                cmocka_unit_test(test_time_without_a_leader_is_counted),
                cmocka_unit_test(test_events_name_each_leader),
                cmocka_unit_test(test_no_thread_is_left),
                cmocka_unit_test(test_information_can_be_read_at_any_time),
                cmocka_unit_test(test_a_term_can_be_ended_before_the_loop_knows_of_it),
                cmocka_unit_test(test_each_election_is_seen_by_all),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
