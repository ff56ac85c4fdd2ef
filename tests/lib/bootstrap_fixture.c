/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See bootstrap_fixture.h. The clock is the system's, and also notes pauses, so that a test can
 * distinguish a retry after a pause from a retry at once.
 */
#include "bootstrap_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/health.h>
#include <holdfast/metrics.h>

#include "base/thread.h"

#define GUARD (60 * HF_NSEC_PER_SEC) /* how long a test waits at most */

/* ---- pauses ---- */

/* The calls of the thread whose write met a conflict; see bootstrap_fixture_calls. */
static struct {
        pthread_mutex_t mu;
        bool has_thread;
        pthread_t thread;
        char calls[256];
} after_conflict = {.mu = PTHREAD_MUTEX_INITIALIZER};

static void note_call(char call, bool is_conflict) {
        pthread_mutex_lock(&after_conflict.mu);
        size_t n = strlen(after_conflict.calls);
        if (is_conflict && !after_conflict.has_thread) {
                after_conflict.has_thread = true;
                after_conflict.thread = pthread_self();
        }
        if (after_conflict.has_thread && pthread_equal(after_conflict.thread, pthread_self()) &&
            n + 1 < sizeof after_conflict.calls)
                after_conflict.calls[n] = call;
        pthread_mutex_unlock(&after_conflict.mu);
}

/* The system's clock, which notes pauses. */
static hf_nsec read_boot(void *ctx) { return hf_clock_system()->boot(NULL); }
static hf_nsec read_monotonic(void *ctx) { return hf_clock_system()->monotonic(NULL); }
static hf_nsec read_real(void *ctx) { return hf_clock_system()->real(NULL); }
static int wait_and_note(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex,
                         hf_nsec deadline) {
        if (deadline != HF_NSEC_NEVER)
                note_call('p', false);
        return hf_clock_system()->wait(NULL, cond, mutex, deadline);
}
static const struct hf_clock noting_clock = {.size = sizeof noting_clock,
                                             .boot = read_boot,
                                             .monotonic = read_monotonic,
                                             .real = read_real,
                                             .wait = wait_and_note};

/* ---- the client ---- */

/* The callback of a request whose reply gets lost. */
struct lost {
        hf_response_fn done;
        void *ctx;
};

static void lose(void *ctx, const struct hf_response *from) {
        struct lost lost = *(struct lost *)ctx;
        struct hf_response reply = {.size = sizeof reply, .error = HF_E_TIMEOUT};

        free(ctx);
        lost.done(lost.ctx, &reply);
}

/* Answers a request at once, without the server. */
static int response(hf_response_fn done, void *ctx, int error, const struct hf_request *request,
                    uint64_t *ret_id) {
        struct hf_response reply = {.size = sizeof reply,
                                    .error = error,
                                    .body = request->body,
                                    .n_body = request->n_body};

        if (error)
                (void)hf_fail(&reply.status, error, "the test says: %s", hf_strerror(error));
        if (ret_id)
                *ret_id = 0;
        done(ctx, &reply);
        return 0;
}

static int faulty_client_call(struct hf_client *self, const struct hf_request *request,
                              hf_response_fn done, void *ctx, uint64_t *ret_id) {
        struct faulty_client *faulty = (struct faulty_client *)self;
        bool write = request->verb != HF_VERB_GET && request->verb != HF_VERB_LIST &&
                     strcmp(request->resource.plural, "configmaps") == 0;

        if (strcmp(request->resource.plural, "configmaps") == 0 &&
            strcmp(request->ns, "kube-system") == 0) {
                bool conflicts = write && faulty->fault == BOOTSTRAP_FAULT_CONFLICT &&
                                 atomic_fetch_sub(&faulty->countdown, 1) > 0;
                note_call(write ? 'W' : 'G', conflicts);
                if (conflicts)
                        return response(done, ctx, HF_E_CONFLICT, request, ret_id);
        }
        if (write && request->query && strstr(request->query, "dryRun=All"))
                return response(done, ctx, 0, request, ret_id);
        if (faulty->fault == BOOTSTRAP_FAULT_CONFLICT)
                return hf_client_request(&faulty->inner->base, request, done, ctx, ret_id);
        if (write && faulty->fault == BOOTSTRAP_FAULT_REFUSED)
                return response(done, ctx, HF_E_INVALID, request, ret_id);
        if (request->verb == HF_VERB_CREATE && faulty->fault == BOOTSTRAP_FAULT_NO_NAMESPACE &&
            strcmp(request->ns, "kube-system") == 0)
                return response(done, ctx, HF_E_NOT_FOUND, request, ret_id);
        if (!write || atomic_fetch_sub(&faulty->countdown, 1) != 0)
                return hf_client_request(&faulty->inner->base, request, done, ctx, ret_id);
        atomic_store(&faulty->hit, true);
        if (faulty->fault == BOOTSTRAP_FAULT_NOT_SENT)
                return response(done, ctx, HF_E_UNAVAILABLE, request, ret_id);
        struct lost *lost = malloc(sizeof *lost);
        assert_non_null(lost);
        *lost = (struct lost){done, ctx};
        return hf_client_request(&faulty->inner->base, request, lose, lost, ret_id);
}

static void faulty_client_cancel(struct hf_client *self, uint64_t id) {
        if (id)
                hf_client_cancel(&((struct faulty_client *)self)->inner->base, id);
}
static int faulty_client_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                               hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx,
                               uint64_t *ret_id) {
        return hf_client_watch(&((struct faulty_client *)self)->inner->base, spec, on_event, on_end,
                               ctx, ret_id);
}
static void faulty_client_watch_cancel(struct hf_client *self, uint64_t id) {
        hf_client_watch_cancel(&((struct faulty_client *)self)->inner->base, id);
}
static void faulty_client_free(struct hf_client *self) {
        hf_client_free(&((struct faulty_client *)self)->inner->base);
}

/* ---- an instance ---- */

static void on_progress(void *ctx, enum hf_bootstrap_point point,
                        const struct hf_bootstrap_info *info) {
        struct bootstrap_fixture *f = ctx;
        pthread_mutex_lock(&f->mu);
        f->points[point]++;
        pthread_cond_broadcast(&f->changed);
        pthread_mutex_unlock(&f->mu);
}

void bootstrap_fixture_await(struct bootstrap_fixture *f, enum hf_bootstrap_point point,
                             unsigned n) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + GUARD;

        pthread_mutex_lock(&f->mu);
        while (f->points[point] < n && hf_now(clock) < until)
                (void)clock->wait(clock->ctx, &f->changed, &f->mu, until);
        assert_true(f->points[point] >= n);
        pthread_mutex_unlock(&f->mu);
}

#define CONFIGMAP(name)                                                                            \
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" name             \
        "\",\"namespace\":\"default\"},\"data\":{\"k\":\"v\"}}"

static int bootstrap_new(struct bootstrap_fixture *f, hf_nsec patience, hf_nsec give_way_after) {
        static const struct hf_bootstrap_kind kinds[] = {{"v1", "ConfigMap", "configmaps", true}};
        static const struct hf_bootstrap_manifest manifests[] = {
                {"a.json", CONFIGMAP("a"), sizeof CONFIGMAP("a") - 1},
                {"b.json", CONFIGMAP("b"), sizeof CONFIGMAP("b") - 1},
        };
        const struct hf_bootstrap_phase phases[] = {
                {.size = sizeof(struct hf_bootstrap_phase),
                 .name = "zero",
                 .manifests = manifests,
                 .n_manifests = 1,
                 .hook_patience = patience},
                {.size = sizeof(struct hf_bootstrap_phase),
                 .name = "one",
                 .manifests = manifests + 1,
                 .n_manifests = 1,
                 .hook_patience = patience},
        };
        const struct hf_bootstrap_config config = {.size = sizeof config,
                                                   .version = "1.0.0",
                                                   .kinds = kinds,
                                                   .n_kinds = 1,
                                                   .phases = phases,
                                                   .n_phases = 2,
                                                   .one_revision = true,
                                                   .give_way_after = give_way_after,
                                                   .on_progress = on_progress,
                                                   .ctx = f};
        return hf_bootstrap_new(&f->host, &config, &f->bootstrap, NULL);
}

struct bootstrap_fixture *bootstrap_fixture_new(enum bootstrap_fault fault, int countdown,
                                                hf_nsec patience, hf_nsec give_way_after) {
        static const struct hf_client_ops ops = {sizeof ops,
                                                 faulty_client_call,
                                                 faulty_client_cancel,
                                                 faulty_client_watch,
                                                 faulty_client_watch_cancel,
                                                 faulty_client_free};
        struct bootstrap_fixture *f = calloc(1, sizeof *f);

        assert_non_null(f);
        assert_int_equal(hf__mutex_cond_init(&f->mu, &f->changed), 0);
        f->api = fake_api_new();
        f->host.size = sizeof f->host;
        f->host.clock = &noting_clock;
        memset(after_conflict.calls, 0, sizeof after_conflict.calls);
        after_conflict.has_thread = false;
        assert_int_equal(hf_health_new(&f->host.health), 0);
        assert_int_equal(hf_metrics_new(&f->host.metrics), 0);
        f->client = (struct faulty_client){.base = {.ops = &ops, .host = &f->host},
                                           .inner = fake_api_client_new(f->api),
                                           .fault = fault};
        atomic_store(&f->client.countdown, countdown);
        assert_int_equal(bootstrap_new(f, patience, give_way_after), 0);
        assert_int_equal(hf_electors_new(&f->host, &f->electors), 0);
        assert_int_equal(hf_hooks_new(&f->host, &f->client.base, &f->hooks), 0);
        return f;
}

void bootstrap_fixture_add_elector(struct bootstrap_fixture *f) {
        struct hf_controller controllers[] = {{.size = sizeof(struct hf_controller)},
                                              {.size = sizeof(struct hf_controller)}};
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(hf_bootstrap_controller(f->bootstrap, i, &controllers[i]), 0);
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .ns = "default",
                                                 .name = "lead",
                                                 .identity = "me",
                                                 .client = &f->client.base,
                                                 .timing = {.lease_duration = 4 * HF_NSEC_PER_SEC,
                                                            .renew_deadline = 2 * HF_NSEC_PER_SEC,
                                                            .retry_period = 50 * HF_NSEC_PER_MSEC},
                                                 .controllers = controllers,
                                                 .n_controllers = 2};
        assert_int_equal(hf_bootstrap_n_phases(f->bootstrap), 2);
        assert_string_equal(controllers[1].after[0], "bootstrap-zero");
        assert_int_equal(hf_electors_add(f->electors, &config, &f->elector, NULL), 0);
        hf_bootstrap_set_elector(f->bootstrap, f->elector);
}

void bootstrap_fixture_install(struct bootstrap_fixture *f) {
        static const char *const after[] = {"start-controllers"};
        bootstrap_fixture_add_elector(f);
        assert_int_equal(hf_controllers_install(f->hooks, f->electors, NULL, 0, NULL), 0);
        assert_int_equal(hf_bootstrap_install(f->bootstrap, f->hooks, after, 1, NULL), 0);
}

void bootstrap_fixture_free(struct bootstrap_fixture *f) {
        struct hf_status status = {0};
        (void)hf_hooks_stop(f->hooks, &status);
        hf_hooks_fire_stopped(f->hooks);
        hf_hooks_free(f->hooks);
        hf_electors_free(f->electors);
        hf_bootstrap_free(f->bootstrap);
        hf_client_free(&f->client.base);
        fake_api_free(f->api);
        assert_int_equal(hf_health_each(f->host.health, HF_READYZ | HF_HEALTHZ, NULL, NULL), 0);
        hf_health_free(f->host.health);
        hf_metrics_free(f->host.metrics);
        pthread_cond_destroy(&f->changed);
        pthread_mutex_destroy(&f->mu);
        free(f);
}

unsigned bootstrap_fixture_n_commits(struct bootstrap_fixture *f, const char *key) {
        unsigned n = 0;
        pthread_mutex_lock(&f->api->mu);
        for (size_t i = 0; i < f->api->store.n_commits; i++)
                n += strcmp(f->api->store.commits[i].key, key) == 0 &&
                     f->api->store.commits[i].holder[0] != '-';
        pthread_mutex_unlock(&f->api->mu);
        return n;
}

void bootstrap_fixture_assert_fenced(struct bootstrap_fixture *f) {
        pthread_mutex_lock(&f->api->mu);
        for (size_t i = 0; i < f->api->store.n_commits; i++)
                if (strncmp(f->api->store.commits[i].key, "configmaps/", 11) == 0)
                        assert_string_equal(f->api->store.commits[i].fence_identity, "me");
        pthread_mutex_unlock(&f->api->mu);
}

const char *bootstrap_fixture_calls(void) {
        static char calls[sizeof after_conflict.calls];

        pthread_mutex_lock(&after_conflict.mu);
        memcpy(calls, after_conflict.calls, sizeof calls);
        pthread_mutex_unlock(&after_conflict.mu);
        return calls;
}
