/* SPDX-License-Identifier: Apache-2.0 */
/* Informers over a fake API server: lists, watches, handlers, waiting and the end. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <pthread.h>
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

#include "base/mailbox.h"
#include "client/informer_handlers.h"
#include "client/informer_private.h"
#include "fake_api_client.h"
#include "patience.h"

static const struct hf_host host = {.size = sizeof host};

/* The events that a handler got, as text, and the resulting state. */
struct recorded {
        pthread_mutex_t mu;
        char text[1 << 16];
        size_t n;
        unsigned n_events;
        char state[64][80]; /* "ns/name" while the object exists */
        /* an ADDED event of an existing object, or another event of a missing one */
        bool wrong;
};

static void record_event(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                         const char *object, size_t n) {
        static const char signs[] =
                {[HF_EVENT_ADDED] = '+', [HF_EVENT_MODIFIED] = '~', [HF_EVENT_DELETED] = '-'};
        struct recorded *recorded = ctx;
        char key[80];
        size_t place = 64;

        snprintf(key, sizeof key, "%s/%s", ns, name);
        pthread_mutex_lock(&recorded->mu);
        for (size_t i = 0; i < 64; i++)
                if (strcmp(recorded->state[i], key) == 0)
                        place = i;
        recorded->wrong = recorded->wrong || (type == HF_EVENT_ADDED) != (place == 64) ||
                          !memmem(object, n, name, strlen(name));
        for (size_t i = 0; place == 64 && i < 64; i++)
                if (!recorded->state[i][0])
                        place = i;
        assert(place < 64);
        if (type == HF_EVENT_DELETED)
                recorded->state[place][0] = '\0';
        else
                strcpy(recorded->state[place], key);
        recorded->n_events++;
        if (recorded->n + sizeof key + 4 < sizeof recorded->text)
                recorded->n += (size_t)snprintf(recorded->text + recorded->n,
                                                sizeof recorded->text - recorded->n, "%c%s ",
                                                signs[type], key);
        pthread_mutex_unlock(&recorded->mu);
}

static unsigned n_recorded(struct recorded *recorded) {
        pthread_mutex_lock(&recorded->mu);
        unsigned n = recorded->n_events;
        pthread_mutex_unlock(&recorded->mu);
        return n;
}

static void assert_recorded(struct recorded *recorded, const char *text) {
        pthread_mutex_lock(&recorded->mu);
        assert_string_equal(recorded->text, text);
        assert_false(recorded->wrong);
        pthread_mutex_unlock(&recorded->mu);
}

struct fixture {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_informer *informer;
        struct recorded recorded;
};

static void setup_with(struct fixture *f, bool one_revision) {
        memset(f, 0, sizeof *f);
        pthread_mutex_init(&f->recorded.mu, NULL);
        f->api = fake_api_new();
        f->client = fake_api_client_new(f->api);
        const struct hf_informer_config config = {
                .size = sizeof config,
                .client = &f->client->base,
                .resource = {.group = "", .version = "v1", .plural = "things"},
                .query = one_revision ? "labelSelector=x" : NULL,
                .one_revision = one_revision,
        };
        assert_int_equal(hf_informer_new(&host, &config, &f->informer), 0);
}

static void setup(struct fixture *f) { setup_with(f, false); }

static void teardown(struct fixture *f) {
        hf_informer_free(f->informer);
        hf_client_free(&f->client->base);
        fake_api_free(f->api);
        pthread_mutex_destroy(&f->recorded.mu);
}

static void wait_for(struct fixture *f, uint64_t revision) {
        char text[24];
        snprintf(text, sizeof text, "%llu", (unsigned long long)revision);
        assert_int_equal(hf_informer_wait(f->informer, revision ? text : NULL, hf_cancel_never()),
                         0);
}

static struct fixture f;

static void test_it_lists_then_watches(void **state) {
        struct hf_informer_handler *handler = NULL;
        char *object = NULL;
        size_t n = 0;

        setup(&f);
        fake_api_put_thing(f.api, "a", "one", "1");
        fake_api_put_thing(f.api, "", "cluster", "1");
        assert_false(hf_informer_synced(f.informer));
        assert_int_equal(hf_informer_add_handler(f.informer, record_event, &f.recorded, &handler),
                         0);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(&f, 0);
        assert_true(hf_informer_synced(f.informer));
        assert_int_equal(hf_informer_count(f.informer), 2);
        wait_for(&f, fake_api_put_thing(f.api, "b", "two", "2"));
        wait_for(&f, fake_api_put_thing(f.api, "a", "one", "3"));
        assert_int_equal(hf_informer_get(f.informer, "a", "one", &object, &n), 0);
        assert_int_equal(strlen(object), n);
        assert_non_null(strstr(object, "\"v\":\"3\""));
        free(object);
        assert_int_equal(hf_informer_get(f.informer, "", "cluster", &object, &n), 0);
        free(object);
        wait_for(&f, fake_api_delete_thing(f.api, "a", "one"));
        assert_int_equal(hf_informer_get(f.informer, "a", "one", &object, &n), HF_E_NOT_FOUND);
        assert_recorded(&f.recorded, "+a/one +/cluster +b/two ~a/one -a/one ");
        hf_informer_remove_handler(f.informer, handler);
        teardown(&f);
}

static void test_a_new_handler_gets_the_present_objects(void **state) {
        struct hf_informer_handler *handler = NULL;

        setup(&f);
        for (int i = 0; i < 3; i++) {
                char name[8];
                snprintf(name, sizeof name, "n%d", i);
                fake_api_put_thing(f.api, "a", name, "1");
        }
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(&f, 0);
        assert_int_equal(hf_informer_add_handler(f.informer, record_event, &f.recorded, &handler),
                         0);
        assert_int_equal(hf_informer_n_handlers(f.informer), 1);
        wait_for(&f, fake_api_delete_thing(f.api, "a", "n1")); /* called after the replay */
        assert_recorded(&f.recorded, "+a/n0 +a/n1 +a/n2 -a/n1 ");
        hf_informer_remove_handler(f.informer, handler);
        assert_int_equal(hf_informer_n_handlers(f.informer), 0);
        wait_for(&f, fake_api_put_thing(f.api, "a", "later", "1"));
        assert_recorded(&f.recorded, "+a/n0 +a/n1 +a/n2 -a/n1 ");
        teardown(&f);
}

static void test_a_quiet_collection_learns_its_revision(void **state) {
        setup(&f);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(&f, 0);
        wait_for(&f, fake_api_raise_revision(f.api, 10));
        assert_int_equal(fake_api_n_lists(f.api), 2);
        fake_api_await_watch(f.api, 1);
        assert_int_equal(fake_api_n_watches(f.api), 1); /* the watch goes on */
        teardown(&f);
}

/*
 * A probe for a waiting caller requests the revision, if the server's collections share one. The
 * first list, and a list after a failure, do not.
 */
static void test_a_probe_names_a_shared_revision(void **state) {
        char query[160], expected[160];

        setup_with(&f, true);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(&f, 0);
        fake_api_last_list_query(f.api, query);
        assert_string_equal(query, "labelSelector=x&limit=500");
        fake_api_await_watch(f.api, 1);
        uint64_t revision = fake_api_raise_revision(f.api, 10);
        wait_for(&f, revision);
        fake_api_last_list_query(f.api, query);
        snprintf(expected, sizeof expected,
                 "labelSelector=x&limit=500&resourceVersion=%llu&resourceVersionMatch=NotOlderThan",
                 (unsigned long long)revision);
        assert_string_equal(query, expected);
        fake_api_client_refuse(f.client, HF_E_TIMEOUT, 1);
        wait_for(&f, fake_api_raise_revision(f.api, 10));
        fake_api_last_list_query(f.api, query);
        assert_string_equal(query, "labelSelector=x&limit=500");
        teardown(&f);
}

static void test_a_probe_overtakes_a_slow_watch(void **state) {
        struct hf_informer_handler *handler = NULL;

        setup(&f);
        fake_api_put_thing(f.api, "a", "old", "1");
        assert_int_equal(hf_informer_add_handler(f.informer, record_event, &f.recorded, &handler),
                         0);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(&f, 0);
        fake_api_await_watch(f.api, 1);
        fake_api_client_hold_events(f.client, true);
        fake_api_put_thing(f.api, "a", "new", "1");
        fake_api_put_thing(f.api, "a", "new", "2");
        wait_for(&f, fake_api_delete_thing(f.api, "a", "old"));
        assert_recorded(&f.recorded, "+a/old +a/new -a/old ");
        /* the late events of these writes change nothing */
        fake_api_client_hold_events(f.client, false);
        wait_for(&f, fake_api_put_thing(f.api, "a", "new", "3"));
        assert_recorded(&f.recorded, "+a/old +a/new -a/old ~a/new ");
        teardown(&f);
}

static void test_an_ended_watch_is_resumed_where_it_was(void **state) {
        struct hf_informer_handler *handler = NULL;

        setup(&f);
        assert_int_equal(hf_informer_add_handler(f.informer, record_event, &f.recorded, &handler),
                         0);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(&f, 0);
        fake_api_await_watch(f.api, 1);
        fake_api_raise_revision(f.api, 5);
        fake_api_send_bookmarks(f.api);
        fake_api_put_thing(f.api, "a", "one", "1");
        fake_api_end_watches(f.api, 0, NULL);
        fake_api_await_watch(f.api, 2);
        fake_api_put_thing(f.api, "a", "two", "1");
        fake_api_end_watches(f.api, HF_E_TIMEOUT, NULL);
        fake_api_await_watch(f.api, 3);
        fake_api_put_thing(f.api, "a", "three", "1");
        PATIENCE_AWAIT(n_recorded(&f.recorded) == 3); /* without hf_informer_wait, which may list */
        assert_recorded(&f.recorded, "+a/one +a/two +a/three ");
        assert_int_equal(fake_api_n_lists(f.api), 1);
        teardown(&f);
}

static void test_lost_history_is_listed_again(void **state) {
        struct hf_informer_handler *handler = NULL;

        setup(&f);
        fake_api_put_thing(f.api, "a", "changes", "1");
        fake_api_put_thing(f.api, "a", "goes", "1");
        fake_api_put_thing(f.api, "a", "stays", "1");
        assert_int_equal(hf_informer_add_handler(f.informer, record_event, &f.recorded, &handler),
                         0);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(&f, 0);
        fake_api_await_watch(f.api, 1);
        fake_api_client_hold_events(f.client, true);
        fake_api_put_thing(f.api, "a", "changes", "2");
        fake_api_delete_thing(f.api, "a", "goes");
        uint64_t last = fake_api_put_thing(f.api, "a", "comes", "1");
        fake_api_compact(f.api); /* the open watch is behind it: HF_E_GONE */
        fake_api_client_hold_events(f.client, false);
        wait_for(&f, last);
        assert_int_equal(hf_informer_count(f.informer), 3);
        assert_int_equal(f.recorded.n_events, 6);
        assert_false(f.recorded.wrong);
        assert_non_null(strstr(f.recorded.text, "~a/changes"));
        assert_non_null(strstr(f.recorded.text, "-a/goes"));
        assert_non_null(strstr(f.recorded.text, "+a/comes"));
        teardown(&f);
}

static void test_failing_lists_are_tried_again(void **state) {
        setup(&f);
        fake_api_put_thing(f.api, "a", "one", "1");
        fake_api_client_refuse(f.client, HF_E_UNAVAILABLE, 2);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(&f, 0);
        assert_int_equal(fake_api_n_lists(f.api), 3);
        assert_int_equal(hf_informer_count(f.informer), 1);
        teardown(&f);
}

static void *fire_soon(void *ctx) {
        hf_cancel_fire(ctx, HF_CANCEL_STOPPING);
        return NULL;
}

/* Scenario of docs/parity.md: PN12. */
static void test_waiting_ends_by_its_token(void **state) {
        struct hf_cancel *token = NULL;
        pthread_t thread;

        setup(&f);
        assert_int_equal(hf_informer_wait(f.informer, "not a number", hf_cancel_never()), -EINVAL);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(&f, 0);
        fake_api_client_hold_requests(f.client, true); /* a list would count as the revision */
        assert_int_equal(pthread_create(&thread, NULL, fire_soon, token), 0);
        assert_int_equal(hf_informer_wait(f.informer, "1000000", token), HF_E_CANCELED);
        pthread_join(thread, NULL);
        hf_cancel_unref(token);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        hf_cancel_set_deadline(token, hf_now(hf_clock_system()) + HF_NSEC_PER_MSEC);
        assert_int_equal(hf_informer_wait(f.informer, "1000000", token), HF_E_CANCELED);
        hf_cancel_unref(token);
        teardown(&f);
}

static void test_it_can_be_freed_at_any_time(void **state) {
        setup(&f); /* never started */
        teardown(&f);
        setup(&f); /* its list never gets a response */
        fake_api_client_hold_requests(f.client, true);
        assert_int_equal(hf_informer_start(f.informer), 0);
        teardown(&f);
        setup(&f); /* while events are waiting */
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(&f, 0);
        for (int i = 0; i < 100; i++)
                fake_api_put_thing(f.api, "a", "one", "x");
        teardown(&f);
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
        PATIENCE_AWAIT_LOCKED(&gate.cond, &gate.mu, gate.may_leave);
        gate.left = true;
        pthread_mutex_unlock(&gate.mu);
}

static void *remove_it(void *ctx) {
        hf_informer_remove_handler(f.informer, ctx);
        pthread_mutex_lock(&gate.mu);
        bool left = gate.left;
        pthread_mutex_unlock(&gate.mu);
        return left ? ctx : NULL;
}

static bool removal_has_begun(const struct hf_informer_handler *handler) {
        const struct hf_informer_handler *h;

        pthread_mutex_lock(&f.informer->mu);
        for (h = f.informer->handlers; h && h != handler; h = h->next)
                ;
        bool begun = !h || h->removed;
        pthread_mutex_unlock(&f.informer->mu);
        assert_non_null(h);
        return begun;
}

/*
 * Waits until the remover has marked the handler. A running handler must still be in the list then.
 */
static void await_removal_begun(const struct hf_informer_handler *handler) {
        PATIENCE_AWAIT(removal_has_begun(handler));
}

static void test_removing_waits_for_a_running_handler(void **state) {
        struct hf_informer_handler *handler = NULL, *other = NULL;
        pthread_t thread;
        void *left = NULL;

        setup(&f);
        fake_api_put_thing(f.api, "a", "one", "1");
        fake_api_put_thing(f.api, "a", "two", "1");
        assert_int_equal(hf_informer_start(f.informer), 0);
        wait_for(&f, 0);
        assert_int_equal(hf_informer_add_handler(f.informer, gated_handler, NULL, &handler), 0);
        assert_int_equal(hf_informer_add_handler(f.informer, record_event, &f.recorded, &other), 0);
        pthread_mutex_lock(&gate.mu);
        PATIENCE_AWAIT_LOCKED(&gate.cond, &gate.mu, gate.inside);
        pthread_mutex_unlock(&gate.mu);
        assert_int_equal(pthread_create(&thread, NULL, remove_it, handler), 0);
        await_removal_begun(handler);
        /* a handler that is not running is removed at once */
        hf_informer_remove_handler(f.informer, other);
        pthread_mutex_lock(&gate.mu);
        gate.may_leave = true;
        pthread_cond_broadcast(&gate.cond);
        pthread_mutex_unlock(&gate.mu);
        pthread_join(thread, &left);
        assert_ptr_equal(left, handler);
        assert_int_equal(hf_informer_n_handlers(f.informer), 0);
        teardown(&f);
}

/* ---- everything at once ---- */

#define N_WRITES 400

/*
 * A thread that disturbs the informer once for each write of the other thread. It does no more than
 * that, because endless compactions would look like a failing server and cause a backoff.
 */
static void *disturb(void *ctx) {
        unsigned seed = 7;

        for (int i = 0; i < N_WRITES; i++) {
                struct recorded *recorded = calloc(1, sizeof *recorded);
                struct hf_informer_handler *handler = NULL;
                while (sem_wait(ctx) != 0)
                        ;
                pthread_mutex_init(&recorded->mu, NULL);
                assert(hf_informer_add_handler(f.informer, record_event, recorded, &handler) == 0);
                switch (rand_r(&seed) % 4) {
                case 0: fake_api_end_watches(f.api, 0, NULL); break;
                case 1: fake_api_send_bookmarks(f.api); break;
                case 2: fake_api_compact(f.api); break;
                default: (void)hf_informer_count(f.informer); break;
                }
                hf_informer_remove_handler(f.informer, handler);
                assert(!recorded->wrong);
                pthread_mutex_destroy(&recorded->mu);
                free(recorded);
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

        setup(&f);
        assert_int_equal(sem_init(&written, 0, 0), 0);
        assert_int_equal(hf_informer_add_handler(f.informer, record_event, &f.recorded, &handler),
                         0);
        assert_int_equal(hf_informer_start(f.informer), 0);
        assert_int_equal(pthread_create(&thread, NULL, disturb, &written), 0);
        for (int i = 0; i < N_WRITES; i++) {
                char name[16], value[16];
                snprintf(name, sizeof name, "n%d", rand_r(&seed) % 20);
                snprintf(value, sizeof value, "%d", i);
                last = rand_r(&seed) % 4 == 0 ? fake_api_delete_thing(f.api, "a", name)
                                              : fake_api_put_thing(f.api, "a", name, value);
                sem_post(&written);
                if (i % 50 == 0)
                        wait_for(&f, last);
        }
        pthread_join(thread, NULL);
        wait_for(&f, last);
        assert_false(f.recorded.wrong);
        assert_int_equal(hf_informer_count(f.informer), f.api->store.n_objects);
        hf_informer_each(f.informer, count_each, &n_each);
        assert_int_equal(n_each, f.api->store.n_objects);
        for (size_t i = 0; i < 64; i++)
                n_told += f.recorded.state[i][0] ? 1 : 0;
        assert_int_equal(n_told, f.api->store.n_objects);
        for (size_t i = 0; i < f.api->store.n_objects; i++) {
                const struct fake_object *there = f.api->store.objects[i];
                char *object = NULL;
                const char *name = there->key + strlen("things/a/");
                assert_int_equal(hf_informer_get(f.informer, "a", name, &object, NULL), 0);
                assert_string_equal(object, there->text->data);
                free(object);
        }
        sem_destroy(&written);
        teardown(&f);
}

/* ---- a thread for several informers ---- */

static void remember_thread(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                            const char *object, size_t n) {
        *(pthread_t *)ctx = pthread_self();
}

static void test_informers_that_name_a_thread_share_it(void **state) {
        struct hf_informer_thread *shared;
        struct hf_informer *pair[2];
        struct hf_informer_handler *handler;
        pthread_t threads[2] = {pthread_self(), pthread_self()};

        setup(&f);
        (void)fake_api_put_thing(f.api, "a", "one", "1");
        assert_int_equal(hf_informer_thread_new(&host, &shared), 0);
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = &f.client->base,
                                                  .resource = {"", "v1", "things"},
                                                  .thread = shared};
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(hf_informer_new(&host, &config, &pair[i]), 0);
                assert_int_equal(hf_informer_add_handler(pair[i], remember_thread, &threads[i],
                                                         &handler),
                                 0);
                assert_int_equal(hf_informer_start(pair[i]), 0);
        }
        assert_int_equal(hf_informer_wait_all(pair, 2, NULL, hf_cancel_never()), 0);
        /* One of them ends; the other goes on. */
        hf_informer_free(pair[0]);
        (void)fake_api_put_thing(f.api, "a", "two", "2");
        hf_informer_free(f.informer);
        f.informer = pair[1]; /* teardown frees it */
        wait_for(&f, fake_api_put_thing(f.api, "a", "three", "3"));
        assert_int_equal(hf_informer_count(pair[1]), 3);
        assert_true(pthread_equal(threads[0], threads[1]));
        assert_false(pthread_equal(threads[0], pthread_self()));
        teardown(&f);
        assert_null(hf_informer_thread_free(shared));
}

static bool sleeps(struct hf_informer_thread *thread) {
        pthread_mutex_lock(&thread->mu);
        bool yes = thread->sleeps;
        pthread_mutex_unlock(&thread->mu);
        return yes;
}

static void *free_informer(void *ctx) { return hf_informer_free(ctx); }

/* This thread owes the shared one a wake: for the end of an informer, and then for an informer that
 * another thread has freed. */
static void test_a_shared_thread_ends_although_a_wake_is_delayed(void **state) {
        struct hf_informer_thread *shared;
        struct hf_informer *informer, *first;
        struct hf_informer_handler *handler;
        pthread_t other;

        setup(&f);
        assert_int_equal(hf_informer_thread_new(&host, &shared), 0);
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = &f.client->base,
                                                  .resource = {"", "v1", "things"},
                                                  .thread = shared};
        assert_int_equal(hf_informer_new(&host, &config, &first), 0);
        assert_int_equal(hf_informer_new(&host, &config, &informer), 0);
        assert_int_equal(hf_informer_start(first), 0);
        assert_int_equal(hf_informer_start(informer), 0);
        assert_int_equal(hf_informer_wait(first, NULL, hf_cancel_never()), 0);
        assert_int_equal(hf_informer_wait(informer, NULL, hf_cancel_never()), 0);
        PATIENCE_AWAIT(sleeps(shared));
        hf__mailbox_delay_wakes();
        assert_null(hf_informer_free(first));
        PATIENCE_AWAIT(sleeps(shared));
        assert_int_equal(hf_informer_add_handler(informer, record_event, &f.recorded, &handler), 0);
        assert_int_equal(shared->n_delaying, 1);
        assert_int_equal(pthread_create(&other, NULL, free_informer, informer), 0);
        assert_int_equal(pthread_join(other, NULL), 0);
        assert_null(hf_informer_thread_free(shared));
        hf__mailbox_wake_delayed();
        teardown(&f);
}

static void test_the_thread_of_another_host_is_refused(void **state) {
        const struct hf_host other = {.size = sizeof other};
        struct hf_informer_thread *shared;
        struct hf_informer *informer;

        setup(&f);
        assert_int_equal(hf_informer_thread_new(&other, &shared), 0);
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = &f.client->base,
                                                  .resource = {"", "v1", "things"},
                                                  .thread = shared};
        assert_int_equal(hf_informer_new(&host, &config, &informer), -EINVAL);
        assert_int_equal(hf_informer_thread_new(NULL, &shared), -EINVAL);
        assert_int_equal(hf_informer_thread_new(&host, NULL), -EINVAL);
        hf_informer_thread_free(config.thread);
        assert_null(hf_informer_thread_free(NULL));
        teardown(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_lists_then_watches),
                cmocka_unit_test(test_a_new_handler_gets_the_present_objects),
                cmocka_unit_test(test_a_quiet_collection_learns_its_revision),
                cmocka_unit_test(test_a_probe_names_a_shared_revision),
                cmocka_unit_test(test_a_probe_overtakes_a_slow_watch),
                cmocka_unit_test(test_an_ended_watch_is_resumed_where_it_was),
                cmocka_unit_test(test_lost_history_is_listed_again),
                cmocka_unit_test(test_failing_lists_are_tried_again),
                cmocka_unit_test(test_waiting_ends_by_its_token),
                cmocka_unit_test(test_it_can_be_freed_at_any_time),
                cmocka_unit_test(test_removing_waits_for_a_running_handler),
                cmocka_unit_test(test_it_stays_equal_to_the_server),
                cmocka_unit_test(test_informers_that_name_a_thread_share_it),
                cmocka_unit_test(test_a_shared_thread_ends_although_a_wake_is_delayed),
                cmocka_unit_test(test_the_thread_of_another_host_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
