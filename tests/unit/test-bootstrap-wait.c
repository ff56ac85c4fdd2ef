/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook that waits for the ledger, in one thread, on a clock that jumps to each deadline. The
 * test says how each watch goes. The functions of the hook's context are replaced (--wrap).
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/bootstrap.h>
#include <holdfast/client_port.h>

#include "bootstrap/ledger_wait.h"
#include "bootstrap/phase.h"

#define BEGIN  (1000 * HF_NSEC_PER_SEC)
#define SECOND HF_NSEC_PER_SEC
#define MSEC   HF_NSEC_PER_MSEC
#define MAX    32

/* The course of a watch: after `lasts`, the server sends the object (if there is one) and ends the
 * watch. */
struct watch {
        hf_nsec lasts;
        const char *object;
        enum hf_event_type type;
        bool stays_open;  /* it does not end by itself */
        bool is_refused;  /* it does not begin */
        bool is_shutdown; /* the hooks shut down meanwhile */
};

static struct fixture {
        struct hf_client client; /* first */
        struct hf_clock clock;
        struct hf_host host;
        struct hf_bootstrap *bootstrap;
        struct hf_cancel *token;
        hf_nsec now;
        const struct watch *plan; /* the last one is repeated */
        size_t n_plan;
        hf_nsec begun[MAX]; /* of each watch, since the test began */
        size_t n_watches;
        bool is_open;
        hf_watch_end_fn on_end;
        void *watch_ctx;
        char log[512];
} f;

struct hf_client *__wrap_hf_hook_client(struct hf_hook_context *context);
struct hf_client *__wrap_hf_hook_client(struct hf_hook_context *context) {
        return context ? &f.client : NULL;
}
struct hf_cancel *__wrap_hf_hook_shutting_down(struct hf_hook_context *context);
struct hf_cancel *__wrap_hf_hook_shutting_down(struct hf_hook_context *context) {
        return f.token;
}

static hf_nsec clock_now(void *ctx) { return f.now; }
static int clock_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        assert(deadline != HF_NSEC_NEVER);
        if (f.now < deadline)
                f.now = deadline;
        return HF_E_TIMEOUT;
}

static void end_watch(int error) {
        if (!f.is_open)
                return;
        f.is_open = false;
        f.on_end(f.watch_ctx, error, NULL);
}

static int client_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                        hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        const struct watch *watch = &f.plan[f.n_watches < f.n_plan ? f.n_watches : f.n_plan - 1];

        assert(f.n_watches < MAX && !f.is_open);
        assert_string_equal(spec->resource.plural, "configmaps");
        assert_string_equal(spec->ns, "the-ns");
        assert_string_equal(spec->name, "the-ledger");
        f.begun[f.n_watches++] = f.now - BEGIN;
        if (watch->is_refused)
                return -ENOMEM;
        *ret_id = f.n_watches;
        f.is_open = true;
        f.on_end = on_end;
        f.watch_ctx = ctx;
        f.now += watch->lasts;
        if (watch->object) {
                struct hf_event event = {.type = watch->type,
                                         .object = watch->object,
                                         .n_object = strlen(watch->object)};
                on_event(ctx, &event);
        }
        if (watch->is_shutdown)
                hf_cancel_fire(f.token, HF_CANCEL_STOPPING);
        if (!watch->stays_open)
                end_watch(0);
        return 0;
}
static void client_watch_cancel(struct hf_client *self, uint64_t id) {
        assert_int_equal(id, f.n_watches);
        end_watch(HF_E_CANCELED);
}
static const struct hf_client_ops ops = {.size = sizeof ops,
                                         .watch = client_watch,
                                         .watch_cancel = client_watch_cancel};

static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        size_t n = strlen(f.log);
        (void)snprintf(f.log + n, sizeof f.log - n, "%d %s\n", (int)level, message);
}

/* Runs the hook of a phase with one manifest, with this plan. */
static int wait_with(hf_nsec patience, struct hf_client *client, const struct watch *plan, size_t n,
                     struct hf_status *status) {
        static const struct hf_bootstrap_kind kinds[] = {{"v1", "ConfigMap", "configmaps", true}};
        static const char manifest[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":"
                                       "{\"name\":\"a\",\"namespace\":\"default\"}}";
        const struct hf_bootstrap_manifest manifests[] = {
                {"a.json", manifest, sizeof manifest - 1}};
        const struct hf_bootstrap_phase phase = {.size = sizeof phase,
                                                 .name = "zero",
                                                 .manifests = manifests,
                                                 .n_manifests = 1,
                                                 .hook_patience = patience};

        f = (struct fixture){.plan = plan, .n_plan = n, .now = BEGIN};
        f.clock = (struct hf_clock){sizeof(struct hf_clock),
                                    clock_now,
                                    clock_now,
                                    clock_now,
                                    clock_wait,
                                    NULL};
        f.host = (struct hf_host){.size = sizeof f.host,
                                  .clock = &f.clock,
                                  .log = {.write = on_log}};
        f.client = (struct hf_client){.ops = &ops, .host = &f.host};
        const struct hf_bootstrap_config config = {.size = sizeof config,
                                                   .version = "1.0.0",
                                                   .kinds = kinds,
                                                   .n_kinds = 1,
                                                   .phases = &phase,
                                                   .n_phases = 1,
                                                   .ledger_ns = "the-ns",
                                                   .ledger_name = "the-ledger",
                                                   .client = client};
        assert_int_equal(hf_bootstrap_new(&f.host, &config, &f.bootstrap, NULL), 0);
        assert_int_equal(hf_cancel_new(NULL, &f.clock, &f.token), 0);
        int r = hf__ledger_wait((struct hf_hook_context *)(client ? NULL : &f),
                                &f.bootstrap->phases[0], status);
        assert_false(f.is_open); /* no callback can come any more */
        return r;
}
#define WAIT(patience, plan) wait_with(patience, NULL, plan, sizeof plan / sizeof plan[0], NULL)

static bool is_complete(void) {
        struct hf_bootstrap_info info = {.size = sizeof info};

        hf_bootstrap_info(f.bootstrap, 0, &info);
        return info.complete;
}
static bool is_settled(void) { return hf__phase_is_settled(&f.bootstrap->phases[0]); }
static void done(void) {
        hf_bootstrap_free(f.bootstrap);
        hf_cancel_unref(f.token);
}

static void assert_begun(const hf_nsec *times, size_t n) {
        assert_int_equal(f.n_watches, n);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(f.begun[i] / MSEC, times[i]);
}

#define COMPLETE(version) "{\"data\":{\"format\":\"1\",\"zero.completed\":\"" version " now\"}}"

static void test_any_version_that_completes_the_phase_ends_the_wait(void **state) {
        static const struct {
                const char *object;
                bool complete, settled;
        } cases[] = {
                {COMPLETE("9.0.0"), true, true},  /* nothing is left for an older version */
                {COMPLETE("1.0.0"), true, false}, /* its manifest has no record */
                {COMPLETE("0.9.0"), true, false},
                {"{\"data\":{\"format\":\"2\",\"zero.completed\":\"9.0.0 now\"}}", true, true},
                {"{\"data\":{\"format\":\"2\"}}", false, false},
                {"{\"data\":{\"format\":\"1\"}}", false, false},
                {"{\"data\":{\"format\":\"1\",\"one.completed\":\"1.0.0 now\"}}", false, false},
                {"{", false, false},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                const struct watch plan[] = {{.object = cases[i].object, .stays_open = true}};
                assert_int_equal(WAIT(SECOND, plan), 0);
                assert_int_equal(is_complete(), cases[i].complete);
                assert_int_equal(is_settled(), cases[i].settled);
                assert_int_equal(f.now - BEGIN, cases[i].complete ? 0 : SECOND);
                done();
        }
}

static void test_only_a_ledger_that_exists_counts(void **state) {
        static const struct watch plan[] = {
                {.object = COMPLETE("1.0.0"), .type = HF_EVENT_DELETED},
                {.object = COMPLETE("1.0.0"), .type = HF_EVENT_BOOKMARK},
                {.object = COMPLETE("1.0.0"), .type = HF_EVENT_MODIFIED},
        };

        assert_int_equal(WAIT(0, plan), 0);
        assert_true(is_complete());
        assert_int_equal(f.n_watches, 3);
        done();
}

static void test_a_watch_is_opened_again_after_a_pause_that_doubles(void **state) {
        static const struct watch plan[] =
                {{.is_refused = true},         {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0},
                 {.object = COMPLETE("1.0.0")}};
        static const hf_nsec times[] = {0, 100, 300, 700, 1500, 3100, 6300, 11300, 16300, 21300};

        assert_int_equal(WAIT(0, plan), 0);
        assert_begun(times, sizeof times / sizeof times[0]);
        done();
}

static void test_a_watch_that_lasts_ends_a_row_of_short_ones(void **state) {
        static const struct watch plan[] = {{0},
                                            {0},
                                            {.lasts = 5 * SECOND},
                                            {.lasts = 5 * SECOND + MSEC},
                                            {0},
                                            {.object = COMPLETE("1.0.0")}};
        static const hf_nsec times[] = {0, 100, 300, 5700, 10801, 11001};

        assert_int_equal(WAIT(0, plan), 0);
        assert_begun(times, sizeof times / sizeof times[0]);
        done();
}

static void test_patience_ends_during_a_watch_or_a_pause(void **state) {
        static const struct watch open[] = {{.stays_open = true}}, closed[] = {{0}};

        assert_int_equal(WAIT(2 * SECOND, open), 0);
        assert_int_equal(f.now - BEGIN, 2 * SECOND);
        assert_int_equal(f.n_watches, 1);
        assert_false(is_complete());
        assert_string_equal(f.log,
                            "4 zero is not complete yet: this instance no longer waits for it\n");
        done();
        assert_int_equal(WAIT(200 * MSEC, closed), 0);
        assert_int_equal(f.now - BEGIN, 200 * MSEC);
        assert_false(is_complete());
        done();
}

static void test_the_longest_patience_is_no_limit(void **state) {
        static const struct watch plan[] = {{0}, {.object = COMPLETE("1.0.0")}};

        assert_int_equal(WAIT(HF_NSEC_NEVER, plan), 0);
        assert_true(is_complete());
        done();
}

static void test_a_shutdown_ends_the_wait(void **state) {
        static const struct watch open[] = {{.is_shutdown = true, .stays_open = true}},
                                  closed[] = {{.is_shutdown = true}};
        struct hf_status status = {0};

        assert_int_equal(wait_with(0, NULL, open, 1, &status), HF_E_CANCELED);
        assert_string_equal(status.message, "shut down before zero was complete");
        assert_false(is_complete());
        done();
        assert_int_equal(wait_with(SECOND, NULL, closed, 1, &status), HF_E_CANCELED);
        assert_int_equal(f.n_watches, 1);
        done();
}

static void test_the_client_of_the_configuration_comes_first(void **state) {
        static const struct watch plan[] = {{.object = COMPLETE("1.0.0")}};

        /* The hook's context has no client here. */
        assert_int_equal(wait_with(0, &f.client, plan, 1, NULL), 0);
        assert_true(is_complete());
        done();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_any_version_that_completes_the_phase_ends_the_wait),
                cmocka_unit_test(test_only_a_ledger_that_exists_counts),
                cmocka_unit_test(test_a_watch_is_opened_again_after_a_pause_that_doubles),
                cmocka_unit_test(test_a_watch_that_lasts_ends_a_row_of_short_ones),
                cmocka_unit_test(test_patience_ends_during_a_watch_or_a_pause),
                cmocka_unit_test(test_the_longest_patience_is_no_limit),
                cmocka_unit_test(test_a_shutdown_ends_the_wait),
                cmocka_unit_test(test_the_client_of_the_configuration_comes_first),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
