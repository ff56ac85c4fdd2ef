/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that waits sleeps until its deadline or a signal. The clock counts the waits: one that
 * returned at once would be repeated thousands of times.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/client_port.h>
#include <holdfast/informer.h>
#include <holdfast/workqueue.h>

#define PAUSE (60 * HF_NSEC_PER_MSEC)
/* The least is 0: on a busy machine the time may be over before the wait begins. */
#define MOST_WAITS 20

static atomic_uint n_waits;

static hf_nsec system_now(void *ctx) { return hf_now(hf_clock_system()); }
static int counting_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex,
                         hf_nsec deadline) {
        const struct hf_clock *system = hf_clock_system();

        atomic_fetch_add(&n_waits, 1);
        return system->wait(system->ctx, cond, mutex, deadline);
}
static const struct hf_clock counting_clock =
        {sizeof counting_clock, system_now, system_now, system_now, counting_wait, NULL};
static const struct hf_host host = {.size = sizeof host, .clock = &counting_clock};

/* ---- a client that never answers, except to a cancellation, or refuses all ---- */

static struct silent {
        struct hf_client client; /* first */
        bool refuses;
        hf_response_fn done;
        void *ctx;
        atomic_uint n_requests, n_cancels;
} silent;

static void answer(hf_response_fn done, void *ctx, int error) {
        struct hf_response response = {.size = sizeof response, .error = error};

        (void)hf_fail(&response.status, error, "no");
        done(ctx, &response);
}
static int silent_request(struct hf_client *self, const struct hf_request *request,
                          hf_response_fn done, void *ctx, uint64_t *ret_id) {
        atomic_fetch_add(&silent.n_requests, 1);
        *ret_id = 7;
        silent.done = done;
        silent.ctx = ctx;
        if (silent.refuses) {
                silent.done = NULL;
                answer(done, ctx, HF_E_UNAVAILABLE);
        }
        return 0;
}
static void silent_cancel(struct hf_client *self, uint64_t id) {
        hf_response_fn done = silent.done;

        assert(id == 7);
        atomic_fetch_add(&silent.n_cancels, 1);
        silent.done = NULL;
        if (done)
                answer(done, silent.ctx, HF_E_CANCELED);
}
static const struct hf_client_ops ops = {.size = sizeof ops,
                                         .request = silent_request,
                                         .cancel = silent_cancel};

static struct hf_client *client_of(bool refuses) {
        silent = (struct silent){.client = {.ops = &ops, .host = &host}, .refuses = refuses};
        atomic_store(&n_waits, 0);
        return &silent.client;
}

static struct hf_cancel *token_for(hf_nsec time) {
        struct hf_cancel *token;

        assert_int_equal(hf_cancel_new(NULL, &counting_clock, &token), 0);
        hf_cancel_set_deadline(token, system_now(NULL) + time);
        return token;
}

/* The caller does not get the response of a request that it has given up, and the request ends. */
static void test_a_request_is_canceled_when_its_caller_gives_up(void **state) {
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_LIST,
                                           .resource = {"", "v1", "things"}};
        struct hf_client *client = client_of(false);
        struct hf_cancel *token = token_for(PAUSE);
        struct hf_status status = {0};
        char *body = NULL;

        assert_int_equal(hf_client_do(client, &request, token, &body, NULL, &status),
                         HF_E_CANCELED);
        assert_string_equal(status.message, "the request was canceled by its token");
        assert_null(body);
        assert_int_equal(silent.n_cancels, 1);
        assert_in_range(n_waits, 0, MOST_WAITS);
        hf_cancel_unref(token);
        client = client_of(true);
        assert_int_equal(hf_client_do(client, &request, hf_cancel_never(), &body, NULL, &status),
                         HF_E_UNAVAILABLE);
        assert_string_equal(status.message, "no");
        assert_int_equal(hf_client_do(client, &request, hf_cancel_never(), &body, NULL, NULL),
                         HF_E_UNAVAILABLE);
        assert_int_equal(silent.n_cancels, 0);
}

static void test_a_worker_sleeps_until_a_key_is_due(void **state) {
        struct hf_workqueue *queue;
        const char *key;

        assert_int_equal(hf_workqueue_new(&host, "q", &queue), 0);
        atomic_store(&n_waits, 0);
        assert_int_equal(hf_workqueue_add_after(queue, "a", PAUSE), 0);
        assert_int_equal(hf_workqueue_take(queue, hf_cancel_never(), &key), 0);
        hf_workqueue_done(queue, key);
        assert_in_range(n_waits, 0, MOST_WAITS);
        hf_workqueue_free(queue);
}

static void test_an_informer_and_its_waiters_sleep(void **state) {
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = client_of(true),
                                                  .resource = {"", "v1", "things"}};
        struct hf_informer *informer;
        struct hf_cancel *token;

        /* The list fails at once, and is tried again after 100 ms. The token's time begins when the
         * informer's thread has begun. */
        assert_int_equal(hf_informer_new(&host, &config, &informer), 0);
        assert_int_equal(hf_informer_start(informer), 0);
        assert_int_equal(hf_informer_start(informer), -EINVAL);
        while (atomic_load(&silent.n_requests) == 0)
                sched_yield();
        token = token_for(PAUSE);
        assert_int_equal(hf_informer_wait(informer, NULL, token), HF_E_CANCELED);
        assert_in_range(n_waits, 0, MOST_WAITS);
        assert_in_range(silent.n_requests, 1, MOST_WAITS);
        hf_informer_free(informer);
        hf_cancel_unref(token);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_request_is_canceled_when_its_caller_gives_up),
                cmocka_unit_test(test_a_worker_sleeps_until_a_key_is_due),
                cmocka_unit_test(test_an_informer_and_its_waiters_sleep),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
