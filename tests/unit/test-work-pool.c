/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of threads: turns between owners, cancelled tasks, the stop, and tasks submitted
 * again. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"
#include "patience.h"
#include "server/pool/work_pool.h"

static const struct hf_host host = {.size = sizeof host};

/* What all tasks of a test share. */
struct shared {
        struct hfd_work_pool *pool;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool open;    /* the gate's task may end */
        bool at_gate; /* the gate's task has begun */
        unsigned n_ended;
        char order[256]; /* the letter of each step, in the order of the steps */
        size_t n_order;
        pthread_t long_thread; /* that of the first long step */
        unsigned n_long;       /* long steps */
};

struct counted {
        struct hfd_work_task task; /* first */
        struct shared *shared;
        char letter;
        unsigned steps_left, steps;
        bool saw_cancel;
};

static void shared_init(struct shared *shared, unsigned n_threads) {
        memset(shared, 0, sizeof *shared);
        assert_int_equal(hf__mutex_cond_init(&shared->mu, &shared->cond), 0);
        assert_int_equal(hfd_work_pool_new(&host, n_threads, 5, &shared->pool), 0);
}

static void shared_done(struct shared *shared) {
        hfd_work_pool_free(shared->pool);
        pthread_cond_destroy(&shared->cond);
        pthread_mutex_destroy(&shared->mu);
}

static void wait_ended(struct shared *shared, unsigned n) {
        pthread_mutex_lock(&shared->mu);
        PATIENCE_AWAIT_LOCKED(&shared->cond, &shared->mu, shared->n_ended >= n);
        pthread_mutex_unlock(&shared->mu);
}

/* Occupies a thread until the test opens the gate. */
static enum hfd_work_result gate_step(struct hfd_work_task *task) {
        struct shared *shared = ((struct counted *)task)->shared;

        pthread_mutex_lock(&shared->mu);
        shared->at_gate = true;
        pthread_cond_broadcast(&shared->cond);
        PATIENCE_AWAIT_LOCKED(&shared->cond, &shared->mu, shared->open);
        pthread_mutex_unlock(&shared->mu);
        return HFD_WORK_DONE;
}

static void close_gate(struct shared *shared, struct counted *gate) {
        *gate = (struct counted){.task.step = gate_step, .shared = shared};
        assert_true(hfd_work_submit(shared->pool, &gate->task));
        pthread_mutex_lock(&shared->mu);
        PATIENCE_AWAIT_LOCKED(&shared->cond, &shared->mu, shared->at_gate);
        pthread_mutex_unlock(&shared->mu);
}

static void open_gate(struct shared *shared) {
        pthread_mutex_lock(&shared->mu);
        shared->open = true;
        pthread_cond_broadcast(&shared->cond);
        pthread_mutex_unlock(&shared->mu);
}

static enum hfd_work_result count_step(struct hfd_work_task *task) {
        struct counted *counted = (struct counted *)task;
        struct shared *shared = counted->shared;

        pthread_mutex_lock(&shared->mu);
        counted->steps++;
        counted->saw_cancel = hfd_work_is_cancelled(shared->pool, task);
        if (shared->n_order < sizeof shared->order - 1)
                shared->order[shared->n_order++] = counted->letter;
        bool more = --counted->steps_left > 0 && !counted->saw_cancel;
        if (!more) {
                shared->n_ended++;
                pthread_cond_broadcast(&shared->cond);
        }
        pthread_mutex_unlock(&shared->mu);
        return more ? HFD_WORK_MORE : HFD_WORK_DONE;
}

static void submit(struct shared *shared, struct counted *counted, char letter, const char *owner,
                   unsigned steps) {
        *counted = (struct counted){.task = {.step = count_step, .owner = hfd_work_owner(owner)},
                                    .shared = shared,
                                    .letter = letter,
                                    .steps_left = steps};
        assert_true(hfd_work_submit(shared->pool, &counted->task));
}

/*
 * There is one thread and two owners: a has three large tasks, and b has a small one that was
 * submitted last. The small task gets every second turn, however many tasks a has.
 */
static void test_a_small_task_gets_every_second_turn(void **state) {
        struct shared shared;
        struct counted gate, large[3], small;

        assert_int_not_equal(hfd_work_owner("a") % 64, hfd_work_owner("b") % 64);
        shared_init(&shared, 1);
        close_gate(&shared, &gate);
        for (int i = 0; i < 3; i++)
                submit(&shared, &large[i], (char)('1' + i), "a", 6);
        submit(&shared, &small, 's', "b", 3);
        open_gate(&shared);
        wait_ended(&shared, 4);
        /* The two owners take turns, and so do the three large tasks of a. */
        const char *last = strrchr(shared.order, 's');
        assert_non_null(last);
        assert_true(last - shared.order <= 5);
        assert_int_equal(shared.n_order, 3 * 6 + 3);
        const char *tail = last + 1;
        for (size_t i = 0; i + 3 < strlen(tail); i++)
                assert_int_not_equal(tail[i], tail[i + 1]);
        shared_done(&shared);
}

/* Tasks with long steps leave one of two threads to the others. */
static void test_long_steps_leave_a_thread_to_others(void **state) {
        static const char *const owners[] = {"a", "b", "c"};
        struct shared shared;
        struct counted gates[3], small[3];

        shared_init(&shared, 2);
        for (size_t i = 0; i < 3; i++) {
                gates[i] = (struct counted){.task = {.step = gate_step,
                                                     .owner = hfd_work_owner(owners[i]),
                                                     .long_step = true},
                                            .shared = &shared};
                assert_true(hfd_work_submit(shared.pool, &gates[i].task));
        }
        for (size_t i = 0; i < 3; i++)
                submit(&shared, &small[i], 's', "a", 4);
        wait_ended(&shared, 3);
        /* Each of the long ones runs, too. */
        open_gate(&shared);
        PATIENCE_AWAIT(hfd_work_pending(shared.pool) == 0);
        shared_done(&shared);
}

/* Each long step runs on the same thread, so that what it frees was allocated there. */
static enum hfd_work_result note_thread_step(struct hfd_work_task *task) {
        struct counted *counted = (struct counted *)task;
        struct shared *shared = counted->shared;

        pthread_mutex_lock(&shared->mu);
        if (shared->n_long == 0)
                shared->long_thread = pthread_self();
        assert_true(pthread_equal(shared->long_thread, pthread_self()));
        shared->n_long++;
        pthread_mutex_unlock(&shared->mu);
        return --counted->steps_left > 0 ? HFD_WORK_MORE : HFD_WORK_DONE;
}

static void test_long_steps_run_on_one_thread(void **state) {
        struct shared shared;
        struct counted large[20], small[20];

        shared_init(&shared, 4);
        for (size_t i = 0; i < 20; i++) {
                large[i] = (struct counted){.task = {.step = note_thread_step,
                                                     .owner = hfd_work_owner("a"),
                                                     .long_step = true},
                                            .shared = &shared,
                                            .steps_left = 50};
                assert_true(hfd_work_submit(shared.pool, &large[i].task));
                submit(&shared, &small[i], 's', "b", 5);
        }
        wait_ended(&shared, 20);
        PATIENCE_AWAIT(hfd_work_pending(shared.pool) == 0);
        assert_int_equal(shared.n_long, 20 * 50);
        shared_done(&shared);
}

/* On one thread, tasks with long steps and others take turns. */
static void test_long_and_short_steps_take_turns(void **state) {
        struct shared shared;
        struct counted gate, large[4], small;

        shared_init(&shared, 1);
        close_gate(&shared, &gate);
        for (size_t i = 0; i < 4; i++) {
                large[i] = (struct counted){.task = {.step = count_step,
                                                     .owner = hfd_work_owner("a"),
                                                     .long_step = true},
                                            .shared = &shared,
                                            .letter = 'l',
                                            .steps_left = 1};
                assert_true(hfd_work_submit(shared.pool, &large[i].task));
        }
        submit(&shared, &small, 's', "a", 4);
        open_gate(&shared);
        wait_ended(&shared, 5);
        assert_int_equal(shared.n_order, 8);
        for (size_t i = 0; i + 1 < 8; i++)
                assert_int_not_equal(shared.order[i], shared.order[i + 1]);
        shared_done(&shared);
}

static void test_a_canceled_task_gets_one_last_step(void **state) {
        struct shared shared;
        struct counted gate, task;

        shared_init(&shared, 1);
        close_gate(&shared, &gate);
        submit(&shared, &task, 't', NULL, 1000);
        hfd_work_cancel(&task.task);
        open_gate(&shared);
        wait_ended(&shared, 1);
        assert_int_equal(task.steps, 1); /* the last step, which can send the response */
        assert_true(task.saw_cancel);
        shared_done(&shared);
}

/* A stop gives each queued task one last step, and accepts no further task. */
static void test_a_stop_gives_queued_tasks_a_last_step_and_takes_no_more(void **state) {
        struct shared shared;
        struct counted gate, tasks[20];
        struct counted late = {.task.step = count_step, .shared = &shared};

        shared_init(&shared, 2);
        close_gate(&shared, &gate);
        for (size_t i = 0; i < 20; i++)
                submit(&shared, &tasks[i], 't', i % 2 ? "a" : "b", UINT32_MAX);
        open_gate(&shared);
        hfd_work_pool_stop(shared.pool);
        for (size_t i = 0; i < 20; i++) {
                assert_true(tasks[i].steps > 0);
                assert_true(tasks[i].saw_cancel);
        }
        assert_int_equal(shared.n_ended, 20);
        assert_int_equal(hfd_work_pending(shared.pool), 0);
        assert_false(hfd_work_submit(shared.pool, &late.task));
        assert_int_equal(late.steps, 0);
        shared_done(&shared);
}

/* ---- tasks that are submitted again ---- */

struct again {
        struct hfd_work_task task; /* first */
        struct shared *shared;
        atomic_uint wanted, done; /* requests, and what the steps have seen of them */
        atomic_int running;
};

static enum hfd_work_result again_step(struct hfd_work_task *task) {
        struct again *again = (struct again *)task;

        assert_int_equal(atomic_fetch_add(&again->running, 1), 0); /* steps never overlap */
        unsigned wanted = atomic_load(&again->wanted);
        atomic_fetch_sub(&again->running, 1);
        pthread_mutex_lock(&again->shared->mu);
        atomic_store(&again->done, wanted);
        pthread_cond_broadcast(&again->shared->cond);
        pthread_mutex_unlock(&again->shared->mu);
        return HFD_WORK_IDLE;
}

static void *submit_often(void *ctx) {
        struct again *again = ctx;

        for (int i = 0; i < 5000; i++) {
                atomic_fetch_add(&again->wanted, 1);
                assert_true(hfd_work_submit(again->shared->pool, &again->task));
        }
        return NULL;
}

/* No submit is lost: a step follows each one. */
static void test_a_step_follows_each_submit(void **state) {
        struct shared shared;
        struct again again = {.task.step = again_step, .shared = &shared};
        pthread_t threads[3];

        shared_init(&shared, 3);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(hf__thread_start(&host, "submit", submit_often, &again,
                                                  &threads[i]),
                                 0);
        for (size_t i = 0; i < 3; i++)
                (void)hf__thread_join(threads[i]);
        pthread_mutex_lock(&shared.mu);
        PATIENCE_AWAIT_LOCKED(&shared.cond, &shared.mu, atomic_load(&again.done) == 15000);
        pthread_mutex_unlock(&shared.mu);
        shared_done(&shared);
}

/* struct sched_attr of sched_getattr(2), in its first version. */
struct scheduling {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
};

struct asking {
        struct hfd_work_task task; /* first */
        struct shared *shared;
        struct scheduling scheduling;
};

static enum hfd_work_result ask_scheduling(struct hfd_work_task *task) {
        struct asking *asking = (struct asking *)task;
        struct shared *shared = asking->shared;

        assert_int_equal(syscall(SYS_sched_getattr, 0, &asking->scheduling,
                                 sizeof asking->scheduling, 0),
                         0);
        pthread_mutex_lock(&shared->mu);
        shared->n_ended++;
        pthread_cond_broadcast(&shared->cond);
        pthread_mutex_unlock(&shared->mu);
        return HFD_WORK_DONE;
}

/* By a smaller share of a processor, and, if Linux has that, by a shorter slice. */
static void test_the_threads_give_way_to_others(void **state) {
        struct shared shared;
        struct asking asking = {.task.step = ask_scheduling, .shared = &shared};
        struct scheduling mine = {0};

        assert_int_equal(syscall(SYS_sched_getattr, 0, &mine, sizeof mine, 0), 0);
        shared_init(&shared, 1);
        assert_true(hfd_work_submit(shared.pool, &asking.task));
        wait_ended(&shared, 1);
        shared_done(&shared);
        assert_int_equal(asking.scheduling.nice, 5);
        if (mine.runtime > 0 && mine.policy == SCHED_OTHER) /* since Linux 6.12 */
                assert_int_equal(asking.scheduling.runtime, 100000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_threads_give_way_to_others),
                cmocka_unit_test(test_a_small_task_gets_every_second_turn),
                cmocka_unit_test(test_long_steps_leave_a_thread_to_others),
                cmocka_unit_test(test_long_steps_run_on_one_thread),
                cmocka_unit_test(test_long_and_short_steps_take_turns),
                cmocka_unit_test(test_a_canceled_task_gets_one_last_step),
                cmocka_unit_test(test_a_stop_gives_queued_tasks_a_last_step_and_takes_no_more),
                cmocka_unit_test(test_a_step_follows_each_submit),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
