/* SPDX-License-Identifier: Apache-2.0 */
/* The API over a store whose content is not what it left there: a restored backup, and values that are no objects. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api_box.h"

/* ---- watches ---- */

struct seen {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        size_t n;
        enum hf_event_type last;
        bool ended;
        int error;
};

static void on_event(void *ctx, const struct hf_event *event) {
        struct seen *seen = ctx;

        pthread_mutex_lock(&seen->mu);
        seen->n++;
        seen->last = event->type;
        pthread_cond_signal(&seen->cond);
        pthread_mutex_unlock(&seen->mu);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct seen *seen = ctx;

        pthread_mutex_lock(&seen->mu);
        seen->ended = true;
        seen->error = error;
        pthread_cond_signal(&seen->cond);
        pthread_mutex_unlock(&seen->mu);
}

static void watch(struct box *box, struct seen *seen, const char *revision) {
        struct hf_watch_spec spec = {.resource = workspaces, .resource_version = revision};

        *seen = (struct seen){.mu = PTHREAD_MUTEX_INITIALIZER};
        assert_int_equal(hf_cond_init(&seen->cond), 0);
        assert_int_equal(hf_client_watch(box->client, &spec, on_event, on_end, seen, NULL), 0);
}

/* Until n events have come, or with n = 0 the end. */
static void await(struct seen *seen, size_t n) {
        hf_nsec deadline = hf_now(hf_clock_system()) + 30 * HF_NSEC_PER_SEC;

        pthread_mutex_lock(&seen->mu);
        while (n ? seen->n < n : !seen->ended)
                assert_int_equal(hf_clock_system()->wait(NULL, &seen->cond, &seen->mu, deadline), 0);
        pthread_mutex_unlock(&seen->mu);
}

/* A client that has seen more of the old history than there is of the new one. */
static void test_watch_from_a_lost_history(void **state) {
        struct box *box = *state;
        static struct seen lost;

        watch(box, &lost, "1000000");
        await(&lost, 0);
        assert_int_equal(lost.error, HF_E_GONE);
        assert_int_equal(lost.n, 0);
}

/* What the store has reached, and the cache perhaps not yet, is good. */
static void test_watch_from_an_own_write(void **state) {
        struct box *box = *state;
        static struct seen seen[50];
        char body[80];

        for (int i = 0; i < 50; i++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"w%02d\"}}", i);
                assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, body), 0);
                watch(box, &seen[i], text_at("metadata.resourceVersion"));
        }
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, "{\"metadata\":{\"name\":\"x\"}}"), 0);
        for (size_t i = 0; i < 50; i++)
                await(&seen[i], 50 - i);
        hfd_api_end_watches(box->api);
        for (size_t i = 0; i < 50; i++) {
                await(&seen[i], 0);
                assert_int_equal(seen[i].error, 0);
                assert_int_equal(seen[i].n, 50 - i);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_watch_from_a_lost_history),
                TEST(test_watch_from_an_own_write),
        };
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        free(last.body);
        return failed;
}
