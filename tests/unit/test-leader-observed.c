/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be seen of an elector from outside: health, metrics, Events, who leads, and that nothing
 * is left of it. Over an API in memory, in real time with short timings; waits are for events, with
 * a guard far beyond what they take.
 */
#undef NDEBUG
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_api.h"

#include <holdfast/health.h>
#include <holdfast/leader.h>
#include <holdfast/metrics.h>

#include "base/strbuf.h"
#include "leader/electors.h"

#define GUARD (20 * HF_NSEC_PER_SEC)

struct node {
        struct hf_host host; /* its own checks and metrics, the API's log */
        struct fake_api *api;
        struct fake_client *client;
        struct hf_electors *electors;
        struct hf_elector *elector;
        bool works; /* guarded by api->mu: the controller was begun once */
};

static int idle(struct hf_term *term, void *ctx) {
        struct node *node = ctx;
        pthread_mutex_lock(&node->api->mu);
        node->works = true;
        pthread_mutex_unlock(&node->api->mu);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        return 0;
}

static void on_change(void *ctx, const struct hf_leader_info *info) {
        struct node *node = ctx;
        pthread_mutex_lock(&node->api->mu);
        pthread_cond_broadcast(&node->api->changed);
        pthread_mutex_unlock(&node->api->mu);
}

static struct node *node_start_by(const struct hf_clock *clock, struct fake_api *api,
                                  const char *identity) {
        struct node *node = calloc(1, sizeof *node);
        struct hf_controller worker = {.name = "worker", .run = idle, .ctx = node};
        node->api = api;
        node->host = (struct hf_host){.size = sizeof node->host, .clock = clock};
        node->client = fake_client_new(api);
        assert_int_equal(hf_health_new(&node->host.health), 0);
        assert_int_equal(hf_metrics_new(&node->host.metrics), 0);
        struct hf_elector_config config = {.size = sizeof config,
                                           .ns = "kube-system",
                                           .name = "lead",
                                           .identity = identity,
                                           .client = &node->client->base,
                                           .timing = {.lease_duration = 2 * HF_NSEC_PER_SEC,
                                                      .renew_deadline = 1 * HF_NSEC_PER_SEC,
                                                      .retry_period = 200 * HF_NSEC_PER_MSEC,
                                                      .request_timeout = 300 * HF_NSEC_PER_MSEC},
                                           .controllers = &worker,
                                           .n_controllers = 1,
                                           .events = true,
                                           .on_change = on_change,
                                           .ctx = node};
        assert_int_equal(hf_electors_new(&node->host, &node->electors), 0);
        assert_int_equal(hf_electors_add(node->electors, &config, &node->elector, NULL), 0);
        assert_int_equal(hf_electors_start(node->electors, NULL), 0);
        return node;
}

static struct node *node_start(struct fake_api *api, const char *identity) {
        return node_start_by(NULL, api, identity);
}

static void node_free(struct node *node) {
        hf_electors_free(node->electors);
        hf_client_free(&node->client->base);
        hf_health_free(node->host.health);
        hf_metrics_free(node->host.metrics);
        free(node);
}

/* Waits until test(node): asked now and then, as not all of it is told by an event. */
static void await_at(struct node *node, bool (*test)(struct node *node), int line) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + GUARD;
        while (!test(node)) {
                if (hf_now(clock) > until)
                        fail_msg("line %d: what was waited for did not come", line);
                pthread_mutex_lock(&node->api->mu);
                (void)clock->wait(clock->ctx, &node->api->changed, &node->api->mu,
                                  hf_now(clock) + 10 * HF_NSEC_PER_MSEC);
                pthread_mutex_unlock(&node->api->mu);
        }
}
#define AWAIT(node, test) await_at((node), test, __LINE__)

static struct hf_leader_info info_of(struct node *node) {
        struct hf_leader_info info;
        hf_elector_info(node->elector, &info);
        return info;
}
static bool leads(struct node *node) {
        pthread_mutex_lock(&node->api->mu);
        bool works = node->works;
        pthread_mutex_unlock(&node->api->mu);
        return works && info_of(node).state == HF_LEADING;
}
static bool follows_somebody(struct node *node) {
        struct hf_leader_info info = info_of(node);
        return info.state == HF_FOLLOWING && info.holder[0];
}
static bool is_stopped(struct node *node) { return info_of(node).state == HF_STOPPED; }

static void note_check(void *ctx, const char *name, bool healthy, const char *reason) {
        char *text = ctx;
        size_t n = strlen(text);
        (void)snprintf(text + n, 600 - n, "%s %s %s\n", name, healthy ? "ok" : "failed",
                       healthy ? "" : reason);
}
static bool health_says(struct node *node, unsigned endpoint, const char *words) {
        char text[600] = "";
        (void)hf_health_each(node->host.health, endpoint, note_check, text);
        return strstr(text, words) != NULL;
}
static bool lock_failed(struct node *node) {
        return health_says(node, HF_HEALTHZ, "leaderElection-lock failed");
}
static bool lock_is_ok(struct node *node) {
        return health_says(node, HF_HEALTHZ, "leaderElection-lock ok");
}

static void add_text(void *ctx, const char *text, size_t n) { hf__strbuf_add(ctx, text, n); }

/* The value of the metric whose line begins with `name`; -1 = there is none. */
static double metric(struct node *node, const char *name) {
        struct hf__strbuf text = {0};
        double value = -1;
        hf_metrics_write(node->host.metrics, add_text, &text);
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

static void test_health_of_a_leader_and_after(void **state) { /* CG21, CG24, CG25 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a");
        assert_true(health_says(a, HF_LIVEZ, "leaderElection ok")); /* before anything is known */
        assert_true(lock_is_ok(a));
        AWAIT(a, leads);
        assert_true(health_says(a, HF_LIVEZ, "leaderElection ok"));
        assert_false(health_says(a, HF_LIVEZ,
                                 "lock")); /* no restart mends a lock that cannot be reached */
        assert_false(health_says(a, HF_READYZ, "leaderElection"));
        assert_true(lock_is_ok(a));
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        assert_true(health_says(a, HF_HEALTHZ, "leaderElection ok") && lock_is_ok(a));
        node_free(a);
        fake_api_free(api);
}

/* A loop that does not turn lets the gate's deadline pass beyond the end of the lease: what the
 * check is asked is the info. */
static void test_a_leader_long_expired_is_unhealthy(void **state) { /* CG22, CG25 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a");
        const struct hf_clock *clock = hf_clock_system();
        AWAIT(a, leads);
        assert_int_equal(hf_electors_stop(a->electors, NULL),
                         0); /* the loop is gone: its fields are the test's */
        a->elector->info.state = HF_LEADING;
        hf__gate_open(&a->elector->gate,
                      hf_now(clock) - 500 * HF_NSEC_PER_MSEC); /* over, but the Lease is not yet */
        assert_true(health_says(a, HF_LIVEZ, "leaderElection ok"));
        hf__gate_open(&a->elector->gate, hf_now(clock) - 1100 * HF_NSEC_PER_MSEC);
        assert_true(health_says(a, HF_LIVEZ,
                                "leaderElection failed failed election to renew leadership on "
                                "lease kube-system/lead"));
        hf__gate_shut(&a->elector->gate);
        a->elector->info.state = HF_STOPPED;
        node_free(a);
        fake_api_free(api);
}

static void test_a_standby_that_cannot_reach_the_lock_says_so(void **state) { /* CG23 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a");
        AWAIT(a, leads);
        struct node *b = node_start(api, "b");
        AWAIT(b, follows_somebody);
        assert_true(lock_is_ok(b));
        fake_set_mode(b->client, FAKE_HANG, false, 0, 0);
        AWAIT(b, lock_failed);
        assert_true(health_says(b, HF_HEALTHZ, "lease kube-system/lead has not been reached for"));
        assert_true(
                health_says(b, HF_LIVEZ, "leaderElection ok")); /* and it is not killed for it */
        assert_true(metric(b, "holdfast_leader_lock_silence_seconds") > 1);
        fake_set_mode(b->client, FAKE_OK, false, 0, 0);
        AWAIT(b, lock_is_ok);
        assert_int_equal(hf_electors_stop(b->electors, NULL), 0);
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        node_free(b);
        node_free(a);
        fake_api_free(api);
}

static bool knows_a_twin(struct node *node) { return info_of(node).identity_taken; }

static void test_a_twin_is_told_and_left_alone(void **state) { /* A11, ET05 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "same");
        AWAIT(a, leads);
        uint64_t term = info_of(a).term;
        struct node *b = node_start(api, "same");
        AWAIT(b, knows_a_twin);
        assert_true(health_says(b, HF_HEALTHZ,
                                "leaderElection-lock failed lease kube-system/lead is held by "
                                "another process"));
        assert_true(health_says(b, HF_LIVEZ, "leaderElection ok"));
        assert_true(metric(b, "holdfast_leader_identity_collisions_total") == 1);
        assert_int_equal(hf_electors_stop(b->electors, NULL),
                         0); /* its stop releases nothing: the Lease is not its own */
        assert_int_equal(info_of(a).term, term);
        assert_true(hf_elector_may_act(a->elector));
        pthread_mutex_lock(&api->mu);
        for (size_t i = 0; i < api->n_commits; i++)
                if (strcmp(api->commits[i].key, "leases/kube-system/lead") == 0)
                        assert_string_equal(api->commits[i].holder, "same");
        pthread_mutex_unlock(&api->mu);
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        node_free(b);
        node_free(a);
        fake_api_free(api);
}

/* ---- metrics ---- */

static bool was_leaderless(struct node *node) {
        return metric(node, "holdfast_leader_leaderless_seconds_total") > 0;
}
static bool failed_by_refusal(struct node *node) {
        return metric(node, "holdfast_leader_failed_operations_total{lease=\"kube-system/"
                            "lead\",reason=\"refused\"}") > 0;
}

static void test_metrics_tell_a_terms_life(void **state) { /* A08 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a");
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
        fake_set_mode(a->client, FAKE_REFUSE, true, HF_E_FORBIDDEN, 0);
        AWAIT(a, failed_by_refusal);
        fake_set_mode(a->client, FAKE_OK, false, 0, 0);
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        assert_true(metric(a, "leader_election_master_status{name=\"lead\"}") == 0);
        assert_true(metric(a, "holdfast_leader_term{lease=\"kube-system/lead\"}") == 0);
        assert_true(metric(a, "holdfast_leader_lease_remaining_seconds") == 0);
        assert_true(metric(a, "holdfast_leader_stop_duration_seconds_count") == 1);
        node_free(a);
        fake_api_free(api);
}

static void test_time_without_a_leader_is_counted(void **state) {
        struct fake_api *api = fake_api_new();
        fake_put(api, "leases/kube-system/lead",
                 "{\"metadata\":{\"name\":\"lead\"},\"spec\":{\"holderIdentity\":\"x\","
                 "\"leaseDurationSeconds\":1}}");
        struct node *a = node_start(api, "a");
        AWAIT(a, follows_somebody);
        fake_set_mode(a->client, FAKE_HANG, false, 0, 0);
        AWAIT(a, was_leaderless); /* x is dead, and nobody can follow */
        assert_true(metric(a, "leader_election_master_status{name=\"lead\"}") == 0);
        fake_set_mode(a->client, FAKE_OK, false, 0, 0);
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        node_free(a);
        fake_api_free(api);
}

/* ---- Events ---- */

static bool has_object(struct fake_api *api, const char *key, const char *words) {
        char *text = fake_get(api, key);
        bool has = text && strstr(text, words);
        free(text);
        return has;
}
static bool told_of_the_begin(struct node *node) {
        return has_object(node->api, "events/kube-system/lead.leader-0-became",
                          "\"a became leader\"");
}
static bool told_of_the_end(struct node *node) {
        return has_object(node->api, "events/kube-system/lead.leader-0-stopped",
                          "\"a stopped leading\"");
}
static bool knows_nobody(struct node *node) { return info_of(node).state != HF_LEADING; }

static void test_events_tell_who_led(void **state) { /* CG30 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a");
        AWAIT(a, leads);
        AWAIT(a, told_of_the_begin);
        assert_false(told_of_the_end(a));
        fake_put(api, "leases/kube-system/lead",
                 "{\"metadata\":{\"name\":\"lead\"},\"spec\":{\"holderIdentity\":\"x\","
                 "\"leaseDurationSeconds\":60}}");
        AWAIT(a, knows_nobody);
        AWAIT(a, told_of_the_end);
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        assert_true(is_stopped(a));
        node_free(a);
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

static void test_no_thread_is_left(void **state) { /* CR20 */
        struct fake_api *api = fake_api_new();
        int before = n_threads();
        for (int i = 0; i < 3; i++) {
                struct node *a = node_start(api, "a");
                if (i)
                        AWAIT(a, leads);
                assert_true(n_threads() > before);
                assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
                node_free(a);
                assert_int_equal(n_threads(), before);
        }
        fake_api_free(api);
}

struct asker {
        struct node *node;
        atomic_bool over;
        unsigned long n;
};

static void *ask_main(void *ctx) {
        struct asker *asker = ctx;
        for (; !atomic_load(&asker->over); asker->n++) {
                (void)health_says(asker->node, HF_HEALTHZ, "ok");
                (void)info_of(asker->node);
                (void)hf_elector_may_act(asker->node->elector);
                (void)metric(asker->node, "holdfast_leader_term");
        }
        return NULL;
}

/* All that may be asked, asked all the time, while terms begin and end. The thread sanitizer
 * judges. */
static void test_asking_at_any_time(void **state) { /* CG20 */
        struct fake_api *api = fake_api_new();
        struct node *a = node_start(api, "a");
        struct asker asker = {.node = a};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, ask_main, &asker), 0);
        for (int i = 0; i < 3; i++) {
                AWAIT(a, leads);
                hf_elector_end_term(a->elector);
                AWAIT(a, knows_nobody);
        }
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        atomic_store(&asker.over, true);
        pthread_join(thread, NULL);
        assert_true(asker.n > 0);
        node_free(a);
        fake_api_free(api);
}

/* A clock that, read by the loop for a step, ends the term as soon as the Lease was taken: before
 * the loop knows that it was. */
static struct ender {
        _Atomic(struct node *) node;
        char acquired[64]; /* when the Lease was first taken; guarded by the api's mu */
} ender;

static hf_nsec end_term_and_tell_time(void *ctx) {
        struct node *node = atomic_load(&ender.node);
        if (node) {
                pthread_mutex_lock(&node->api->mu);
                const struct fake_object *lease = fake_find(node->api, "leases/kube-system/lead");
                bool ends = lease && !ender.acquired[0];
                if (ends)
                        strcpy(ender.acquired, lease->acquired);
                pthread_mutex_unlock(&node->api->mu);
                if (ends)
                        hf_elector_end_term(node->elector);
        }
        return hf_clock_system()->real(hf_clock_system()->ctx);
}

static bool is_taken_anew(struct node *node) {
        pthread_mutex_lock(&node->api->mu);
        const struct fake_object *lease = fake_find(node->api, "leases/kube-system/lead");
        bool anew = lease && ender.acquired[0] && strcmp(lease->acquired, ender.acquired) != 0;
        pthread_mutex_unlock(&node->api->mu);
        return anew;
}

static void test_a_term_is_ended_before_it_is_known(void **state) {
        struct hf_clock clock = *hf_clock_system();
        struct fake_api *api = fake_api_new();
        clock.real = end_term_and_tell_time;
        struct node *a = node_start_by(&clock, api, "a");
        atomic_store(&ender.node, a);
        AWAIT(a, is_taken_anew);
        assert_int_equal(hf_electors_stop(a->electors, NULL), 0);
        atomic_store(&ender.node, NULL);
        node_free(a);
        fake_api_free(api);
}

/* ---- elections ---- */

static bool sees_b(struct node *node) { return strcmp(info_of(node).holder, "b") == 0; }
static bool sees_c(struct node *node) { return strcmp(info_of(node).holder, "c") == 0; }

static void test_each_election_is_seen_by_all(void **state) { /* ET01 */
        struct fake_api *api = fake_api_new();
        struct node *nodes[3];
        nodes[0] = node_start(api, "a");
        AWAIT(nodes[0], leads);
        nodes[1] = node_start(api, "b");
        nodes[2] = node_start(api, "c");
        uint64_t term = info_of(nodes[0]).term;
        for (int i = 1; i < 3; i++)
                AWAIT(nodes[i], follows_somebody);
        assert_int_equal(hf_elector_hand_over(nodes[0]->elector, "b"), 0);
        for (int i = 0; i < 3; i++)
                AWAIT(nodes[i], sees_b);
        AWAIT(nodes[1], leads);
        assert_true(info_of(nodes[1]).term > term);
        term = info_of(nodes[1]).term;
        assert_int_equal(hf_elector_hand_over(nodes[1]->elector, "c"), 0);
        for (int i = 0; i < 3; i++)
                AWAIT(nodes[i], sees_c);
        AWAIT(nodes[2], leads);
        assert_true(info_of(nodes[2]).term > term);
        for (int i = 0; i < 3; i++)
                assert_int_equal(hf_electors_stop(nodes[i]->electors, NULL), 0);
        for (int i = 0; i < 3; i++)
                node_free(nodes[i]);
        fake_api_free(api);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_health_of_a_leader_and_after),
                cmocka_unit_test(test_a_leader_long_expired_is_unhealthy),
                cmocka_unit_test(test_a_standby_that_cannot_reach_the_lock_says_so),
                cmocka_unit_test(test_a_twin_is_told_and_left_alone),
                cmocka_unit_test(test_metrics_tell_a_terms_life),
                cmocka_unit_test(test_time_without_a_leader_is_counted),
                cmocka_unit_test(test_events_tell_who_led),
                cmocka_unit_test(test_no_thread_is_left),
                cmocka_unit_test(test_asking_at_any_time),
                cmocka_unit_test(test_a_term_is_ended_before_it_is_known),
                cmocka_unit_test(test_each_election_is_seen_by_all),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
