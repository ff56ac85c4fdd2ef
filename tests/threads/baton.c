/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a schedule, the baton, the choice of the next thread, and virtual time.
 *
 * Invariant: while baton_run runs, exactly one thread of the schedule has the baton, or is about to
 * give it to the next.
 */
#undef NDEBUG
#include "baton.h"

#include <assert.h>
#include <errno.h>
#include <execinfo.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "baton_private.h"

#define FIRST_NOW  (1000 * HF_NSEC_PER_SEC)
#define MAX_STEPS  1000000 /* a schedule with more counts as endless */
#define MAX_CHANGE 8       /* changes of priority in one schedule */
#define MAX_REAL_S 30      /* real seconds; a schedule takes milliseconds */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *ctx);
int __real_pthread_join(pthread_t thread, void **ret_result);
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

_Thread_local struct baton_thread *baton_self;
const char baton_in_cond[] = "a condition variable";

static struct {
        struct baton_thread *threads[BATON_MAX_THREADS];
        unsigned n_threads;
        hf_nsec now;
        uint64_t choices, numbers; /* the state of two random generators */
        struct baton_result result;
        const char *command;
        bool trace;
        /* how to choose */
        bool has_priorities;
        uint64_t switch_one_in;            /* without priorities */
        uint64_t change_at[MAX_CHANGE];    /* with priorities: at these steps */
        int64_t lowest;                    /* the lowest priority so far */
        uint64_t jump_one_in, wake_one_in; /* 0 = never */
        uint64_t n_jumps;                  /* how often time may still jump */
        bool is_slow;
        const struct baton_thread *running; /* has the baton */
        /* the report of a failure */
        struct baton_thread *reporter;
} s;

/* ---- random numbers ---- */

static uint64_t next_random(uint64_t *state) {
        uint64_t z = *state += 0x9E3779B97F4A7C15u;

        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
}

static uint64_t choose_below(uint64_t n) { return next_random(&s.choices) % n; }
static bool is_one_in(uint64_t n) { return n != 0 && choose_below(n) == 0; }

uint64_t baton_random(uint64_t n) { return next_random(&s.numbers) % n; }
uint64_t baton_random_bits(void) { return next_random(&s.numbers); }
bool baton_is_slow(void) { return s.is_slow; }
unsigned baton_n_threads(void) {
        unsigned n = 0;

        for (unsigned i = 0; i < s.n_threads; i++)
                n += !s.threads[i]->is_joined;
        return n;
}

void baton_be_quick(void) { s.n_jumps = 0; }
hf_nsec baton_now(void) { return s.now; }

/* ---- the baton ---- */

static void give_baton(struct baton_thread *to) {
        s.running = to;
        atomic_store(&to->has_baton, 1);
        (void)syscall(SYS_futex, &to->has_baton, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void await_baton(struct baton_thread *thread) {
        for (;;) {
                while (atomic_load(&thread->has_baton) == 0)
                        (void)syscall(SYS_futex, &thread->has_baton, FUTEX_WAIT_PRIVATE, 0, NULL,
                                      NULL, 0);
                atomic_store(&thread->has_baton, 0);
                if (!s.reporter)
                        return;
                /* The schedule has failed. Only the thread itself can see its stack. */
                thread->n_frames = backtrace(thread->frames, BATON_MAX_FRAMES);
                give_baton(s.reporter);
        }
}

/* ---- failures ---- */

/* Collects the stacks of all threads, one after another, and prints them. */
static _Noreturn void fail(const char *reason) {
        struct baton_thread *self = baton_self;

        if (s.reporter)
                _exit(1); /* the report itself has failed */
        s.reporter = self;
        baton_report_begin(reason, s.command);
        for (unsigned i = 0; i < s.n_threads; i++) {
                struct baton_thread *thread = s.threads[i];
                if (thread == self) {
                        thread->n_frames = backtrace(thread->frames, BATON_MAX_FRAMES);
                } else if (thread->state != BATON_ENDED) {
                        give_baton(thread);
                        while (atomic_load(&self->has_baton) == 0)
                                (void)syscall(SYS_futex, &self->has_baton, FUTEX_WAIT_PRIVATE, 0,
                                              NULL, NULL, 0);
                        atomic_store(&self->has_baton, 0);
                }
        }
        baton_report_threads(s.threads, s.n_threads);
}

void baton_fail(const char *format, ...) {
        char reason[512];
        va_list args;

        va_start(args, format);
        (void)vsnprintf(reason, sizeof reason, format, args);
        va_end(args);
        fail(reason);
}

/* Called when the running thread is in a loop in which it never gives the baton away. The signal
 * may interrupt another thread, so this prints the name in s.running, and no stack. */
static _Noreturn void on_alarm(int number) {
        char reason[64];

        (void)snprintf(reason, sizeof reason, "thread %u, %s, runs without end",
                       s.running ? s.running->number : 0, s.running ? s.running->name : "main");
        baton_report_begin(reason, s.command);
        _exit(1);
}

static void on_signal(int number) {
        if (!baton_self)
                return;
        fail(number == SIGABRT ? "the program aborted itself (see above)" : "a memory fault");
}

static void on_sanitizer(void) {
        if (!s.reporter && s.command)
                baton_report_begin("a sanitizer ends the program (see above)", s.command);
}

/* SA_NODEFER: a fault while the report is printed must end the process. The stack may be broken. */
static void catch_signals(void) {
        const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};

        (void)sigaction(SIGABRT, &action, NULL);
        (void)sigaction(SIGSEGV, &action, NULL);
        (void)sigaction(SIGBUS, &action, NULL);
        (void)sigaction(SIGILL, &action, NULL);
        if (__sanitizer_set_death_callback)
                __sanitizer_set_death_callback(on_sanitizer);
        (void)signal(SIGALRM, on_alarm);
        (void)alarm(MAX_REAL_S);
}

/* ---- choosing ---- */

/* Sets the time to the next one that a thread waits for. False: no thread waits for a time. */
static bool advance_time(void) {
        hf_nsec at = HF_NSEC_NEVER;

        for (unsigned i = 0; i < s.n_threads; i++)
                if (s.threads[i]->state == BATON_BLOCKED && s.threads[i]->until < at)
                        at = s.threads[i]->until;
        if (at == HF_NSEC_NEVER)
                return false;
        if (at > s.now)
                s.now = at;
        for (unsigned i = 0; i < s.n_threads; i++) {
                struct baton_thread *thread = s.threads[i];
                if (thread->state == BATON_BLOCKED && thread->until <= s.now) {
                        thread->state = BATON_RUNNABLE;
                        thread->has_timed_out = true;
                }
        }
        return true;
}

static void wake_without_signal(void) {
        struct baton_thread *thread = s.threads[choose_below(s.n_threads)];

        if (thread->state == BATON_BLOCKED && thread->what == baton_in_cond)
                thread->state = BATON_RUNNABLE;
}

static struct baton_thread *find_highest(void) {
        struct baton_thread *highest = NULL;

        for (unsigned i = 0; i < s.n_threads; i++)
                if (s.threads[i]->state == BATON_RUNNABLE &&
                    (!highest || s.threads[i]->priority > highest->priority))
                        highest = s.threads[i];
        return highest;
}

static struct baton_thread *find_random(void) {
        struct baton_thread *self = baton_self;
        unsigned n = 0;

        if (self->state == BATON_RUNNABLE && !is_one_in(s.switch_one_in))
                return self;
        for (unsigned i = 0; i < s.n_threads; i++)
                n += s.threads[i]->state == BATON_RUNNABLE;
        if (n == 0)
                return NULL;
        uint64_t chosen = choose_below(n);
        for (unsigned i = 0;; i++)
                if (s.threads[i]->state == BATON_RUNNABLE && chosen-- == 0)
                        return s.threads[i];
}

static struct baton_thread *find_next(void) {
        return s.has_priorities ? find_highest() : find_random();
}

static void note_choice(const struct baton_thread *next) {
        s.result.hash = (s.result.hash ^ next->number) * 0x100000001B3u;
        if (next == baton_self)
                return;
        s.result.n_switches++;
        if (s.trace)
                baton_trace(s.result.n_steps, s.now - FIRST_NOW, baton_self, next);
}

static struct baton_thread *choose(void) {
        if (++s.result.n_steps > MAX_STEPS)
                fail("the threads run without end");
        for (unsigned i = 0; s.has_priorities && i < MAX_CHANGE; i++)
                if (s.change_at[i] == s.result.n_steps)
                        baton_self->priority = --s.lowest;
        if (s.n_jumps > 0 && is_one_in(s.jump_one_in)) {
                s.n_jumps--;
                (void)advance_time();
        }
        if (is_one_in(s.wake_one_in))
                wake_without_signal();
        struct baton_thread *next;
        while (!(next = find_next()))
                if (!advance_time())
                        fail("a deadlock: no thread can run, and none waits for a time");
        note_choice(next);
        return next;
}

static void choose_how(void) {
        s.has_priorities = choose_below(2) == 0;
        s.switch_one_in = 2u << choose_below(6);
        uint64_t n_steps = 16u << choose_below(8), n_changes = 1 + choose_below(MAX_CHANGE);
        for (unsigned i = 0; i < MAX_CHANGE; i++)
                s.change_at[i] = i < n_changes ? 1 + choose_below(n_steps) : 0;
        /* Time may jump while threads can run, but only n_jumps times. Without a limit, threads
         * that have work at each time could starve the others. */
        s.is_slow = choose_below(4) == 0;
        s.jump_one_in = 8u << choose_below(6);
        s.n_jumps = s.is_slow ? 1u << choose_below(9) : 0;
        s.wake_one_in = choose_below(4) == 0 ? 64 : 0;
}

/* ---- for the code of a schedule ---- */

void baton_point(void) {
        struct baton_thread *self = baton_self;

        if (!self)
                return;
        struct baton_thread *next = choose();
        if (next == self)
                return;
        give_baton(next);
        await_baton(self);
}

bool baton_block(const void *on, const char *what, hf_nsec until) {
        struct baton_thread *self = baton_self;

        self->on = on;
        self->what = what;
        self->until = until;
        self->has_timed_out = false;
        self->state = BATON_BLOCKED;
        baton_point();
        self->on = NULL;
        return !self->has_timed_out;
}

static bool awaits(const struct baton_thread *thread, const void *on) {
        return thread->state == BATON_BLOCKED && thread->on == on;
}

void baton_wake_all(const void *on) {
        for (unsigned i = 0; i < s.n_threads; i++)
                if (awaits(s.threads[i], on))
                        s.threads[i]->state = BATON_RUNNABLE;
}

/* A signal may also go to a thread whose deadline has passed, but which has not run since. POSIX
 * allows this, and then no other thread gets the signal. */
void baton_wake_one(const void *on) {
        unsigned first = (unsigned)choose_below(s.n_threads);

        for (unsigned i = 0; i < s.n_threads; i++) {
                struct baton_thread *thread = s.threads[(first + i) % s.n_threads];
                if (awaits(thread, on) || (thread->on == on && thread->has_timed_out)) {
                        thread->state = BATON_RUNNABLE;
                        return;
                }
        }
}

bool baton_is_awaited(const void *on) {
        for (unsigned i = 0; i < s.n_threads; i++)
                if (awaits(s.threads[i], on))
                        return true;
        return false;
}

void baton_yield_to_all(void) {
        baton_self->priority = --s.lowest;
        baton_point();
}

/* ---- threads ---- */

static struct baton_thread *new_thread(const char *name, void *(*fn)(void *), void *ctx) {
        struct baton_thread *thread = calloc(1, sizeof *thread);

        assert(thread && s.n_threads < BATON_MAX_THREADS);
        thread->number = s.n_threads;
        thread->fn = fn;
        thread->ctx = ctx;
        thread->priority = (int64_t)choose_below(1000);
        (void)snprintf(thread->name, sizeof thread->name, "%s", name);
        s.threads[s.n_threads++] = thread;
        return thread;
}

/* The library blocks all signals in its threads, but a fault must be reported. */
static void unblock_faults(void) {
        sigset_t faults;

        sigemptyset(&faults);
        sigaddset(&faults, SIGSEGV);
        sigaddset(&faults, SIGBUS);
        sigaddset(&faults, SIGILL);
        (void)pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
}

static void *thread_main(void *ctx) {
        struct baton_thread *thread = ctx;

        unblock_faults();
        baton_self = thread;
        await_baton(thread);
        void *result = thread->fn(thread->ctx);
        thread->state = BATON_ENDED;
        baton_wake_all(thread);
        struct baton_thread *next = choose();
        baton_self = NULL;
        give_baton(next);
        return result;
}

int baton_create(pthread_t *ret_id, const pthread_attr_t *attr, void *(*fn)(void *), void *ctx) {
        struct baton_thread *thread = new_thread("a thread", fn, ctx);
        int error = __real_pthread_create(&thread->id, attr, thread_main, thread);

        assert(error == 0);
        *ret_id = thread->id;
        baton_point();
        return 0;
}

static struct baton_thread *find_thread(pthread_t id) {
        for (unsigned i = 0; i < s.n_threads; i++)
                if (!s.threads[i]->is_joined && pthread_equal(s.threads[i]->id, id))
                        return s.threads[i];
        return NULL;
}

int baton_join(pthread_t id, void **ret_result) {
        struct baton_thread *thread = find_thread(id);

        if (!thread || thread == baton_self)
                baton_fail("a join of a thread that is no other thread of this schedule");
        baton_point();
        while (thread->state != BATON_ENDED)
                (void)baton_block(thread, "the end of a thread", HF_NSEC_NEVER);
        if (thread->is_joined)
                baton_fail("the thread %s is joined twice", thread->name);
        thread->is_joined = true;
        return __real_pthread_join(id, ret_result);
}

void baton_set_name(pthread_t id, const char *name) {
        struct baton_thread *thread = find_thread(id);

        if (thread)
                (void)snprintf(thread->name, sizeof thread->name, "%s", name);
}

/* ---- a schedule ---- */

static void check_nothing_is_left(void) {
        for (unsigned i = 1; i < s.n_threads; i++)
                if (!s.threads[i]->is_joined)
                        baton_fail("the thread %s was not joined", s.threads[i]->name);
        if (baton_n_open() != 0)
                baton_fail("%u descriptors were not closed", baton_n_open());
}

void baton_run(uint64_t seed, bool trace, const char *command, void (*fn)(void),
               struct baton_result *ret_result) {
        assert(!baton_self);
        memset(&s, 0, sizeof s);
        s.now = FIRST_NOW;
        s.command = command;
        s.trace = trace;
        s.choices = seed * 2;
        s.numbers = ~(seed * 2);
        catch_signals();
        choose_how();
        baton_self = new_thread("main", NULL, NULL);
        baton_self->id = pthread_self();
        fn();
        check_nothing_is_left();
        baton_forget_open();
        (void)alarm(0);
        baton_self = NULL;
        for (unsigned i = 0; i < s.n_threads; i++)
                free(s.threads[i]);
        *ret_result = s.result;
}
