/* SPDX-License-Identifier: Apache-2.0 */
/* See reflector_fixture.h. */
#undef NDEBUG
#include "reflector_fixture.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/informer_private.h"

/* ---- the clock ---- */

static hf_nsec clock_now(void *ctx) { return atomic_load(&((struct reflector_fixture *)ctx)->now); }

/* The informer's thread sleeps on `wake`; other threads wait at the barrier. Only a signal ends a
 * wait, so reflector_fixture_time sends one after it has moved the clock. */
static int clock_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        struct reflector_fixture *f = ctx;
        bool is_reflector = cond == &f->informer->thread->wake;

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
        struct reflector_fixture *f = (struct reflector_fixture *)self;

        assert(request->verb == HF_VERB_LIST);
        assert(request->deadline == clock_now(f) + 60 * SEC);
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
        struct reflector_fixture *f = (struct reflector_fixture *)self;

        assert(spec->bookmarks);             /* or the version of an idle watch is soon too old */
        assert(spec->lane == HF_LANE_WATCH); /* requests must not wait behind it */
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

static void end_watch(struct reflector_fixture *f, int error, const char *message);

static void client_cancel(struct hf_client *self, uint64_t id) {
        reflector_fixture_respond((struct reflector_fixture *)self, HF_E_CANCELED, 0, NULL);
}
static void client_watch_cancel(struct hf_client *self, uint64_t id) {
        end_watch((struct reflector_fixture *)self, HF_E_CANCELED, NULL);
}
static const struct hf_client_ops ops = {sizeof ops,   client_request,      client_cancel,
                                         client_watch, client_watch_cancel, NULL};

void reflector_fixture_respond(struct reflector_fixture *f, int error, uint32_t retry_after_s,
                               const char *body) {
        struct hf_response response = {.size = sizeof response,
                                       .error = error,
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

static void end_watch(struct reflector_fixture *f, int error, const char *message) {
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
        struct reflector_fixture *f = ctx;
        size_t n = strlen(f->log);

        (void)snprintf(f->log + n, sizeof f->log - n, "%d %s\n", (int)level, message);
}

static void await_locked(struct reflector_fixture *f,
                         bool (*is_so)(const struct reflector_fixture *f, unsigned n), unsigned n) {
        const struct hf_clock *system = hf_clock_system();
        hf_nsec until = hf_now(system) + PATIENCE_MSEC * MSEC;

        while (!is_so(f, n) && hf_now(system) < until)
                (void)system->wait(system->ctx, &f->changed, &f->mu, until);
        assert_true(is_so(f, n));
}
static bool sleeps_again(const struct reflector_fixture *f, unsigned n) {
        return f->sleeps && f->n_sleeps > n;
}

unsigned reflector_fixture_n_sleeps(struct reflector_fixture *f) {
        pthread_mutex_lock(&f->mu);
        unsigned n = f->n_sleeps;
        pthread_mutex_unlock(&f->mu);
        return n;
}

void reflector_fixture_assert_step(struct reflector_fixture *f, unsigned n_sleeps,
                                   const char *request, hf_nsec milliseconds) {
        pthread_mutex_lock(&f->mu);
        await_locked(f, sleeps_again, n_sleeps);
        assert_string_equal(f->last, request ? request : "");
        hf_nsec until = f->until == HF_NSEC_NEVER ? REFLECTOR_NEVER
                                                  : (f->until - clock_now(f)) / HF_NSEC_PER_MSEC;
        f->last[0] = '\0';
        pthread_mutex_unlock(&f->mu);
        assert_int_equal(until, milliseconds);
}

void reflector_fixture_list(struct reflector_fixture *f, int error, uint32_t retry_after_s,
                            const char *body, const char *request, hf_nsec milliseconds) {
        unsigned n = reflector_fixture_n_sleeps(f);

        reflector_fixture_respond(f, error, retry_after_s, body);
        reflector_fixture_assert_step(f, n, request, milliseconds);
}
void reflector_fixture_watch_end(struct reflector_fixture *f, int error, const char *message,
                                 const char *request, hf_nsec milliseconds) {
        unsigned n = reflector_fixture_n_sleeps(f);

        end_watch(f, error, message);
        reflector_fixture_assert_step(f, n, request, milliseconds);
}
void reflector_fixture_event(struct reflector_fixture *f, enum hf_event_type type,
                             const char *object, const char *version, const char *request,
                             hf_nsec milliseconds) {
        unsigned n = reflector_fixture_n_sleeps(f);
        struct hf_event event = {.type = type,
                                 .object = object,
                                 .n_object = object ? strlen(object) : 0,
                                 .resource_version = version};

        f->on_event(f->watch_ctx, &event);
        reflector_fixture_assert_step(f, n, request, milliseconds);
}
void reflector_fixture_time(struct reflector_fixture *f, const char *request,
                            hf_nsec milliseconds) {
        pthread_mutex_lock(&f->mu);
        assert_true(f->sleeps && f->until != HF_NSEC_NEVER);
        unsigned n = f->n_sleeps;
        atomic_store(&f->now, f->until);
        pthread_mutex_unlock(&f->mu);
        pthread_mutex_lock(&f->informer->thread->mu);
        pthread_cond_broadcast(&f->informer->thread->wake);
        pthread_mutex_unlock(&f->informer->thread->mu);
        reflector_fixture_assert_step(f, n, request, milliseconds);
}
void reflector_fixture_pass(struct reflector_fixture *f, hf_nsec time) {
        atomic_fetch_add(&f->now, time);
}

static void on_object(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                      const char *object, size_t n) {
        static const char *const names[] = {"added", "modified", "deleted"};
        struct reflector_fixture *f = ctx;
        size_t used = strlen(f->events);

        (void)atomic_fetch_add(&f->now, f->takes);
        (void)snprintf(f->events + used, sizeof f->events - used, "%s %s;",
                       (size_t)type < 3 ? names[type] : "?", name);
}

struct reflector_fixture *reflector_fixture_new(bool one_revision, hf_nsec resync) {
        struct reflector_fixture *f = calloc(1, sizeof *f);
        struct hf_informer_handler *handler;

        assert_non_null(f);
        assert_int_equal(hf__mutex_cond_init(&f->mu, &f->changed), 0);
        f->clock = (struct hf_clock){sizeof(struct hf_clock),
                                     clock_now,
                                     clock_now,
                                     clock_now,
                                     clock_wait,
                                     f};
        f->host = (struct hf_host){
                .size = sizeof f->host,
                .clock = &f->clock,
                .log = {.write = on_log, .ctx = f, .max_level = HF_LOG_DEBUG},
        };
        f->client = (struct hf_client){.ops = &ops, .host = &f->host};
        atomic_store(&f->now, 1000 * SEC);
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

struct reflector_fixture *reflector_fixture_new_watching(bool one_revision) {
        struct reflector_fixture *f = reflector_fixture_new(one_revision, 0);

        reflector_fixture_assert_step(f, 0, "list limit=500", REFLECTOR_NEVER);
        reflector_fixture_list(f, 0, 0, REFLECTOR_LIST("7", REFLECTOR_THING("a", "5", "1")),
                               "watch 7", REFLECTOR_NEVER);
        return f;
}

void reflector_fixture_free(struct reflector_fixture *f) {
        hf_informer_free(f->informer);
        pthread_cond_destroy(&f->changed);
        pthread_mutex_destroy(&f->mu);
        free(f);
}
