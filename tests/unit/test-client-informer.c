/* SPDX-License-Identifier: Apache-2.0 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/informer.h>

#include "api-fake.c"
#include "client/informer_handlers.h"
#include "client/informer_private.h"

static const struct hf_host host = {.size = sizeof host};

/* What a handler was told: the events as one text, and the state they add up to. */
struct told {
        pthread_mutex_t mu;
        char text[1 << 16];
        size_t n;
        unsigned n_events;
        char state[64][80]; /* "ns/name" while it is there */
        bool wrong;         /* an ADDED of what is there, or another event of what is not */
};

static void told_handler(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                         const char *object, size_t n) {
        static const char signs[] =
                {[HF_EVENT_ADDED] = '+', [HF_EVENT_MODIFIED] = '~', [HF_EVENT_DELETED] = '-'};
        struct told *told = ctx;
        char key[80];
        size_t place = 64;

        snprintf(key, sizeof key, "%s/%s", ns, name);
        pthread_mutex_lock(&told->mu);
        for (size_t i = 0; i < 64; i++)
                if (strcmp(told->state[i], key) == 0)
                        place = i;
        told->wrong = told->wrong || (type == HF_EVENT_ADDED) != (place == 64) ||
                      !memmem(object, n, name, strlen(name));
        for (size_t i = 0; place == 64 && i < 64; i++)
                if (!told->state[i][0])
                        place = i;
        assert(place < 64);
        if (type == HF_EVENT_DELETED)
                told->state[place][0] = '\0';
        else
                strcpy(told->state[place], key);
        told->n_events++;
        if (told->n + sizeof key + 4 < sizeof told->text)
                told->n += (size_t)snprintf(told->text + told->n, sizeof told->text - told->n,
                                            "%c%s ", signs[type], key);
        pthread_mutex_unlock(&told->mu);
}

static void assert_told(struct told *told, const char *text) {
        pthread_mutex_lock(&told->mu);
        assert_string_equal(told->text, text);
        assert_false(told->wrong);
        pthread_mutex_unlock(&told->mu);
}

struct world {
        struct api_fake *fake;
        struct hf_client *client;
        struct hf_informer *informer;
        struct told told;
};

static void setup_with(struct world *w, bool one_revision) {
        memset(w, 0, sizeof *w);
        pthread_mutex_init(&w->told.mu, NULL);
        w->fake = api_fake_new(&host);
        w->client = api_fake_client(w->fake);
        const struct hf_informer_config config = {
                .size = sizeof config,
                .client = w->client,
                .resource = {.group = "", .version = "v1", .plural = "things"},
                .query = one_revision ? "labelSelector=x" : NULL,
                .one_revision = one_revision,
        };
        assert_int_equal(hf_informer_new(&host, &config, &w->informer), 0);
}

static void setup(struct world *w) { setup_with(w, false); }

static void teardown(struct world *w) {
        hf_informer_free(w->informer);
        hf_client_free(w->client);
        pthread_mutex_destroy(&w->told.mu);
}

static void wait_for(struct world *w, uint64_t revision) {
        char text[24];
        snprintf(text, sizeof text, "%llu", (unsigned long long)revision);
        assert_int_equal(hf_informer_wait(w->informer, revision ? text : NULL, hf_cancel_never()),
                         0);
}

static struct world w;

static void test_it_lists_then_watches(void **state) {
        struct hf_informer_handler *handler = NULL;
        char *object = NULL;
        size_t n = 0;

        setup(&w);
        api_fake_put(w.fake, "a", "one", "1");
        api_fake_put(w.fake, "", "cluster", "1");
        assert_false(hf_informer_synced(w.informer));
        assert_int_equal(hf_informer_add_handler(w.informer, told_handler, &w.told, &handler), 0);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(&w, 0);
        assert_true(hf_informer_synced(w.informer));
        assert_int_equal(hf_informer_count(w.informer), 2);
        wait_for(&w, api_fake_put(w.fake, "b", "two", "2"));
        wait_for(&w, api_fake_put(w.fake, "a", "one", "3"));
        assert_int_equal(hf_informer_get(w.informer, "a", "one", &object, &n), 0);
        assert_int_equal(strlen(object), n);
        assert_non_null(strstr(object, "\"v\":\"3\""));
        free(object);
        assert_int_equal(hf_informer_get(w.informer, "", "cluster", &object, &n), 0);
        free(object);
        wait_for(&w, api_fake_delete(w.fake, "a", "one"));
        assert_int_equal(hf_informer_get(w.informer, "a", "one", &object, &n), HF_E_NOT_FOUND);
        assert_told(&w.told, "+a/one +/cluster +b/two ~a/one -a/one ");
        hf_informer_remove_handler(w.informer, handler);
        teardown(&w);
}

static void test_a_new_handler_gets_what_is_there(void **state) {
        struct hf_informer_handler *handler = NULL;

        setup(&w);
        for (int i = 0; i < 3; i++) {
                char name[8];
                snprintf(name, sizeof name, "n%d", i);
                api_fake_put(w.fake, "a", name, "1");
        }
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(&w, 0);
        assert_int_equal(hf_informer_add_handler(w.informer, told_handler, &w.told, &handler), 0);
        assert_int_equal(hf_informer_n_handlers(w.informer), 1);
        wait_for(&w, api_fake_delete(w.fake, "a", "n1")); /* told after the replay */
        assert_told(&w.told, "+a/n0 +a/n1 +a/n2 -a/n1 ");
        hf_informer_remove_handler(w.informer, handler);
        assert_int_equal(hf_informer_n_handlers(w.informer), 0);
        wait_for(&w, api_fake_put(w.fake, "a", "later", "1"));
        assert_told(&w.told, "+a/n0 +a/n1 +a/n2 -a/n1 ");
        teardown(&w);
}

static void test_a_quiet_collection_learns_its_revision(void **state) {
        setup(&w);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(&w, 0);
        wait_for(&w, api_fake_other_writes(w.fake, 10));
        assert_int_equal(api_fake_n_lists(w.fake), 2);
        api_fake_await_watch(w.fake, 1);
        assert_int_equal(api_fake_n_watches(w.fake), 1); /* the watch goes on */
        teardown(&w);
}

/* A list for who waits names the revision where the server's collections share one; the first list
 * and one after a failure do not. */
static void test_a_probe_names_a_shared_revision(void **state) {
        char query[160], expected[160];

        setup_with(&w, true);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(&w, 0);
        api_fake_last_query(w.fake, query);
        assert_string_equal(query, "labelSelector=x&limit=500");
        api_fake_await_watch(w.fake, 1);
        uint64_t revision = api_fake_other_writes(w.fake, 10);
        wait_for(&w, revision);
        api_fake_last_query(w.fake, query);
        snprintf(expected, sizeof expected,
                 "labelSelector=x&limit=500&resourceVersion=%llu&resourceVersionMatch=NotOlderThan",
                 (unsigned long long)revision);
        assert_string_equal(query, expected);
        api_fake_fail_lists(w.fake, 1, HF_E_TIMEOUT);
        wait_for(&w, api_fake_other_writes(w.fake, 10));
        api_fake_last_query(w.fake, query);
        assert_string_equal(query, "labelSelector=x&limit=500");
        teardown(&w);
}

static void test_a_probe_overtakes_a_slow_watch(void **state) {
        struct hf_informer_handler *handler = NULL;

        setup(&w);
        api_fake_put(w.fake, "a", "old", "1");
        assert_int_equal(hf_informer_add_handler(w.informer, told_handler, &w.told, &handler), 0);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(&w, 0);
        api_fake_await_watch(w.fake, 1);
        api_fake_mute_watches(w.fake, true);
        api_fake_put(w.fake, "a", "new", "1");
        api_fake_put(w.fake, "a", "new", "2");
        wait_for(&w, api_fake_delete(w.fake, "a", "old"));
        assert_told(&w.told, "+a/old +a/new -a/old ");
        api_fake_mute_watches(w.fake, false); /* the late events of the above say nothing new */
        wait_for(&w, api_fake_put(w.fake, "a", "new", "3"));
        assert_told(&w.told, "+a/old +a/new -a/old ~a/new ");
        teardown(&w);
}

static void test_an_ended_watch_goes_on_where_it_was(void **state) {
        struct hf_informer_handler *handler = NULL;

        setup(&w);
        assert_int_equal(hf_informer_add_handler(w.informer, told_handler, &w.told, &handler), 0);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(&w, 0);
        api_fake_await_watch(w.fake, 1);
        api_fake_other_writes(w.fake, 5);
        api_fake_bookmark(w.fake);
        api_fake_put(w.fake, "a", "one", "1");
        api_fake_end_watches(w.fake, 0);
        api_fake_await_watch(w.fake, 2);
        api_fake_put(w.fake, "a", "two", "1");
        api_fake_end_watches(w.fake, HF_E_TIMEOUT);
        api_fake_await_watch(w.fake, 3);
        api_fake_put(w.fake, "a", "three", "1");
        struct told *told = &w.told;
        for (bool done = false; !done;) { /* without hf_informer_wait, which might list */
                pthread_mutex_lock(&told->mu);
                done = told->n_events == 3;
                pthread_mutex_unlock(&told->mu);
                if (!done)
                        sched_yield();
        }
        assert_told(&w.told, "+a/one +a/two +a/three ");
        assert_int_equal(api_fake_n_lists(w.fake), 1);
        teardown(&w);
}

static void test_lost_history_is_listed_again(void **state) {
        struct hf_informer_handler *handler = NULL;

        setup(&w);
        api_fake_put(w.fake, "a", "changes", "1");
        api_fake_put(w.fake, "a", "goes", "1");
        api_fake_put(w.fake, "a", "stays", "1");
        assert_int_equal(hf_informer_add_handler(w.informer, told_handler, &w.told, &handler), 0);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(&w, 0);
        api_fake_await_watch(w.fake, 1);
        api_fake_mute_watches(w.fake, true);
        api_fake_put(w.fake, "a", "changes", "2");
        api_fake_delete(w.fake, "a", "goes");
        uint64_t last = api_fake_put(w.fake, "a", "comes", "1");
        api_fake_compact(w.fake); /* the open watch is behind it: HF_E_GONE */
        api_fake_mute_watches(w.fake, false);
        wait_for(&w, last);
        assert_int_equal(hf_informer_count(w.informer), 3);
        assert_int_equal(w.told.n_events, 6);
        assert_false(w.told.wrong);
        assert_non_null(strstr(w.told.text, "~a/changes"));
        assert_non_null(strstr(w.told.text, "-a/goes"));
        assert_non_null(strstr(w.told.text, "+a/comes"));
        teardown(&w);
}

static void test_failing_lists_are_tried_again(void **state) {
        setup(&w);
        api_fake_put(w.fake, "a", "one", "1");
        api_fake_fail_lists(w.fake, 2, HF_E_UNAVAILABLE);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(&w, 0);
        assert_int_equal(api_fake_n_lists(w.fake), 3);
        assert_int_equal(hf_informer_count(w.informer), 1);
        teardown(&w);
}

static void *fire_soon(void *ctx) {
        hf_cancel_fire(ctx, HF_CANCEL_STOPPING);
        return NULL;
}

static void test_waiting_ends_by_its_token(void **state) { /* PN11, PN12 */
        struct hf_cancel *token = NULL;
        pthread_t thread;

        setup(&w);
        assert_int_equal(hf_informer_wait(w.informer, "not a number", hf_cancel_never()), -EINVAL);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(&w, 0);
        api_fake_hold_calls(w.fake, true); /* a list would be as good as the revision */
        assert_int_equal(pthread_create(&thread, NULL, fire_soon, token), 0);
        assert_int_equal(hf_informer_wait(w.informer, "1000000", token), HF_E_CANCELED);
        pthread_join(thread, NULL);
        hf_cancel_unref(token);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        hf_cancel_set_deadline(token, hf_now(hf_clock_system()) + HF_NSEC_PER_MSEC);
        assert_int_equal(hf_informer_wait(w.informer, "1000000", token), HF_E_CANCELED);
        hf_cancel_unref(token);
        teardown(&w);
}

static void test_it_is_freed_in_the_middle_of_things(void **state) {
        setup(&w); /* never started */
        teardown(&w);
        setup(&w); /* its list is never answered */
        api_fake_hold_calls(w.fake, true);
        assert_int_equal(hf_informer_start(w.informer), 0);
        teardown(&w);
        setup(&w); /* with events waiting */
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(&w, 0);
        for (int i = 0; i < 100; i++)
                api_fake_put(w.fake, "a", "one", "x");
        teardown(&w);
}

/* ---- removing a handler that runs ---- */

static struct {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool inside, may_leave, left;
} gate = {.mu = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void gated_handler(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                          const char *object, size_t n) {
        pthread_mutex_lock(&gate.mu);
        gate.inside = true;
        pthread_cond_broadcast(&gate.cond);
        while (!gate.may_leave)
                pthread_cond_wait(&gate.cond, &gate.mu);
        gate.left = true;
        pthread_mutex_unlock(&gate.mu);
}

static void *remove_it(void *ctx) {
        hf_informer_remove_handler(w.informer, ctx);
        pthread_mutex_lock(&gate.mu);
        bool left = gate.left;
        pthread_mutex_unlock(&gate.mu);
        return left ? ctx : NULL;
}

/* Once the remover has marked it, a handler that runs must still be in the list. */
static void await_removal_begun(const struct hf_informer_handler *handler) {
        for (bool begun = false; !begun; sched_yield()) {
                const struct hf_informer_handler *h;
                pthread_mutex_lock(&w.informer->mu);
                for (h = w.informer->handlers; h && h != handler; h = h->next)
                        ;
                begun = !h || h->removed;
                pthread_mutex_unlock(&w.informer->mu);
                assert_non_null(h);
        }
}

static void test_removing_waits_for_a_running_handler(void **state) {
        struct hf_informer_handler *handler = NULL, *other = NULL;
        pthread_t thread;
        void *left = NULL;

        setup(&w);
        api_fake_put(w.fake, "a", "one", "1");
        api_fake_put(w.fake, "a", "two", "1");
        assert_int_equal(hf_informer_start(w.informer), 0);
        wait_for(&w, 0);
        assert_int_equal(hf_informer_add_handler(w.informer, gated_handler, NULL, &handler), 0);
        assert_int_equal(hf_informer_add_handler(w.informer, told_handler, &w.told, &other), 0);
        pthread_mutex_lock(&gate.mu);
        while (!gate.inside)
                pthread_cond_wait(&gate.cond, &gate.mu);
        pthread_mutex_unlock(&gate.mu);
        assert_int_equal(pthread_create(&thread, NULL, remove_it, handler), 0);
        await_removal_begun(handler);
        hf_informer_remove_handler(w.informer, other); /* one that is not running goes at once */
        pthread_mutex_lock(&gate.mu);
        gate.may_leave = true;
        pthread_cond_broadcast(&gate.cond);
        pthread_mutex_unlock(&gate.mu);
        pthread_join(thread, &left);
        assert_ptr_equal(left, handler);
        assert_int_equal(hf_informer_n_handlers(w.informer), 0);
        teardown(&w);
}

/* ---- everything at once ---- */

#define N_WRITES 400

/* As often as the other side writes, and no more: endless compactions would be a server that fails,
 * and be backed off from. */
static void *disturb(void *ctx) {
        unsigned seed = 7;

        for (int i = 0; i < N_WRITES; i++) {
                struct told *told = calloc(1, sizeof *told);
                struct hf_informer_handler *handler = NULL;
                while (sem_wait(ctx) != 0)
                        ;
                pthread_mutex_init(&told->mu, NULL);
                assert(hf_informer_add_handler(w.informer, told_handler, told, &handler) == 0);
                switch (rand_r(&seed) % 4) {
                case 0: api_fake_end_watches(w.fake, 0); break;
                case 1: api_fake_bookmark(w.fake); break;
                case 2: api_fake_compact(w.fake); break;
                default: (void)hf_informer_count(w.informer); break;
                }
                hf_informer_remove_handler(w.informer, handler);
                assert(!told->wrong);
                pthread_mutex_destroy(&told->mu);
                free(told);
        }
        return NULL;
}

static void count_each(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        ++*(size_t *)ctx;
}

static void test_it_stays_equal_to_the_server(void **state) {
        struct hf_informer_handler *handler = NULL;
        sem_t written;
        unsigned seed = 42;
        pthread_t thread;
        uint64_t last = 0;
        size_t n_each = 0, n_told = 0;

        setup(&w);
        assert_int_equal(sem_init(&written, 0, 0), 0);
        assert_int_equal(hf_informer_add_handler(w.informer, told_handler, &w.told, &handler), 0);
        assert_int_equal(hf_informer_start(w.informer), 0);
        assert_int_equal(pthread_create(&thread, NULL, disturb, &written), 0);
        for (int i = 0; i < N_WRITES; i++) {
                char name[16], value[16];
                snprintf(name, sizeof name, "n%d", rand_r(&seed) % 20);
                snprintf(value, sizeof value, "%d", i);
                last = rand_r(&seed) % 4 == 0 ? api_fake_delete(w.fake, "a", name)
                                              : api_fake_put(w.fake, "a", name, value);
                sem_post(&written);
                if (i % 50 == 0)
                        wait_for(&w, last);
        }
        pthread_join(thread, NULL);
        wait_for(&w, last);
        assert_false(w.told.wrong);
        assert_int_equal(hf_informer_count(w.informer), w.fake->n_objects);
        hf_informer_each(w.informer, count_each, &n_each);
        assert_int_equal(n_each, w.fake->n_objects);
        for (size_t i = 0; i < 64; i++)
                n_told += w.told.state[i][0] ? 1 : 0;
        assert_int_equal(n_told, w.fake->n_objects);
        for (size_t i = 0; i < w.fake->n_objects; i++) {
                char *object = NULL, expected[80];
                assert_int_equal(hf_informer_get(w.informer, "a", w.fake->objects[i].name, &object,
                                                 NULL),
                                 0);
                snprintf(expected, sizeof expected, "\"v\":\"%s\"", w.fake->objects[i].value);
                assert_non_null(strstr(object, expected));
                free(object);
        }
        sem_destroy(&written);
        teardown(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_lists_then_watches),
                cmocka_unit_test(test_a_new_handler_gets_what_is_there),
                cmocka_unit_test(test_a_quiet_collection_learns_its_revision),
                cmocka_unit_test(test_a_probe_names_a_shared_revision),
                cmocka_unit_test(test_a_probe_overtakes_a_slow_watch),
                cmocka_unit_test(test_an_ended_watch_goes_on_where_it_was),
                cmocka_unit_test(test_lost_history_is_listed_again),
                cmocka_unit_test(test_failing_lists_are_tried_again),
                cmocka_unit_test(test_waiting_ends_by_its_token),
                cmocka_unit_test(test_it_is_freed_in_the_middle_of_things),
                cmocka_unit_test(test_removing_waits_for_a_running_handler),
                cmocka_unit_test(test_it_stays_equal_to_the_server),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
