/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of a set of electors for the embedder, and its reports: limits of names, lock
 * files, starts that fail, stops that take long. The clock moves only when the test moves it.
 */
#undef NDEBUG
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "clocked_elector.h"

#include <holdfast/error.h>

static const struct clocked_options plain = {0};

static void finish(void) {
        clocked_elector_stop();
        clocked_elector_free();
}

/* ---- configuration ---- */

static const char *repeated(char c, size_t n) {
        static char text[512];

        assert_true(n < sizeof text);
        memset(text, c, n);
        text[n] = '\0';
        return text;
}

static int add(const char *name, const char *identity, const char *cluster) {
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .ns = "kube-system",
                                                 .name = name,
                                                 .identity = identity,
                                                 .client = &clocked.client->base,
                                                 .cluster = cluster};
        struct hf_status status = {0};
        int r = hf_electors_add(clocked.electors, &config, NULL, &status);

        assert_true(r == 0 || status.message[0]);
        return r;
}

static void test_names_may_be_as_long_as_they_may(void **state) {
        clocked_elector_init();
        assert_int_equal(hf_electors_new(&clocked.host, &clocked.electors), 0);
        assert_int_equal(add(repeated('n', HF_NAME_MAX), "me", NULL), 0);
        assert_int_equal(add(repeated('n', HF_NAME_MAX + 1), "me", NULL), HF_E_INVALID);
        assert_int_equal(add("a", repeated('~', HF_IDENTITY_MAX), NULL), 0);
        assert_int_equal(add("b", repeated('~', HF_IDENTITY_MAX + 1), NULL), HF_E_INVALID);
        assert_int_equal(add("b", "\x7f", NULL), HF_E_INVALID);
        assert_int_equal(add("c", "me", repeated('C', HF_CLUSTER_MAX)), 0);
        assert_int_equal(add("d", "me", repeated('C', HF_CLUSTER_MAX + 1)), HF_E_INVALID);
        assert_int_equal(add("d", "me", ""), HF_E_INVALID);
        assert_int_equal(add("d", "me", "a/b"), HF_E_INVALID);
        clocked_elector_free();
}

static int run_nothing(struct hf_term *term, void *ctx) { return 0; }

/* Adds an elector with two controllers. words: a part of the refusal; NULL = it is accepted. */
static void add_with(const char *name, const char *cluster, const char *first, const char *second,
                     const char *words) {
        const struct hf_controller controllers[] = {
                {.size = sizeof(struct hf_controller), .name = first, .run = run_nothing},
                {.size = sizeof(struct hf_controller), .name = second, .run = run_nothing},
        };
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .ns = "kube-system",
                                                 .name = name,
                                                 .identity = "me",
                                                 .client = &clocked.client->base,
                                                 .cluster = cluster,
                                                 .controllers = controllers,
                                                 .n_controllers = 2};
        struct hf_status status = {0};

        assert_int_equal(hf_electors_add(clocked.electors, &config, NULL, &status),
                         words ? HF_E_EXISTS : 0);
        assert_string_equal(status.message, words ? words : "");
}

/* Each controller needs a unique name within its cluster. A refused elector reserves no name. */
static void test_a_controllers_name_is_taken_once(void **state) {
        clocked_elector_init();
        assert_int_equal(hf_electors_new(&clocked.host, &clocked.electors), 0);
        add_with("a", NULL, "w", "x", NULL);
        add_with("b", NULL, "y", "x",
                 "elector kube-system/b: controller \"x\" is already registered with "
                 "kube-system/a");
        add_with("a", NULL, "y", "z", "there already is an elector for the Lease kube-system/a");
        add_with("b", NULL, "y", "z", NULL);
        add_with("b", "east", "w", "x", NULL);
        add_with("c", "east", "v", "x",
                 "elector east:kube-system/c: controller \"x\" is already registered with "
                 "east:kube-system/b");
        clocked_elector_free();
}

static size_t n_open_files(void) {
        DIR *directory = opendir("/proc/self/fd");
        size_t n = 0;

        assert_non_null(directory);
        while (readdir(directory))
                n++;
        (void)closedir(directory);
        return n;
}

static void test_a_set_that_is_freed_leaves_no_open_file(void **state) {
        clocked_elector_init();
        size_t n = n_open_files();
        assert_int_equal(hf_electors_new(&clocked.host, &clocked.electors), 0);
        assert_int_equal(add("a", "me", NULL), 0);
        assert_true(n_open_files() > n);
        assert_null(hf_electors_free(clocked.electors));
        assert_int_equal(n_open_files(), n);
        clocked_elector_start(&plain);
        clocked_await_term();
        finish();
}

static void test_a_lock_file_is_set_once_and_first(void **state) {
        char directory[] = "/dev/shm/leader-electors-XXXXXX", file[64];
        struct hf_status status = {0};
        struct hf_electors *other = NULL;

        assert_non_null(mkdtemp(directory));
        (void)snprintf(file, sizeof file, "%s/own.lock", directory);
        clocked_elector_init();
        assert_int_equal(hf_electors_new(&clocked.host, &clocked.electors), 0);
        assert_int_equal(hf_electors_use_lock_file(clocked.electors, NULL, &status), -EINVAL);
        assert_int_equal(hf_electors_use_lock_file(clocked.electors, file, &status), 0);
        assert_int_equal(hf_electors_use_lock_file(clocked.electors, file, &status), HF_E_CLOSED);
        assert_int_equal(hf_electors_new(&clocked.host, &other), 0);
        assert_int_equal(hf_electors_use_lock_file(other, file, &status), HF_E_BUSY);
        assert_non_null(strstr(status.message, "is held by another process"));
        struct hf_elector_config config = {.size = sizeof config,
                                           .ns = "kube-system",
                                           .name = "lead",
                                           .identity = "me",
                                           .client = &clocked.client->base,
                                           .unfenced = true};
        assert_int_equal(hf_electors_add(clocked.electors, &config, NULL, &status), HF_E_INVALID);
        config.unfenced = false;
        config.migrate_from = "old";
        assert_int_equal(hf_electors_add(clocked.electors, &config, NULL, &status), HF_E_INVALID);
        config.migrate_from = NULL;
        assert_int_equal(hf_electors_add(clocked.electors, &config, NULL, &status), 0);
        assert_int_equal(hf_electors_add(other, &config, NULL, &status), 0);
        assert_int_equal(hf_electors_use_lock_file(other, file, &status), HF_E_CLOSED);
        clocked_elector_free(); /* frees the lock */
        clocked_elector_init();
        clocked.electors = other;
        hf_electors_free(other);
        assert_int_equal(hf_electors_new(&clocked.host, &clocked.electors), 0);
        assert_int_equal(hf_electors_use_lock_file(clocked.electors, file, &status), 0);
        clocked_elector_free();
        (void)unlink(file);
        (void)rmdir(directory);
}

static void test_an_elector_is_described_before_its_first_step(void **state) {
        clocked_elector_init();
        clocked_elector_start(&(struct clocked_options){.held = true});
        const struct hf_leader_info info = clocked_info();
        assert_int_equal(info.state, HF_FOLLOWING);
        assert_string_equal(info.ns, "kube-system");
        assert_string_equal(info.name, "lead");
        assert_string_equal(info.identity, "a");
        assert_string_equal(info.holder, "");
        assert_string_equal(info.last_end, "");
        assert_true(info.since == hand_clock_now());
        assert_true(info.heard_at == hand_clock_now());
        assert_int_equal(info.valid_until, 0);
        assert_true(clocked_logged(
                "6 kube-system/lead: contending as a; if a leader dies, another process leads "
                "about 1m40s later, and at most 6m7.5s later even if watches are silent and each "
                "request takes as long as it may; a leader without a connection acts for at most "
                "1m0s after its last renewal; its controllers return at least 20s before another "
                "process can lead, so terms do not overlap if clocks differ by less than that\n"));
        fake_api_client_hold_requests(clocked.client, false);
        finish();
}

/* ---- starts ---- */

static void test_a_set_starts_once(void **state) {
        struct hf_status status = {0};

        clocked_elector_init();
        clocked_elector_start(&plain);
        assert_int_equal(hf_electors_start(clocked.electors, &status), HF_E_CLOSED);
        clocked_await_term();
        assert_string_equal(clocked_info().stuck_controller, ""); /* it runs, but it is not stuck */
        finish();
}

static void test_a_start_without_threads_fails_and_can_be_stopped(void **state) {
        struct hf_status status = {0};

        clocked_elector_init();
        assert_int_equal(hf_electors_new(&clocked.host, &clocked.electors), 0);
        assert_int_equal(add("lead", "a", NULL), 0);
        clocked.host.thread_stack_bytes = SIZE_MAX / 2;
        int r = hf_electors_start(clocked.electors, &status);
        assert_true(r < 0);
        assert_non_null(strstr(status.message, "the electors cannot start: "));
        assert_int_equal(hf_electors_stop(clocked.electors, &status), 0);
        assert_int_equal(fake_api_n_requests(clocked.api), 0);
        clocked_elector_free();
}

static void count_check(void *ctx, const char *name, bool healthy, const char *reason) {
        (*(unsigned *)ctx)++;
}

static unsigned n_checks(struct hf_health *health) {
        unsigned n = 0;

        (void)hf_health_each(health, HF_HEALTHZ, count_check, &n);
        return n;
}

/* Each set has the checks of its host while it exists, and no other set has them meanwhile. */
static void test_the_checks_belong_to_one_set_at_a_time(void **state) {
        struct hf_electors *other = NULL;
        struct hf_status status = {0};

        clocked_elector_init();
        assert_int_equal(n_checks(clocked.host.health), 0);
        clocked_elector_start(&plain);
        assert_int_equal(n_checks(clocked.host.health), 2);
        assert_int_equal(hf_electors_new(&clocked.host, &other), 0);
        assert_int_equal(hf_electors_start(other, &status), HF_E_EXISTS);
        assert_null(hf_electors_free(other));
        assert_int_equal(n_checks(clocked.host.health), 2);
        clocked_elector_stop();
        assert_null(hf_electors_free(clocked.electors));
        assert_int_equal(n_checks(clocked.host.health), 0);
        assert_true(clocked_metric("holdfast_leader_lease_remaining_seconds") == 0);
        assert_int_equal(hf_electors_new(&clocked.host, &clocked.electors), 0);
        assert_int_equal(hf_electors_start(clocked.electors, &status), 0);
        assert_int_equal(n_checks(clocked.host.health), 2);
        assert_int_equal(hf_electors_stop(clocked.electors, &status), 0);
        clocked_elector_free();
}

static bool is_well(void *ctx, char *reason, size_t max_reason) { return true; }

/* A set that cannot have both of its checks has neither. */
static void test_a_start_that_fails_leaves_no_check(void **state) {
        struct hf_status status = {0};

        clocked_elector_init();
        assert_int_equal(hf_health_add(clocked.host.health, "leaderElection-lock", HF_HEALTHZ,
                                       is_well, NULL),
                         0);
        assert_int_equal(hf_electors_new(&clocked.host, &clocked.electors), 0);
        assert_int_equal(hf_electors_start(clocked.electors, &status), HF_E_EXISTS);
        assert_int_equal(n_checks(clocked.host.health), 1);
        clocked_elector_free();
}

static void test_a_host_without_a_size_is_refused(void **state) {
        const struct hf_host host = {0};
        struct hf_electors *electors = NULL;

        assert_int_equal(hf_electors_new(&host, &electors), -EINVAL);
        assert_null(electors);
}

/* ---- requests ---- */

static void test_a_hand_over_names_its_successor(void **state) {
        clocked_elector_init();
        clocked_elector_start(&plain);
        clocked_await_term();
        clocked_elector_let_end();
        assert_int_equal(hf_elector_hand_over(clocked.elector, "b"), 0);
        CLOCKED_AWAIT(clocked_is(HF_FOLLOWING));
        char *lease = fake_api_get(clocked.api, CLOCKED_LEASE);
        assert_non_null(strstr(lease, "\"holdfast.dev/successor\":\"b\""));
        free(lease);
        assert_string_equal(clocked_info().last_end, "handed over");
        finish();
}

static void test_an_elector_that_holds_back_leaves_a_free_lease_to_others(void **state) {
        clocked_elector_init();
        clocked_put_lease("", "");
        clocked_elector_start(&(struct clocked_options){.held = true});
        PATIENCE_AWAIT(fake_api_n_requests(clocked.api) > 0);
        assert_int_equal(hf__elector_hold_back(clocked.elector, 30 * SEC), 0);
        clocked_settle();
        fake_api_client_hold_requests(clocked.client, false);
        clocked_settle();
        clocked_move(30 * SEC - 1);
        assert_true(clocked_is(HF_FOLLOWING));
        clocked_move(1);
        assert_true(clocked_is(HF_LEADING));
        clocked_await_term();
        finish();
}

/* ---- metrics ---- */

static void test_failures_are_counted_by_their_reason(void **state) {
        static const struct {
                int error;
                const char *reason;
        } rows[] = {
                {HF_E_CONFLICT, "conflict"}, {HF_E_EXISTS, "conflict"},
                {HF_E_TIMEOUT, "timeout"},   {HF_E_UNAVAILABLE, "unavailable"},
                {HF_E_FORBIDDEN, "refused"}, {HF_E_UNAUTHORIZED, "refused"},
                {HF_E_TOO_MANY, "too_many"}, {HF_E_INVALID, "other"},
        };
        char series[160];

        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                clocked_elector_init();
                fake_api_client_refuse(clocked.client, rows[i].error, 1);
                clocked_elector_start(&(struct clocked_options){.cluster = "east"});
                (void)snprintf(series, sizeof series,
                               "holdfast_leader_failed_operations_total{lease=\"kube-system/lead\","
                               "cluster=\"east\",reason=\"%s\"}",
                               rows[i].reason);
                PATIENCE_AWAIT(clocked_metric(series) == 1);
                assert_true(clocked_metric("leader_election_master_status{name=\"lead\","
                                           "cluster=\"east\"}") >= 0);
                finish();
        }
}

/* ---- stops that take long ---- */

static struct {
        pthread_t thread;
        struct hf_status status;
        int r;
        atomic_bool is_over;
} stopping;

static void *stop_main(void *ctx) {
        stopping.r = hf_electors_stop(clocked.electors, &stopping.status);
        atomic_store(&stopping.is_over, true);
        return NULL;
}

static bool is_loop_over(void) {
        pthread_mutex_lock(&clocked.electors->mu);
        bool over = clocked.electors->loop_over;
        pthread_mutex_unlock(&clocked.electors->mu);
        return over;
}

/* Whether the controller of every instance has begun. If it is stopped earlier, it never begins. */
static atomic_bool has_begun;

/* The electors have stopped, and only the controller of each instance has not returned. Before the
 * loop has ended, the stop waits for it, with the same deadline. */
static void begin_stop(int (*local)(struct hf_term *term, void *ctx)) {
        atomic_store(&has_begun, false);
        clocked_elector_init();
        clocked_elector_start(&(struct clocked_options){.local = local});
        clocked_await_term();
        PATIENCE_AWAIT(atomic_load(&has_begun));
        clocked_elector_let_end();
        memset(&stopping, 0, sizeof stopping);
        assert_int_equal(pthread_create(&stopping.thread, NULL, stop_main, NULL), 0);
        PATIENCE_AWAIT(clocked_is(HF_STOPPED) && is_loop_over());
        hand_clock_await_waiter();
}

static void end_stop(int expected) {
        PATIENCE_AWAIT(atomic_load(&stopping.is_over));
        pthread_join(stopping.thread, NULL);
        assert_int_equal(stopping.r, expected);
}

static int return_at_abort(struct hf_term *term, void *ctx) {
        atomic_store(&has_begun, true);
        (void)hf_cancel_wait(hf_term_abort(term), HF_NSEC_NEVER);
        return 0;
}

/* The slowest elector may take 120 s, and a busy machine 2 s more. */
#define STOP_BOUND (122 * SEC)

static void test_controllers_of_each_instance_are_aborted_at_the_end_of_the_stop(void **state) {
        begin_stop(return_at_abort);
        hand_clock_move(STOP_BOUND - 1);
        hand_clock_await_waiter();
        assert_false(atomic_load(&stopping.is_over));
        hand_clock_move(1);
        end_stop(0);
        clocked_elector_free();
}

static atomic_bool may_return;

static int return_when_it_may(struct hf_term *term, void *ctx) {
        atomic_store(&has_begun, true);
        PATIENCE_AWAIT(atomic_load(&may_return));
        return 0;
}

static void test_a_controller_of_each_instance_that_does_not_return_is_named(void **state) {
        atomic_store(&may_return, false);
        begin_stop(return_when_it_may);
        hand_clock_move(STOP_BOUND);
        hand_clock_await_waiter();
        hand_clock_move(20 * SEC - 1);
        hand_clock_await_waiter();
        assert_false(atomic_load(&stopping.is_over));
        hand_clock_move(1);
        end_stop(HF_E_STUCK);
        assert_string_equal(stopping.status.message, "controller local of kube-system/lead did not "
                                                     "return within its deadline");
        struct hf_status status = {0};
        assert_int_equal(hf_electors_stop(clocked.electors, &status), HF_E_STUCK);
        assert_string_equal(status.message, stopping.status.message);
        assert_int_equal(hf_electors_stop(clocked.electors, NULL), HF_E_STUCK);
        atomic_store(&may_return, true);
        PATIENCE_AWAIT(hf__term_is_joined(clocked.elector->instance));
        clocked_elector_free();
}

/* Each elector is checked, not only the first one. */
static void test_the_elector_whose_controller_does_not_return_is_named(void **state) {
        const struct hf_controller local = {.size = sizeof local,
                                            .name = "late",
                                            .runs = HF_EVERY_INSTANCE,
                                            .run = return_when_it_may};
        struct hf_elector_config config = {.size = sizeof config,
                                           .ns = "kube-system",
                                           .name = "other",
                                           .identity = "a",
                                           .controllers = &local,
                                           .n_controllers = 1};
        struct hf_elector *other = NULL;

        atomic_store(&may_return, false);
        atomic_store(&has_begun, false);
        clocked_elector_init();
        config.client = &clocked.client->base;
        assert_int_equal(hf_electors_new(&clocked.host, &clocked.electors), 0);
        config.name = "lead";
        config.n_controllers = 0;
        assert_int_equal(hf_electors_add(clocked.electors, &config, &clocked.elector, NULL), 0);
        config.name = "other";
        config.n_controllers = 1;
        assert_int_equal(hf_electors_add(clocked.electors, &config, &other, NULL), 0);
        assert_int_equal(hf_electors_start(clocked.electors, NULL), 0);
        PATIENCE_AWAIT(atomic_load(&has_begun));
        memset(&stopping, 0, sizeof stopping);
        assert_int_equal(pthread_create(&stopping.thread, NULL, stop_main, NULL), 0);
        /* The loop ends at its own pace. Only then is the time over that controllers may take. */
        PATIENCE_AWAIT(is_loop_over());
        while (!atomic_load(&stopping.is_over)) {
                hand_clock_move(SEC);
                (void)hf_cancel_wait(hf_cancel_never(), in_msec(1));
        }
        end_stop(HF_E_STUCK);
        assert_string_equal(stopping.status.message, "controller late of kube-system/other did not "
                                                     "return within its deadline");
        atomic_store(&may_return, true);
        PATIENCE_AWAIT(hf__term_is_joined(other->instance));
        clocked_elector_free();
}

static int return_at_once(struct hf_term *term, void *ctx) { return 0; }

static bool is_settled_once_begun(void *ctx) {
        PATIENCE_AWAIT(atomic_load(&has_begun));
        return false;
}

static void *start_main(void *ctx) {
        stopping.r = hf_electors_start(clocked.electors, &stopping.status);
        atomic_store(&stopping.is_over, true);
        return NULL;
}

/* The start fails, because a check has the name of its second one, after the controller of the
 * first elector has begun. */
static void test_a_stop_names_what_a_failed_start_has_left(void **state) {
        const struct hf_controller controllers[] = {
                {.size = sizeof(struct hf_controller),
                 .name = "late",
                 .runs = HF_EVERY_INSTANCE,
                 .run = return_when_it_may},
                {.size = sizeof(struct hf_controller),
                 .name = "second",
                 .runs = HF_EVERY_INSTANCE,
                 .run = return_at_once,
                 .is_settled = is_settled_once_begun},
        };
        struct hf_elector_config config = {.size = sizeof config,
                                           .ns = "kube-system",
                                           .identity = "a",
                                           .n_controllers = 1};
        struct hf_status status = {0};

        atomic_store(&may_return, false);
        atomic_store(&has_begun, false);
        clocked_elector_init();
        assert_int_equal(hf_health_add(clocked.host.health, "leaderElection-lock", HF_HEALTHZ,
                                       is_well, NULL),
                         0);
        config.client = &clocked.client->base;
        assert_int_equal(hf_electors_new(&clocked.host, &clocked.electors), 0);
        for (unsigned i = 0; i < 2; i++) {
                config.name = i == 0 ? "lead" : "other";
                config.controllers = &controllers[i];
                assert_int_equal(hf_electors_add(clocked.electors, &config, &clocked.more[i], NULL),
                                 0);
        }
        memset(&stopping, 0, sizeof stopping);
        assert_int_equal(pthread_create(&stopping.thread, NULL, start_main, NULL), 0);
        while (!atomic_load(&stopping.is_over)) {
                hand_clock_move(SEC);
                (void)hf_cancel_wait(hf_cancel_never(), in_msec(1));
        }
        end_stop(HF_E_EXISTS);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(hf_electors_stop(clocked.electors, &status), HF_E_STUCK);
                assert_string_equal(status.message, "controller late of kube-system/lead did not "
                                                    "return within its deadline");
        }
        atomic_store(&may_return, true);
        PATIENCE_AWAIT(hf__term_is_joined(clocked.more[0]->instance));
        clocked_elector_free();
}

/* The drain and the stop grace begin anew after two pauses. Together they take longer than the
 * whole stop may without them, so this must wait for the controller, too. */
static void test_a_stop_waits_for_a_stop_grace_that_has_begun_anew(void **state) {
        clocked_elector_init();
        clocked_elector_start(&plain);
        clocked_await_term();
        memset(&stopping, 0, sizeof stopping);
        assert_int_equal(pthread_create(&stopping.thread, NULL, stop_main, NULL), 0);
        CLOCKED_AWAIT(clocked_is(HF_DRAINING));
        clocked_move(42 * SEC);
        for (int i = 0; i < 4; i++) {
                assert_true(clocked_is(HF_DRAINING));
                clocked_move(10 * SEC);
        }
        assert_true(clocked_is(HF_ABORTING));
        clocked_move(22 * SEC);
        clocked_move(20 * SEC - 1);
        assert_true(clocked_is(HF_ABORTING));
        hand_clock_await_waiter();
        assert_false(atomic_load(&stopping.is_over));
        clocked_elector_let_end();
        end_stop(0);
        clocked_elector_free();
}

/* During the drain the process pauses until the limit of the whole stop. The drain ends with the
 * validity, so no deadline begins anew, but the stop grace begins as late as that. */
static void test_a_stop_waits_for_a_stop_grace_that_has_begun_late(void **state) {
        clocked_elector_init();
        clocked_elector_start(&plain);
        clocked_await_term();
        memset(&stopping, 0, sizeof stopping);
        assert_int_equal(pthread_create(&stopping.thread, NULL, stop_main, NULL), 0);
        CLOCKED_AWAIT(clocked_is(HF_DRAINING));
        clocked_move(STOP_BOUND);
        assert_true(clocked_is(HF_ABORTING));
        for (int i = 0; i < 19; i++) { /* the stop notices no pause */
                hand_clock_await_waiter();
                clocked_move(SEC);
        }
        assert_true(clocked_is(HF_ABORTING));
        hand_clock_await_waiter();
        assert_false(atomic_load(&stopping.is_over));
        clocked_elector_let_end();
        end_stop(0);
        clocked_elector_free();
}

static atomic_bool change_may_return;

static void hold_drain(enum hf_leader_state state) {
        if (state == HF_DRAINING)
                PATIENCE_AWAIT(atomic_load(&change_may_return));
}

/* After a pause the thread of the stop is the first to run. The loop is not blocked, although it
 * has made no step since. */
static void test_a_stop_gives_the_loop_a_step_after_a_pause(void **state) {
        atomic_store(&change_may_return, false);
        clocked_elector_init();
        clocked_elector_start(&plain);
        clocked_await_term();
        clocked.in_change = hold_drain;
        memset(&stopping, 0, sizeof stopping);
        assert_int_equal(pthread_create(&stopping.thread, NULL, stop_main, NULL), 0);
        PATIENCE_AWAIT(clocked_is(HF_DRAINING));
        hand_clock_await_waiter();
        hand_clock_move(STOP_BOUND);
        hand_clock_await_waiter();
        assert_false(atomic_load(&stopping.is_over));
        atomic_store(&change_may_return, true);
        CLOCKED_AWAIT(clocked_is(HF_ABORTING));
        clocked_elector_let_end();
        end_stop(0);
        clocked_elector_free();
}

/* Moves the clock by 2 s in small steps, so that nobody takes them for a pause. */
static void let_a_moment_pass(void) {
        for (int i = 0; i < 20; i++) {
                hand_clock_move(SEC / 10);
                hand_clock_await_waiter();
        }
}

/* The process pauses again before the loop has made the step. The pause is too short to be noticed,
 * and longer than the time that the loop gets. */
static void test_a_stop_gives_the_loop_a_step_after_a_second_pause(void **state) {
        atomic_store(&change_may_return, false);
        clocked_elector_init();
        clocked_elector_start(&plain);
        clocked_await_term();
        clocked.in_change = hold_drain;
        memset(&stopping, 0, sizeof stopping);
        assert_int_equal(pthread_create(&stopping.thread, NULL, stop_main, NULL), 0);
        PATIENCE_AWAIT(clocked_is(HF_DRAINING));
        hand_clock_await_waiter();
        hand_clock_move(STOP_BOUND);
        hand_clock_await_waiter();
        hand_clock_move(3 * SEC);
        hand_clock_await_waiter();
        assert_false(atomic_load(&stopping.is_over));
        atomic_store(&change_may_return, true);
        CLOCKED_AWAIT(clocked_is(HF_ABORTING));
        let_a_moment_pass(); /* the stop follows the loop again */
        assert_false(atomic_load(&stopping.is_over));
        clocked_elector_let_end();
        end_stop(0);
        clocked_elector_free();
}

/* Electors whose loop did not end are never freed. Nothing reads this: without volatile the
 * compiler would leave it out. */
static struct hf_electors *volatile hung;

/* A loop that is blocked is reported 2 s later. */
static void test_a_loop_that_makes_no_step_is_reported(void **state) {
        atomic_store(&change_may_return, false);
        clocked_elector_init();
        clocked_elector_start(&plain);
        clocked_await_term();
        clocked_elector_let_end();
        clocked.in_change = hold_drain;
        memset(&stopping, 0, sizeof stopping);
        assert_int_equal(pthread_create(&stopping.thread, NULL, stop_main, NULL), 0);
        PATIENCE_AWAIT(clocked_is(HF_DRAINING));
        hand_clock_await_waiter();
        hand_clock_move(STOP_BOUND);
        for (int i = 0; i < 20; i++) {
                hand_clock_await_waiter();
                assert_false(atomic_load(&stopping.is_over));
                hand_clock_move(SEC / 10);
        }
        end_stop(HF_E_STUCK);
        assert_non_null(strstr(stopping.status.message, "the elector loop does not end"));
        atomic_store(&change_may_return, true);
        PATIENCE_AWAIT(is_loop_over());
        assert_int_equal(pthread_join(clocked.electors->thread, NULL), 0); /* nobody else does */
        hung = clocked.electors;
        clocked_elector_free();
}

static void begin_stop_of_blocked_loop(void) {
        memset(&stopping, 0, sizeof stopping);
        assert_int_equal(pthread_create(&stopping.thread, NULL, stop_main, NULL), 0);
        PATIENCE_AWAIT(atomic_load(&clocked.electors->stop_requested));
}

static void hold_term(enum hf_leader_state state) {
        if (state == HF_LEADING)
                PATIENCE_AWAIT(atomic_load(&change_may_return));
}

/* The loop finds both the request and the stop. */
static void test_a_hand_over_before_a_stop_names_its_successor(void **state) {
        atomic_store(&change_may_return, false);
        clocked_elector_init();
        clocked.in_change = hold_term;
        clocked_elector_start(&plain);
        PATIENCE_AWAIT(clocked_is(HF_LEADING));
        assert_int_equal(hf_elector_hand_over(clocked.elector, "b"), 0);
        begin_stop_of_blocked_loop();
        atomic_store(&change_may_return, true);
        clocked_elector_let_end();
        end_stop(0);
        char *lease = fake_api_get(clocked.api, CLOCKED_LEASE);
        assert_non_null(strstr(lease, "\"holdfast.dev/successor\":\"b\""));
        free(lease);
        assert_string_equal(clocked_info().last_end, "handed over");
        clocked_elector_free();
}

static atomic_bool is_held;

static void hold_free_lease(enum hf_leader_state state) {
        if (state != HF_FOLLOWING || clocked_info().holder[0])
                return;
        atomic_store(&is_held, true);
        PATIENCE_AWAIT(atomic_load(&change_may_return));
}

/* The loop finds both the reply to its acquire and the stop, which may have given up waiting. */
static void test_no_term_begins_after_a_stop_was_requested(void **state) {
        atomic_store(&change_may_return, false);
        atomic_store(&is_held, false);
        clocked_elector_init();
        clocked_put_lease("z", "");
        clocked_elector_start(&plain);
        CLOCKED_AWAIT(strcmp(clocked_info().holder, "z") == 0);
        clocked.in_change = hold_free_lease;
        clocked_put_lease("", "");
        PATIENCE_AWAIT(atomic_load(&is_held));
        PATIENCE_AWAIT(!clocked_is_request_under_way());
        char *lease = fake_api_get(clocked.api, CLOCKED_LEASE);
        assert_non_null(strstr(lease, "\"holderIdentity\":\"a\""));
        free(lease);
        begin_stop_of_blocked_loop();
        atomic_store(&change_may_return, true);
        clocked_elector_let_end();
        end_stop(0);
        assert_false(clocked_logged(": leading, term "));
        lease = fake_api_get(clocked.api, CLOCKED_LEASE);
        assert_non_null(strstr(lease, "\"holderIdentity\":\"\""));
        free(lease);
        clocked_elector_free();
}

static void *stop_hooks_main(void *ctx) {
        stopping.r = hf_hooks_stop(ctx, &stopping.status);
        atomic_store(&stopping.is_over, true);
        return NULL;
}

/* Pauses prolong the stop of the electors. It has no limit around it that knows nothing of them. */
static void test_the_hook_waits_for_a_stop_with_pauses(void **state) {
        struct hf_hooks *hooks = NULL;

        clocked_elector_init();
        assert_int_equal(hf_hooks_new(&clocked.host, NULL, &hooks), 0);
        clocked_elector_start(&(struct clocked_options){.hooks = hooks});
        clocked_await_term();
        memset(&stopping, 0, sizeof stopping);
        assert_int_equal(pthread_create(&stopping.thread, NULL, stop_hooks_main, hooks), 0);
        CLOCKED_AWAIT(clocked_is(HF_DRAINING));
        for (int i = 0; i < 4; i++) {
                clocked_move(i < 3 ? 300 * SEC : 100 * SEC);
                assert_true(clocked_is(HF_ABORTING));
                hand_clock_await_waiter();
                assert_false(atomic_load(&stopping.is_over));
        }
        clocked_elector_let_end();
        end_stop(0);
        hf_hooks_fire_stopped(hooks);
        hf_hooks_free(hooks);
        clocked_elector_free();
}

/* The remaining Events wait for 25 ms, so that the successor's first writes come earlier. */
static void test_a_stop_sends_the_last_events(void **state) {
        clocked_elector_init();
        clocked_elector_start(&(struct clocked_options){.events = true});
        clocked_await_term();
        clocked_elector_let_end();
        unsigned n = fake_api_n_requests(clocked.api);
        memset(&stopping, 0, sizeof stopping);
        assert_int_equal(pthread_create(&stopping.thread, NULL, stop_main, NULL), 0);
        PATIENCE_AWAIT(clocked_is(HF_STOPPED));
        hand_clock_await_waiter();
        hand_clock_move(25 * MSEC - 1);
        hand_clock_await_waiter();
        assert_int_equal(fake_api_n_requests(clocked.api), n + 1); /* the release */
        while (!atomic_load(&stopping.is_over)) {
                hand_clock_move(MSEC);
                (void)hf_cancel_wait(hf_cancel_never(), in_msec(1));
        }
        end_stop(0);
        /* the Events of the beginning and of the end */
        PATIENCE_AWAIT(fake_api_n_requests(clocked.api) == n + 3);
        clocked_elector_free();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names_may_be_as_long_as_they_may),
                cmocka_unit_test(test_a_controllers_name_is_taken_once),
                cmocka_unit_test(test_a_set_that_is_freed_leaves_no_open_file),
                cmocka_unit_test(test_a_lock_file_is_set_once_and_first),
                cmocka_unit_test(test_an_elector_is_described_before_its_first_step),
                cmocka_unit_test(test_a_set_starts_once),
                cmocka_unit_test(test_a_start_without_threads_fails_and_can_be_stopped),
                cmocka_unit_test(test_the_checks_belong_to_one_set_at_a_time),
                cmocka_unit_test(test_a_start_that_fails_leaves_no_check),
                cmocka_unit_test(test_a_host_without_a_size_is_refused),
                cmocka_unit_test(test_a_hand_over_names_its_successor),
                cmocka_unit_test(test_an_elector_that_holds_back_leaves_a_free_lease_to_others),
                cmocka_unit_test(test_failures_are_counted_by_their_reason),
                cmocka_unit_test(
                        test_controllers_of_each_instance_are_aborted_at_the_end_of_the_stop),
                cmocka_unit_test(test_a_controller_of_each_instance_that_does_not_return_is_named),
                cmocka_unit_test(test_the_elector_whose_controller_does_not_return_is_named),
                cmocka_unit_test(test_a_stop_names_what_a_failed_start_has_left),
                cmocka_unit_test(test_a_stop_waits_for_a_stop_grace_that_has_begun_anew),
                cmocka_unit_test(test_a_stop_waits_for_a_stop_grace_that_has_begun_late),
                cmocka_unit_test(test_a_stop_gives_the_loop_a_step_after_a_pause),
                cmocka_unit_test(test_a_stop_gives_the_loop_a_step_after_a_second_pause),
                cmocka_unit_test(test_a_loop_that_makes_no_step_is_reported),
                cmocka_unit_test(test_a_hand_over_before_a_stop_names_its_successor),
                cmocka_unit_test(test_no_term_begins_after_a_stop_was_requested),
                cmocka_unit_test(test_the_hook_waits_for_a_stop_with_pauses),
                cmocka_unit_test(test_a_stop_sends_the_last_events),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
