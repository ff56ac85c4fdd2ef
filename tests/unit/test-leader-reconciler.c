/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Informers, a queue and workers in one term: which keys reach reconcile, when, and what is left
 * behind.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
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

#include <holdfast/reconciler.h>

#include "base/thread.h"
#include "fake_api_client.h"
#include "leader/reconciler_until.h"
#include "leader/term.h"
#include "patience.h"

#define N_CACHES 2

static atomic_uint n_no_thread, n_no_memory; /* lines of the log */

static void note_line(void *ctx, enum hf_log_level level, const char *component,
                      const char *message) {
        if (strstr(message, "cannot start another worker"))
                atomic_fetch_add(&n_no_thread, 1);
        if (strstr(message, "out of memory: the event of "))
                atomic_fetch_add(&n_no_memory, 1);
}

static atomic_bool has_no_threads; /* no further thread can be created */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *ctx),
                          void *ctx);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *ctx),
                          void *ctx);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *ctx),
                          void *ctx) {
        return atomic_load(&has_no_threads) ? EAGAIN : __real_pthread_create(thread, attr, fn, ctx);
}

static const struct hf_host host = {.size = sizeof host, .log = {.write = note_line}};

/*
 * One controller over two collections of two fake API servers. reconcile appends its keys to a
 * text, guarded by mu.
 */
static struct {
        struct fake_api *apis[N_CACHES];
        struct fake_api_client *clients[N_CACHES];
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
        struct hf_cancel *first_part; /* ends the first part of a term */
        bool joined;
        int result;
} f;

static void wait_changed(void) {
        const struct hf_clock *clock = hf_clock_system();
        assert_int_equal(clock->wait(clock->ctx, &f.changed, &f.mu,
                                     hf_now(clock) + 60 * HF_NSEC_PER_SEC),
                         0);
}

static void await_done(unsigned n) {
        pthread_mutex_lock(&f.mu);
        while (f.n_done < n)
                wait_changed();
        pthread_mutex_unlock(&f.mu);
}

static void await_inside(unsigned n) {
        pthread_mutex_lock(&f.mu);
        while (f.n_inside < n)
                wait_changed();
        pthread_mutex_unlock(&f.mu);
}

static void assert_seen(const char *text) {
        pthread_mutex_lock(&f.mu);
        assert_string_equal(f.text, text);
        pthread_mutex_unlock(&f.mu);
}

static void let_go(void) {
        pthread_mutex_lock(&f.mu);
        f.let_go = true;
        pthread_cond_broadcast(&f.changed);
        pthread_mutex_unlock(&f.mu);
}

/* Does not return before hold_until keys are being handled, or the test releases it. */
static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        int r = 0;

        assert_ptr_equal(ctx, &f);
        pthread_mutex_lock(&f.mu);
        unsigned place = 0;
        while (f.inside[place][0])
                place++;
        for (unsigned i = 0; i < 8; i++)
                f.same_twice = f.same_twice || strcmp(f.inside[i], key) == 0;
        strcpy(f.inside[place], key);
        if (++f.n_inside > f.most_inside)
                f.most_inside = f.n_inside;
        pthread_cond_broadcast(&f.changed);
        while (f.n_inside < f.hold_until && f.most_inside < f.hold_until && !f.let_go)
                wait_changed();
        f.n += (size_t)snprintf(f.text + f.n, sizeof f.text - f.n, "%s ", key);
        assert_true(f.n < sizeof f.text);
        if (f.n_failures > 0) {
                f.n_failures--;
                r = f.failure ? f.failure : HF_E_UNAVAILABLE;
        }
        f.inside[place][0] = '\0';
        f.n_inside--;
        f.n_done++;
        pthread_cond_broadcast(&f.changed);
        pthread_mutex_unlock(&f.mu);
        return r;
}

static int map_to_namespace(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                            const char *ns, const char *name, const char *object, size_t n) {
        assert_ptr_equal(ctx, &f);
        return hf_workqueue_add(queue, ns);
}

/* Memory is short at first. */
static int map_at_the_fourth_time(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                                  const char *ns, const char *name, const char *object, size_t n) {
        static atomic_uint n_calls;

        return atomic_fetch_add(&n_calls, 1) < 3 ? -ENOMEM : hf_workqueue_add(queue, name);
}

static void setup(size_t n_informers) {
        memset(&f, 0, sizeof f);
        assert_int_equal(hf__mutex_cond_init(&f.mu, &f.changed), 0);
        for (size_t i = 0; i < n_informers; i++) {
                f.apis[i] = fake_api_new();
                f.clients[i] = fake_api_client_new(f.apis[i]);
                const struct hf_informer_config config = {
                        .size = sizeof config,
                        .resource = {.group = "", .version = "v1", .plural = "things"},
                        .client = &f.clients[i]->base,
                };
                assert_int_equal(hf_informer_new(&host, &config, &f.informers[i]), 0);
                assert_int_equal(hf_informer_start(f.informers[i]), 0);
                f.sources[i] =
                        (struct hf_reconciler_source){.size = sizeof(struct hf_reconciler_source),
                                                      .informer = f.informers[i],
                                                      .map = i > 0 ? map_to_namespace : NULL};
        }
        f.reconciler = (struct hf_reconciler){
                .size = sizeof f.reconciler,
                .name = "test",
                .sources = f.sources,
                .n_sources = n_informers,
                .reconcile = reconcile,
                .ctx = &f,
        };
}

/* ---- the linker redirects this function here ---- */

static atomic_uint n_too_early; /* calls while an informer had no handler of the reconciler */

void __real_hf_term_started(struct hf_term *term);
void __wrap_hf_term_started(struct hf_term *term);
void __wrap_hf_term_started(struct hf_term *term) {
        bool is_ready = true;

        for (size_t i = 0; i < N_CACHES && f.informers[i]; i++)
                is_ready = is_ready && hf_informer_n_handlers(f.informers[i]) == 1;
        atomic_fetch_add(&n_too_early, !is_ready);
        __real_hf_term_started(term);
}

/* In each test, controllers that come after the reconciler begin when it gets all events. */
static void teardown(void) {
        assert_int_equal(atomic_load(&n_too_early), 0);
        assert_int_equal(atomic_load(&n_no_thread), 0);
        for (size_t i = 0; i < N_CACHES && f.informers[i]; i++) {
                assert_int_equal(hf_informer_n_handlers(f.informers[i]), 0);
                hf_informer_free(f.informers[i]);
                hf_client_free(&f.clients[i]->base);
                fake_api_free(f.apis[i]);
        }
        pthread_cond_destroy(&f.changed);
        pthread_mutex_destroy(&f.mu);
}

/* ---- terms ---- */

static int run(struct hf_term *term, void *ctx) {
        int r = hf_reconciler_run(&f.reconciler, term);
        pthread_mutex_lock(&f.mu);
        f.result = r;
        pthread_mutex_unlock(&f.mu);
        return r;
}

static void on_joined(void *ctx) {
        pthread_mutex_lock(&f.mu);
        f.joined = true;
        pthread_cond_broadcast(&f.changed);
        pthread_mutex_unlock(&f.mu);
}

static void begin_term_at(int (*run_it)(struct hf_term *term, void *ctx), const char *text) {
        static struct hf_controller controller = {.size = sizeof controller, .name = "test"};

        controller.run = run_it;
        f.joined = false;
        const struct hf__term_config config = {.controllers = &controller,
                                               .n_controllers = 1,
                                               .label = "ns/name",
                                               .acquired_at = text,
                                               .joined = on_joined};
        assert_int_equal(hf__term_new(&host, &config, &f.work), 0);
}

static void begin_term_with(int (*run_it)(struct hf_term *term, void *ctx), uint64_t acquired_at) {
        char text[24] = "";

        if (acquired_at > 0)
                snprintf(text, sizeof text, "%llu", (unsigned long long)acquired_at);
        begin_term_at(run_it, text);
}

static void begin_term(uint64_t acquired_at) { begin_term_with(run, acquired_at); }

static void await_end(void) {
        pthread_mutex_lock(&f.mu);
        while (!f.joined)
                wait_changed();
        assert_false(f.same_twice);
        assert_int_equal(f.result, 0);
        pthread_mutex_unlock(&f.mu);
        f.work = hf__term_free(f.work);
}

static void end_term(void) {
        hf__term_fire_drain(f.work);
        await_end();
}

/* ---- which keys are handled ---- */

/*
 * LK01: The next leader handles changes from before its term, even if its informer has seen them
 * long ago.
 */
static void test_each_term_gets_all_present_objects(void **state) {
        setup(1);
        fake_api_put_thing(f.apis[0], "a", "one", "1");
        begin_term(fake_api_put_thing(f.apis[0], "a", "two", "1"));
        await_done(2);
        end_term();
        assert_seen("a/one a/two ");
        fake_api_put_thing(f.apis[0], "a", "one", "2");
        fake_api_put_thing(f.apis[0], "", "three", "1");
        begin_term(fake_api_delete_thing(f.apis[0], "a", "two"));
        await_done(4);
        end_term();
        assert_seen("a/one a/two a/one three ");
        teardown();
}

/*
 * Revisions of a foreign server may not be numbers. Then a consistent list proves that the informer
 * has everything written before.
 */
static void test_opaque_revisions_cause_a_consistent_list(void **state) {
        setup(2);
        fake_api_put_thing(f.apis[0], "a", "one", "1");
        assert_int_equal(hf_informer_wait_all(f.informers, 2, NULL, hf_cancel_never()), 0);
        unsigned n[] = {fake_api_n_lists(f.apis[0]), fake_api_n_lists(f.apis[1])};
        begin_term_at(run, "v7:opaque");
        await_done(1);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(fake_api_n_lists(f.apis[i]), n[i] + 1);
        end_term();
        assert_seen("a/one ");
        teardown();
}

static void test_events_come_after_the_replay(void **state) {
        setup(1);
        begin_term(fake_api_put_thing(f.apis[0], "a", "one", "1"));
        await_done(1);
        fake_api_delete_thing(f.apis[0], "a", "one");
        await_done(2);
        end_term();
        assert_seen("a/one a/one ");
        teardown();
}

static void test_several_informers_feed_one_queue(void **state) {
        setup(2);
        fake_api_put_thing(f.apis[0], "", "ws", "1");
        begin_term(fake_api_raise_revision(f.apis[0], 1));
        await_done(1);
        fake_api_put_thing(f.apis[1], "ws", "child", "1");
        await_done(2);
        end_term();
        assert_seen("ws ws ");
        teardown();
}

/*
 * CR15: No handler is added to an informer before all informers have reached the acquiring
 * revision.
 */
static void test_all_informers_reach_the_acquiring_revision_first(void **state) {
        setup(2);
        assert_int_equal(hf_informer_wait_all(f.informers, 2, NULL, hf_cancel_never()), 0);
        fake_api_client_hold_requests(f.clients[1], true);
        unsigned n_lists = fake_api_n_lists(f.apis[1]);
        begin_term(fake_api_put_thing(f.apis[0], "", "ws", "1"));
        PATIENCE_AWAIT(fake_api_n_lists(f.apis[1]) != n_lists);
        assert_int_equal(hf_informer_wait(f.informers[0], "2", hf_cancel_never()), 0);
        assert_int_equal(hf_informer_n_handlers(f.informers[0]), 0);
        fake_api_client_hold_requests(f.clients[1], false);
        await_done(1);
        end_term();
        teardown();
}

static void test_a_failure_is_tried_again(void **state) {
        setup(1);
        f.n_failures = 3;
        begin_term(fake_api_put_thing(f.apis[0], "a", "one", "1"));
        await_done(4);
        end_term();
        assert_seen("a/one a/one a/one a/one ");
        teardown();
}

/* An error that looks like the end of the term may come from a token of the embedding program. */
static void test_a_cancellation_by_another_token_is_retried(void **state) {
        static const int failures[] = {HF_E_CANCELED, HF_E_NOT_LEADER, HF_E_STALE_TERM};
        for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
                setup(1);
                f.failure = failures[i];
                f.n_failures = 2;
                begin_term(fake_api_put_thing(f.apis[0], "a", "one", "1"));
                await_done(3);
                end_term();
                assert_seen("a/one a/one a/one ");
                teardown();
        }
}

static void test_a_controller_of_every_instance_waits_for_no_revision(void **state) {
        setup(1);
        fake_api_put_thing(f.apis[0], "a", "one", "1");
        begin_term(0);
        await_done(1);
        end_term();
        teardown();
}

static int run_wrongly(struct hf_term *term, void *ctx) {
        struct hf_reconciler wrong;

        wrong = f.reconciler;
        wrong.n_workers = HF_RECONCILER_WORKERS_MAX + 1;
        assert(hf_reconciler_run(&wrong, term) == -EINVAL);
        wrong = f.reconciler;
        wrong.n_sources = 0;
        assert(hf_reconciler_run(&wrong, term) == -EINVAL);
        wrong = f.reconciler;
        wrong.reconcile = NULL;
        assert(hf_reconciler_run(&wrong, term) == -EINVAL);
        wrong = f.reconciler;
        /* of an older header without this field */
        wrong.size = offsetof(struct hf_reconciler, reconcile);
        assert(hf_reconciler_run(&wrong, term) == -EINVAL);
        wrong.size = 0;
        assert(hf_reconciler_run(&wrong, term) == -EINVAL);
        struct hf_reconciler_source source = f.reconciler.sources[0];
        wrong = f.reconciler;
        wrong.sources = &source;
        wrong.n_sources = 1;
        source.size = 0;
        assert(hf_reconciler_run(&wrong, term) == -EINVAL);
        source = f.reconciler.sources[0];
        source.informer = NULL;
        assert(hf_reconciler_run(&wrong, term) == -EINVAL);
        assert(hf_reconciler_run(&f.reconciler, NULL) == -EINVAL);
        assert(hf_reconciler_run(NULL, term) == -EINVAL);
        pthread_mutex_lock(&f.mu);
        f.n_done++;
        pthread_cond_broadcast(&f.changed);
        pthread_mutex_unlock(&f.mu);
        return 0;
}

static void test_bad_configurations_are_refused(void **state) {
        setup(1);
        begin_term_with(run_wrongly, 0);
        await_done(1); /* if it is drained before its thread runs, it need not start */
        end_term();
        teardown();
}

/* ---- workers ---- */

static void test_workers_share_the_keys(void **state) {
        setup(1);
        f.reconciler.n_workers = 4;
        f.hold_until = 4; /* nobody returns before four are inside */
        for (int i = 0; i < 8; i++) {
                char name[8];
                snprintf(name, sizeof name, "n%d", i);
                fake_api_put_thing(f.apis[0], "a", name, "1");
        }
        begin_term(fake_api_raise_revision(f.apis[0], 1));
        await_done(8);
        end_term();
        assert_int_equal(f.most_inside, 4);
        teardown();
}

static void test_a_key_is_with_one_worker_at_a_time(void **state) {
        setup(1);
        f.reconciler.n_workers = 4;
        f.hold_until = 2;
        begin_term(fake_api_put_thing(f.apis[0], "a", "one", "1"));
        await_inside(1);
        for (int i = 2; i < 20; i++) /* the key is not given to idle workers */
                fake_api_put_thing(f.apis[0], "a", "one", "x");
        fake_api_put_thing(f.apis[0], "a", "two", "1"); /* this key is: now two are inside */
        await_done(3);
        end_term();
        assert_int_equal(f.most_inside, 2);
        teardown();
}

static int note_start(struct hf_term *term, void *ctx) {
        pthread_mutex_lock(&f.mu);
        f.n_done++;
        pthread_cond_broadcast(&f.changed);
        pthread_mutex_unlock(&f.mu);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        return 0;
}

/* A controller that comes after a reconciler needs its caches, not its end. */
static void test_a_controller_after_it_starts_while_it_works(void **state) {
        static const char *const after[] = {"test", NULL};
        static const struct hf_controller controllers[] = {
                {.size = sizeof(struct hf_controller), .name = "test", .run = run},
                {.size = sizeof(struct hf_controller),
                 .name = "second",
                 .run = note_start,
                 .after = after},
        };
        const struct hf__term_config config = {.controllers = controllers,
                                               .n_controllers = 2,
                                               .label = "ns/name",
                                               .joined = on_joined};

        setup(1);
        f.hold_until = 2; /* with one worker: until the test releases it */
        fake_api_put_thing(f.apis[0], "a", "one", "1");
        assert_int_equal(hf__term_new(&host, &config, &f.work), 0);
        await_inside(1);
        await_done(1); /* the second controller: the key is held */
        let_go();
        end_term();
        assert_seen("a/one ");
        teardown();
}

/* ---- ends ---- */

static void hold_three(void) {
        setup(1);
        f.hold_until = 2; /* with one worker: until the test releases it */
        fake_api_put_thing(f.apis[0], "a", "one", "1");
        fake_api_put_thing(f.apis[0], "a", "two", "1");
        begin_term(fake_api_put_thing(f.apis[0], "a", "three", "1"));
        await_inside(1);
}

static void await_depth(size_t n) {
        /*
         * When the informer has reached a newer revision, its handler has been called for all keys.
         */
        char revision[24];
        snprintf(revision, sizeof revision, "%llu",
                 (unsigned long long)fake_api_put_thing(f.apis[0], "a", "three", "2"));
        assert_int_equal(hf_informer_wait(f.informers[0], revision, hf_cancel_never()), 0);
}

static void test_drain_finishes_what_is_queued(void **state) {
        hold_three();
        await_depth(2);
        hf__term_fire_drain(f.work);
        let_go();
        await_end();
        assert_int_equal(f.n_done, 3);
        teardown();
}

/* docs/parity.md, A15: When the term is lost, no queued key is begun. */
static void test_abort_drops_what_is_queued(void **state) {
        hold_three();
        await_depth(2);
        hf__term_fire_abort(f.work, HF_CANCEL_LOST);
        let_go();
        await_end();
        assert_int_equal(f.n_done, 1);
        teardown();
}

static void test_a_term_can_end_while_it_waits_for_its_informers(void **state) {
        setup(1);
        assert_int_equal(hf_informer_wait(f.informers[0], NULL, hf_cancel_never()), 0);
        fake_api_client_hold_requests(f.clients[0], true);
        unsigned n_lists = fake_api_n_lists(f.apis[0]);
        begin_term(fake_api_raise_revision(f.apis[0], 100));
        PATIENCE_AWAIT(fake_api_n_lists(f.apis[0]) != n_lists);
        end_term();
        assert_int_equal(f.n_done, 0);
        teardown();
}

/* docs/parity.md, A16: A thousand terms leave no more handlers or watches behind than one. Each
 * costs one list. */
static void test_terms_do_not_accumulate(void **state) {
        setup(2);
        fake_api_put_thing(f.apis[0], "", "ws", "1");
        uint64_t acquired = fake_api_put_thing(f.apis[1], "ws", "child", "1");
        fake_api_await_watch(f.apis[0], 1);
        fake_api_await_watch(f.apis[1], 1);
        for (int i = 0; i < 1000; i++) {
                f.n_done = 0;
                f.n = 0;
                begin_term(acquired);
                await_done(1);
                for (size_t c = 0; c < 2; c++)
                        assert_int_equal(hf_informer_n_handlers(f.informers[c]), 1);
                if (i % 2)
                        hf__term_fire_abort(f.work, HF_CANCEL_LOST);
                end_term();
                for (size_t c = 0; c < 2; c++)
                        assert_int_equal(hf_informer_n_handlers(f.informers[c]), 0);
        }
        for (size_t c = 0; c < 2; c++) {
                assert_int_equal(fake_api_n_watches(f.apis[c]), 1);
                assert_int_equal(fake_api_n_open(f.apis[c]), 1);
                assert_int_equal(fake_api_n_lists(f.apis[c]), 1 + 1000);
        }
        teardown();
}

static int run_two_parts(struct hf_term *term, void *ctx) {
        assert_int_equal(hf__reconciler_run_until(&f.reconciler, term, NULL), -EINVAL);
        assert_int_equal(hf_cancel_new(hf_term_drain(term), NULL, &f.first_part), 0);
        assert_int_equal(hf__reconciler_run_until(&f.reconciler, term, f.first_part), 0);
        assert_false(hf_cancel_fired(hf_term_drain(term)));
        hf_cancel_unref(f.first_part);
        return run(term, ctx);
}

/* A part of a term ends like a term, after the keys that are queued, and so does its wait for the
 * informers. The next part gets all objects again. */
static void test_a_part_of_a_term_ends_like_a_term(void **state) {
        setup(1);
        fake_api_put_thing(f.apis[0], "a", "one", "1");
        begin_term_with(run_two_parts, fake_api_put_thing(f.apis[0], "a", "two", "1"));
        await_done(2);
        hf_cancel_fire(f.first_part, HF_CANCEL_STOPPING);
        await_done(4);
        fake_api_delete_thing(f.apis[0], "a", "two");
        await_done(5);
        end_term();
        assert_seen("a/one a/two a/one a/two a/two ");
        assert_int_equal(hf_informer_wait_all(f.informers, 1, NULL, hf_cancel_never()), 0);
        fake_api_client_hold_requests(f.clients[0], true);
        unsigned n_lists = fake_api_n_lists(f.apis[0]);
        begin_term_with(run_two_parts, fake_api_raise_revision(f.apis[0], 1000));
        PATIENCE_AWAIT(fake_api_n_lists(f.apis[0]) != n_lists);
        hf_cancel_fire(f.first_part, HF_CANCEL_STOPPING);
        fake_api_client_hold_requests(f.clients[0], false);
        await_done(6);
        end_term();
        teardown();
}

static void test_without_more_threads_the_work_goes_on(void **state) {
        setup(1);
        f.reconciler.n_workers = 4;
        f.hold_until = 8;
        begin_term(fake_api_put_thing(f.apis[0], "a", "one", "1"));
        fake_api_put_thing(f.apis[0], "a", "two", "1");
        await_inside(2);
        atomic_store(&has_no_threads, true);
        fake_api_put_thing(f.apis[0], "a", "three", "1");
        fake_api_put_thing(f.apis[0], "a", "four", "1");
        PATIENCE_AWAIT(atomic_load(&n_no_thread) > 0);
        let_go();
        await_done(4);
        end_term();
        atomic_store(&has_no_threads, false);
        assert_int_equal(atomic_exchange(&n_no_thread, 0), 1); /* it is said once */
        teardown();
}

static void test_an_event_waits_for_memory_and_is_logged_once(void **state) {
        setup(1);
        f.sources[0].map = map_at_the_fourth_time;
        begin_term(fake_api_put_thing(f.apis[0], "a", "one", "1"));
        await_done(1);
        assert_seen("one ");
        assert_int_equal(atomic_load(&n_no_memory), 1);
        end_term();
        teardown();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_term_gets_all_present_objects),
                cmocka_unit_test(test_opaque_revisions_cause_a_consistent_list),
                cmocka_unit_test(test_events_come_after_the_replay),
                cmocka_unit_test(test_several_informers_feed_one_queue),
                cmocka_unit_test(test_all_informers_reach_the_acquiring_revision_first),
                cmocka_unit_test(test_a_failure_is_tried_again),
                cmocka_unit_test(test_a_cancellation_by_another_token_is_retried),
                cmocka_unit_test(test_a_controller_of_every_instance_waits_for_no_revision),
                cmocka_unit_test(test_bad_configurations_are_refused),
                cmocka_unit_test(test_workers_share_the_keys),
                cmocka_unit_test(test_a_key_is_with_one_worker_at_a_time),
                cmocka_unit_test(test_a_controller_after_it_starts_while_it_works),
                cmocka_unit_test(test_drain_finishes_what_is_queued),
                cmocka_unit_test(test_abort_drops_what_is_queued),
                cmocka_unit_test(test_a_term_can_end_while_it_waits_for_its_informers),
                cmocka_unit_test(test_terms_do_not_accumulate),
                cmocka_unit_test(test_without_more_threads_the_work_goes_on),
                cmocka_unit_test(test_an_event_waits_for_memory_and_is_logged_once),
                cmocka_unit_test(test_a_part_of_a_term_ends_like_a_term),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
