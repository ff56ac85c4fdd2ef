/* SPDX-License-Identifier: Apache-2.0 */
/* Caches, a queue and workers of one term: what reaches reconcile, when, and what is left behind.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/reconciler.h>

#include "api-fake.c"
#include "leader/term.h"

#define N_CACHES 2

static const struct hf_host host = {.size = sizeof host};

/* One controller over two collections of two fake servers. What reconcile saw is a text of keys,
 * guarded by mu. */
static struct {
        struct api_fake *fakes[N_CACHES];
        struct hf_informer *informers[N_CACHES];
        struct hf_reconciler_source sources[N_CACHES];
        struct hf_reconciler reconciler;
        pthread_mutex_t mu;
        pthread_cond_t changed;
        char text[4096];
        size_t n;
        unsigned n_done, n_inside, most_inside, hold_until, n_failures;
        int failure; /* 0 = HF_E_UNAVAILABLE */
        bool same_twice, drained, let_go;
        char inside[8][HF_KEY_MAX];
        struct hf__term *work;
        bool joined;
        int result;
} w;

static void wait_changed(void) {
        const struct hf_clock *clock = hf_clock_system();
        assert_int_equal(clock->wait(clock->ctx, &w.changed, &w.mu,
                                     hf_now(clock) + 60 * HF_NSEC_PER_SEC),
                         0);
}

static void await_done(unsigned n) {
        pthread_mutex_lock(&w.mu);
        while (w.n_done < n)
                wait_changed();
        pthread_mutex_unlock(&w.mu);
}

static void await_inside(unsigned n) {
        pthread_mutex_lock(&w.mu);
        while (w.n_inside < n)
                wait_changed();
        pthread_mutex_unlock(&w.mu);
}

static void assert_seen(const char *text) {
        pthread_mutex_lock(&w.mu);
        assert_string_equal(w.text, text);
        pthread_mutex_unlock(&w.mu);
}

static void let_go(void) {
        pthread_mutex_lock(&w.mu);
        w.let_go = true;
        pthread_cond_broadcast(&w.changed);
        pthread_mutex_unlock(&w.mu);
}

/* Stays inside until as many keys are in hand as hold_until says, or it is let go. */
static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        int r = 0;

        assert_ptr_equal(ctx, &w);
        pthread_mutex_lock(&w.mu);
        unsigned place = 0;
        while (w.inside[place][0])
                place++;
        for (unsigned i = 0; i < 8; i++)
                w.same_twice = w.same_twice || strcmp(w.inside[i], key) == 0;
        strcpy(w.inside[place], key);
        if (++w.n_inside > w.most_inside)
                w.most_inside = w.n_inside;
        pthread_cond_broadcast(&w.changed);
        while (w.n_inside < w.hold_until && w.most_inside < w.hold_until && !w.let_go)
                wait_changed();
        w.n += (size_t)snprintf(w.text + w.n, sizeof w.text - w.n, "%s ", key);
        assert_true(w.n < sizeof w.text);
        if (w.n_failures > 0) {
                w.n_failures--;
                r = w.failure ? w.failure : HF_E_UNAVAILABLE;
        }
        w.inside[place][0] = '\0';
        w.n_inside--;
        w.n_done++;
        pthread_cond_broadcast(&w.changed);
        pthread_mutex_unlock(&w.mu);
        return r;
}

static void map_to_namespace(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                             const char *ns, const char *name, const char *object, size_t n) {
        assert_ptr_equal(ctx, &w);
        assert_int_equal(hf_workqueue_add(queue, ns), 0);
}

static void setup(size_t n_informers) {
        memset(&w, 0, sizeof w);
        pthread_mutex_init(&w.mu, NULL);
        hf_cond_init(&w.changed);
        for (size_t i = 0; i < n_informers; i++) {
                const struct hf_informer_config config = {
                        .size = sizeof config,
                        .resource = {.group = "", .version = "v1", .plural = "things"},
                        .client = api_fake_client(w.fakes[i] = api_fake_new(&host)),
                };
                assert_int_equal(hf_informer_new(&host, &config, &w.informers[i]), 0);
                assert_int_equal(hf_informer_start(w.informers[i]), 0);
                w.sources[i] =
                        (struct hf_reconciler_source){.informer = w.informers[i],
                                                      .map = i > 0 ? map_to_namespace : NULL};
        }
        w.reconciler = (struct hf_reconciler){
                .size = sizeof w.reconciler,
                .name = "test",
                .sources = w.sources,
                .n_sources = n_informers,
                .reconcile = reconcile,
                .ctx = &w,
        };
}

static void teardown(void) {
        for (size_t i = 0; i < N_CACHES && w.informers[i]; i++) {
                assert_int_equal(hf_informer_n_handlers(w.informers[i]), 0);
                hf_informer_free(w.informers[i]);
                hf_client_free(api_fake_client(w.fakes[i]));
        }
        pthread_cond_destroy(&w.changed);
        pthread_mutex_destroy(&w.mu);
}

/* ---- terms ---- */

static int run(struct hf_term *term, void *ctx) {
        int r = hf_reconciler_run(&w.reconciler, term);
        pthread_mutex_lock(&w.mu);
        w.result = r;
        pthread_mutex_unlock(&w.mu);
        return r;
}

static void on_joined(void *ctx) {
        pthread_mutex_lock(&w.mu);
        w.joined = true;
        pthread_cond_broadcast(&w.changed);
        pthread_mutex_unlock(&w.mu);
}

static void begin_term_at(int (*run_it)(struct hf_term *term, void *ctx), const char *text) {
        static struct hf_controller controller = {.name = "test"};

        controller.run = run_it;
        w.joined = false;
        const struct hf__term_config config = {.controllers = &controller,
                                               .n_controllers = 1,
                                               .label = "ns/name",
                                               .acquired_at = text,
                                               .joined = on_joined};
        assert_int_equal(hf__term_new(&host, &config, &w.work), 0);
}

static void begin_term_with(int (*run_it)(struct hf_term *term, void *ctx), uint64_t acquired_at) {
        char text[24] = "";

        if (acquired_at > 0)
                snprintf(text, sizeof text, "%llu", (unsigned long long)acquired_at);
        begin_term_at(run_it, text);
}

static void begin_term(uint64_t acquired_at) { begin_term_with(run, acquired_at); }

static void await_end(void) {
        pthread_mutex_lock(&w.mu);
        while (!w.joined)
                wait_changed();
        assert_false(w.same_twice);
        assert_int_equal(w.result, 0);
        pthread_mutex_unlock(&w.mu);
        w.work = hf__term_free(w.work);
}

static void end_term(void) {
        hf__term_fire_drain(w.work);
        await_end();
}

/* ---- what is worked on ---- */

/* LK01: what changed while nobody led is acted on by the next leader, though its cache has seen it
 * long before. */
static void test_each_term_is_told_what_is_there(void **state) {
        setup(1);
        api_fake_put(w.fakes[0], "a", "one", "1");
        begin_term(api_fake_put(w.fakes[0], "a", "two", "1"));
        await_done(2);
        end_term();
        assert_seen("a/one a/two ");
        api_fake_put(w.fakes[0], "a", "one", "2");
        api_fake_put(w.fakes[0], "", "three", "1");
        begin_term(api_fake_delete(w.fakes[0], "a", "two"));
        await_done(4);
        end_term();
        assert_seen("a/one a/two a/one three ");
        teardown();
}

/* A foreign server's revisions may be no numbers: what was written before is then waited for by a
 * consistent list. */
static void test_a_revision_that_is_no_number(void **state) {
        setup(2);
        api_fake_put(w.fakes[0], "a", "one", "1");
        assert_int_equal(hf_informer_wait_all(w.informers, 2, NULL, hf_cancel_never()), 0);
        unsigned n[] = {api_fake_n_lists(w.fakes[0]), api_fake_n_lists(w.fakes[1])};
        begin_term_at(run, "v7:opaque");
        await_done(1);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(api_fake_n_lists(w.fakes[i]), n[i] + 1);
        end_term();
        assert_seen("a/one ");
        teardown();
}

static void test_events_follow_the_replay(void **state) {
        setup(1);
        begin_term(api_fake_put(w.fakes[0], "a", "one", "1"));
        await_done(1);
        api_fake_delete(w.fakes[0], "a", "one");
        await_done(2);
        end_term();
        assert_seen("a/one a/one ");
        teardown();
}

static void test_several_caches_feed_one_queue(void **state) {
        setup(2);
        api_fake_put(w.fakes[0], "", "ws", "1");
        begin_term(api_fake_other_writes(w.fakes[0], 1));
        await_done(1);
        api_fake_put(w.fakes[1], "ws", "child", "1");
        await_done(2);
        end_term();
        assert_seen("ws ws ");
        teardown();
}

/* No cache's handler is added before all caches have seen what was written before the term. */
static void test_all_caches_reach_the_acquiring_revision_first(void **state) { /* CR15 */
        setup(2);
        assert_int_equal(hf_informer_wait_all(w.informers, 2, NULL, hf_cancel_never()), 0);
        api_fake_hold_calls(w.fakes[1], true);
        unsigned n_lists = api_fake_n_lists(w.fakes[1]);
        begin_term(api_fake_put(w.fakes[0], "", "ws", "1"));
        while (api_fake_n_lists(w.fakes[1]) == n_lists)
                sched_yield();
        assert_int_equal(hf_informer_wait(w.informers[0], "2", hf_cancel_never()), 0);
        assert_int_equal(hf_informer_n_handlers(w.informers[0]), 0);
        api_fake_hold_calls(w.fakes[1], false);
        await_done(1);
        end_term();
        teardown();
}

static void test_a_failure_is_tried_again(void **state) {
        setup(1);
        w.n_failures = 3;
        begin_term(api_fake_put(w.fakes[0], "a", "one", "1"));
        await_done(4);
        end_term();
        assert_seen("a/one a/one a/one a/one ");
        teardown();
}

/* What looks like the term's end may come from a token of the embedder's own. */
static void test_a_cancellation_of_its_own_is_tried_again(void **state) {
        static const int failures[] = {HF_E_CANCELED, HF_E_NOT_LEADER, HF_E_STALE_TERM};
        for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
                setup(1);
                w.failure = failures[i];
                w.n_failures = 2;
                begin_term(api_fake_put(w.fakes[0], "a", "one", "1"));
                await_done(3);
                end_term();
                assert_seen("a/one a/one a/one ");
                teardown();
        }
}

static void test_every_instance_needs_no_revision(void **state) {
        setup(1);
        api_fake_put(w.fakes[0], "a", "one", "1");
        begin_term(0);
        await_done(1);
        end_term();
        teardown();
}

static int run_wrongly(struct hf_term *term, void *ctx) {
        struct hf_reconciler wrong;

        wrong = w.reconciler;
        wrong.n_workers = HF_RECONCILER_WORKERS_MAX + 1;
        assert(hf_reconciler_run(&wrong, term) == -EINVAL);
        wrong = w.reconciler;
        wrong.n_sources = 0;
        assert(hf_reconciler_run(&wrong, term) == -EINVAL);
        wrong = w.reconciler;
        wrong.reconcile = NULL;
        assert(hf_reconciler_run(&wrong, term) == -EINVAL);
        wrong = w.reconciler;
        wrong.size =
                offsetof(struct hf_reconciler, reconcile); /* of a header that did not have it */
        assert(hf_reconciler_run(&wrong, term) == -EINVAL);
        pthread_mutex_lock(&w.mu);
        w.n_done++;
        pthread_cond_broadcast(&w.changed);
        pthread_mutex_unlock(&w.mu);
        return 0;
}

static void test_wrong_set_ups_are_refused(void **state) {
        setup(1);
        begin_term_with(run_wrongly, 0);
        await_done(1); /* drained before its thread ran, it need not start */
        end_term();
        teardown();
}

/* ---- workers ---- */

static void test_workers_share_the_keys(void **state) {
        setup(1);
        w.reconciler.n_workers = 4;
        w.hold_until = 4; /* nobody leaves before four are inside */
        for (int i = 0; i < 8; i++) {
                char name[8];
                snprintf(name, sizeof name, "n%d", i);
                api_fake_put(w.fakes[0], "a", name, "1");
        }
        begin_term(api_fake_other_writes(w.fakes[0], 1));
        await_done(8);
        end_term();
        assert_int_equal(w.most_inside, 4);
        teardown();
}

static void test_a_key_is_with_one_worker_at_a_time(void **state) {
        setup(1);
        w.reconciler.n_workers = 4;
        w.hold_until = 2;
        begin_term(api_fake_put(w.fakes[0], "a", "one", "1"));
        await_inside(1);
        for (int i = 2; i < 20; i++) /* is not given to the idle ones */
                api_fake_put(w.fakes[0], "a", "one", "x");
        api_fake_put(w.fakes[0], "a", "two", "1"); /* this is: now two are inside */
        await_done(3);
        end_term();
        assert_int_equal(w.most_inside, 2);
        teardown();
}

/* ---- ends ---- */

static void hold_three(void) {
        setup(1);
        w.hold_until = 2; /* of one worker: until it is let go */
        api_fake_put(w.fakes[0], "a", "one", "1");
        api_fake_put(w.fakes[0], "a", "two", "1");
        begin_term(api_fake_put(w.fakes[0], "a", "three", "1"));
        await_inside(1);
}

static void await_depth(size_t n) {
        /* The handler has told all keys once the cache answers a newer revision. */
        char revision[24];
        snprintf(revision, sizeof revision, "%llu",
                 (unsigned long long)api_fake_put(w.fakes[0], "a", "three", "2"));
        assert_int_equal(hf_informer_wait(w.informers[0], revision, hf_cancel_never()), 0);
}

static void test_drain_finishes_what_is_queued(void **state) {
        hold_three();
        await_depth(2);
        hf__term_fire_drain(w.work);
        let_go();
        await_end();
        assert_int_equal(w.n_done, 3);
        teardown();
}

/* A15: with the term lost, nothing that was queued is begun. */
static void test_abort_drops_what_is_queued(void **state) {
        hold_three();
        await_depth(2);
        hf__term_fire_abort(w.work, HF_CANCEL_LOST);
        let_go();
        await_end();
        assert_int_equal(w.n_done, 1);
        teardown();
}

static void test_a_term_ends_while_it_waits_for_its_caches(void **state) {
        setup(1);
        assert_int_equal(hf_informer_wait(w.informers[0], NULL, hf_cancel_never()), 0);
        api_fake_hold_calls(w.fakes[0], true);
        unsigned n_lists = api_fake_n_lists(w.fakes[0]);
        begin_term(api_fake_other_writes(w.fakes[0], 100));
        while (api_fake_n_lists(w.fakes[0]) == n_lists)
                sched_yield();
        end_term();
        assert_int_equal(w.n_done, 0);
        teardown();
}

/* A16: a thousand terms leave no handler, watch or list behind that one does not. */
static void test_terms_do_not_accumulate(void **state) {
        setup(2);
        api_fake_put(w.fakes[0], "", "ws", "1");
        uint64_t acquired = api_fake_put(w.fakes[1], "ws", "child", "1");
        api_fake_await_watch(w.fakes[0], 1);
        api_fake_await_watch(w.fakes[1], 1);
        for (int i = 0; i < 1000; i++) {
                w.n_done = 0;
                w.n = 0;
                begin_term(acquired);
                await_done(1);
                for (size_t c = 0; c < 2; c++)
                        assert_int_equal(hf_informer_n_handlers(w.informers[c]), 1);
                if (i % 2)
                        hf__term_fire_abort(w.work, HF_CANCEL_LOST);
                end_term();
                for (size_t c = 0; c < 2; c++)
                        assert_int_equal(hf_informer_n_handlers(w.informers[c]), 0);
        }
        for (size_t c = 0; c < 2; c++) {
                assert_int_equal(api_fake_n_watches(w.fakes[c]), 1);
                assert_int_equal(api_fake_n_open(w.fakes[c]), 1);
                assert_true(api_fake_n_lists(w.fakes[c]) <= 2);
        }
        teardown();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_term_is_told_what_is_there),
                cmocka_unit_test(test_a_revision_that_is_no_number),
                cmocka_unit_test(test_events_follow_the_replay),
                cmocka_unit_test(test_several_caches_feed_one_queue),
                cmocka_unit_test(test_all_caches_reach_the_acquiring_revision_first),
                cmocka_unit_test(test_a_failure_is_tried_again),
                cmocka_unit_test(test_a_cancellation_of_its_own_is_tried_again),
                cmocka_unit_test(test_every_instance_needs_no_revision),
                cmocka_unit_test(test_wrong_set_ups_are_refused),
                cmocka_unit_test(test_workers_share_the_keys),
                cmocka_unit_test(test_a_key_is_with_one_worker_at_a_time),
                cmocka_unit_test(test_drain_finishes_what_is_queued),
                cmocka_unit_test(test_abort_drops_what_is_queued),
                cmocka_unit_test(test_a_term_ends_while_it_waits_for_its_caches),
                cmocka_unit_test(test_terms_do_not_accumulate),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
