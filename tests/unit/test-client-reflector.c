/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a reflector sends which request, on a clock that the test moves. The test answers each
 * request itself. Between two steps it waits until the reflector sleeps, and sees until when.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/client_port.h>
#include <holdfast/informer.h>

#include "client/informer_private.h"

#define BEGIN  (1000 * HF_NSEC_PER_SEC)
#define NEVER  (-1)
#define GUARD  (30 * HF_NSEC_PER_SEC)
#define MAX_ID 16

struct fixture {
        struct hf_client client; /* first */
        struct hf_clock clock;
        struct hf_host host;
        struct hf_informer *informer;
        _Atomic hf_nsec now;

        pthread_mutex_t mu;
        pthread_cond_t changed;
        /* guarded by mu */
        unsigned n_sleeps; /* how often the reflector has begun to sleep */
        bool sleeps;
        hf_nsec until;
        char last[256]; /* the last request, "" = none since it was looked at */
        unsigned n_requests;
        hf_response_fn list_done;
        void *list_ctx;
        hf_event_fn on_event;
        hf_watch_end_fn on_end;
        void *watch_ctx;
        bool watch_canceled, list_canceled;
        bool refuses; /* the client starts nothing */
        char log[8192];
        char events[4096]; /* of a handler */
};

/* ---- the clock ---- */

static hf_nsec clock_now(void *ctx) { return atomic_load(&((struct fixture *)ctx)->now); }

/* The reflector sleeps on `wake`. Other waits are those of threads at the barrier. Only a signal
 * ends a wait: step_time sends one, too. */
static int clock_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        struct fixture *f = ctx;
        bool is_reflector = cond == &f->informer->wake;

        if (clock_now(f) >= deadline)
                return HF_E_TIMEOUT;
        if (is_reflector) {
                pthread_mutex_lock(&f->mu);
                f->n_sleeps++;
                f->sleeps = true;
                f->until = deadline;
                pthread_cond_broadcast(&f->changed);
                pthread_mutex_unlock(&f->mu);
        }
        (void)pthread_cond_wait(cond, mutex);
        if (is_reflector) {
                pthread_mutex_lock(&f->mu);
                f->sleeps = false;
                pthread_mutex_unlock(&f->mu);
        }
        return clock_now(f) >= deadline ? HF_E_TIMEOUT : 0;
}

/* ---- the client ---- */

static int client_request(struct hf_client *self, const struct hf_request *request,
                          hf_response_fn done, void *ctx, uint64_t *ret_id) {
        struct fixture *f = (struct fixture *)self;

        assert(request->verb == HF_VERB_LIST);
        if (f->refuses)
                return -ENOMEM;
        pthread_mutex_lock(&f->mu);
        assert(!f->list_done);
        (void)snprintf(f->last, sizeof f->last, "list %s", request->query);
        f->n_requests++;
        f->list_done = done;
        f->list_ctx = ctx;
        f->list_canceled = false;
        *ret_id = 1;
        pthread_mutex_unlock(&f->mu);
        return 0;
}
static int client_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                        hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        struct fixture *f = (struct fixture *)self;

        if (f->refuses)
                return -ENOMEM;
        pthread_mutex_lock(&f->mu);
        assert(!f->on_end);
        (void)snprintf(f->last, sizeof f->last, "watch %s", spec->resource_version);
        f->n_requests++;
        f->on_event = on_event;
        f->on_end = on_end;
        f->watch_ctx = ctx;
        f->watch_canceled = false;
        *ret_id = 2;
        pthread_mutex_unlock(&f->mu);
        return 0;
}

static void respond(struct fixture *f, int error, uint32_t retry_after_s, const char *body);
static void end_watch(struct fixture *f, int error, const char *message);

static void client_cancel(struct hf_client *self, uint64_t id) {
        respond((struct fixture *)self, HF_E_CANCELED, 0, NULL);
}
static void client_watch_cancel(struct hf_client *self, uint64_t id) {
        end_watch((struct fixture *)self, HF_E_CANCELED, NULL);
}
static const struct hf_client_ops ops = {client_request, client_cancel, client_watch,
                                         client_watch_cancel, NULL};

/* Answers the list that is open, if there is one. */
static void respond(struct fixture *f, int error, uint32_t retry_after_s, const char *body) {
        struct hf_response response = {.error = error,
                                       .body = body,
                                       .n_body = body ? strlen(body) : 0};

        pthread_mutex_lock(&f->mu);
        hf_response_fn done = f->list_done;
        f->list_done = NULL;
        f->list_canceled = error == HF_E_CANCELED;
        pthread_mutex_unlock(&f->mu);
        if (error != 0)
                (void)hf_fail(&response.status, error, "the test says so");
        response.status.retry_after_s = retry_after_s;
        if (done)
                done(f->list_ctx, &response);
}

static void end_watch(struct fixture *f, int error, const char *message) {
        struct hf_status status = {0};

        pthread_mutex_lock(&f->mu);
        hf_watch_end_fn on_end = f->on_end;
        f->on_end = NULL;
        f->watch_canceled = error == HF_E_CANCELED;
        pthread_mutex_unlock(&f->mu);
        if (error != 0)
                (void)hf_fail(&status, error, "%s", message ? message : "the watch has ended");
        if (on_end)
                on_end(f->watch_ctx, error, &status);
}

/* ---- steps of a test ---- */

static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        struct fixture *f = ctx;
        size_t n = strlen(f->log);

        (void)snprintf(f->log + n, sizeof f->log - n, "%d %s\n", (int)level, message);
}

static void await_locked(struct fixture *f, bool (*is_so)(const struct fixture *f, unsigned n),
                         unsigned n) {
        const struct hf_clock *system = hf_clock_system();
        hf_nsec until = hf_now(system) + GUARD;

        while (!is_so(f, n) && hf_now(system) < until)
                (void)system->wait(system->ctx, &f->changed, &f->mu, until);
        assert_true(is_so(f, n));
}
static bool sleeps_again(const struct fixture *f, unsigned n) {
        return f->sleeps && f->n_sleeps > n;
}

static unsigned sleeps_so_far(struct fixture *f) {
        pthread_mutex_lock(&f->mu);
        unsigned n = f->n_sleeps;
        pthread_mutex_unlock(&f->mu);
        return n;
}

/* Waits until the reflector has done what it was woken for, sent `request` (NULL = none) and sleeps
 * for that many milliseconds. */
static void assert_step(struct fixture *f, unsigned n_sleeps, const char *request,
                        hf_nsec milliseconds) {
        pthread_mutex_lock(&f->mu);
        await_locked(f, sleeps_again, n_sleeps);
        assert_string_equal(f->last, request ? request : "");
        hf_nsec until =
                f->until == HF_NSEC_NEVER ? NEVER : (f->until - clock_now(f)) / HF_NSEC_PER_MSEC;
        f->last[0] = '\0';
        pthread_mutex_unlock(&f->mu);
        assert_int_equal(until, milliseconds);
}

/* The reflector is answered; it then sends `request` and sleeps for that many milliseconds. */
static void step_list(struct fixture *f, int error, uint32_t retry_after_s, const char *body,
                      const char *request, hf_nsec milliseconds) {
        unsigned n = sleeps_so_far(f);

        respond(f, error, retry_after_s, body);
        assert_step(f, n, request, milliseconds);
}
static void step_watch_end(struct fixture *f, int error, const char *message, const char *request,
                           hf_nsec milliseconds) {
        unsigned n = sleeps_so_far(f);

        end_watch(f, error, message);
        assert_step(f, n, request, milliseconds);
}
static void step_event(struct fixture *f, enum hf_event_type type, const char *object,
                       const char *version, const char *request, hf_nsec milliseconds) {
        unsigned n = sleeps_so_far(f);
        struct hf_event event = {.type = type,
                                 .object = object,
                                 .n_object = object ? strlen(object) : 0,
                                 .resource_version = version};

        f->on_event(f->watch_ctx, &event);
        assert_step(f, n, request, milliseconds);
}
/* The clock moves to the end of the sleep. */
static void step_time(struct fixture *f, const char *request, hf_nsec milliseconds) {
        pthread_mutex_lock(&f->mu);
        assert_true(f->sleeps && f->until != HF_NSEC_NEVER);
        unsigned n = f->n_sleeps;
        atomic_store(&f->now, f->until);
        pthread_mutex_unlock(&f->mu);
        pthread_mutex_lock(&f->informer->mu);
        pthread_cond_broadcast(&f->informer->wake);
        pthread_mutex_unlock(&f->informer->mu);
        assert_step(f, n, request, milliseconds);
}
static void pass_time(struct fixture *f, hf_nsec time) { atomic_fetch_add(&f->now, time); }

static void on_object(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                      const char *object, size_t n) {
        static const char *const names[] = {"added", "modified", "deleted"};
        struct fixture *f = ctx;
        size_t used = strlen(f->events);

        (void)snprintf(f->events + used, sizeof f->events - used, "%s %s;",
                       (size_t)type < 3 ? names[type] : "?", name);
}

#define LIST(version, items)                                                                       \
        "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items  \
        "]}"
#define THING(name, version, value)                                                                \
        "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"},\"v\":\"" value \
        "\"}"

static struct fixture *fixture_new(bool one_revision, hf_nsec resync) {
        struct fixture *f = calloc(1, sizeof *f);
        struct hf_informer_handler *handler;

        assert_non_null(f);
        assert_int_equal(pthread_mutex_init(&f->mu, NULL), 0);
        assert_int_equal(hf_cond_init(&f->changed), 0);
        f->clock = (struct hf_clock){clock_now, clock_now, clock_now, clock_wait, f};
        f->host = (struct hf_host){
                .size = sizeof f->host,
                .clock = &f->clock,
                .log = {.write = on_log, .ctx = f, .max_level = HF_LOG_DEBUG},
        };
        f->client = (struct hf_client){.ops = &ops, .host = &f->host};
        atomic_store(&f->now, BEGIN);
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = &f->client,
                                                  .resource = {"", "v1", "things"},
                                                  .one_revision = one_revision,
                                                  .resync = resync};
        assert_int_equal(hf_informer_new(&f->host, &config, &f->informer), 0);
        assert_int_equal(hf_informer_add_handler(f->informer, on_object, f, &handler), 0);
        assert_int_equal(hf_informer_start(f->informer), 0);
        return f;
}

/* A fixture whose list has been answered, and which watches. */
static struct fixture *watching(bool one_revision) {
        struct fixture *f = fixture_new(one_revision, 0);

        assert_step(f, 0, "list limit=500", NEVER);
        step_list(f, 0, 0, LIST("7", THING("a", "5", "1")), "watch 7", NEVER);
        return f;
}

static void fixture_free(struct fixture *f) {
        hf_informer_free(f->informer);
        pthread_cond_destroy(&f->changed);
        pthread_mutex_destroy(&f->mu);
        free(f);
}

/* ---- lists ---- */

static void test_a_list_that_fails_is_repeated_ever_more_slowly(void **state) {
        struct fixture *f = fixture_new(false, 0);

        assert_step(f, 0, "list limit=500", NEVER);
        for (hf_nsec pause = 100; pause < 80000; pause *= 2) {
                step_list(f, HF_E_UNAVAILABLE, 0, NULL, NULL, pause < 30000 ? pause : 30000);
                step_time(f, "list limit=500", NEVER);
        }
        assert_non_null(strstr(f->log, "4 list of things failed: the test says so\n7 list of"));
        /* Success ends the row. */
        step_list(f, 0, 0, LIST("7", ""), "watch 7", NEVER);
        step_watch_end(f, HF_E_GONE, NULL, "list limit=500", NEVER);
        step_list(f, HF_E_UNAVAILABLE, 0, NULL, NULL, 100);
        fixture_free(f);
}

static void test_retry_after_counts_up_to_five_minutes(void **state) {
        static const struct {
                uint32_t seconds;
                hf_nsec pause;
        } cases[] = {{0, 100}, {1, 1000}, {300, 300000}, {301, 300000}, {UINT32_MAX, 300000}};
        struct fixture *f = fixture_new(false, 0);

        assert_step(f, 0, "list limit=500", NEVER);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                step_list(f, HF_E_TOO_MANY, cases[i].seconds, NULL, NULL, cases[i].pause);
                step_time(f, "list limit=500", NEVER);
        }
        fixture_free(f);
}

static void test_a_list_without_a_version_is_a_failure(void **state) {
        static const char *const bad[] = {
                "",
                "[]",
                "{",
                "{\"items\":[]}",
                "{\"metadata\":[],\"items\":[]}",
                "{\"metadata\":{},\"items\":[]}",
                LIST("", ""),
                LIST("0123456789012345678901234567890123456789012345678901234567890123456789", ""),
                "{\"metadata\":{\"resourceVersion\":\"7\"}}",
                "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":{}}",
                LIST("7", "1"),
                LIST("7", "{}"),
                LIST("7", "{\"metadata\":{\"name\":\"\",\"resourceVersion\":\"5\"}}"),
                LIST("7", "{\"metadata\":{\"name\":\"a\"}}"),
        };
        struct fixture *f = fixture_new(false, 0);
        hf_nsec pause = 100;

        assert_step(f, 0, "list limit=500", NEVER);
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                unsigned n = sleeps_so_far(f);
                respond(f, 0, 0, bad[i]);
                assert_step(f, n, NULL, pause);
                step_time(f, "list limit=500", NEVER);
                pause = pause * 2 < 30000 ? pause * 2 : 30000;
                assert_false(hf_informer_synced(f->informer));
        }
        fixture_free(f);
}

static void test_the_next_page_is_requested_at_once(void **state) {
        struct fixture *f = fixture_new(false, 0);

        assert_step(f, 0, "list limit=500", NEVER);
        step_list(f, 0, 0,
                  "{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"x+y\"},\"items\":"
                  "[" THING("a", "5", "1") "]}",
                  "list limit=500&continue=x%2By", NEVER);
        assert_false(hf_informer_synced(f->informer));
        /* The history behind the second page is compacted: no paging, then paging again. */
        step_list(f, HF_E_GONE, 0, NULL, NULL, 100);
        step_time(f, "list limit=0", NEVER);
        step_list(f, HF_E_UNAVAILABLE, 0, NULL, NULL, 200);
        step_time(f, "list limit=500", NEVER);
        step_list(f, 0, 0, LIST("9", THING("b", "6", "1")), "watch 9", NEVER);
        assert_int_equal(hf_informer_count(f->informer), 1);
        fixture_free(f);
}

/* ---- watches ---- */

static void test_a_watch_that_fails_is_repeated_ever_more_slowly(void **state) {
        struct fixture *f = watching(false);

        for (hf_nsec pause = 100; pause < 80000; pause *= 2) {
                step_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, pause < 30000 ? pause : 30000);
                step_time(f, "watch 7", NEVER);
        }
        assert_non_null(
                strstr(f->log, "4 watch of things failed: the watch has ended\n7 watch of"));
        /* An event ends the row, and so does a watch that has lived for a second. */
        step_event(f, HF_EVENT_ADDED, THING("b", "8", "1"), "8", NULL, NEVER);
        step_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, 100);
        step_time(f, "watch 8", NEVER);
        step_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, 200);
        step_time(f, "watch 8", NEVER);
        pass_time(f, HF_NSEC_PER_SEC);
        step_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, 100);
        fixture_free(f);
}

static void test_a_watch_that_ends_without_an_error_is_repeated_at_once_if_it_worked(void **state) {
        struct fixture *f = watching(false);

        step_watch_end(f, 0, NULL, NULL, 100); /* it did not work */
        assert_string_equal(f->log, "");
        step_time(f, "watch 7", NEVER);
        pass_time(f, HF_NSEC_PER_SEC - 1);
        step_watch_end(f, 0, NULL, NULL, 200);
        step_time(f, "watch 7", NEVER);
        pass_time(f, HF_NSEC_PER_SEC);
        step_watch_end(f, 0, NULL, "watch 7", NEVER);
        step_event(f, HF_EVENT_BOOKMARK, NULL, "9", NULL, NEVER);
        step_watch_end(f, 0, NULL, "watch 9", NEVER);
        fixture_free(f);
}

static void test_a_compacted_history_makes_a_new_list_at_once_but_not_twice(void **state) {
        struct fixture *f = watching(false);

        step_watch_end(f, HF_E_GONE, NULL, "list limit=500", NEVER);
        assert_string_equal(f->log, ""); /* servers do this */
        step_list(f, 0, 0, LIST("9", THING("a", "5", "1")), "watch 9", NEVER);
        step_watch_end(f, HF_E_GONE, NULL, NULL, 200);
        step_time(f, "list limit=500", NEVER);
        fixture_free(f);
}

/* The server has other contents under versions that it issued before. */
static void test_a_server_that_is_behind_is_listed_and_compared(void **state) {
        struct fixture *f = watching(false);

        assert_string_equal(f->events, "added a;");
        step_watch_end(f, HF_E_TIMEOUT, "Too large resource version: 7, current: 3", NULL, 100);
        step_time(f, "list limit=500", NEVER);
        step_list(f, 0, 0, LIST("7", THING("a", "5", "2")), "watch 7", NEVER);
        assert_string_equal(f->events, "added a;modified a;");
        /* Any other timeout says nothing about the server's state. */
        step_watch_end(f, HF_E_TIMEOUT, "too slow", NULL, 200);
        step_time(f, "watch 7", NEVER);
        fixture_free(f);
}

static void test_an_older_event_means_that_the_history_was_replaced(void **state) {
        struct fixture *f = watching(false);

        step_event(f, HF_EVENT_ADDED, THING("b", "6", "1"), "6", "list limit=500", NEVER);
        step_list(f, 0, 0, LIST("6", THING("a", "5", "2")), "watch 6", NEVER);
        assert_string_equal(f->events, "added a;modified a;");
        /* Later lists trust versions again. */
        step_watch_end(f, HF_E_GONE, NULL, "list limit=500", NEVER);
        step_list(f, 0, 0, LIST("7", THING("a", "5", "3")), "watch 7", NEVER);
        assert_string_equal(f->events, "added a;modified a;");
        fixture_free(f);
}

static void test_an_older_list_means_that_the_history_was_replaced(void **state) {
        struct fixture *f = watching(false);

        step_watch_end(f, HF_E_GONE, NULL, "list limit=500", NEVER);
        step_list(f, 0, 0, LIST("7", THING("a", "5", "2")), "watch 7", NEVER);
        assert_string_equal(f->events, "added a;"); /* it is as old as what was seen */
        step_event(f, HF_EVENT_ADDED, THING("b", "8", "1"), "8", NULL, NEVER);
        step_watch_end(f, HF_E_GONE, NULL, "list limit=500", NEVER);
        step_list(f, 0, 0, LIST("6", THING("a", "5", "3")), "watch 6", NEVER);
        assert_string_equal(f->events, "added a;added b;modified a;deleted b;");
        fixture_free(f);
}

static void test_an_event_that_cannot_be_applied_makes_a_new_list(void **state) {
        static const char *const bad[] = {"{", "{}", "{\"metadata\":{\"name\":\"b\"}}", "[]"};

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                struct fixture *f = watching(false);
                step_event(f, HF_EVENT_ADDED, bad[i], "8", NULL, 100);
                assert_non_null(strstr(f->log, "4 watch of things failed: "));
                assert_true(f->watch_canceled);
                step_time(f, "list limit=500", NEVER);
                fixture_free(f);
        }
}

static void test_a_request_that_does_not_begin_is_a_failure(void **state) {
        struct fixture *f = watching(false);

        f->refuses = true;
        step_watch_end(f, 0, NULL, NULL, 100);
        step_time(f, NULL, 200);
        step_time(f, NULL, 400);
        f->refuses = false;
        step_time(f, "watch 7", NEVER);
        f->refuses = true;
        step_watch_end(f, HF_E_GONE, NULL, NULL, 800); /* a failure, after three */
        step_time(f, NULL, 100);
        step_time(f, NULL, 200);
        f->refuses = false;
        step_time(f, "list limit=500", NEVER);
        fixture_free(f);
}

/* The server lists a higher revision than the event had, and other contents for a known one. */
static void test_an_older_event_makes_the_next_list_count_whatever_its_revision(void **state) {
        struct fixture *f = watching(false);

        for (hf_nsec pause = 100; pause < 1000; pause *= 2) {
                step_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, pause);
                step_time(f, "watch 7", NEVER);
        }
        step_event(f, HF_EVENT_ADDED, THING("b", "6", "1"), "6", "list limit=500", NEVER);
        assert_true(f->watch_canceled);
        step_list(f, 0, 0, LIST("9", THING("a", "5", "2")), "watch 9", NEVER);
        assert_string_equal(f->events, "added a;modified a;");
        /* The event has shown that watches work: the row of failures has ended. */
        step_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, 100);
        fixture_free(f);
}

static void test_a_version_has_up_to_31_bytes(void **state) {
        struct fixture *f = fixture_new(false, 0);

        assert_step(f, 0, "list limit=500", NEVER);
        step_list(f, 0, 0, LIST("12345678901234567890123456789012", ""), NULL, 100);
        step_time(f, "list limit=500", NEVER);
        step_list(f, 0, 0, LIST("1234567890123456789012345678901", ""),
                  "watch 1234567890123456789012345678901", NEVER);
        fixture_free(f);
}

/* ---- resyncs ---- */

static void test_a_resync_passes_all_objects_on_at_each_period(void **state) {
        struct fixture *f = fixture_new(false, 10 * HF_NSEC_PER_SEC);

        assert_step(f, 0, "list limit=500", 10000);
        step_list(f, 0, 0, LIST("7", THING("a", "5", "1")), "watch 7", 10000);
        assert_string_equal(f->events, "added a;");
        step_time(f, NULL, 10000);
        assert_string_equal(f->events, "added a;modified a;");
        step_time(f, NULL, 10000);
        assert_string_equal(f->events, "added a;modified a;modified a;");
        fixture_free(f);
}

/* ---- threads that wait ---- */

struct waiter {
        pthread_t thread;
        struct fixture *f;
        const char *version;
        struct hf_cancel *token;
        int result;
};

static void *wait_main(void *ctx) {
        struct waiter *waiter = ctx;

        waiter->result = hf_informer_wait(waiter->f->informer, waiter->version, waiter->token);
        return NULL;
}

/* Starts a thread that waits, after which the reflector sends `request` and sleeps. */
static void step_wait(struct fixture *f, struct waiter *waiter, const char *version,
                      const char *request, hf_nsec milliseconds) {
        unsigned n = sleeps_so_far(f);

        *waiter = (struct waiter){.f = f, .version = version};
        assert_int_equal(hf_cancel_new(NULL, &f->clock, &waiter->token), 0);
        assert_int_equal(pthread_create(&waiter->thread, NULL, wait_main, waiter), 0);
        assert_step(f, n, request, milliseconds);
}
static void assert_waited(struct waiter *waiter, int result) {
        assert_int_equal(pthread_join(waiter->thread, NULL), 0);
        assert_int_equal(waiter->result, result);
        hf_cancel_unref(waiter->token);
}

static void test_a_consistent_list_that_begins_later_ends_a_wait(void **state) {
        struct fixture *f = watching(false);
        struct waiter waiter;

        step_wait(f, &waiter, "20", "list limit=500", NEVER);
        step_list(f, 0, 0, LIST("9", THING("a", "5", "1")), NULL, NEVER);
        assert_waited(&waiter, 0);
        /* The watch goes on; what the list has shown is not shown again. */
        step_event(f, HF_EVENT_MODIFIED, THING("a", "9", "2"), "9", NULL, NEVER);
        assert_string_equal(f->events, "added a;");
        step_event(f, HF_EVENT_MODIFIED, THING("a", "10", "2"), "10", NULL, NEVER);
        assert_string_equal(f->events, "added a;modified a;");
        fixture_free(f);
}

static void test_a_probe_that_fails_is_repeated_up_to_each_second(void **state) {
        static const hf_nsec pauses[] = {100, 200, 400, 800, 800, 800};
        struct fixture *f = watching(false);
        struct waiter waiter;

        step_wait(f, &waiter, "20", "list limit=500", NEVER);
        for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
                step_list(f, HF_E_UNAVAILABLE, 0, NULL, NULL, pauses[i]);
                step_time(f, "list limit=500", NEVER);
        }
        step_list(f, HF_E_TOO_MANY, 3, NULL, NULL, 3000);
        step_time(f, "list limit=500", NEVER);
        step_list(f, 0, 0, LIST("7", THING("a", "5", "1")), NULL, NEVER);
        assert_waited(&waiter, 0);
        fixture_free(f);
}

/* With one revision, only that revision ends the wait, so it asks until the server has it. */
static void test_a_revision_that_is_not_reached_is_asked_for_ever_more_slowly(void **state) {
        static const hf_nsec pauses[] = {100, 200, 400, 800, 800};
        struct fixture *f = watching(true);
        struct waiter waiter;

        step_wait(f, &waiter, "20",
                  "list limit=500&resourceVersion=20&resourceVersionMatch=NotOlderThan", NEVER);
        for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
                step_list(f, 0, 0, LIST("7", THING("a", "5", "1")), NULL, pauses[i]);
                step_time(f, "list limit=500", NEVER);
        }
        /* An older answer changes nothing. */
        step_list(f, 0, 0, LIST("5", ""), NULL, 800);
        assert_int_equal(hf_informer_count(f->informer), 1);
        step_time(f, "list limit=500", NEVER);
        step_list(f, 0, 0, LIST("20", THING("a", "5", "1")), NULL, NEVER);
        assert_waited(&waiter, 0);
        /* A watch that begins later has nothing to skip: an older event is a sign again. */
        step_event(f, HF_EVENT_MODIFIED, THING("a", "21", "1"), "21", NULL, NEVER);
        step_watch_end(f, 0, NULL, "watch 21", NEVER);
        step_event(f, HF_EVENT_MODIFIED, THING("a", "19", "1"), "19", "list limit=500", NEVER);
        fixture_free(f);
}

static void test_a_waiter_shortens_a_long_pause(void **state) {
        struct fixture *f = watching(false);
        struct waiter waiter;

        for (hf_nsec pause = 100; pause < 20000; pause *= 2) {
                step_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, pause);
                step_time(f, "watch 7", NEVER);
        }
        step_watch_end(f, HF_E_UNAVAILABLE, NULL, NULL, 25600);
        step_wait(f, &waiter, "20", NULL, 800);
        hf_cancel_fire(waiter.token, HF_CANCEL_STOPPING);
        assert_waited(&waiter, HF_E_CANCELED);
        fixture_free(f);
}

/* The response to a probe may be older than what the watch had delivered. */
static void test_a_watch_that_is_lost_during_a_probe_makes_a_new_list(void **state) {
        struct fixture *f = watching(false);
        struct waiter waiter;

        step_wait(f, &waiter, "20", "list limit=500", NEVER);
        step_watch_end(f, HF_E_GONE, NULL, "list limit=500", NEVER);
        assert_true(f->list_done != NULL);
        step_list(f, 0, 0, LIST("9", THING("a", "5", "1")), "watch 9", NEVER);
        assert_waited(&waiter, 0);
        fixture_free(f);
}

/* A probe that has further pages cannot be ordered against the watch. */
static void test_a_probe_in_pages_replaces_the_watch(void **state) {
        struct fixture *f = watching(false);
        struct waiter waiter;

        step_wait(f, &waiter, "20", "list limit=500", NEVER);
        step_list(f, 0, 0,
                  "{\"metadata\":{\"resourceVersion\":\"9\",\"continue\":\"t\"},\"items\":[" THING(
                          "a", "5", "1") "]}",
                  "list limit=500&continue=t", NEVER);
        assert_true(f->watch_canceled);
        step_list(f, 0, 0, LIST("9", THING("b", "6", "1")), "watch 9", NEVER);
        assert_int_equal(hf_informer_count(f->informer), 2);
        assert_waited(&waiter, 0);
        fixture_free(f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_version_has_up_to_31_bytes),
                cmocka_unit_test(
                        test_an_older_event_makes_the_next_list_count_whatever_its_revision),
                cmocka_unit_test(test_a_request_that_does_not_begin_is_a_failure),
                cmocka_unit_test(test_a_list_that_fails_is_repeated_ever_more_slowly),
                cmocka_unit_test(test_retry_after_counts_up_to_five_minutes),
                cmocka_unit_test(test_a_list_without_a_version_is_a_failure),
                cmocka_unit_test(test_the_next_page_is_requested_at_once),
                cmocka_unit_test(test_a_watch_that_fails_is_repeated_ever_more_slowly),
                cmocka_unit_test(
                        test_a_watch_that_ends_without_an_error_is_repeated_at_once_if_it_worked),
                cmocka_unit_test(test_a_compacted_history_makes_a_new_list_at_once_but_not_twice),
                cmocka_unit_test(test_a_server_that_is_behind_is_listed_and_compared),
                cmocka_unit_test(test_an_older_event_means_that_the_history_was_replaced),
                cmocka_unit_test(test_an_older_list_means_that_the_history_was_replaced),
                cmocka_unit_test(test_an_event_that_cannot_be_applied_makes_a_new_list),
                cmocka_unit_test(test_a_resync_passes_all_objects_on_at_each_period),
                cmocka_unit_test(test_a_consistent_list_that_begins_later_ends_a_wait),
                cmocka_unit_test(test_a_probe_that_fails_is_repeated_up_to_each_second),
                cmocka_unit_test(test_a_revision_that_is_not_reached_is_asked_for_ever_more_slowly),
                cmocka_unit_test(test_a_waiter_shortens_a_long_pause),
                cmocka_unit_test(test_a_watch_that_is_lost_during_a_probe_makes_a_new_list),
                cmocka_unit_test(test_a_probe_in_pages_replaces_the_watch),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
