/* SPDX-License-Identifier: Apache-2.0 */
/* When an informer calls a handler with the objects that it has: for a new handler, and at each
 * resync. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/informer.h>

#include "fake_api_client.h"
#include "patience.h"

static const struct hf_host host = {.size = sizeof host};

static struct {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_informer *informer;
} f;

static void make_api(void) {
        f.api = fake_api_new();
        f.client = fake_api_client_new(f.api);
}

static void free_api(void) {
        hf_client_free(&f.client->base);
        fake_api_free(f.api);
}

static void setup(const struct hf_informer_config *extra) {
        make_api();
        struct hf_informer_config config = *extra;
        config.size = sizeof config;
        config.client = &f.client->base;
        config.resource = (struct hf_resource){.group = "", .version = "v1", .plural = "things"};
        assert_int_equal(hf_informer_new(&host, &config, &f.informer), 0);
}

static void start(void) {
        assert_int_equal(hf_informer_start(f.informer), 0);
        assert_int_equal(hf_informer_wait(f.informer, NULL, hf_cancel_never()), 0);
}

static void teardown(void) {
        hf_informer_free(f.informer);
        free_api();
}

static void wait_for(uint64_t revision) {
        char text[24];
        snprintf(text, sizeof text, "%llu", (unsigned long long)revision);
        assert_int_equal(hf_informer_wait(f.informer, text, hf_cancel_never()), 0);
}

/* ---- resync ---- */

static struct {
        pthread_mutex_t mu;
        pthread_cond_t changed;
        unsigned n_added, n_modified, n_others;
} recorded = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void count(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                  const char *object, size_t n) {
        pthread_mutex_lock(&recorded.mu);
        recorded.n_added += type == HF_EVENT_ADDED;
        recorded.n_modified += type == HF_EVENT_MODIFIED;
        recorded.n_others += type != HF_EVENT_ADDED && type != HF_EVENT_MODIFIED;
        pthread_cond_broadcast(&recorded.changed);
        pthread_mutex_unlock(&recorded.mu);
}

static void test_a_resync_calls_handlers_again(void **state) {
        struct hf_informer_handler *handler = NULL;

        setup(&(struct hf_informer_config){.resync = HF_NSEC_PER_MSEC});
        fake_api_put_thing(f.api, "a", "one", "1");
        fake_api_put_thing(f.api, "a", "two", "1");
        start();
        assert_int_equal(hf_informer_add_handler(f.informer, count, NULL, &handler), 0);
        pthread_mutex_lock(&recorded.mu);
        PATIENCE_AWAIT_LOCKED(&recorded.changed, &recorded.mu, recorded.n_modified >= 10);
        assert_int_equal(recorded.n_added, 2);
        assert_int_equal(recorded.n_others, 0);
        pthread_mutex_unlock(&recorded.mu);
        wait_for(fake_api_delete_thing(f.api, "a", "one")); /* events come in between */
        assert_int_equal(hf_informer_count(f.informer), 1);
        hf_informer_remove_handler(f.informer, handler);
        assert_int_equal(recorded.n_others, 1);
        assert_int_equal(fake_api_n_watches(f.api), 1);
        teardown();
}

/* The first resync comes after one period, too. */
static void test_nothing_is_resynced_before_its_time(void **state) {
        struct hf_informer_handler *handler;

        recorded.n_added = recorded.n_modified = recorded.n_others = 0;
        setup(&(struct hf_informer_config){.resync = 3600 * HF_NSEC_PER_SEC});
        assert_int_equal(hf_informer_add_handler(f.informer, count, NULL, &handler), 0);
        fake_api_put_thing(f.api, "a", "one", "1");
        start();
        for (unsigned i = 0; i < 3; i++) {
                char name[8];
                (void)snprintf(name, sizeof name, "n%u", i);
                wait_for(fake_api_put_thing(f.api, "a", name, "1"));
        }
        hf_informer_remove_handler(f.informer, handler);
        assert_int_equal(recorded.n_added, 4);
        assert_int_equal(recorded.n_modified, 0);
        teardown();
}

/* The informer sleeps, and only the new handler wakes it. */
static void test_a_handler_that_comes_later_is_told_at_once(void **state) {
        struct hf_informer_handler *handlers[20];

        recorded.n_added = recorded.n_modified = recorded.n_others = 0;
        setup(&(struct hf_informer_config){0});
        fake_api_put_thing(f.api, "a", "one", "1");
        start();
        fake_api_await_watch(f.api, 1);
        for (unsigned i = 0; i < 20; i++) {
                assert_int_equal(hf_informer_add_handler(f.informer, count, NULL, &handlers[i]), 0);
                pthread_mutex_lock(&recorded.mu);
                PATIENCE_AWAIT_LOCKED(&recorded.changed, &recorded.mu, recorded.n_added == i + 1);
                pthread_mutex_unlock(&recorded.mu);
        }
        for (unsigned i = 0; i < 20; i++)
                hf_informer_remove_handler(f.informer, handlers[i]);
        assert_int_equal(recorded.n_modified + recorded.n_others, 0);
        teardown();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_resync_calls_handlers_again),
                cmocka_unit_test(test_nothing_is_resynced_before_its_time),
                cmocka_unit_test(test_a_handler_that_comes_later_is_told_at_once),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
