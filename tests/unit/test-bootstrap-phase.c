/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A phase in a term, in one thread: which requests it sends, when, what it reports, and how it
 * ends. The server answers at once, and a clock jumps to each deadline that the phase waits for. So
 * the pauses are exact, and a whole night of failures takes no time. The functions of the term and
 * of the elector are replaced by those of the test (--wrap); test-bootstrap-run.c has the real
 * ones.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/bootstrap.h>
#include <holdfast/client_port.h>
#include <holdfast/health.h>
#include <holdfast/metrics.h>

#include "base/json.h"
#include "bootstrap/phase_run.h"
#include "fake_store.h"

#define BEGIN  (1000 * HF_NSEC_PER_SEC) /* the boot time at which a test begins */
#define LEDGER "configmaps/kube-system/holdfast-bootstrap"
#define MSEC   HF_NSEC_PER_MSEC
#define SECOND HF_NSEC_PER_SEC
#define MAX    512

/* What happens to a write of ConfigMaps, or to a read. */
enum fault {
        NONE,
        REFUSED, /* with the error, and nothing is done */
        LOST,    /* it is done, and the reply is the error */
        GARBLED, /* it is done, and the reply is no JSON */
};

struct fixture {
        struct hf_client client; /* first */
        struct hf_clock clock;
        struct hf_host host;
        struct fake_store store;
        struct hf_bootstrap *bootstrap;
        struct hf_cancel *drain, *abort;
        const char *acquired_at;
        hf_nsec now;
        unsigned n_started;

        /* the next writes (skip the first n_pass, then fault the next n_fault) */
        enum fault fault;
        int error;
        unsigned n_pass, n_fault;
        unsigned retry_after_s;
        bool faults_reads; /* in place of writes */
        bool faults_all;   /* reads and writes */
        hf_nsec epoch;     /* added to the time of day */

        /* the drain fires before this request; 0 = never */
        unsigned drain_at_request;
        unsigned drain_at_check;     /* ... at the n-th check that the ledger still exists */
        const char *ledger_at_check; /* what a check finds; "" = nothing; NULL = the ledger */
        hf_nsec drain_at;            /* ... at the first wait that ends after this time */
        int step_down_result;
        hf_nsec step_downs[MAX];
        unsigned n_step_downs;

        char requests[16384]; /* one line each */
        unsigned n_requests, n_checks;
        hf_nsec write_times[MAX]; /* of the writes of ConfigMaps */
        unsigned n_writes;
        char progress[16384]; /* one line for each call of on_progress */
        struct hf_bootstrap_info last_info;
        char log[32768];
        char reason[512]; /* of the failing health check when the phase last failed */
        char ready[512];  /* of the readiness check at the last report */
        char first_ready[512];
        struct hf_hooks *hooks;
};

static struct fixture *in_term; /* the term of the only phase that runs */

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
        assert(in_term->n_step_downs < MAX);
        in_term->step_downs[in_term->n_step_downs++] = in_term->now - BEGIN;
        return in_term->step_down_result;
}

static hf_nsec clock_now(void *ctx) { return ((struct fixture *)ctx)->now; }
/* 2026-01-02T03:04:05Z, and the time since the test began */
static hf_nsec clock_real(void *ctx) {
        return 1767323045 * SECOND + ((struct fixture *)ctx)->now - BEGIN +
               ((struct fixture *)ctx)->epoch;
}
static int clock_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, hf_nsec deadline) {
        struct fixture *f = ctx;

        assert(deadline != HF_NSEC_NEVER);
        if (f->now < deadline)
                f->now = deadline;
        return HF_E_TIMEOUT;
}

static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        struct fixture *f = ctx;
        size_t n = strlen(f->log);

        (void)snprintf(f->log + n, sizeof f->log - n, "%d %s: %s\n", (int)level, component,
                       message);
}

/* ---- the server ---- */

static void note_request(struct fixture *f, const struct hf_request *request) {
        static const char *const verbs[] = {"GET", "LIST", "CREATE", "UPDATE"};
        size_t n = strlen(f->requests);

        assert(request->verb <= HF_VERB_UPDATE);
        (void)snprintf(f->requests + n, sizeof f->requests - n, "%s %s/%s/%s%s%s\n",
                       verbs[request->verb], request->resource.plural, request->ns,
                       request->name ? request->name : "", request->query ? "?" : "",
                       request->query ? request->query : "");
        f->n_requests++;
}

static int reply(hf_response_fn done, void *ctx, const struct fixture *f, int error,
                 const char *body) {
        struct hf_response response = {.error = error,
                                       .body = body,
                                       .n_body = body ? strlen(body) : 0};

        if (error != 0) {
                (void)hf_fail(&response.status, error, "the test says: %s", hf_strerror(error));
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

static int apply(struct fixture *f, const struct hf_request *request, const struct body *body) {
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

static bool meets_fault(struct fixture *f, bool is_read) {
        if ((is_read != f->faults_reads && !f->faults_all) || f->fault == NONE)
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

static int do_write(struct fixture *f, const struct hf_request *request, hf_response_fn done,
                    void *ctx) {
        struct body body = body_of(request);
        bool is_event = strcmp(request->resource.plural, "events") == 0;
        bool faulty = !is_event && meets_fault(f, false);
        int r = faulty && f->fault == REFUSED ? f->error : apply(f, request, &body);

        if (!is_event) {
                assert(f->n_writes < MAX);
                f->write_times[f->n_writes++] = f->now - BEGIN;
        }
        if (r == 0 && faulty && f->fault == LOST)
                r = f->error;
        const struct fake_object *object = fake_store_find(&f->store, body.key);
        bool dry = request->query && strstr(request->query, "dryRun=All");
        const char *text = dry ? body.text : NULL;
        if (faulty && f->fault == GARBLED)
                text = "{";
        if (r == 0 && !text)
                text = object->text->data;
        (void)reply(done, ctx, f, r, r == 0 ? text : NULL);
        hf__json_free(body.json);
        free(body.text);
        free(body.key);
        return 0;
}

static int do_read(struct fixture *f, const struct hf_request *request, hf_response_fn done,
                   void *ctx) {
        char *key = fake_store_key(request->resource.plural, request->ns, request->name);
        const struct fake_object *object = fake_store_find(&f->store, key);
        const char *text = object ? object->text->data : NULL;
        bool is_ledger = strcmp(key, LEDGER) == 0;
        bool is_check =
                is_ledger && request->query && strcmp(request->query, "resourceVersion=0") == 0;

        free(key);
        if (is_check && ++f->n_checks == f->drain_at_check)
                hf_cancel_fire(f->drain, HF_CANCEL_STOPPING);
        if (is_check && f->ledger_at_check)
                text = f->ledger_at_check[0] ? f->ledger_at_check : NULL;
        if (!is_check && strcmp(request->resource.plural, "configmaps") == 0 &&
            meets_fault(f, true))
                return f->fault == GARBLED ? reply(done, ctx, f, 0, "{")
                                           : reply(done, ctx, f, f->error, NULL);
        return reply(done, ctx, f, text ? 0 : HF_E_NOT_FOUND, text);
}

static int client_request(struct hf_client *self, const struct hf_request *request,
                          hf_response_fn done, void *ctx, uint64_t *ret_id) {
        struct fixture *f = (struct fixture *)self;

        *ret_id = 1;
        note_request(f, request);
        if (strcmp(request->resource.plural, "events") == 0)
                assert(request->deadline == f->now + 2 * SECOND);
        if (f->n_requests == f->drain_at_request)
                hf_cancel_fire(f->drain, HF_CANCEL_STOPPING);
        assert(f->n_requests < 5000);
        return request->verb == HF_VERB_GET ? do_read(f, request, done, ctx)
                                            : do_write(f, request, done, ctx);
}
static void client_cancel(struct hf_client *self, uint64_t id) {}
static const struct hf_client_ops ops = {.request = client_request, .cancel = client_cancel};

/* ---- the phase ---- */

static void keep_reason(void *ctx, const char *name, bool healthy, const char *reason) {
        struct fixture *f = ctx;

        if (strcmp(name, "bootstrap-zero") == 0)
                (void)snprintf(f->ready, sizeof f->ready, "%s", healthy ? "healthy" : reason);
        if (strcmp(name, "bootstrap") == 0)
                (void)snprintf(f->reason, sizeof f->reason, "%s", healthy ? "healthy" : reason);
}

static void assert_metric(struct fixture *f, const char *line);

static void on_progress(void *ctx, enum hf_bootstrap_point point,
                        const struct hf_bootstrap_info *info) {
        static const char *const names[] = {"begun",    "applied", "recorded",
                                            "complete", "failing", "gave way"};
        struct fixture *f = ctx;
        size_t n = strlen(f->progress);

        (void)snprintf(f->progress + n, sizeof f->progress - n, "%s %s %zu/%zu%s%s%s\n",
                       names[point], info->step[0] ? info->step : "-", info->n_settled,
                       info->n_steps, info->running ? "" : " idle", info->failing ? " failing" : "",
                       info->complete ? " complete" : "");
        f->last_info = *info;
        (void)hf_health_each(f->host.health, HF_HEALTHZ, keep_reason, f);
        if (!f->first_ready[0])
                (void)snprintf(f->first_ready, sizeof f->first_ready, "%s", f->ready);
        assert_metric(f, info->failing ? "holdfast_bootstrap_failing{phase=\"zero\"} 1"
                                       : "holdfast_bootstrap_failing{phase=\"zero\"} 0");
        if (f->drain_at && f->now - BEGIN >= f->drain_at)
                hf_cancel_fire(f->drain, HF_CANCEL_STOPPING);
}

#define CONFIGMAP(name, value)                                                                     \
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" name             \
        "\",\"namespace\":\"default\"},\"data\":{\"k\":\"" value "\"}}"

static void load(struct fixture *f, const char *version, const char *a, const char *b) {
        static const struct hf_bootstrap_kind kinds[] = {{"v1", "ConfigMap", "configmaps", true}};
        const struct hf_bootstrap_manifest manifests[] = {{"dir/a.json", a, strlen(a)},
                                                          {"dir/b.json", b, b ? strlen(b) : 0}};
        const struct hf_bootstrap_phase phases[] = {
                {.name = "zero", .manifests = manifests, .n_manifests = b ? 2 : 1}};
        const struct hf_bootstrap_config config = {.size = sizeof config,
                                                   .version = version,
                                                   .kinds = kinds,
                                                   .n_kinds = 1,
                                                   .phases = phases,
                                                   .n_phases = 1,
                                                   .one_revision = true,
                                                   .on_progress = on_progress,
                                                   .ctx = f};

        hf_hooks_free(f->hooks);
        hf_bootstrap_free(f->bootstrap);
        assert_int_equal(hf_bootstrap_new(&f->host, &config, &f->bootstrap, NULL), 0);
        assert_int_equal(hf_hooks_new(&f->host, NULL, &f->hooks), 0);
        assert_int_equal(hf_bootstrap_install(f->bootstrap, f->hooks, NULL, 0, NULL), 0);
}

static struct fixture *fixture_new(void) {
        struct fixture *f = calloc(1, sizeof *f);

        assert_non_null(f);
        f->clock = (struct hf_clock){clock_now, clock_now, clock_real, clock_wait, f};
        f->host = (struct hf_host){.size = sizeof f->host,
                                   .clock = &f->clock,
                                   .log = {.write = on_log, .ctx = f}};
        f->client = (struct hf_client){.ops = &ops, .host = &f->host};
        f->now = BEGIN;
        f->acquired_at = "7";
        f->drain_at_check = 1;
        assert_int_equal(hf_health_new(&f->host.health), 0);
        assert_int_equal(hf_metrics_new(&f->host.metrics), 0);
        fake_store_init(&f->store, 100);
        load(f, "1.0.0", CONFIGMAP("a", "1"), CONFIGMAP("b", "1"));
        return f;
}

static void fixture_free(struct fixture *f) {
        hf_hooks_free(f->hooks);
        hf_bootstrap_free(f->bootstrap);
        fake_store_deinit(&f->store);
        hf_health_free(f->host.health);
        hf_metrics_free(f->host.metrics);
        free(f);
}

/* Runs the phase in a new term until it is drained. Returns its result. */
static int lead(struct fixture *f) {
        size_t n;

        assert_int_equal(hf_cancel_new(NULL, &f->clock, &f->abort), 0);
        assert_int_equal(hf_cancel_new(f->abort, &f->clock, &f->drain), 0);
        f->requests[0] = f->progress[0] = f->log[0] = '\0';
        f->n_requests = f->n_checks = f->n_writes = f->n_started = f->n_step_downs = 0;
        f->now = BEGIN;
        in_term = f;
        int r = hf_bootstrap_controllers(f->bootstrap, &n)[0]
                        .run((struct hf_term *)f,
                             hf_bootstrap_controllers(f->bootstrap, &n)[0].ctx);
        hf_cancel_unref(f->drain);
        hf_cancel_unref(f->abort);
        return r;
}

static void fail_with(struct fixture *f, enum fault fault, int error, unsigned n_pass,
                      unsigned n_fault) {
        f->fault = fault;
        f->error = error;
        f->n_pass = n_pass;
        f->n_fault = n_fault;
}

static bool is_settled(struct fixture *f) {
        size_t n;
        const struct hf_controller *controller = hf_bootstrap_controllers(f->bootstrap, &n);

        return controller->is_settled(controller->ctx);
}

static const char *text_of(struct fixture *f, const char *key) {
        const struct fake_object *object = fake_store_find(&f->store, key);

        assert_non_null(object);
        return object->text->data;
}

static unsigned n_commits(const struct fixture *f, const char *key) {
        unsigned n = 0;

        for (size_t i = 0; i < f->store.n_commits; i++)
                n += strcmp(f->store.commits[i].key, key) == 0;
        return n;
}

static void add_text(void *ctx, const char *text, size_t n) {
        char *all = ctx;
        size_t used = strlen(all);

        assert(used + n < 16384);
        memcpy(all + used, text, n);
        all[used + n] = '\0';
}

static void assert_metric(struct fixture *f, const char *line) {
        static char all[16384];

        all[0] = '\0';
        hf_metrics_write(f->host.metrics, add_text, all);
        if (!strstr(all, line))
                fail_msg("no \"%s\" in:\n%s", line, all);
}

static void assert_in(const char *text, const char *part) {
        if (!strstr(text, part))
                fail_msg("no \"%s\" in:\n%s", part, text);
}

/* ---- an empty store ---- */

#define FIRST_READ "GET configmaps/kube-system/holdfast-bootstrap?resourceVersion=7\n"
#define SAFE_READ  "GET configmaps/kube-system/holdfast-bootstrap\n"
#define CHECK      "GET configmaps/kube-system/holdfast-bootstrap?resourceVersion=0\n"
#define CREATE_STEP                                                                                \
        "CREATE configmaps/default/?fieldManager=holdfast-bootstrap&fieldValidation=Strict\n"
#define NEW_LEDGER "CREATE configmaps/kube-system/?fieldManager=holdfast-bootstrap\n"
#define OLD_LEDGER                                                                                 \
        "UPDATE configmaps/kube-system/holdfast-bootstrap?fieldManager=holdfast-bootstrap\n"
#define READ(name) "GET configmaps/default/" name "\n"
#define REPLACE(name)                                                                              \
        "UPDATE configmaps/default/" name                                                          \
        "?fieldManager=holdfast-bootstrap&fieldValidation=Strict\n"
#define DRY_RUN(name)                                                                              \
        "UPDATE configmaps/default/" name                                                          \
        "?fieldManager=holdfast-bootstrap&fieldValidation=Strict&dryRun=All\n"

static void test_each_step_is_written_then_recorded(void **state) {
        struct fixture *f = fixture_new();
        struct hf_bootstrap_info info;

        assert_false(is_settled(f));
        assert_metric(f, "holdfast_bootstrap_complete{phase=\"zero\"} 0");
        assert_metric(f, "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"kept\"} 0");
        assert_int_equal(lead(f), 0);
        assert_string_equal(f->requests, FIRST_READ CREATE_STEP NEW_LEDGER CREATE_STEP OLD_LEDGER
                                                 OLD_LEDGER CHECK);
        assert_string_equal(f->progress, "begun ConfigMap/default/a 0/2\n"
                                         "applied ConfigMap/default/a 0/2\n"
                                         "recorded ConfigMap/default/a 1/2\n"
                                         "applied ConfigMap/default/b 1/2\n"
                                         "recorded ConfigMap/default/b 2/2\n"
                                         "complete - 2/2 complete\n");
        assert_int_equal(f->n_started, 1);
        assert_string_equal(f->first_ready, "not complete: 0 of 2 steps are done");
        assert_string_equal(f->ready, "healthy");
        assert_true(is_settled(f));
        assert_metric(f, "holdfast_bootstrap_complete{phase=\"zero\"} 1");
        assert_metric(f, "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"created\"} 2");
        assert_string_equal(f->log, "6 bootstrap: zero: ConfigMap/default/a created\n"
                                    "6 bootstrap: zero: ConfigMap/default/b created\n"
                                    "5 bootstrap: zero: complete, by version 1.0.0\n");
        hf_bootstrap_info(f->bootstrap, 0, &info);
        assert_false(info.running);
        assert_true(info.complete);
        assert_string_equal(info.step, "");
        assert_int_equal(f->now - BEGIN, 2 * SECOND); /* the first check that the ledger exists */
        fixture_free(f);
}

static void test_the_ledger_says_what_was_done_and_when(void **state) {
        struct fixture *f = fixture_new();
        const char *phase = "zero";
        struct hf__ledger ledger;
        struct hf__json *json;

        assert_int_equal(lead(f), 0);
        const char *text = text_of(f, LEDGER);
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        assert_int_equal(hf__ledger_read(json, &phase, 1, &ledger, NULL), 0);
        const struct hf__ledger_entry *entry = hf__ledger_find(&ledger, "ConfigMap/default/a");
        assert_string_equal(entry->phase, "zero");
        assert_string_equal(entry->version, "1.0.0");
        assert_memory_equal(entry->at, "2026-01-02T03:04:05", 19);
        assert_int_equal(strlen(entry->applied), HF__HASH_DIGITS);
        const struct hf__ledger_completed *completed = hf__ledger_find_completed(&ledger, "zero");
        assert_string_equal(completed->version, "1.0.0");
        assert_memory_equal(completed->at, "2026-01-02T03:04:05", 19);
        hf__ledger_done(&ledger);
        hf__json_free(json);
        fixture_free(f);
}

/* A program started again finds everything done, and writes nothing. */
static void test_a_phase_that_is_complete_only_reads(void **state) {
        struct fixture *f = fixture_new();

        assert_int_equal(lead(f), 0);
        load(f, "1.0.0", CONFIGMAP("a", "1"), CONFIGMAP("b", "1"));
        assert_int_equal(lead(f), 0);
        assert_string_equal(f->requests, FIRST_READ CHECK);
        assert_string_equal(f->progress, "");
        assert_int_equal(f->n_started, 1);
        assert_true(is_settled(f));
        assert_metric(f, "holdfast_bootstrap_complete{phase=\"zero\"} 1");
        fixture_free(f);
}

/* Only a server with one revision for all collections knows which read is not older than a Lease.
 */
static void test_the_first_read_is_consistent_unless_the_revision_is_known(void **state) {
        struct fixture *f = fixture_new();

        f->acquired_at = "";
        assert_int_equal(lead(f), 0);
        assert_memory_equal(f->requests, SAFE_READ, strlen(SAFE_READ));
        fixture_free(f);
}

/* ---- what exists already ---- */

static void put(struct fixture *f, const char *name, const char *text) {
        char *key = fake_store_key("configmaps", "default", name);

        (void)fake_store_put(&f->store, key, text, NULL);
        free(key);
}

static void test_objects_of_users_are_found_and_left_alone(void **state) {
        struct fixture *f = fixture_new();

        put(f, "a", CONFIGMAP("a", "mine"));
        assert_int_equal(lead(f), 0);
        assert_string_equal(f->requests,
                            FIRST_READ CREATE_STEP READ("a")
                                    NEW_LEDGER CREATE_STEP OLD_LEDGER OLD_LEDGER CHECK);
        assert_in(text_of(f, "configmaps/default/a"), "\"mine\"");
        assert_metric(f, "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"found\"} 1");
        fixture_free(f);
}

static void test_an_upgrade_replaces_what_nobody_has_edited(void **state) {
        struct fixture *f = fixture_new();

        assert_int_equal(lead(f), 0);
        put(f, "b", CONFIGMAP("b", "edited"));
        load(f, "2.0.0", CONFIGMAP("a", "2"), CONFIGMAP("b", "2"));
        assert_int_equal(lead(f), 0);
        assert_string_equal(f->requests, FIRST_READ READ("a") REPLACE("a") OLD_LEDGER READ("b")
                                                 OLD_LEDGER OLD_LEDGER CHECK);
        assert_in(text_of(f, "configmaps/default/a"), "\"k\":\"2\"");
        assert_in(text_of(f, "configmaps/default/b"), "\"k\":\"edited\"");
        assert_metric(f, "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"updated\"} 1");
        assert_metric(f, "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"kept\"} 1");
        /* What was written is known by its hash, so the next upgrade replaces it again. */
        load(f, "3.0.0", CONFIGMAP("a", "3"), NULL);
        assert_int_equal(lead(f), 0);
        assert_in(text_of(f, "configmaps/default/a"), "\"k\":\"3\"");
        fixture_free(f);
}

static void test_an_upgrade_does_not_bring_back_what_was_deleted(void **state) {
        struct fixture *f = fixture_new();

        assert_int_equal(lead(f), 0);
        (void)fake_store_delete(&f->store, "configmaps/default/a", NULL);
        load(f, "2.0.0", CONFIGMAP("a", "2"), CONFIGMAP("b", "1"));
        assert_int_equal(lead(f), 0);
        assert_string_equal(f->requests, FIRST_READ READ("a") OLD_LEDGER OLD_LEDGER CHECK);
        assert_null(fake_store_find(&f->store, "configmaps/default/a"));
        assert_metric(f, "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"deleted\"} 1");
        fixture_free(f);
}

/* The stamp shows that the object is ours. A dry run shows how the server stores the content, so
 * that a later upgrade can tell an edit. */
static void test_a_create_whose_reply_was_lost_is_recorded_as_ours(void **state) {
        struct fixture *f = fixture_new();

        fail_with(f, LOST, HF_E_TIMEOUT, 0, 1);
        assert_int_equal(lead(f), 0);
        assert_in(f->requests, FIRST_READ CREATE_STEP);
        assert_in(f->requests, SAFE_READ CREATE_STEP READ("a") DRY_RUN("a")
                                       NEW_LEDGER CREATE_STEP OLD_LEDGER OLD_LEDGER CHECK);
        assert_int_equal(n_commits(f, "configmaps/default/a"), 1);
        assert_metric(f, "holdfast_bootstrap_steps_total{phase=\"zero\",outcome=\"created\"} 2");
        load(f, "2.0.0", CONFIGMAP("a", "2"), CONFIGMAP("b", "1"));
        fail_with(f, NONE, 0, 0, 0);
        assert_int_equal(lead(f), 0);
        assert_in(text_of(f, "configmaps/default/a"), "\"k\":\"2\"");
        fixture_free(f);
}

/* ---- failures ---- */

/* The times of the first writes, since the first of them. */
static void assert_writes_at(const struct fixture *f, const hf_nsec *times, size_t n) {
        assert_true(f->n_writes >= n);
        for (size_t i = 0; i < n; i++)
                assert_int_equal((f->write_times[i] - f->write_times[0]) / MSEC, times[i]);
}

static void test_the_pause_after_a_failure_doubles_up_to_ten_seconds(void **state) {
        static const hf_nsec times[] = {0,    100,   300,   700,   1500, 3100,
                                        6300, 12700, 22700, 32700, 42700};
        struct fixture *f = fixture_new();
        struct hf_bootstrap_info info;

        fail_with(f, REFUSED, HF_E_FORBIDDEN, 0, 10);
        assert_int_equal(lead(f), 0);
        assert_writes_at(f, times, sizeof times / sizeof times[0]);
        assert_metric(f, "holdfast_bootstrap_step_failures_total{phase=\"zero\"} 10");
        assert_metric(f, "holdfast_bootstrap_failing{phase=\"zero\"} 0");
        assert_int_equal(f->last_info.n_failures, 0);
        assert_string_equal(f->last_info.message, "");
        hf_bootstrap_info(f->bootstrap, 0, &info);
        assert_int_equal(info.n_failures, 0);
        assert_string_equal(info.message, "");
        assert_false(info.failing);
        /* After each failure the ledger is read again, and consistently. */
        assert_in(f->requests, FIRST_READ CREATE_STEP);
        assert_in(f->requests, SAFE_READ CREATE_STEP SAFE_READ CREATE_STEP SAFE_READ);
        fixture_free(f);
}

static void test_a_failure_names_the_manifest_the_step_and_the_reason(void **state) {
        struct fixture *f = fixture_new();

        fail_with(f, REFUSED, HF_E_FORBIDDEN, 0, 5);
        f->drain_at = 1400 * MSEC; /* during the fifth pause */
        assert_int_equal(lead(f), HF_E_CANCELED);
        assert_string_equal(f->last_info.message,
                            "dir/a.json: document 1, line 1 (ConfigMap/default/a): the test says: "
                            "forbidden");
        assert_string_equal(f->last_info.step, "ConfigMap/default/a");
        assert_int_equal(f->last_info.n_failures, 5);
        assert_true(f->last_info.failing && f->last_info.running);
        assert_in(f->reason, "zero fails at ConfigMap/default/a: dir/a.json");
        assert_in(f->ready, "not complete, it fails at ConfigMap/default/a: dir/a.json");
        assert_metric(f, "holdfast_bootstrap_failing{phase=\"zero\"} 0"); /* the term is over */
        /* The log has the first, second, fourth failure ... */
        assert_in(f->log, "4 bootstrap: zero fails, try 1: dir/a.json: document 1, line 1 "
                          "(ConfigMap/default/a): the test says: forbidden\n");
        assert_in(f->log, "zero fails, try 2: ");
        assert_null(strstr(f->log, "try 3: "));
        assert_in(f->log, "zero fails, try 4: ");
        assert_null(strstr(f->log, "try 5: "));
        assert_int_equal(f->n_started, 0);
        assert_false(is_settled(f));
        struct hf_bootstrap_info info; /* of a phase whose term has ended */
        hf_bootstrap_info(f->bootstrap, 0, &info);
        assert_false(info.failing || info.running);
        assert_int_equal(info.n_failures, 0);
        assert_string_equal(info.step, "");
        assert_string_equal(info.message, "");
        fixture_free(f);
}

static void test_a_failure_of_the_ledger_names_it(void **state) {
        struct fixture *f = fixture_new();

        f->faults_reads = true;
        fail_with(f, REFUSED, HF_E_UNAVAILABLE, 0, 1);
        assert_int_equal(lead(f), 0);
        assert_in(f->log,
                  "zero fails, try 1: ledger kube-system/holdfast-bootstrap: the test says: ");
        assert_in(f->progress, "failing - 0/2 failing\nbegun ConfigMap/default/a 0/2 failing\n");
        assert_in(f->reason, "healthy");
        fixture_free(f);
}

static void test_a_failure_of_the_ledger_after_one_of_a_step_names_the_ledger(void **state) {
        struct fixture *f = fixture_new();

        f->faults_all = true;
        fail_with(f, REFUSED, HF_E_UNAVAILABLE, 1, 2); /* the create, then the next read */
        assert_int_equal(lead(f), 0);
        assert_in(f->log, "try 1: dir/a.json");
        assert_in(f->log, "try 2: ledger kube-system/holdfast-bootstrap: ");
        assert_in(f->progress, "failing ConfigMap/default/a 0/2 failing\nfailing - 0/2 failing\n");
        fixture_free(f);
}

static void test_any_read_may_be_refused_or_garbled(void **state) {
        for (unsigned n = 0; n < 3; n++)
                for (unsigned i = 0; i < 2; i++) {
                        struct fixture *f = fixture_new();
                        assert_int_equal(lead(f), 0);
                        load(f, "2.0.0", CONFIGMAP("a", "2"), CONFIGMAP("b", "2"));
                        f->faults_reads = true;
                        fail_with(f, i == 0 ? REFUSED : GARBLED, HF_E_UNAVAILABLE, n, 1);
                        assert_int_equal(lead(f), 0);
                        assert_int_equal(f->n_fault, 0);
                        assert_in(f->progress, " failing");
                        assert_in(text_of(f, "configmaps/default/a"), "\"k\":\"2\"");
                        assert_in(text_of(f, "configmaps/default/b"), "\"k\":\"2\"");
                        assert_int_equal(n_commits(f, "configmaps/default/a"), 2);
                        assert_int_equal(n_commits(f, LEDGER), 6);
                        fixture_free(f);
                }
}

static void test_an_event_counts_the_failures_that_are_logged(void **state) {
        struct fixture *f = fixture_new();
        const char *key = NULL;

        fail_with(f, REFUSED, HF_E_FORBIDDEN, 0, 5);
        assert_int_equal(lead(f), 0);
        for (size_t i = 0; i < f->store.n_objects; i++)
                if (strncmp(f->store.objects[i]->key, "events/", 7) == 0) {
                        assert_null(key); /* one for a phase and step */
                        key = f->store.objects[i]->key;
                }
        assert_non_null(key);
        assert_memory_equal(key, "events/kube-system/holdfast-bootstrap.", 38);
        assert_int_equal(strlen(key), 38 + 16);
        const char *text = text_of(f, key);
        assert_in(text, "\"count\":3");
        assert_in(text, "\"firstTimestamp\":\"2026-01-02T03:04:05");
        assert_in(text, "\"lastTimestamp\":\"2026-01-02T03:04:05");
        assert_in(text, "\"reason\":\"BootstrapFailed\"");
        assert_in(text, "\"type\":\"Warning\"");
        assert_in(text, "dir/a.json: document 1, line 1 (ConfigMap/default/a): the test says: "
                        "forbidden");
        assert_in(text, "\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                        "\"namespace\":\"kube-system\",\"name\":\"holdfast-bootstrap\"}");
        /* Under another leader, much later, the count continues. */
        f->epoch = 3600 * SECOND;
        load(f, "2.0.0", CONFIGMAP("a", "2"), NULL);
        fail_with(f, REFUSED, HF_E_FORBIDDEN, 0, 1);
        assert_int_equal(lead(f), 0);
        assert_in(text_of(f, key), "\"count\":4");
        assert_in(text_of(f, key), "\"firstTimestamp\":\"2026-01-02T03:04:05");
        assert_in(text_of(f, key), "\"lastTimestamp\":\"2026-01-02T04:04:05");
        fixture_free(f);
}

static void test_a_server_that_asks_for_patience_gets_it_up_to_ten_seconds(void **state) {
        static const struct {
                unsigned retry_after_s;
                hf_nsec times[4];
        } cases[] = {{2, {0, 2000, 4000, 6000}}, {3600, {0, 10000, 20000, 30000}}};

        for (size_t i = 0; i < 2; i++) {
                struct fixture *f = fixture_new();
                f->retry_after_s = cases[i].retry_after_s;
                fail_with(f, REFUSED, HF_E_TOO_MANY, 0, 3);
                assert_int_equal(lead(f), 0);
                assert_writes_at(f, cases[i].times, 4);
                fixture_free(f);
        }
}

/* The pause begins anew: failures of different steps are not consecutive. */
static void test_a_step_that_succeeds_ends_a_row_of_failures(void **state) {
        static const hf_nsec times[] = {0, 100, 300, 300, 300, 400};
        struct fixture *f = fixture_new();

        fail_with(f, REFUSED, HF_E_FORBIDDEN, 0, 2);
        assert_int_equal(lead(f), 0);
        assert_writes_at(f, times, 3);
        /* the same in the middle: create a, record a, (fail) create b, again, record b, complete */
        load(f, "2.0.0", CONFIGMAP("c", "1"), CONFIGMAP("d", "1"));
        fail_with(f, REFUSED, HF_E_FORBIDDEN, 2, 1);
        assert_int_equal(lead(f), 0);
        static const hf_nsec later[] = {0, 0, 0, 100, 100, 100};
        assert_writes_at(f, later, 6);
        assert_in(f->progress, "failing ConfigMap/default/d 1/2 failing complete\n"
                               "applied ConfigMap/default/d 1/2 failing complete\n"
                               "recorded ConfigMap/default/d 2/2 complete\n");
        fixture_free(f);
}

/* Whatever the reply to any write is worth, each object is created once and recorded once. */
static void test_any_write_may_be_lost_refused_or_garbled(void **state) {
        static const struct {
                enum fault fault;
                int error;
        } cases[] = {{REFUSED, HF_E_UNAVAILABLE}, {LOST, HF_E_TIMEOUT},
                     {LOST, HF_E_UNAVAILABLE},    {GARBLED, 0},
                     {REFUSED, HF_E_CONFLICT},    {REFUSED, HF_E_NOT_FOUND}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                for (unsigned n = 0; n < 5; n++) {
                        struct fixture *f = fixture_new();
                        fail_with(f, cases[i].fault, cases[i].error, n, 1);
                        assert_int_equal(lead(f), 0);
                        assert_int_equal(f->n_fault, 0);
                        assert_int_equal(n_commits(f, "configmaps/default/a"), 1);
                        assert_int_equal(n_commits(f, "configmaps/default/b"), 1);
                        /* two records and one completion */
                        assert_int_equal(n_commits(f, LEDGER), 3);
                        assert_true(f->n_started >= 1);
                        assert_true(is_settled(f));
                        struct hf_bootstrap_info info;
                        hf_bootstrap_info(f->bootstrap, 0, &info);
                        assert_true(info.complete && !info.failing);
                        fixture_free(f);
                }
}

/* The same during an upgrade, where objects and the ledger exist. */
static void test_any_write_of_an_upgrade_may_be_lost_refused_or_garbled(void **state) {
        static const struct {
                enum fault fault;
                int error;
        } cases[] = {{REFUSED, HF_E_UNAVAILABLE},
                     {LOST, HF_E_TIMEOUT},
                     {GARBLED, 0},
                     {REFUSED, HF_E_CONFLICT},
                     {REFUSED, HF_E_NOT_FOUND}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                for (unsigned n = 0; n < 5; n++) {
                        struct fixture *f = fixture_new();
                        assert_int_equal(lead(f), 0);
                        load(f, "2.0.0", CONFIGMAP("a", "2"), CONFIGMAP("b", "2"));
                        fail_with(f, cases[i].fault, cases[i].error, n, 1);
                        assert_int_equal(lead(f), 0);
                        assert_int_equal(f->n_fault, 0);
                        assert_int_equal(n_commits(f, "configmaps/default/a"), 2);
                        assert_int_equal(n_commits(f, "configmaps/default/b"), 2);
                        assert_int_equal(n_commits(f, LEDGER), 6);
                        assert_in(text_of(f, "configmaps/default/a"), "\"k\":\"2\"");
                        assert_in(text_of(f, LEDGER), "\"zero.completed\":\"2.0.0 ");
                        assert_int_equal(f->now - BEGIN < 10 * SECOND, true);
                        fixture_free(f);
                }
}

/* If some version has completed the phase, the controllers after it need not wait. */
static void test_others_start_although_an_upgrade_fails(void **state) {
        struct fixture *f = fixture_new();

        assert_int_equal(lead(f), 0);
        load(f, "2.0.0", CONFIGMAP("c", "1"), NULL);
        fail_with(f, REFUSED, HF_E_FORBIDDEN, 0, 3);
        f->drain_at = 50 * MSEC;
        assert_int_equal(lead(f), HF_E_CANCELED);
        assert_true(f->n_started > 0);
        fixture_free(f);
}

/* ---- the end of a term ---- */

static void test_the_end_of_the_term_ends_the_phase_at_once(void **state) {
        static const int errors[] = {HF_E_NOT_LEADER, HF_E_STALE_TERM, HF_E_UNFENCED,
                                     HF_E_CANCELED};

        for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
                for (unsigned n = 0; n < 5; n++) {
                        struct fixture *f = fixture_new();
                        fail_with(f, REFUSED, errors[i], n, 1);
                        assert_int_equal(lead(f), errors[i]);
                        assert_int_equal(f->n_writes, n + 1);
                        assert_int_equal(f->n_started, 0);
                        assert_false(is_settled(f));
                        assert_null(strstr(f->progress, "failing"));
                        fixture_free(f);
                }
}

/* A drain must not come between a write and its record. */
static void test_a_drain_ends_the_phase_between_two_steps(void **state) {
        static const struct {
                unsigned request; /* the drain fires before it is answered */
                unsigned n_writes;
        } cases[] = {{1, 0}, {2, 2}, {3, 2}, {4, 4}, {5, 4}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct fixture *f = fixture_new();
                f->drain_at_request = cases[i].request;
                assert_int_equal(lead(f), HF_E_CANCELED);
                assert_int_equal(f->n_writes, cases[i].n_writes);
                assert_int_equal(f->n_started, 0);
                /* The next term goes on where this one ended. */
                f->drain_at_request = 0;
                assert_int_equal(lead(f), 0);
                assert_int_equal(n_commits(f, "configmaps/default/a"), 1);
                assert_int_equal(n_commits(f, "configmaps/default/b"), 1);
                assert_int_equal(n_commits(f, LEDGER), 3);
                fixture_free(f);
        }
}

static void test_a_failure_while_draining_ends_the_phase(void **state) {
        struct fixture *f = fixture_new();

        fail_with(f, REFUSED, HF_E_UNAVAILABLE, 0, 1);
        f->drain_at_request = 2;
        assert_int_equal(lead(f), HF_E_UNAVAILABLE);
        assert_int_equal(f->n_requests, 2);
        fixture_free(f);
}

/* ---- giving way ---- */

static void set_elector(struct fixture *f) {
        static int elector;

        hf_bootstrap_set_elector(f->bootstrap, (struct hf_elector *)&elector);
}

/* Without a drain, as here, it waits ten seconds for it after each release. */
static void test_a_phase_that_keeps_failing_releases_the_lease_ever_more_rarely(void **state) {
        struct fixture *f = fixture_new();

        set_elector(f);
        fail_with(f, REFUSED, HF_E_FORBIDDEN, 0, 300);
        assert_int_equal(lead(f), 0);
        assert_true(f->n_step_downs > 8);
        for (unsigned i = 0; i < f->n_step_downs; i++) {
                /* 15 s, doubled up to ten minutes */
                hf_nsec after = i > 5 ? 600 * SECOND : (15 * SECOND) << i;
                assert_true(f->step_downs[i] >= after);
                if (i == 0)
                        assert_true(f->step_downs[i] < after + 10 * SECOND);
                if (i == 7) /* past the longest time, each failure releases */
                        assert_true(f->step_downs[i] < f->step_downs[i - 1] + 40 * SECOND);
        }
        /* Ten seconds for the drain, and then the pause of ten. */
        for (unsigned i = 0; i < f->n_writes; i++)
                assert_true(f->write_times[i] <= f->step_downs[0] ||
                            f->write_times[i] >= f->step_downs[0] + 20 * SECOND);
        char line[120];
        (void)snprintf(line, sizeof line, "holdfast_bootstrap_gave_way_total{phase=\"zero\"} %u",
                       f->n_step_downs);
        assert_metric(f, line);
        assert_in(f->log, "4 bootstrap: zero keeps failing: releasing the Lease, so that another "
                          "instance may try\n");
        assert_in(f->progress, "gave way ConfigMap/default/a 0/2 failing\n");
        /* It is complete now: the next row of failures begins with 15 s again. */
        load(f, "2.0.0", CONFIGMAP("c", "1"), NULL);
        set_elector(f);
        fail_with(f, REFUSED, HF_E_FORBIDDEN, 0, 9);
        assert_int_equal(lead(f), 0);
        assert_int_equal(f->n_step_downs, 1);
        fixture_free(f);
}

static void test_the_time_to_give_way_is_kept_between_terms_until_success(void **state) {
        struct fixture *f = fixture_new();

        set_elector(f);
        f->drain_at = 15 * SECOND;
        fail_with(f, REFUSED, HF_E_FORBIDDEN, 0, 100);
        assert_int_equal(lead(f), HF_E_CANCELED);
        assert_int_equal(f->n_step_downs, 1);
        f->drain_at = 29 * SECOND;
        assert_int_equal(lead(f), HF_E_CANCELED);
        assert_int_equal(f->n_step_downs, 1); /* after 30 s, not after 15 */
        assert_true(f->step_downs[0] >= 30 * SECOND);
        f->drain_at = 0;
        f->n_fault = 0;
        assert_int_equal(lead(f), 0);
        (void)fake_store_delete(&f->store, LEDGER, NULL);
        (void)fake_store_delete(&f->store, "configmaps/default/a", NULL);
        fail_with(f, REFUSED, HF_E_FORBIDDEN, 0, 9);
        assert_int_equal(lead(f), 0);
        assert_int_equal(f->n_step_downs, 1);
        assert_true(f->step_downs[0] < 30 * SECOND);
        fixture_free(f);
}

static void test_a_lease_that_cannot_be_released_is_kept(void **state) {
        struct fixture *f = fixture_new();

        set_elector(f);
        f->step_down_result = HF_E_BUSY;
        fail_with(f, REFUSED, HF_E_FORBIDDEN, 0, 12);
        assert_int_equal(lead(f), 0);
        assert_true(f->n_step_downs > 1);
        assert_metric(f, "holdfast_bootstrap_gave_way_total{phase=\"zero\"} 0");
        assert_null(strstr(f->progress, "gave way"));
        fixture_free(f);
}

/* ---- a ledger that is lost, or not ours ---- */

static void test_a_deleted_ledger_is_written_again(void **state) {
        struct fixture *f = fixture_new();

        set_elector(f);
        f->ledger_at_check = "";
        f->drain_at_check = 3;
        assert_int_equal(lead(f), 0);
        assert_int_equal(f->now - BEGIN, 6 * SECOND);
        assert_in(f->log, "4 bootstrap: zero: the ledger was deleted: writing it again\n");
        /* The ledger is there, the check only saw an old state: nothing is written. */
        assert_int_equal(n_commits(f, LEDGER), 3);
        (void)fake_store_delete(&f->store, LEDGER, NULL);
        assert_int_equal(lead(f), 0);
        assert_int_equal(n_commits(f, "configmaps/default/a"), 1);
        fixture_free(f);
}

/* Deletes the ledger once it is complete. */
static void delete_when_complete(void *ctx, enum hf_bootstrap_point point,
                                 const struct hf_bootstrap_info *info) {
        struct fixture *f = ctx;

        on_progress(ctx, point, info);
        if (point == HF_BOOTSTRAP_COMPLETE && f->n_started == 0) {
                (void)fake_store_delete(&f->store, LEDGER, NULL);
                fail_with(f, REFUSED, HF_E_FORBIDDEN, 0, 20);
        }
}

/* Other instances wait for the ledger, and this one has completed the phase: it keeps the Lease. */
static void test_a_ledger_is_written_again_however_often_that_fails(void **state) {
        struct fixture *f = fixture_new();

        set_elector(f);
        f->drain_at_check = 2;
        f->bootstrap->on_progress = delete_when_complete;
        assert_int_equal(lead(f), 0);
        assert_int_equal(f->n_fault, 0);
        assert_int_equal(f->n_step_downs, 0);
        assert_int_equal(f->n_started, 2);
        assert_in(f->progress, "begun ConfigMap/default/a 0/2 complete\n"
                               "failing ConfigMap/default/a 0/2 failing complete\n");
        fixture_free(f);
}

static void test_a_new_row_of_work_is_reported_as_begun(void **state) {
        struct fixture *f = fixture_new();

        f->drain_at_check = 2;
        f->bootstrap->on_progress = delete_when_complete;
        assert_int_equal(lead(f), 0);
        const char *first = strstr(f->progress, "begun ");
        assert_non_null(first);
        assert_non_null(strstr(first + 1, "begun "));
        assert_null(strstr(strstr(first + 1, "begun ") + 1, "begun "));
        fixture_free(f);
}

static void test_only_a_ledger_without_the_phase_counts_as_lost(void **state) {
        static const struct {
                const char *text;
                bool lost;
        } cases[] = {
                {"{\"data\":{\"format\":\"1\"}}", true},
                {"{\"data\":{\"format\":\"1\",\"steps\":\"\"}}", true},
                {"{\"data\":{\"format\":\"1\",\"other.completed\":\"1.0.0 now\"}}", true},
                {"{\"data\":{\"format\":\"1\",\"zero.completed\":\"1.0.0 now\"}}", false},
                {"{\"data\":{\"format\":\"1\",\"zero\\u002ecompleted\":\"1.0.0 now\"}}", false},
                {"{\"data\":{\"format\":\"2\"}}", false},
                {"{\"data\":{}}", false},
                {"{\"data\":", false},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct fixture *f = fixture_new();
                f->ledger_at_check = cases[i].text;
                f->drain_at_check = 2;
                assert_int_equal(lead(f), 0);
                assert_int_equal(f->n_started, cases[i].lost ? 2 : 1);
                assert_int_equal(strstr(f->log, "was deleted") != NULL, cases[i].lost);
                fixture_free(f);
        }
}

static void put_ledger(struct fixture *f, const char *data) {
        char text[512];

        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"holdfast-bootstrap\",\"namespace\":"
                       "\"kube-system\"},\"data\":{%s}}",
                       data);
        (void)fake_store_put(&f->store, LEDGER, text, NULL);
}

static void test_a_ledger_of_a_newer_format_is_left_alone(void **state) {
        struct fixture *f = fixture_new();

        put_ledger(f, "\"format\":\"2\",\"zero.completed\":\"9.0.0 now\"");
        assert_int_equal(lead(f), 0);
        assert_int_equal(f->n_writes, 0);
        assert_int_equal(f->n_started, 1);
        /* If the newer program has not completed the phase, this one cannot either. */
        put_ledger(f, "\"format\":\"2\"");
        f->drain_at = 1;
        assert_int_equal(lead(f), HF_E_CANCELED);
        assert_int_equal(f->n_writes, 0);
        assert_in(f->last_info.message,
                  "ledger kube-system/holdfast-bootstrap: it is in the format "
                  "of a newer version, which has not completed the phase");
        fixture_free(f);
}

static void test_a_ledger_that_cannot_be_read_is_a_failure(void **state) {
        struct fixture *f = fixture_new();

        put_ledger(f, "\"format\":\"1\",\"steps\":\"{\"");
        f->drain_at = 1;
        assert_int_equal(lead(f), HF_E_CANCELED);
        assert_int_equal(f->n_writes, 0);
        assert_in(f->last_info.message,
                  "ledger kube-system/holdfast-bootstrap: data.steps, line 1: "
                  "the record is not JSON");
        fixture_free(f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_any_read_may_be_refused_or_garbled),
                cmocka_unit_test(test_a_failure_of_the_ledger_after_one_of_a_step_names_the_ledger),
                cmocka_unit_test(test_each_step_is_written_then_recorded),
                cmocka_unit_test(test_the_ledger_says_what_was_done_and_when),
                cmocka_unit_test(test_a_phase_that_is_complete_only_reads),
                cmocka_unit_test(test_the_first_read_is_consistent_unless_the_revision_is_known),
                cmocka_unit_test(test_objects_of_users_are_found_and_left_alone),
                cmocka_unit_test(test_an_upgrade_replaces_what_nobody_has_edited),
                cmocka_unit_test(test_an_upgrade_does_not_bring_back_what_was_deleted),
                cmocka_unit_test(test_a_create_whose_reply_was_lost_is_recorded_as_ours),
                cmocka_unit_test(test_the_pause_after_a_failure_doubles_up_to_ten_seconds),
                cmocka_unit_test(test_a_failure_names_the_manifest_the_step_and_the_reason),
                cmocka_unit_test(test_a_failure_of_the_ledger_names_it),
                cmocka_unit_test(test_an_event_counts_the_failures_that_are_logged),
                cmocka_unit_test(test_a_server_that_asks_for_patience_gets_it_up_to_ten_seconds),
                cmocka_unit_test(test_a_step_that_succeeds_ends_a_row_of_failures),
                cmocka_unit_test(test_any_write_may_be_lost_refused_or_garbled),
                cmocka_unit_test(test_any_write_of_an_upgrade_may_be_lost_refused_or_garbled),
                cmocka_unit_test(test_others_start_although_an_upgrade_fails),
                cmocka_unit_test(test_the_end_of_the_term_ends_the_phase_at_once),
                cmocka_unit_test(test_a_drain_ends_the_phase_between_two_steps),
                cmocka_unit_test(test_a_failure_while_draining_ends_the_phase),
                cmocka_unit_test(
                        test_a_phase_that_keeps_failing_releases_the_lease_ever_more_rarely),
                cmocka_unit_test(test_the_time_to_give_way_is_kept_between_terms_until_success),
                cmocka_unit_test(test_a_lease_that_cannot_be_released_is_kept),
                cmocka_unit_test(test_a_deleted_ledger_is_written_again),
                cmocka_unit_test(test_a_ledger_is_written_again_however_often_that_fails),
                cmocka_unit_test(test_a_new_row_of_work_is_reported_as_begun),
                cmocka_unit_test(test_only_a_ledger_without_the_phase_counts_as_lost),
                cmocka_unit_test(test_a_ledger_of_a_newer_format_is_left_alone),
                cmocka_unit_test(test_a_ledger_that_cannot_be_read_is_a_failure),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
