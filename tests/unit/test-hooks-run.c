/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting and stopping hooks: order, deadlines, tokens, supervised threads, and a stop that races
 * a start.
 */
#undef NDEBUG
#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/hooks.h>

#include "hooks/registry.h"
#include "hooks/threads.h"

/*
 * The system's clock. on_wait is called before each wait, with the mutex locked; true ends the wait
 * at once, as a spurious wake-up. It lets a test continue exactly when a thread has nothing to do
 * any more, or hold a thread there.
 */
static bool (*_Atomic on_wait)(pthread_mutex_t *mutex);
static hf_nsec read_boot(void *ctx) { return hf_clock_system()->boot(NULL); }
static hf_nsec read_monotonic(void *ctx) { return hf_clock_system()->monotonic(NULL); }
static hf_nsec read_real(void *ctx) { return hf_clock_system()->real(NULL); }
static int wait_and_tell(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex,
                         hf_nsec deadline) {
        bool (*told)(pthread_mutex_t * mutex) = atomic_load(&on_wait);
        if (told && told(mutex))
                return 0;
        return hf_clock_system()->wait(NULL, cond, mutex, deadline);
}
static const struct hf_clock clock_that_tells = {.boot = read_boot,
                                                 .monotonic = read_monotonic,
                                                 .real = read_real,
                                                 .wait = wait_and_tell};
static const struct hf_host host = {.size = sizeof host, .clock = &clock_that_tells};

/* The order of events: "a+ b+ b- a- ". Hooks append to it from their own threads. */
static struct {
        pthread_mutex_t mu;
        char text[512];
} diary = {.mu = PTHREAD_MUTEX_INITIALIZER};

static void record(const char *name, const char *what) {
        pthread_mutex_lock(&diary.mu);
        strcat(diary.text, name);
        strcat(diary.text, what);
        strcat(diary.text, " ");
        pthread_mutex_unlock(&diary.mu);
}

static const char *read_diary(void) { return diary.text; } /* while no hook runs */

static void assert_before(const char *first, const char *then) {
        const char *a = strstr(diary.text, first), *b = strstr(diary.text, then);
        if (!a || !b || a > b)
                fail_msg("\"%s\": %s is not before %s", diary.text, first, then);
}

static int noting_start(struct hf_hook_context *context, void *ctx,
                        struct hf_status *reterr_status) {
        record(ctx, "+");
        return 0;
}
static int noting_stop(struct hf_hook_context *context, void *ctx,
                       struct hf_status *reterr_status) {
        record(ctx, "-");
        return 0;
}
static int failing_start(struct hf_hook_context *context, void *ctx,
                         struct hf_status *reterr_status) {
        return hf_fail(reterr_status, HF_E_UNAVAILABLE, "%s has no luck", (const char *)ctx);
}
static int failing_stop(struct hf_hook_context *context, void *ctx,
                        struct hf_status *reterr_status) {
        record(ctx, "-");
        return hf_fail(reterr_status, HF_E_BUSY, "%s would not", (const char *)ctx);
}
/* Returns only after the shutdown was requested. */
static int patient_start(struct hf_hook_context *context, void *ctx,
                         struct hf_status *reterr_status) {
        record(ctx, "+");
        assert(hf_cancel_wait(hf_hook_shutting_down(context), HF_NSEC_NEVER) == HF_E_CANCELED);
        record(ctx, "=");
        return HF_E_CANCELED;
}

static struct hf_hooks *setup(struct hf_hook *list, size_t n) {
        struct hf_hooks *hooks = NULL;
        struct hf_status status;
        diary.text[0] = '\0';
        assert_int_equal(hf_hooks_new(&host, NULL, &hooks), 0);
        for (size_t i = 0; i < n; i++) {
                if (!list[i].ctx)
                        list[i].ctx = (void *)list[i].name;
                assert_int_equal(hf_hooks_add(hooks, &list[i], HF_HOOKS_HERE, &status), 0);
        }
        return hooks;
}
#define SETUP(list) setup(list, sizeof list / sizeof *list)

static void assert_says(const struct hf_status *status, const char *text) {
        if (!strstr(status->message, text))
                fail_msg("\"%s\" does not say \"%s\"", status->message, text);
}

static void test_starts_follow_their_order_and_stops_reverse_it(void **state) {
        const char *on_a[] = {"a"}, *on_both[] = {"a", "b"};
        struct hf_hook list[] = {
                {.name = "c",
                 .start = noting_start,
                 .stop = noting_stop,
                 .after = on_both,
                 .n_after = 2},
                {.name = "b",
                 .start = noting_start,
                 .stop = noting_stop,
                 .after = on_a,
                 .n_after = 1},
                {.name = "a", .start = noting_start, .stop = noting_stop},
        };
        struct hf_status status;
        struct hf_hooks *hooks = SETUP(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        assert_string_equal(read_diary(), "a+ b+ c+ c- b- a- ");
}

/* Each of the two waits for the other, so they end only if both run at the same time. */
static sem_t meet[2];
static int meeting(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        int i = ctx == &meet[1];
        sem_post(&meet[i]);
        sem_wait(&meet[!i]);
        return 0;
}
static void test_independent_hooks_run_at_once(void **state) {
        struct hf_hook list[] = {
                {.name = "a", .start = meeting, .stop = meeting, .ctx = &meet[0]},
                {.name = "b", .start = meeting, .stop = meeting, .ctx = &meet[1]},
        };
        struct hf_status status;
        sem_init(&meet[0], 0, 0);
        sem_init(&meet[1], 0, 0);
        struct hf_hooks *hooks = SETUP(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
}

static void test_a_failed_start_is_named_and_started_hooks_are_stopped(void **state) {
        const char *on_a[] = {"a"}, *on_b[] = {"b"};
        struct hf_hook list[] = {
                {.name = "a", .start = noting_start, .stop = noting_stop},
                {.name = "b",
                 .start = failing_start,
                 .stop = noting_stop,
                 .after = on_a,
                 .n_after = 1},
                {.name = "c",
                 .start = noting_start,
                 .stop = noting_stop,
                 .after = on_b,
                 .n_after = 1},
        };
        struct hf_status status;
        struct hf_hooks *hooks = SETUP(list);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_UNAVAILABLE);
        assert_says(&status, "\"b\"");
        assert_says(&status, "b has no luck");
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        /* b was started, so it is stopped; c was not */
        assert_string_equal(read_diary(), "a+ b- a- ");
}

static void test_a_start_past_its_deadline_is_named(void **state) {
        struct hf_hook list[] = {{.name = "slow",
                                  .start = patient_start,
                                  .stop = noting_stop,
                                  .start_deadline = 20 * HF_NSEC_PER_MSEC}};
        struct hf_status status;
        struct hf_hooks *hooks = SETUP(list);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_TIMEOUT);
        assert_says(&status, "\"slow\"");
        assert_says(&status, "20 ms");
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        assert_before("slow+", "slow-");
}

static void test_a_deadline_may_be_as_late_as_never(void **state) {
        struct hf_hook list[] = {{.name = "a",
                                  .start = noting_start,
                                  .stop = noting_stop,
                                  .start_deadline = HF_NSEC_NEVER,
                                  .stop_deadline = HF_NSEC_NEVER},
                                 {.name = "b",
                                  .start = noting_start,
                                  .stop = noting_stop,
                                  .start_deadline = HF_NSEC_NEVER - 1,
                                  .stop_deadline = HF_NSEC_NEVER - 1}};
        struct hf_status status;
        struct hf_hooks *hooks = SETUP(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        assert_before("a+", "a-");
        assert_before("b+", "b-");
}

static void *shut_down_main(void *ctx) {
        hf_hooks_shut_down(ctx);
        return NULL;
}
static struct hf_hooks *to_shut_down;
static int shutting_start(struct hf_hook_context *context, void *ctx,
                          struct hf_status *reterr_status) {
        record(ctx, "+");
        hf_hooks_shut_down(to_shut_down);
        return 0;
}
/* A12 */
static void test_shutting_down_during_the_start_begins_nothing_more(void **state) {
        const char *on_a[] = {"a"};
        struct hf_hook list[] = {
                {.name = "a", .start = shutting_start, .stop = noting_stop},
                {.name = "b",
                 .start = noting_start,
                 .stop = noting_stop,
                 .after = on_a,
                 .n_after = 1},
        };
        struct hf_status status;
        struct hf_hooks *hooks = to_shut_down = SETUP(list);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_CANCELED);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        assert_string_equal(read_diary(), "a+ a- ");
}

static void test_shutting_down_before_the_start_starts_nothing(void **state) {
        struct hf_hook list[] = {{.name = "a", .start = noting_start, .stop = noting_stop}};
        struct hf_status status;
        struct hf_hooks *hooks = SETUP(list);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, shut_down_main, hooks), 0);
        pthread_join(thread, NULL);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_CANCELED);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        assert_string_equal(read_diary(), "");
}

static void test_stopping_before_the_start_closes_it(void **state) {
        struct hf_hook list[] = {{.name = "a", .start = noting_start, .stop = noting_stop}};
        struct hf_status status;
        struct hf_hooks *hooks = SETUP(list);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_CLOSED);
        hf_hooks_free(hooks);
        assert_string_equal(read_diary(), "");
}

static void test_the_errors_of_all_stops_are_reported(void **state) {
        const char *on_a[] = {"a"}, *on_b[] = {"b"};
        struct hf_hook list[] = {
                {.name = "a", .start = noting_start, .stop = failing_stop},
                {.name = "b",
                 .start = noting_start,
                 .stop = noting_stop,
                 .after = on_a,
                 .n_after = 1},
                {.name = "c",
                 .start = noting_start,
                 .stop = failing_stop,
                 .after = on_b,
                 .n_after = 1},
        };
        struct hf_status status;
        struct hf_hooks *hooks = SETUP(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), HF_E_BUSY);
        assert_says(&status, "c would not");
        assert_says(&status, "a would not");
        hf_hooks_free(hooks);
        assert_string_equal(read_diary(), "a+ b+ c+ c- b- a- ");
}

static sem_t freedom;
static int stubborn_stop(struct hf_hook_context *context, void *ctx,
                         struct hf_status *reterr_status) {
        sem_wait(&freedom);
        record(ctx, "!");
        sem_post(&freedom);
        return 0;
}
/* A13 */
static void test_a_stop_past_its_deadline_is_stuck_and_does_not_hold_up_the_others(void **state) {
        const char *on_a[] = {"a"};
        struct hf_hook list[] = {
                {.name = "a", .start = noting_start, .stop = noting_stop},
                {.name = "b",
                 .start = noting_start,
                 .stop = stubborn_stop,
                 .after = on_a,
                 .n_after = 1,
                 .stop_deadline = 20 * HF_NSEC_PER_MSEC},
        };
        struct hf_status status;
        sem_init(&freedom, 0, 0);
        /* referenced here, because it is never freed */
        struct hf_hooks *hooks = to_shut_down = SETUP(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), HF_E_STUCK);
        assert_says(&status, "\"b\" is stuck");
        assert_string_equal(read_diary(), "a+ b+ a- ");
        assert_null(hf_hooks_free(hooks)); /* frees nothing: the thread still runs in it */
        sem_post(&freedom);
        sem_wait(&freedom); /* the thread has continued, and the memory that it uses still exists */
}

static int stubborn_start(struct hf_hook_context *context, void *ctx,
                          struct hf_status *reterr_status) {
        return stubborn_stop(context, ctx, reterr_status);
}
static void test_a_start_that_never_returned_is_reported_with_its_own_deadline(void **state) {
        struct hf_hook list[] = {{.name = "a",
                                  .start = stubborn_start,
                                  .start_deadline = 20 * HF_NSEC_PER_MSEC,
                                  .stop_deadline = 30 * HF_NSEC_PER_MSEC}};
        struct hf_status status;
        static struct hf_hooks *left; /* referenced here, because it is never freed */
        sem_init(&freedom, 0, 0);
        struct hf_hooks *hooks = left = SETUP(list);
        assert_int_equal(hf_hooks_start(hooks, &status), HF_E_TIMEOUT);
        assert_int_equal(hf_hooks_stop(hooks, &status), HF_E_STUCK);
        assert_says(&status, "\"a\" is stuck: its start function has not returned within 20 ms");
        assert_null(hf_hooks_free(hooks)); /* frees nothing: the thread still runs in it */
        sem_post(&freedom);
        sem_wait(&freedom); /* the thread has continued, and the memory that it uses still exists */
}

struct spawn_test {
        struct hf_hook_context *context;
        atomic_int n_ended;
        int late;
};
static void supervised(void *ctx, struct hf_cancel *token) {
        struct spawn_test *test = ctx;
        assert(hf_cancel_wait(token, HF_NSEC_NEVER) == HF_E_CANCELED);
        atomic_fetch_add(&test->n_ended, 1);
}
static int spawning_start(struct hf_hook_context *context, void *ctx,
                          struct hf_status *reterr_status) {
        struct spawn_test *test = ctx;
        test->context = context;
        int r = hf_hook_spawn(context, "one", supervised, test);
        return r != 0 ? r : hf_hook_spawn(context, "two", supervised, test);
}
static int spawning_stop(struct hf_hook_context *context, void *ctx,
                         struct hf_status *reterr_status) {
        struct spawn_test *test = ctx;
        test->late = hf_hook_spawn(context, "late", supervised, test);
        return 0;
}
static void test_spawned_threads_are_canceled_and_joined(void **state) {
        struct spawn_test test = {0};
        struct hf_hook list[] = {
                {.name = "a", .start = spawning_start, .stop = spawning_stop, .ctx = &test}};
        struct hf_status status;
        struct hf_hooks *hooks = SETUP(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(atomic_load(&test.n_ended), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        assert_int_equal(atomic_load(&test.n_ended), 2);
        assert_int_equal(test.late, HF_E_CLOSED);
        assert_int_equal(hf_hook_spawn(test.context, "later", supervised, &test), HF_E_CLOSED);
        hf_hooks_free(hooks);
}

static void test_a_hook_without_a_stop_still_joins_its_threads(void **state) {
        struct spawn_test test = {0};
        struct hf_hook list[] = {{.name = "a", .start = spawning_start, .ctx = &test}};
        struct hf_status status;
        struct hf_hooks *hooks = SETUP(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        assert_int_equal(atomic_load(&test.n_ended), 2);
        hf_hooks_free(hooks);
}

static void short_job(void *ctx, struct hf_cancel *token) { sem_post(ctx); }
static int context_start(struct hf_hook_context *context, void *ctx,
                         struct hf_status *reterr_status) {
        *(struct hf_hook_context **)ctx = context;
        return 0;
}
static unsigned n_threads_kept(struct hf_hook_context *context) {
        unsigned n = 0;
        pthread_mutex_lock(&context->hooks->mu);
        for (struct hf__hook_thread *thread = context->threads; thread; thread = thread->next)
                n++;
        pthread_mutex_unlock(&context->hooks->mu);
        return n;
}
/* A hook may spawn a thread for each job, for as long as the process lives. */
static void test_threads_that_have_returned_are_not_kept(void **state) {
        struct hf_hook_context *context = NULL;
        struct hf_hook list[] = {{.name = "a", .start = context_start, .ctx = &context}};
        struct hf_status status;
        sem_t ran;
        sem_init(&ran, 0, 0);
        struct hf_hooks *hooks = SETUP(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        hf_nsec until = hf_now(hf_clock_system()) + 20 * HF_NSEC_PER_SEC;
        unsigned n_kept = UINT_MAX;
        for (unsigned i = 0; (i < 100 || n_kept > 2) && hf_now(hf_clock_system()) < until; i++) {
                assert_int_equal(hf_hook_spawn(context, "job", short_job, &ran), 0);
                sem_wait(&ran);
                n_kept = n_threads_kept(context);
        }
        assert_in_range(n_kept, 0, 2);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_free(hooks);
        sem_destroy(&ran);
}

static int token_stop(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        /* While hooks stop, the API still serves: only the first token has fired. */
        record(ctx, hf_cancel_fired(hf_hook_shutting_down(context)) &&
                                    !hf_cancel_fired(hf_hook_stopped(context))
                            ? "-"
                            : "?");
        return 0;
}
static void test_the_two_tokens_fire_one_after_the_other(void **state) {
        struct hf_hook list[] = {{.name = "a", .start = noting_start, .stop = token_stop}};
        struct hf_status status;
        struct hf_hooks *hooks = SETUP(list);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hf_hooks_stopped(hooks);
        hf_hooks_free(hooks);
        assert_string_equal(read_diary(), "a+ a- ");
}

/* ---- a start and a stop on two threads ---- */

static void *start_main(void *ctx) {
        (void)hf_hooks_start(ctx, NULL);
        return NULL;
}

/*
 * A chain of four hooks, and a stop from the main thread at one moment of their start. N is the
 * hook whose start runs at that moment; -1 = before the start, 4 = after it.
 */
static struct {
        struct hf_hooks *hooks;
        pthread_t main_thread;
        int stop_at;
        sem_t reached;     /* the start of hook stop_at runs */
        atomic_bool to_go; /* lets the start coordinator go on */
        atomic_bool stop_returned;
        atomic_int n_started, n_running, n_late, n_too_early;
} race;
static const char *const chain[] = {"0", "1", "2", "3"};

/* Holds the start coordinator, without the lock, until the stop coordinator waits. So when the stop
 * begins, the start has not returned. The stop coordinator must not have looked at a hook then. */
static bool hold_start(pthread_mutex_t *mutex) {
        if (mutex != &race.hooks->mu)
                return false; /* a hook waits for its token */
        if (pthread_equal(pthread_self(), race.main_thread)) {
                for (size_t i = 0; race.hooks->starting && i < race.hooks->n; i++)
                        if (race.hooks->list[i]->stop_state != HF__STOP_WAITING)
                                atomic_fetch_add(&race.n_too_early, 1);
                atomic_store(&race.to_go, true);
                return false;
        }
        if (race.stop_at < 0 || race.stop_at == 4 || !race.hooks->list[race.stop_at]->start_begun)
                return false;
        pthread_mutex_unlock(mutex);
        while (!atomic_load(&race.to_go) && !atomic_load(&race.stop_returned))
                (void)sched_yield();
        pthread_mutex_lock(mutex);
        return true;
}
static int racing_start(struct hf_hook_context *context, void *ctx,
                        struct hf_status *reterr_status) {
        if (atomic_load(&race.stop_returned))
                atomic_fetch_add(&race.n_late, 1);
        atomic_fetch_add(&race.n_running, 1);
        if (atomic_fetch_add(&race.n_started, 1) == race.stop_at) {
                sem_post(&race.reached);
                (void)hf_cancel_wait(hf_hook_shutting_down(context), HF_NSEC_NEVER);
        }
        return 0;
}
static int racing_stop(struct hf_hook_context *context, void *ctx,
                       struct hf_status *reterr_status) {
        atomic_fetch_sub(&race.n_running, 1);
        return 0;
}
static void set_up_race(int stop_at) {
        struct hf_hook list[4];
        for (size_t i = 0; i < 4; i++)
                list[i] = (struct hf_hook){.name = chain[i],
                                           .start = racing_start,
                                           .stop = racing_stop,
                                           .after = i > 0 ? &chain[i - 1] : NULL,
                                           .n_after = i > 0};
        memset(&race, 0, sizeof race);
        sem_init(&race.reached, 0, 0);
        race.main_thread = pthread_self();
        race.stop_at = stop_at;
        race.hooks = SETUP(list);
}
/* A12: no hook begins after the stop has begun, and those that have begun are stopped. */
static void test_a_stop_that_races_the_start_leaves_nothing_running(void **state) {
        for (int stop_at = -1; stop_at <= 4; stop_at++) {
                pthread_t thread;
                set_up_race(stop_at);
                atomic_store(&on_wait, hold_start);
                if (stop_at < 0)
                        assert_int_equal(hf_hooks_stop(race.hooks, NULL), 0);
                atomic_store(&race.stop_returned, stop_at < 0);
                assert_int_equal(pthread_create(&thread, NULL, start_main, race.hooks), 0);
                if (stop_at >= 0 && stop_at < 4)
                        sem_wait(&race.reached);
                else
                        pthread_join(thread, NULL);
                if (stop_at >= 0)
                        assert_int_equal(hf_hooks_stop(race.hooks, NULL), 0);
                assert_false(race.hooks->starting);
                atomic_store(&race.stop_returned, true);
                if (stop_at >= 0 && stop_at < 4)
                        pthread_join(thread, NULL);
                assert_int_equal(race.n_started, stop_at == 4 ? 4 : stop_at + 1);
                assert_int_equal(race.n_running, 0);
                assert_int_equal(race.n_late, 0);
                assert_int_equal(race.n_too_early, 0);
                atomic_store(&on_wait, NULL);
                hf_hooks_free(race.hooks);
        }
}

static sem_t has_begun, main_waits;
static bool tell_main_waits(pthread_mutex_t *mutex) {
        if (pthread_equal(pthread_self(), race.main_thread))
                sem_post(&main_waits);
        return false;
}
/* Returns when the main thread, in its stop, has done all that it can do before this start returns:
 * the hook's own token must not have fired by then. */
static int late_start(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        record(ctx, "+");
        sem_post(&has_begun);
        sem_wait(&main_waits);
        record(ctx, hf_cancel_fired(context->token) ? "!" : "=");
        return HF_E_CANCELED;
}
static void test_a_stop_waits_for_its_start(void **state) {
        const char *on_a[] = {"a"};
        struct hf_hook list[] = {
                {.name = "a", .start = late_start, .stop = noting_stop},
                {.name = "b",
                 .start = noting_start,
                 .stop = noting_stop,
                 .after = on_a,
                 .n_after = 1},
        };
        struct hf_status status;
        pthread_t thread;
        sem_init(&has_begun, 0, 0);
        sem_init(&main_waits, 0, 0);
        race.main_thread = pthread_self();
        struct hf_hooks *hooks = SETUP(list);
        atomic_store(&on_wait, tell_main_waits);
        assert_int_equal(pthread_create(&thread, NULL, start_main, hooks), 0);
        sem_wait(&has_begun);
        hf_hooks_shut_down(hooks);
        pthread_join(thread,
                     NULL); /* hf_hooks_start does not wait for the hook, but the stop does */
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        atomic_store(&on_wait, NULL);
        hf_hooks_free(hooks);
        assert_string_equal(read_diary(), "a+ a= a- ");
}

/* ---- two stops ---- */

static struct {
        struct hf_hooks *hooks;
        pthread_t thread;
        sem_t is_stopping, second_waits;
        int result;
        struct hf_status status;
} second;
static bool tell_second_waits(pthread_mutex_t *mutex) {
        if (!pthread_equal(pthread_self(), second.thread))
                return false;
        sem_post(&second.second_waits);
        return false;
}
static void *second_stop_main(void *ctx) {
        sem_wait(&second.is_stopping);
        second.result = hf_hooks_stop(second.hooks, &second.status);
        sem_post(&second.second_waits); /* if it did not wait */
        return NULL;
}
/* Fails only after the second caller waits for its result. */
static int stop_before_two(struct hf_hook_context *context, void *ctx,
                           struct hf_status *reterr_status) {
        sem_post(&second.is_stopping);
        sem_wait(&second.second_waits);
        return hf_fail(reterr_status, HF_E_BUSY, "two have waited");
}
static void test_a_second_stop_waits_for_the_first_and_returns_the_same(void **state) {
        struct hf_hook list[] = {{.name = "a", .start = noting_start, .stop = stop_before_two}};
        struct hf_status status = {0};
        memset(&second, 0, sizeof second);
        sem_init(&second.is_stopping, 0, 0);
        sem_init(&second.second_waits, 0, 0);
        second.hooks = SETUP(list);
        assert_int_equal(hf_hooks_start(second.hooks, &status), 0);
        assert_int_equal(pthread_create(&second.thread, NULL, second_stop_main, NULL), 0);
        atomic_store(&on_wait, tell_second_waits);
        assert_int_equal(hf_hooks_stop(second.hooks, &status), HF_E_BUSY);
        pthread_join(second.thread, NULL);
        atomic_store(&on_wait, NULL);
        assert_int_equal(second.result, HF_E_BUSY);
        assert_says(&second.status, "hook \"a\" failed to stop: two have waited");
        assert_string_equal(second.status.message, status.message);
        hf_hooks_free(second.hooks);
}

/* The test leaves a stuck thread alone on purpose, so the sanitizer must not report it. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "report_thread_leaks=0"; }

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_starts_follow_their_order_and_stops_reverse_it),
                cmocka_unit_test(test_independent_hooks_run_at_once),
                cmocka_unit_test(test_a_failed_start_is_named_and_started_hooks_are_stopped),
                cmocka_unit_test(test_a_start_past_its_deadline_is_named),
                cmocka_unit_test(test_a_deadline_may_be_as_late_as_never),
                cmocka_unit_test(test_shutting_down_during_the_start_begins_nothing_more),
                cmocka_unit_test(test_shutting_down_before_the_start_starts_nothing),
                cmocka_unit_test(test_stopping_before_the_start_closes_it),
                cmocka_unit_test(test_the_errors_of_all_stops_are_reported),
                cmocka_unit_test(
                        test_a_stop_past_its_deadline_is_stuck_and_does_not_hold_up_the_others),
                cmocka_unit_test(
                        test_a_start_that_never_returned_is_reported_with_its_own_deadline),
                cmocka_unit_test(test_spawned_threads_are_canceled_and_joined),
                cmocka_unit_test(test_threads_that_have_returned_are_not_kept),
                cmocka_unit_test(test_a_hook_without_a_stop_still_joins_its_threads),
                cmocka_unit_test(test_the_two_tokens_fire_one_after_the_other),
                cmocka_unit_test(test_a_stop_that_races_the_start_leaves_nothing_running),
                cmocka_unit_test(test_a_stop_waits_for_its_start),
                cmocka_unit_test(test_a_second_stop_waits_for_the_first_and_returns_the_same),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
