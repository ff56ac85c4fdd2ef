/* SPDX-License-Identifier: Apache-2.0 */
/* See phase_fixture.h. The clock's wait returns at once, so a whole night of failures takes no time
 * and the pauses are exact. */
#undef NDEBUG
#include "phase_fixture.h"

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/health.h>
#include <holdfast/metrics.h>

#include "base/json.h"
#include "text_asserts.h"

static struct phase_fixture *in_term; /* the term of the only phase that runs */

/* ---- what is replaced ---- */

struct hf_client *__wrap_hf_term_client(struct hf_term *term);
struct hf_client *__wrap_hf_term_client(struct hf_term *term) {
        return &in_term->client;
}
struct hf_cancel *__wrap_hf_term_drain(struct hf_term *term);
struct hf_cancel *__wrap_hf_term_drain(struct hf_term *term) {
        return in_term->drain;
}
struct hf_cancel *__wrap_hf_term_abort(struct hf_term *term);
struct hf_cancel *__wrap_hf_term_abort(struct hf_term *term) {
        return in_term->abort;
}
const char *__wrap_hf_term_acquired_at(struct hf_term *term);
const char *__wrap_hf_term_acquired_at(struct hf_term *term) { return in_term->acquired_at; }
const struct hf_host *__wrap_hf_term_host(struct hf_term *term);
const struct hf_host *__wrap_hf_term_host(struct hf_term *term) { return &in_term->host; }
void __wrap_hf_term_started(struct hf_term *term);
void __wrap_hf_term_started(struct hf_term *term) { in_term->n_started++; }
int __wrap_hf_elector_step_down(struct hf_elector *elector);
int __wrap_hf_elector_step_down(struct hf_elector *elector) {
        assert(in_term->n_step_downs < PHASE_FIXTURE_MAX);
        in_term->step_downs[in_term->n_step_downs++] = in_term->now - PHASE_FIXTURE_BEGIN;
        return in_term->step_down_result;
}

static hf_nsec clock_now(void *ctx) { return ((struct phase_fixture *)ctx)->now; }
/* 2026-01-02T03:04:05Z, and the time since the test began */
static hf_nsec clock_real(void *ctx) {
        return 1767323045 * SEC + ((struct phase_fixture *)ctx)->now - PHASE_FIXTURE_BEGIN +
               ((struct phase_fixture *)ctx)->epoch;
}
static int clock_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        struct phase_fixture *f = ctx;

        assert(deadline != HF_NSEC_NEVER);
        if (f->now < deadline)
                f->now = deadline;
        return HF_E_TIMEOUT;
}

static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        struct phase_fixture *f = ctx;
        size_t n = strlen(f->log);

        (void)snprintf(f->log + n, sizeof f->log - n, "%d %s: %s\n", (int)level, component,
                       message);
}

/* ---- the server ---- */

static void note_request(struct phase_fixture *f, const struct hf_request *request) {
        static const char *const verbs[] = {"GET", "LIST", "CREATE", "UPDATE"};
        size_t n = strlen(f->requests);

        assert(request->verb <= HF_VERB_UPDATE);
        (void)snprintf(f->requests + n, sizeof f->requests - n, "%s %s/%s/%s%s%s\n",
                       verbs[request->verb], request->resource.plural, request->ns,
                       request->name ? request->name : "", request->query ? "?" : "",
                       request->query ? request->query : "");
        f->n_requests++;
}

static int reply(hf_response_fn done, void *ctx, const struct phase_fixture *f, int error,
                 const char *body) {
        struct hf_response response = {.size = sizeof response,
                                       .error = error,
                                       .body = body,
                                       .n_body = body ? strlen(body) : 0};

        if (error != 0) {
                (void)hf_fail(&response.status, error, "%s%s", f->message ? "" : "the test says: ",
                              f->message ? f->message : hf_strerror(error));
                response.status.retry_after_s = f->retry_after_s;
        }
        done(ctx, &response);
        return 0;
}

/* The object of a write. The caller frees the parts. */
struct body {
        char *text, *key;
        struct hf__json *json;
};

static struct body body_of(const struct hf_request *request) {
        struct body body = {.text = strndup(request->body, request->n_body)};

        assert(body.text);
        assert(hf__json_parse(body.text, request->n_body, &body.json, NULL) == 0);
        body.key = fake_store_key(request->resource.plural, request->ns,
                                  hf__json_string(body.json, "metadata.name"));
        return body;
}

static int apply(struct phase_fixture *f, const struct hf_request *request,
                 const struct body *body) {
        const struct fake_object *object = fake_store_find(&f->store, body->key);
        const char *version = hf__json_string(body->json, "metadata.resourceVersion");

        if (request->verb == HF_VERB_CREATE && object)
                return HF_E_EXISTS;
        if (request->verb == HF_VERB_UPDATE && !object)
                return HF_E_NOT_FOUND;
        if (object && (!version || strtoull(version, NULL, 10) != object->revision))
                return HF_E_CONFLICT;
        if (!request->query || !strstr(request->query, "dryRun=All"))
                (void)fake_store_put(&f->store, body->key, body->text, NULL);
        return 0;
}

static bool meets_fault(struct phase_fixture *f, bool is_read) {
        if ((is_read != f->faults_reads && !f->faults_all) || f->fault == PHASE_NO_FAULT)
                return false;
        if (f->n_pass > 0) {
                f->n_pass--;
                return false;
        }
        if (f->n_fault == 0)
                return false;
        f->n_fault--;
        return true;
}

static int do_write(struct phase_fixture *f, const struct hf_request *request, hf_response_fn done,
                    void *ctx) {
        struct body body = body_of(request);
        bool is_event = strcmp(request->resource.plural, "events") == 0;
        bool faulty = !is_event && meets_fault(f, false);
        bool is_sent = !(faulty && f->fault == PHASE_UNSENT);
        bool is_applied = is_sent && !(faulty && f->fault == PHASE_REFUSED);
        int r = is_applied ? apply(f, request, &body) : f->error;

        if (!is_event) {
                assert(f->n_writes < PHASE_FIXTURE_MAX);
                f->write_times[f->n_writes++] = f->now - PHASE_FIXTURE_BEGIN;
        }
        if (r == 0 && faulty && f->fault == PHASE_LOST)
                r = f->error;
        const struct fake_object *object = fake_store_find(&f->store, body.key);
        bool dry = request->query && strstr(request->query, "dryRun=All");
        const char *text = dry ? body.text : NULL;
        if (faulty && f->fault == PHASE_GARBLED)
                text = "{";
        if (r == 0 && !text)
                text = object->text->data;
        if (is_sent)
                (void)reply(done, ctx, f, r, r == 0 ? text : NULL);
        hf__json_free(body.json);
        free(body.text);
        free(body.key);
        return is_sent ? 0 : r;
}

static int do_read(struct phase_fixture *f, const struct hf_request *request, hf_response_fn done,
                   void *ctx) {
        char *key = fake_store_key(request->resource.plural, request->ns, request->name);
        const struct fake_object *object = fake_store_find(&f->store, key);
        const char *text = object ? object->text->data : NULL;
        bool is_ledger = strcmp(key, PHASE_FIXTURE_LEDGER) == 0;
        bool is_check =
                is_ledger && request->query && strcmp(request->query, "resourceVersion=0") == 0;

        free(key);
        if (is_check && ++f->n_checks == f->drain_at_check)
                hf_cancel_fire(f->drain, HF_CANCEL_STOPPING);
        if (is_check && f->ledger_at_check)
                text = f->ledger_at_check[0] ? f->ledger_at_check : NULL;
        if (!is_check && strcmp(request->resource.plural, "configmaps") == 0 &&
            meets_fault(f, true))
                return f->fault == PHASE_GARBLED ? reply(done, ctx, f, 0, "{")
                                                 : reply(done, ctx, f, f->error, NULL);
        return reply(done, ctx, f, text ? 0 : HF_E_NOT_FOUND, text);
}

static int client_request(struct hf_client *self, const struct hf_request *request,
                          hf_response_fn done, void *ctx, uint64_t *ret_id) {
        struct phase_fixture *f = (struct phase_fixture *)self;

        *ret_id = 1;
        note_request(f, request);
        if (strcmp(request->resource.plural, "events") == 0)
                assert(request->deadline == f->now + 2 * SEC);
        if (f->n_requests == f->drain_at_request)
                hf_cancel_fire(f->drain, HF_CANCEL_STOPPING);
        assert(f->n_requests < 5000);
        return request->verb == HF_VERB_GET ? do_read(f, request, done, ctx)
                                            : do_write(f, request, done, ctx);
}
static void client_cancel(struct hf_client *self, uint64_t id) {}
static const struct hf_client_ops ops = {.size = sizeof ops,
                                         .request = client_request,
                                         .cancel = client_cancel};

/* ---- the phase ---- */

static void keep_reason(void *ctx, const char *name, bool healthy, const char *reason) {
        struct phase_fixture *f = ctx;

        if (strcmp(name, "bootstrap-zero") == 0)
                (void)snprintf(f->ready, sizeof f->ready, "%s", healthy ? "healthy" : reason);
        if (strcmp(name, "bootstrap") == 0)
                (void)snprintf(f->reason, sizeof f->reason, "%s", healthy ? "healthy" : reason);
}

void phase_fixture_on_progress(void *ctx, enum hf_bootstrap_point point,
                               const struct hf_bootstrap_info *info) {
        static const char *const names[] = {"begun",    "applied", "recorded",
                                            "complete", "failing", "gave way"};
        struct phase_fixture *f = ctx;
        size_t n = strlen(f->progress);

        (void)snprintf(f->progress + n, sizeof f->progress - n, "%s %s %zu/%zu%s%s%s\n",
                       names[point], info->step[0] ? info->step : "-", info->n_settled,
                       info->n_steps, info->running ? "" : " idle", info->failing ? " failing" : "",
                       info->complete ? " complete" : "");
        f->last_info = *info;
        (void)hf_health_each(f->host.health, HF_HEALTHZ, keep_reason, f);
        if (!f->first_ready[0])
                (void)snprintf(f->first_ready, sizeof f->first_ready, "%s", f->ready);
        assert_metric(f->host.metrics, info->failing
                                               ? "holdfast_bootstrap_failing{phase=\"zero\"} 1"
                                               : "holdfast_bootstrap_failing{phase=\"zero\"} 0");
        if (f->drain_at && f->now - PHASE_FIXTURE_BEGIN >= f->drain_at)
                hf_cancel_fire(f->drain, HF_CANCEL_STOPPING);
}

void phase_fixture_load(struct phase_fixture *f, const char *version, const char *a,
                        const char *b) {
        static const struct hf_bootstrap_kind kinds[] = {{"v1", "ConfigMap", "configmaps", true}};
        const struct hf_bootstrap_manifest manifests[] = {{"dir/a.json", a, strlen(a)},
                                                          {"dir/b.json", b, b ? strlen(b) : 0}};
        const struct hf_bootstrap_phase phases[] = {{.size = sizeof(struct hf_bootstrap_phase),
                                                     .name = "zero",
                                                     .manifests = manifests,
                                                     .n_manifests = b ? 2 : 1,
                                                     .any_order = f->any_order}};
        const struct hf_bootstrap_config config = {.size = sizeof config,
                                                   .version = version,
                                                   .kinds = kinds,
                                                   .n_kinds = 1,
                                                   .phases = phases,
                                                   .n_phases = 1,
                                                   .one_revision = true,
                                                   .on_progress = phase_fixture_on_progress,
                                                   .ctx = f};

        hf_hooks_free(f->hooks);
        hf_bootstrap_free(f->bootstrap);
        assert_int_equal(hf_bootstrap_new(&f->host, &config, &f->bootstrap, NULL), 0);
        assert_int_equal(hf_hooks_new(&f->host, NULL, &f->hooks), 0);
        assert_int_equal(hf_bootstrap_install(f->bootstrap, f->hooks, NULL, 0, NULL), 0);
}

struct phase_fixture *phase_fixture_new(void) {
        struct phase_fixture *f = calloc(1, sizeof *f);

        assert_non_null(f);
        f->clock = (struct hf_clock){sizeof(struct hf_clock),
                                     clock_now,
                                     clock_now,
                                     clock_real,
                                     clock_wait,
                                     f};
        f->host = (struct hf_host){.size = sizeof f->host,
                                   .clock = &f->clock,
                                   .log = {.write = on_log, .ctx = f}};
        f->client = (struct hf_client){.ops = &ops, .host = &f->host};
        f->now = PHASE_FIXTURE_BEGIN;
        f->acquired_at = "7";
        f->drain_at_check = 1;
        assert_int_equal(hf_health_new(&f->host.health), 0);
        assert_int_equal(hf_metrics_new(&f->host.metrics), 0);
        fake_store_init(&f->store, 100);
        phase_fixture_load(f, "1.0.0", PHASE_FIXTURE_CONFIGMAP("a", "1"),
                           PHASE_FIXTURE_CONFIGMAP("b", "1"));
        return f;
}

void phase_fixture_free(struct phase_fixture *f) {
        hf_hooks_free(f->hooks);
        hf_bootstrap_free(f->bootstrap);
        fake_store_deinit(&f->store);
        hf_health_free(f->host.health);
        hf_metrics_free(f->host.metrics);
        free(f);
}

int phase_fixture_lead(struct phase_fixture *f) {
        struct hf_controller controller = {.size = sizeof controller};

        assert_int_equal(hf_cancel_new(NULL, &f->clock, &f->abort), 0);
        assert_int_equal(hf_cancel_new(f->abort, &f->clock, &f->drain), 0);
        f->requests[0] = f->progress[0] = f->log[0] = '\0';
        f->n_requests = f->n_checks = f->n_writes = f->n_started = f->n_step_downs = 0;
        f->now = PHASE_FIXTURE_BEGIN;
        in_term = f;
        assert_int_equal(hf_bootstrap_controller(f->bootstrap, 0, &controller), 0);
        int r = controller.run((struct hf_term *)f, controller.ctx);
        hf_cancel_unref(f->drain);
        hf_cancel_unref(f->abort);
        return r;
}

void phase_fixture_fail(struct phase_fixture *f, enum phase_fault fault, int error, unsigned n_pass,
                        unsigned n_fault) {
        f->fault = fault;
        f->error = error;
        f->n_pass = n_pass;
        f->n_fault = n_fault;
}

bool phase_fixture_is_settled(struct phase_fixture *f) {
        struct hf_controller controller = {.size = sizeof controller};

        assert_int_equal(hf_bootstrap_controller(f->bootstrap, 0, &controller), 0);
        return controller.is_settled(controller.ctx);
}

const char *phase_fixture_text(struct phase_fixture *f, const char *key) {
        const struct fake_object *object = fake_store_find(&f->store, key);

        assert_non_null(object);
        return object->text->data;
}

unsigned phase_fixture_n_commits(const struct phase_fixture *f, const char *key) {
        unsigned n = 0;

        for (size_t i = 0; i < f->store.n_commits; i++)
                n += strcmp(f->store.commits[i].key, key) == 0;
        return n;
}

void phase_fixture_set_elector(struct phase_fixture *f) {
        static int elector;

        hf_bootstrap_set_elector(f->bootstrap, (struct hf_elector *)&elector);
}
