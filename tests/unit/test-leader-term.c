/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a term: threads, tokens, restart, and when it counts as joined. */
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

#include <holdfast/client_port.h>

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

static struct hf_term *start(struct joint *joint, const struct hf_controller *controllers, size_t n) {
        struct hf__term_config config = {.controllers = controllers,
                                         .n_controllers = n,
                                         .class = HF_LEADER_ONLY,
                                         .label = "ns/name",
                                         .joined = on_joined,
                                         .ctx = joint};
        struct hf_term *term = NULL;
        *joint = (struct joint){.n_joined = 0};
        pthread_mutex_init(&joint->mu, NULL);
        hf_cond_init(&joint->changed);
        assert_int_equal(hf__term_new(&host, &config, &term), 0);
        assert_true(hf__term_is_complete(term));
        return term;
}

static int until_drain(struct hf_term *term, void *ctx) {
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        return 0;
}
static int until_abort(struct hf_term *term, void *ctx) {
        sem_post(ctx);
        (void)hf_cancel_wait(hf_term_abort(term), HF_NSEC_NEVER);
        return 0;
}
static int at_once(struct hf_term *term, void *ctx) {
        atomic_fetch_add((atomic_int *)ctx, 1);
        return 0;
}

static void test_joined_comes_only_after_an_end_was_asked_for(void **state) {
        struct joint joint;
        atomic_int n = 0;
        struct hf_controller controllers[] = {{.name = "a", .run = at_once, .ctx = &n}};
        struct hf_term *term = start(&joint, controllers, 1);
        assert_false(hf__term_is_joined(term)); /* though its only controller may have finished */
        hf__term_fire_drain(term);
        await_joined(&joint);
        hf__term_fire_drain(term);
        hf__term_fire_abort(term, HF_CANCEL_LOST);
        assert_true(hf__term_is_joined(term));
        hf__term_free(term);
        assert_int_equal(joint.n_joined, 1);
        assert_true(atomic_load(&n) <= 1); /* a drain before the thread ran: it need not start */
}

static void test_a_term_without_controllers_joins_at_its_end(void **state) {
        struct joint joint;
        struct hf_term *term = start(&joint, NULL, 0);
        assert_false(hf__term_is_joined(term));
        hf__term_fire_abort(term, HF_CANCEL_LOST);
        assert_int_equal(joint.n_joined, 1);
        hf__term_free(term);
}

static void test_the_last_one_to_return_is_waited_for_and_named(void **state) {
        struct joint joint;
        char name[64];
        sem_t runs;
        struct hf_controller controllers[] = {{.name = "obedient", .run = until_drain},
                                              {.name = "slow", .run = until_abort, .ctx = &runs},
                                              {.name = "other", .class = HF_EVERY_INSTANCE}};
        assert_int_equal(sem_init(&runs, 0, 0), 0);
        struct hf_term *term = start(&joint, controllers, 3); /* the third is of another class: not run */
        while (sem_wait(&runs) != 0)                          /* drained before its thread ran, it need not start */
                ;
        hf__term_fire_drain(term);
        assert_false(hf__term_is_joined(term));
        assert_true(hf_term_may_act(term));
        hf__term_stuck_name(term, name, sizeof name);
        assert_true(strcmp(name, "obedient") == 0 || strcmp(name, "slow") == 0); /* the first may be on its way out */
        hf__term_fire_abort(term, HF_CANCEL_LOST);
        assert_false(hf_term_may_act(term));
        assert_int_equal(hf_cancel_reason(hf_term_abort(term)), HF_CANCEL_LOST);
        await_joined(&joint);
        hf__term_stuck_name(term, name, sizeof name);
        assert_string_equal(name, "");
        hf__term_free(term);
        sem_destroy(&runs);
}

static void test_an_abort_fires_the_drain_too(void **state) {
        struct joint joint;
        struct hf_controller controllers[] = {{.name = "a", .run = until_drain}};
        struct hf_term *term = start(&joint, controllers, 1);
        hf__term_fire_abort(term, HF_CANCEL_LOST);
        await_joined(&joint);
        hf__term_free(term);
}

static int failing(struct hf_term *term, void *ctx) {
        atomic_fetch_add((atomic_int *)ctx, 1);
        return HF_E_UNAVAILABLE;
}

static void test_a_drain_ends_the_pause_before_a_restart(void **state) {
        struct joint joint;
        atomic_int n = 0;
        struct hf_controller controllers[] = {{.name = "a", .run = failing, .ctx = &n}};
        struct hf_term *term = start(&joint, controllers, 1);
        hf__term_fire_drain(term);
        await_joined(&joint);
        hf__term_free(term);
        assert_true(atomic_load(&n) <= 1);
}

/* ---- a gated term's client ---- */

/* Keeps one call, answers it when it is cancelled, and notes whether the controllers had been told by then. */
struct keeper {
        struct hf_client base; /* first */
        hf_reply_fn done;
        void *ctx;
        struct hf_cancel *abort;
        int n_calls;
        bool told_first;
};

static int keep_call(struct hf_client *self, const struct hf_call *call, hf_reply_fn done, void *ctx, uint64_t *ret_id) {
        struct keeper *keeper = (struct keeper *)self;
        keeper->done = done;
        keeper->ctx = ctx;
        keeper->n_calls++;
        *ret_id = 7;
        return 0;
}

static void keep_cancel(struct hf_client *self, uint64_t id) {
        struct keeper *keeper = (struct keeper *)self;
        const struct hf_reply reply = {.error = HF_E_CANCELED};
        assert_int_equal(id, 7);
        keeper->told_first = hf_cancel_fired(keeper->abort);
        keeper->done(keeper->ctx, &reply);
}

static void note_reply(void *ctx, const struct hf_reply *reply) { *(int *)ctx = reply->error; }

static void test_an_abort_refuses_before_the_controllers_hear_of_it(void **state) {
        static const struct hf_client_ops ops = {.call = keep_call, .cancel = keep_cancel};
        struct keeper keeper = {.base = {.ops = &ops, .host = &host}};
        struct hf__gate gate = {0};
        struct joint joint = {.n_joined = 0};
        struct hf_term *term = NULL;
        struct hf__term_config config = {
                .class = HF_LEADER_ONLY,
                .label = "ns/name",
                .client = {.inner = &keeper.base, .gate = &gate, .fence = {.ns = "a", .name = "b", .identity = "c", .term = 5}},
                .joined = on_joined,
                .ctx = &joint,
        };
        const struct hf_call write = {.verb = HF_VERB_DELETE, .resource = {"", "v1", "configmaps"}, .ns = "a", .name = "b"};
        int error = -1;
        pthread_mutex_init(&joint.mu, NULL);
        hf_cond_init(&joint.changed);
        hf__gate_open(&gate, HF_NSEC_NEVER); /* it is open throughout: the term's end alone refuses */
        assert_int_equal(hf__term_new(&host, &config, &term), 0);
        keeper.abort = hf_term_abort(term);
        assert_int_equal(hf_client_call(hf_term_client(term), &write, note_reply, &error, NULL), 0);
        assert_int_equal(error, -1);
        hf__term_fire_abort(term, HF_CANCEL_LOST);
        assert_int_equal(error, HF_E_CANCELED); /* what was under way */
        assert_false(keeper.told_first);
        assert_int_equal(hf_client_call(hf_term_client(term), &write, note_reply, &error, NULL), 0);
        assert_int_equal(error, HF_E_NOT_LEADER);
        assert_int_equal(keeper.n_calls, 1);
        assert_false(hf_term_may_act(term)); /* though the gate is open */
        hf__term_free(term);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_joined_comes_only_after_an_end_was_asked_for),
                cmocka_unit_test(test_a_term_without_controllers_joins_at_its_end),
                cmocka_unit_test(test_the_last_one_to_return_is_waited_for_and_named),
                cmocka_unit_test(test_an_abort_fires_the_drain_too),
                cmocka_unit_test(test_an_abort_refuses_before_the_controllers_hear_of_it),
                cmocka_unit_test(test_a_drain_ends_the_pause_before_a_restart),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
