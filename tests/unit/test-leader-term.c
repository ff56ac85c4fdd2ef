/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a term: threads, tokens, restarts, and when it counts as joined. */
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
#include <time.h>

#include <cmocka.h>

#include <holdfast/client_port.h>

#include "base/process_mark.h"
#include "base/thread.h"
#include "leader/term.h"

static const struct hf_host host = {.size = sizeof host};

struct joint {
        pthread_mutex_t mu;
        pthread_cond_t changed;
        int n_joined;
};

static void on_joined(void *ctx) {
        struct joint *joint = ctx;
        pthread_mutex_lock(&joint->mu);
        joint->n_joined++;
        pthread_cond_broadcast(&joint->changed);
        pthread_mutex_unlock(&joint->mu);
}

static void await_joined(struct joint *joint) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + 10 * HF_NSEC_PER_SEC;
        pthread_mutex_lock(&joint->mu);
        while (!joint->n_joined && hf_now(clock) < until)
                (void)clock->wait(clock->ctx, &joint->changed, &joint->mu, until);
        int n = joint->n_joined;
        pthread_mutex_unlock(&joint->mu);
        assert_int_equal(n, 1);
}

static struct hf__term *start_on(const struct hf_host *on, struct joint *joint,
                                 const struct hf_controller *controllers, size_t n) {
        struct hf__term_config config = {.controllers = controllers,
                                         .n_controllers = n,
                                         .runs = HF_LEADER_ONLY,
                                         .label = "ns/name",
                                         .joined = on_joined,
                                         .ctx = joint};
        struct hf__term *work = NULL;
        *joint = (struct joint){.n_joined = 0};
        assert_int_equal(hf__mutex_cond_init(&joint->mu, &joint->changed), 0);
        assert_int_equal(hf__term_new(on, &config, &work), 0);
        return work;
}
static struct hf__term *start(struct joint *joint, const struct hf_controller *controllers,
                              size_t n) {
        return start_on(&host, joint, controllers, n);
}

static int until_drain(struct hf_term *term, void *ctx) {
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        return 0;
}
static int until_abort(struct hf_term *term, void *ctx) {
        assert(hf_term_may_act(term));
        sem_post(ctx);
        (void)hf_cancel_wait(hf_term_abort(term), HF_NSEC_NEVER);
        assert(!hf_term_may_act(term));
        assert(hf_cancel_reason(hf_term_abort(term)) == HF_CANCEL_LOST &&
               hf_cancel_fired(hf_term_drain(term)));
        return 0;
}
static int at_once(struct hf_term *term, void *ctx) {
        atomic_fetch_add((atomic_int *)ctx, 1);
        return 0;
}

static void test_joined_is_reported_only_after_a_drain_or_an_abort(void **state) {
        struct joint joint;
        atomic_int n = 0;
        struct hf_controller controllers[] = {
                {.size = sizeof(struct hf_controller), .name = "a", .run = at_once, .ctx = &n}};
        struct hf__term *work = start(&joint, controllers, 1);
        assert_false(hf__term_is_joined(work)); /* although its only controller may have finished */
        hf__term_fire_drain(work);
        await_joined(&joint);
        hf__term_fire_drain(work);
        hf__term_fire_abort(work, HF_CANCEL_LOST);
        assert_true(hf__term_is_joined(work));
        hf__term_free(work);
        assert_int_equal(joint.n_joined, 1);
        /* if it is drained before the thread runs, it need not start */
        assert_true(atomic_load(&n) <= 1);
}

static void test_a_term_without_controllers_joins_at_its_end(void **state) {
        struct joint joint;
        struct hf__term *work = start(&joint, NULL, 0);
        assert_false(hf__term_is_joined(work));
        hf__term_fire_abort(work, HF_CANCEL_LOST);
        assert_int_equal(joint.n_joined, 1);
        hf__term_free(work);
}

static void test_the_last_one_to_return_is_waited_for_and_named(void **state) {
        struct joint joint;
        const char *name;
        sem_t runs;
        struct hf_controller controllers[] = {{.size = sizeof(struct hf_controller),
                                               .name = "obedient",
                                               .run = until_drain},
                                              {.size = sizeof(struct hf_controller),
                                               .name = "slow",
                                               .run = until_abort,
                                               .ctx = &runs},
                                              {.size = sizeof(struct hf_controller),
                                               .name = "other",
                                               .runs = HF_EVERY_INSTANCE}};
        assert_int_equal(sem_init(&runs, 0, 0), 0);
        /* the third belongs to another class and is not run */
        struct hf__term *work = start(&joint, controllers, 3);
        /* if it is drained before its thread runs, it need not start */
        while (sem_wait(&runs) != 0)
                ;
        hf__term_fire_drain(work);
        assert_false(hf__term_is_joined(work));
        name = hf__term_stuck_name(work);
        /* the first may be about to return */
        assert_true(strcmp(name, "obedient") == 0 || strcmp(name, "slow") == 0);
        hf__term_fire_abort(work, HF_CANCEL_LOST);
        await_joined(&joint);
        name = hf__term_stuck_name(work);
        assert_string_equal(name, "");
        hf__term_free(work);
        sem_destroy(&runs);
}

static void test_an_abort_fires_the_drain_too(void **state) {
        struct joint joint;
        struct hf_controller controllers[] = {
                {.size = sizeof(struct hf_controller), .name = "a", .run = until_drain}};
        struct hf__term *work = start(&joint, controllers, 1);
        hf__term_fire_abort(work, HF_CANCEL_LOST);
        await_joined(&joint);
        hf__term_free(work);
}

static int failing(struct hf_term *term, void *ctx) {
        atomic_fetch_add((atomic_int *)ctx, 1);
        return HF_E_UNAVAILABLE;
}

/* A clock that stands still, so that no pause ends by itself. */
static sem_t pauses;
static hf_nsec stand_still(void *ctx) { return HF_NSEC_PER_SEC; }
static int wait_for_signal(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex,
                           hf_nsec deadline) {
        const struct hf_clock *clock = hf_clock_system();

        assert(deadline > HF_NSEC_PER_SEC && deadline < HF_NSEC_NEVER);
        sem_post(&pauses);
        return clock->wait(clock->ctx, cond, mutex, HF_NSEC_NEVER);
}
static const struct hf_clock standing_clock = {.size = sizeof standing_clock,
                                               .boot = stand_still,
                                               .monotonic = stand_still,
                                               .real = stand_still,
                                               .wait = wait_for_signal};
static const struct hf_host standing_host = {.size = sizeof standing_host,
                                             .clock = &standing_clock};

static void test_a_drain_ends_the_pause_before_a_restart(void **state) {
        struct joint joint;
        struct timespec until = {.tv_sec = time(NULL) + 20};
        atomic_int n = 0;
        struct hf_controller controllers[] = {
                {.size = sizeof(struct hf_controller), .name = "a", .run = failing, .ctx = &n}};
        assert_int_equal(sem_init(&pauses, 0, 0), 0);
        struct hf__term *work = start_on(&standing_host, &joint, controllers, 1);
        assert_int_equal(sem_timedwait(&pauses, &until), 0);
        hf__term_fire_drain(work);
        await_joined(&joint);
        hf__term_free(work);
        assert_int_equal(atomic_load(&n), 1);
        sem_destroy(&pauses);
}

/* ---- a gated term's client ---- */

/*
 * Keeps one request, completes it when it is canceled, and records whether the controllers were
 * aborted before that.
 */
struct keeper {
        struct hf_client base; /* first */
        hf_response_fn done;
        void *ctx;
        struct hf_cancel *abort;
        int n_calls;
        bool aborted_first;
};

static int keep_call(struct hf_client *self, const struct hf_request *request, hf_response_fn done,
                     void *ctx, uint64_t *ret_id) {
        struct keeper *keeper = (struct keeper *)self;
        keeper->done = done;
        keeper->ctx = ctx;
        keeper->n_calls++;
        *ret_id = 7;
        return 0;
}

static void keep_cancel(struct hf_client *self, uint64_t id) {
        struct keeper *keeper = (struct keeper *)self;
        const struct hf_response reply = {.size = sizeof reply, .error = HF_E_CANCELED};
        assert_int_equal(id, 7);
        keeper->aborted_first = hf_cancel_fired(keeper->abort);
        keeper->done(keeper->ctx, &reply);
}

static void record_error(void *ctx, const struct hf_response *reply) { *(int *)ctx = reply->error; }

/* The thread of the test uses the client of the term, which the controller passes on. */
struct shown {
        sem_t ready;
        struct hf_term *term;
};

static int show(struct hf_term *term, void *ctx) {
        struct shown *shown = ctx;
        shown->term = term;
        sem_post(&shown->ready);
        (void)hf_cancel_wait(hf_term_abort(term), HF_NSEC_NEVER);
        while (sem_wait(&shown->ready) != 0)
                ;
        return 0;
}

static const struct hf_request a_write = {.size = sizeof a_write,
                                          .verb = HF_VERB_DELETE,
                                          .resource = {"", "v1", "configmaps"},
                                          .ns = "a",
                                          .name = "b"};

static void test_an_abort_shuts_the_gate_before_controllers_notice(void **state) {
        static const struct hf_client_ops ops = {.size = sizeof ops,
                                                 .request = keep_call,
                                                 .cancel = keep_cancel};
        struct keeper keeper = {.base = {.ops = &ops, .host = &host}};
        struct hf__gate gate = {0};
        struct joint joint = {.n_joined = 0};
        struct shown shown = {.term = NULL};
        struct hf__term *work = NULL;
        const struct hf_controller controllers[] = {
                {.size = sizeof(struct hf_controller), .name = "a", .run = show, .ctx = &shown}};
        struct hf__term_config config = {
                .controllers = controllers,
                .n_controllers = 1,
                .runs = HF_LEADER_ONLY,
                .label = "ns/name",
                .client = {.inner = &keeper.base,
                           .gate = &gate,
                           .fence = {.ns = "a", .name = "b", .identity = "c", .term = 5}},
                .joined = on_joined,
                .ctx = &joint,
        };
        int error = -1;

        assert_int_equal(hf__mutex_cond_init(&joint.mu, &joint.changed), 0);
        assert_int_equal(sem_init(&shown.ready, 0, 0), 0);
        /* The gate is open all the time, so only the end of the term rejects writes. */
        assert_int_equal(hf__process_mark_init(), 0);
        hf__gate_open(&gate, HF_NSEC_NEVER);
        assert_int_equal(hf__term_new(&host, &config, &work), 0);
        while (sem_wait(&shown.ready) != 0)
                ;
        keeper.abort = hf_term_abort(shown.term);
        assert_int_equal(hf_client_request(hf_term_client(shown.term), &a_write, record_error,
                                           &error, NULL),
                         0);
        assert_int_equal(error, -1);
        hf__term_fire_abort(work, HF_CANCEL_LOST);
        assert_int_equal(error, HF_E_CANCELED); /* the request under way */
        assert_false(keeper.aborted_first);
        assert_int_equal(hf_client_request(hf_term_client(shown.term), &a_write, record_error,
                                           &error, NULL),
                         0);
        assert_int_equal(error, HF_E_NOT_LEADER);
        assert_int_equal(keeper.n_calls, 1);
        assert_false(hf_term_may_act(shown.term)); /* although the gate is open */
        sem_post(&shown.ready);
        await_joined(&joint);
        hf__term_free(work);
        sem_destroy(&shown.ready);
}

/* ---- order ---- */

/* The order of events: "+a" begins, "!a" reports its start, "-a" returns. */
struct history {
        pthread_mutex_t mu;
        pthread_cond_t changed;
        char text[256];
};

static struct history history = {.mu = PTHREAD_MUTEX_INITIALIZER};

static void record(const char *what, const char *name) {
        pthread_mutex_lock(&history.mu);
        strcat(strcat(history.text, what), name);
        pthread_cond_broadcast(&history.changed);
        pthread_mutex_unlock(&history.mu);
}

/* Waits until the history has all words of `text`, each of which ends with a space. */
static void await_words(const char *text) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + 10 * HF_NSEC_PER_SEC;
        char word[16];
        pthread_mutex_lock(&history.mu);
        for (const char *p = text; *p; p += strcspn(p, " ") + 1) {
                memcpy(word, p, strcspn(p, " "));
                word[strcspn(p, " ")] = '\0';
                while (!strstr(history.text, word) && hf_now(clock) < until)
                        (void)clock->wait(clock->ctx, &history.changed, &history.mu, until);
        }
        pthread_mutex_unlock(&history.mu);
}

static void expect_history(const char *text) {
        pthread_mutex_lock(&history.mu);
        assert_string_equal(history.text, text);
        pthread_mutex_unlock(&history.mu);
}

static size_t place_of(const char *word) {
        const char *at = strstr(history.text, word);
        assert_non_null(at);
        return (size_t)(at - history.text);
}

static void forget_history(void) {
        (void)hf_cond_init(&history.changed);
        history.text[0] = '\0';
}

/* ctx: its name. Reports its start at once, and runs until it is drained. */
static int orderly(struct hf_term *term, void *ctx) {
        record("+", ctx);
        record("!", ctx);
        hf_term_started(term);
        hf_term_started(term);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        record("-", ctx);
        return 0;
}

/* A controller whose context is its name. */
static struct hf_controller part(const char *name, int (*run)(struct hf_term *term, void *ctx),
                                 const char *const *after) {
        return (struct hf_controller){.size = sizeof(struct hf_controller),
                                      .name = name,
                                      .run = run,
                                      .ctx = (void *)(uintptr_t)name,
                                      .after = after};
}

static const char *const after_a[] = {"a", NULL}, *const after_b[] = {"b", NULL},
                         *const after_b_c[] = {"b", "c", NULL};

/* a first, then b and c, then d; written in another order. */
static void test_controllers_start_in_order_and_drain_in_reverse(void **state) {
        struct joint joint;
        struct hf_controller controllers[] = {
                part("d", orderly, after_b_c),
                part("b", orderly, after_a),
                part("c", orderly, after_a),
                part("a", orderly, NULL),
        };
        forget_history();
        struct hf__term *work = start(&joint, controllers, 4);
        await_words("!d ");
        hf__term_fire_drain(work);
        await_joined(&joint);
        hf__term_free(work);
        assert_int_equal(place_of("!a"), 2);
        assert_true(place_of("!a") < place_of("+b") && place_of("!a") < place_of("+c"));
        assert_true(place_of("!b") < place_of("+d") && place_of("!c") < place_of("+d"));
        assert_true(place_of("!d") < place_of("-d") && place_of("-d") < place_of("-b") &&
                    place_of("-d") < place_of("-c"));
        assert_true(place_of("-b") < place_of("-a") && place_of("-c") < place_of("-a"));
}

static int finishes(struct hf_term *term, void *ctx) {
        record("+", ctx);
        record("-", ctx);
        return 0;
}

static void test_a_controller_that_returned_0_counts_as_started_and_drained(void **state) {
        struct joint joint;
        struct hf_controller controllers[] = {part("b", orderly, after_a),
                                              part("a", finishes, NULL)};
        forget_history();
        struct hf__term *work = start(&joint, controllers, 2);
        await_words("!b ");
        hf__term_fire_drain(work);
        await_joined(&joint);
        hf__term_free(work);
        expect_history("+a-a+b!b-b");
}

/*
 * Fails in its first two runs before it reports its start. Then it starts, fails once more, and
 * runs on.
 */
static int struggles(struct hf_term *term, void *ctx) {
        atomic_int *n = ctx;
        int run = atomic_fetch_add(n, 1);
        record("+", "a");
        if (run < 2)
                return HF_E_UNAVAILABLE;
        if (run == 2) {
                record("!", "a");
                hf_term_started(term);
                await_words("!b ");
                return HF_E_UNAVAILABLE;
        }
        record("#", "a");
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        record("-", "a");
        return 0;
}

static void test_a_failing_controller_blocks_others_only_before_its_start(void **state) {
        struct joint joint;
        atomic_int n = 0;
        struct hf_controller controllers[] =
                {{.size = sizeof(struct hf_controller), .name = "a", .run = struggles, .ctx = &n},
                 part("b", orderly, after_a)};
        forget_history();
        struct hf__term *work = start(&joint, controllers, 2);
        await_words("#a ");
        hf__term_fire_drain(work);
        await_joined(&joint);
        hf__term_free(work);
        expect_history("+a+a+a!a+b!b+a#a-b-a"); /* b ran on while a was down */
}

/* Never reports its start. ctx: its name. */
static int hesitates(struct hf_term *term, void *ctx) {
        record("+", ctx);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        record("-", ctx);
        return 0;
}

static bool is_said_to_be_settled(void *ctx) { return strcmp(ctx, "a") == 0; }

/* It never calls hf_term_started, but it is still drained last. */
static void test_a_settled_controller_blocks_nobody(void **state) {
        struct joint joint;
        struct hf_controller controllers[] = {{.size = sizeof(struct hf_controller),
                                               .name = "a",
                                               .run = hesitates,
                                               .ctx = (void *)"a",
                                               .is_settled = is_said_to_be_settled},
                                              {.size = sizeof(struct hf_controller),
                                               .name = "b",
                                               .run = orderly,
                                               .ctx = (void *)"b",
                                               .after = after_a,
                                               .is_settled = is_said_to_be_settled}};
        forget_history();
        struct hf__term *work = start(&joint, controllers, 2);
        await_words("+a ");
        await_words("!b ");
        hf__term_fire_drain(work);
        await_joined(&joint);
        hf__term_free(work);
        assert_true(place_of("-b") < place_of("-a"));
}

static void test_the_drain_skips_controllers_that_never_began(void **state) {
        struct joint joint;
        struct hf_controller controllers[] = {part("a", hesitates, NULL),
                                              part("b", orderly, after_a),
                                              part("c", orderly, after_b)};
        forget_history();
        struct hf__term *work = start(&joint, controllers, 3);
        await_words("+a ");
        hf__term_fire_drain(work);
        await_joined(&joint);
        hf__term_free(work);
        expect_history("+a-a");
}

/* Ignores its drain. ctx: its name. */
static int lingers(struct hf_term *term, void *ctx) {
        record("+", ctx);
        hf_term_started(term);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        record("~", ctx);
        (void)hf_cancel_wait(hf_term_abort(term), HF_NSEC_NEVER);
        await_words("-a ");
        record("-", ctx);
        return 0;
}

static void test_an_abort_reaches_all_controllers_at_once(void **state) {
        struct joint joint;
        const char *name;
        struct hf_controller controllers[] = {part("a", orderly, NULL),
                                              part("b", lingers, after_a)};
        forget_history();
        struct hf__term *work = start(&joint, controllers, 2);
        await_words("+b ");
        hf__term_fire_drain(work);
        await_words("~b ");
        name = hf__term_stuck_name(work);
        assert_string_equal(name, "a"); /* it waits for b, which has not returned */
        hf__term_fire_abort(work, HF_CANCEL_LOST);
        await_joined(&joint);
        hf__term_free(work);
        expect_history("+a!a+b~b-a-b"); /* a no longer waited for b */
}

/* Every interleaving of starts, returns and the drain ends, whoever is last. */
static void test_a_drain_at_any_point_of_the_start_ends(void **state) {
        for (int round = 0; round < 300; round++) {
                struct joint joint;
                atomic_int n = 0;
                struct hf_controller controllers[] = {{.size = sizeof(struct hf_controller),
                                                       .name = "d",
                                                       .run = at_once,
                                                       .ctx = &n,
                                                       .after = after_b_c},
                                                      {.size = sizeof(struct hf_controller),
                                                       .name = "b",
                                                       .run = until_drain,
                                                       .after = after_a},
                                                      {.size = sizeof(struct hf_controller),
                                                       .name = "c",
                                                       .run = at_once,
                                                       .ctx = &n,
                                                       .after = after_a},
                                                      {.size = sizeof(struct hf_controller),
                                                       .name = "a",
                                                       .run = at_once,
                                                       .ctx = &n}};
                struct hf__term *work = start(&joint, controllers, 4);
                for (int i = 0; i < round * 50; i++)
                        atomic_load(&n); /* a little later each time */
                hf__term_fire_drain(work);
                await_joined(&joint);
                hf__term_free(work);
        }
}

/* ---- a term that is prepared ---- */

static const struct hf_controller four[] = {
        {.size = sizeof(struct hf_controller), .name = "d", .run = orderly, .ctx = (void *)"d"},
        {.size = sizeof(struct hf_controller), .name = "c", .run = orderly, .ctx = (void *)"c"},
        {.size = sizeof(struct hf_controller),
         .name = "b",
         .run = orderly,
         .ctx = (void *)"b",
         .after = after_a},
        {.size = sizeof(struct hf_controller), .name = "a", .run = orderly, .ctx = (void *)"a"},
};

static struct hf__term_config config_of_four(struct joint *joint) {
        *joint = (struct joint){.n_joined = 0};
        assert_int_equal(hf__mutex_cond_init(&joint->mu, &joint->changed), 0);
        return (struct hf__term_config){.controllers = four,
                                        .n_controllers = 4,
                                        .runs = HF_LEADER_ONLY,
                                        .label = "ns/name",
                                        .joined = on_joined,
                                        .ctx = joint};
}

static void test_a_prepared_term_may_begin(void **state) {
        struct joint joint;
        struct hf__term_config config = config_of_four(&joint);
        struct hf__term *work = NULL;

        forget_history();
        assert_int_equal(hf__term_prepare(&host, &config, &work), 0);
        record("begin", "");
        config.acquired_at = "17";
        assert_int_equal(hf__term_begin(work, &config), 0);
        await_words("!a !b !c !d ");
        hf__term_fire_drain(work);
        await_joined(&joint);
        hf__term_free(work);
        assert_int_equal(place_of("begin"), 0);
        assert_true(place_of("!a") < place_of("+b") && place_of("-b") < place_of("-a"));
}

/* In each round the threads have had a little more time when the term is freed. */
static void test_a_prepared_term_that_never_begins_runs_nothing(void **state) {
        atomic_int n = 0;

        forget_history();
        for (int round = 0; round < 100; round++) {
                struct joint joint;
                const struct hf__term_config config = config_of_four(&joint);
                struct hf__term *work = NULL;
                assert_int_equal(hf__term_prepare(&host, &config, &work), 0);
                for (int i = 0; i < round * 500; i++)
                        atomic_load(&n);
                hf__term_free(work);
                assert_int_equal(joint.n_joined, 0);
        }
        expect_history("");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_joined_is_reported_only_after_a_drain_or_an_abort),
                cmocka_unit_test(test_a_term_without_controllers_joins_at_its_end),
                cmocka_unit_test(test_the_last_one_to_return_is_waited_for_and_named),
                cmocka_unit_test(test_an_abort_fires_the_drain_too),
                cmocka_unit_test(test_an_abort_shuts_the_gate_before_controllers_notice),
                cmocka_unit_test(test_a_drain_ends_the_pause_before_a_restart),
                cmocka_unit_test(test_controllers_start_in_order_and_drain_in_reverse),
                cmocka_unit_test(test_a_controller_that_returned_0_counts_as_started_and_drained),
                cmocka_unit_test(test_a_failing_controller_blocks_others_only_before_its_start),
                cmocka_unit_test(test_a_settled_controller_blocks_nobody),
                cmocka_unit_test(test_the_drain_skips_controllers_that_never_began),
                cmocka_unit_test(test_an_abort_reaches_all_controllers_at_once),
                cmocka_unit_test(test_a_drain_at_any_point_of_the_start_ends),
                cmocka_unit_test(test_a_prepared_term_may_begin),
                cmocka_unit_test(test_a_prepared_term_that_never_begins_runs_nothing),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
