/* SPDX-License-Identifier: Apache-2.0 */
/* A start and a stop on two threads, and two stops. */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/hooks.h>

#include "hooks/hook_registry.h"
#include "hooks_fixture.h"
#include "patience.h"
#include "text_asserts.h"

/* ---- a start and a stop on two threads ---- */

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
static const char *const names[] = {"0", "1", "2", "3"};

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
        PATIENCE_AWAIT(atomic_load(&race.to_go) || atomic_load(&race.stop_returned));
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
        struct hf_hook list[4] = {{0}};
        for (size_t i = 0; i < 4; i++) {
                list[i].size = sizeof list[i];
                list[i].name = names[i];
                list[i].start = racing_start;
                list[i].stop = racing_stop;
        }
        memset(&race, 0, sizeof race);
        sem_init(&race.reached, 0, 0);
        race.main_thread = pthread_self();
        race.stop_at = stop_at;
        race.hooks = HOOKS_FIXTURE_NEW_CHAIN(list);
}
/* docs/parity.md, A12: no hook begins after the stop has begun, and those that have begun are
 * stopped. */
static void test_a_stop_that_races_the_start_leaves_nothing_running(void **state) {
        for (int stop_at = -1; stop_at <= 4; stop_at++) {
                pthread_t thread;
                set_up_race(stop_at);
                hooks_fixture_set_on_wait(hold_start);
                if (stop_at < 0)
                        assert_int_equal(hf_hooks_stop(race.hooks, NULL), 0);
                atomic_store(&race.stop_returned, stop_at < 0);
                assert_int_equal(pthread_create(&thread, NULL, hooks_fixture_start_main,
                                                race.hooks),
                                 0);
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
                hooks_fixture_set_on_wait(NULL);
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
        hooks_fixture_note(ctx, "+");
        sem_post(&has_begun);
        sem_wait(&main_waits);
        hooks_fixture_note(ctx, hf_cancel_fired(context->token) ? "!" : "=");
        return HF_E_CANCELED;
}
static void test_a_stop_waits_for_its_start(void **state) {
        struct hf_hook list[] = {
                {.size = sizeof(struct hf_hook), .name = "a", .start = late_start},
                {.size = sizeof(struct hf_hook), .name = "b"},
        };
        struct hf_status status;
        pthread_t thread;
        sem_init(&has_begun, 0, 0);
        sem_init(&main_waits, 0, 0);
        race.main_thread = pthread_self();
        struct hf_hooks *hooks = HOOKS_FIXTURE_NEW_CHAIN(list);
        hooks_fixture_set_on_wait(tell_main_waits);
        assert_int_equal(pthread_create(&thread, NULL, hooks_fixture_start_main, hooks), 0);
        sem_wait(&has_begun);
        hf_hooks_shut_down(hooks);
        pthread_join(thread,
                     NULL); /* hf_hooks_start does not wait for the hook, but the stop does */
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        hooks_fixture_set_on_wait(NULL);
        hf_hooks_free(hooks);
        assert_string_equal(hooks_fixture_diary(), "a+ a= a- ");
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
        struct hf_hook list[] = {{.size = sizeof(struct hf_hook),
                                  .name = "a",
                                  .start = hooks_fixture_start,
                                  .stop = stop_before_two}};
        struct hf_status status = {0};
        memset(&second, 0, sizeof second);
        sem_init(&second.is_stopping, 0, 0);
        sem_init(&second.second_waits, 0, 0);
        second.hooks = HOOKS_FIXTURE_NEW(list);
        assert_int_equal(hf_hooks_start(second.hooks, &status), 0);
        assert_int_equal(pthread_create(&second.thread, NULL, second_stop_main, NULL), 0);
        hooks_fixture_set_on_wait(tell_second_waits);
        assert_int_equal(hf_hooks_stop(second.hooks, &status), HF_E_BUSY);
        pthread_join(second.thread, NULL);
        hooks_fixture_set_on_wait(NULL);
        assert_int_equal(second.result, HF_E_BUSY);
        assert_in(second.status.message, "hook \"a\" failed to stop: two have waited");
        assert_string_equal(second.status.message, status.message);
        hf_hooks_free(second.hooks);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_stop_that_races_the_start_leaves_nothing_running),
                cmocka_unit_test(test_a_stop_waits_for_its_start),
                cmocka_unit_test(test_a_second_stop_waits_for_the_first_and_returns_the_same),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
