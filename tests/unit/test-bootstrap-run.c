/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of bootstrap around its core, over the fake API server: each write fails once or loses
 * its reply; the hook; the release after failures.
 */
#undef NDEBUG
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "fake_api_client.h"

#include <holdfast/bootstrap.h>
#include <holdfast/health.h>
#include <holdfast/metrics.h>

#define GUARD (60 * HF_NSEC_PER_SEC)

enum fault {
        FAULT_NONE,
        FAULT_REPLY_LOST,
        FAULT_NOT_SENT,
        FAULT_REFUSED,
        FAULT_NO_NAMESPACE,
        FAULT_CONFLICT,
};

/*
 * The client of the elector: requests for Leases are forwarded, other writes meet the fault. It
 * handles dry runs itself, because the fake server has none.
 */
struct split {
        struct hf_client base; /* first */
        struct fake_api_client *inner;
        enum fault fault;
        /* writes until the one that meets the fault; < 0: none does. FAULT_REFUSED: all do.
         * FAULT_CONFLICT: the first `countdown` writes of the ledger do */
        atomic_int countdown;
        atomic_bool hit;
};

/* What the thread whose write met a conflict does with the ledger: W for a write, G for a get, p
 * for a pause. */
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
static const struct hf_clock noting_clock = {.boot = read_boot,
                                             .monotonic = read_monotonic,
                                             .real = read_real,
                                             .wait = wait_and_note};

struct lost {
        hf_response_fn done;
        void *ctx;
};

static void lose(void *ctx, const struct hf_response *from) {
        struct lost lost = *(struct lost *)ctx;
        struct hf_response reply = {.error = HF_E_TIMEOUT};

        free(ctx);
        lost.done(lost.ctx, &reply);
}

static int response(hf_response_fn done, void *ctx, int error, const struct hf_request *request,
                    uint64_t *ret_id) {
        struct hf_response reply = {.error = error,
                                    .body = request->body,
                                    .n_body = request->n_body};

        if (error)
                (void)hf_fail(&reply.status, error, "the test says: %s", hf_strerror(error));
        if (ret_id)
                *ret_id = 0;
        done(ctx, &reply);
        return 0;
}

static int split_call(struct hf_client *self, const struct hf_request *request, hf_response_fn done,
                      void *ctx, uint64_t *ret_id) {
        struct split *split = (struct split *)self;
        bool write = request->verb != HF_VERB_GET && request->verb != HF_VERB_LIST &&
                     strcmp(request->resource.plural, "configmaps") == 0;

        if (strcmp(request->resource.plural, "configmaps") == 0 &&
            strcmp(request->ns, "kube-system") == 0) {
                bool conflicts = write && split->fault == FAULT_CONFLICT &&
                                 atomic_fetch_sub(&split->countdown, 1) > 0;
                note_call(write ? 'W' : 'G', conflicts);
                if (conflicts)
                        return response(done, ctx, HF_E_CONFLICT, request, ret_id);
        }
        if (write && request->query && strstr(request->query, "dryRun=All"))
                return response(done, ctx, 0, request, ret_id);
        if (split->fault == FAULT_CONFLICT)
                return hf_client_request(&split->inner->base, request, done, ctx, ret_id);
        if (write && split->fault == FAULT_REFUSED)
                return response(done, ctx, HF_E_INVALID, request, ret_id);
        if (request->verb == HF_VERB_CREATE && split->fault == FAULT_NO_NAMESPACE &&
            strcmp(request->ns, "kube-system") == 0)
                return response(done, ctx, HF_E_NOT_FOUND, request, ret_id);
        if (!write || atomic_fetch_sub(&split->countdown, 1) != 0)
                return hf_client_request(&split->inner->base, request, done, ctx, ret_id);
        atomic_store(&split->hit, true);
        if (split->fault == FAULT_NOT_SENT)
                return response(done, ctx, HF_E_UNAVAILABLE, request, ret_id);
        struct lost *lost = malloc(sizeof *lost);
        assert_non_null(lost);
        *lost = (struct lost){done, ctx};
        return hf_client_request(&split->inner->base, request, lose, lost, ret_id);
}

static void split_cancel(struct hf_client *self, uint64_t id) {
        if (id)
                hf_client_cancel(&((struct split *)self)->inner->base, id);
}
static int split_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                       hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        return hf_client_watch(&((struct split *)self)->inner->base, spec, on_event, on_end, ctx,
                               ret_id);
}
static void split_watch_cancel(struct hf_client *self, uint64_t id) {
        hf_client_watch_cancel(&((struct split *)self)->inner->base, id);
}
static void split_free(struct hf_client *self) {
        hf_client_free(&((struct split *)self)->inner->base);
}

/* ---- an instance ---- */

struct fixture {
        struct fake_api *api;
        struct hf_host host;
        struct split client;
        struct hf_bootstrap *bootstrap;
        struct hf_electors *electors;
        struct hf_elector *elector;
        struct hf_hooks *hooks;
        pthread_mutex_t mu;
        pthread_cond_t changed;
        unsigned points[HF_BOOTSTRAP_GAVE_WAY + 1]; /* guarded by mu: how often each was reached */
};

static void on_progress(void *ctx, enum hf_bootstrap_point point,
                        const struct hf_bootstrap_info *info) {
        struct fixture *f = ctx;
        pthread_mutex_lock(&f->mu);
        f->points[point]++;
        pthread_cond_broadcast(&f->changed);
        pthread_mutex_unlock(&f->mu);
}

static void await_point(struct fixture *f, enum hf_bootstrap_point point, unsigned n) {
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

static int bootstrap_new(struct fixture *f, hf_nsec patience, hf_nsec give_way_after) {
        static const struct hf_bootstrap_kind kinds[] = {{"v1", "ConfigMap", "configmaps", true}};
        static const struct hf_bootstrap_manifest manifests[] = {
                {"a.json", CONFIGMAP("a"), sizeof CONFIGMAP("a") - 1},
                {"b.json", CONFIGMAP("b"), sizeof CONFIGMAP("b") - 1},
        };
        const struct hf_bootstrap_phase phases[] = {
                {.name = "zero",
                 .manifests = manifests,
                 .n_manifests = 1,
                 .hook_patience = patience},
                {.name = "one",
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

static struct fixture *fixture_new(enum fault fault, int countdown, hf_nsec patience,
                                   hf_nsec give_way_after) {
        static const struct hf_client_ops ops = {split_call, split_cancel, split_watch,
                                                 split_watch_cancel, split_free};
        struct fixture *f = calloc(1, sizeof *f);

        assert_non_null(f);
        assert_int_equal(hf__mutex_init(&f->mu), 0);
        assert_int_equal(hf_cond_init(&f->changed), 0);
        f->api = fake_api_new();
        f->host.size = sizeof f->host;
        f->host.clock = &noting_clock;
        memset(after_conflict.calls, 0, sizeof after_conflict.calls);
        after_conflict.has_thread = false;
        assert_int_equal(hf_health_new(&f->host.health), 0);
        assert_int_equal(hf_metrics_new(&f->host.metrics), 0);
        f->client = (struct split){.base = {.ops = &ops, .host = &f->host},
                                   .inner = fake_api_client_new(f->api),
                                   .fault = fault};
        atomic_store(&f->client.countdown, countdown);
        assert_int_equal(bootstrap_new(f, patience, give_way_after), 0);
        assert_int_equal(hf_electors_new(&f->host, &f->electors), 0);
        assert_int_equal(hf_hooks_new(&f->host, &f->client.base, &f->hooks), 0);
        return f;
}

static void add_elector(struct fixture *f) {
        size_t n;
        const struct hf_controller *controllers = hf_bootstrap_controllers(f->bootstrap, &n);
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .ns = "default",
                                                 .name = "lead",
                                                 .identity = "me",
                                                 .client = &f->client.base,
                                                 .timing = {.lease_duration = 4 * HF_NSEC_PER_SEC,
                                                            .renew_deadline = 2 * HF_NSEC_PER_SEC,
                                                            .retry_period = 50 * HF_NSEC_PER_MSEC},
                                                 .controllers = controllers,
                                                 .n_controllers = n};
        assert_int_equal(n, 2);
        assert_string_equal(controllers[1].after[0], "bootstrap-zero");
        assert_int_equal(hf_electors_add(f->electors, &config, &f->elector, NULL), 0);
        hf_bootstrap_set_elector(f->bootstrap, f->elector);
}

static void install(struct fixture *f) {
        static const char *const after[] = {"start-controllers"};
        add_elector(f);
        assert_int_equal(hf_controllers_install(f->hooks, f->electors, NULL, 0, NULL), 0);
        assert_int_equal(hf_bootstrap_install(f->bootstrap, f->hooks, after, 1, NULL), 0);
}

static void fixture_free(struct fixture *f) {
        struct hf_status status = {0};
        (void)hf_hooks_stop(f->hooks, &status);
        hf_hooks_stopped(f->hooks);
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

static unsigned n_commits(struct fixture *f, const char *key) {
        unsigned n = 0;
        pthread_mutex_lock(&f->api->mu);
        for (size_t i = 0; i < f->api->store.n_commits; i++)
                n += strcmp(f->api->store.commits[i].key, key) == 0 &&
                     f->api->store.commits[i].holder[0] != '-';
        pthread_mutex_unlock(&f->api->mu);
        return n;
}

static void assert_fenced(struct fixture *f) {
        pthread_mutex_lock(&f->api->mu);
        for (size_t i = 0; i < f->api->store.n_commits; i++)
                if (strncmp(f->api->store.commits[i].key, "configmaps/", 11) == 0)
                        assert_string_equal(f->api->store.commits[i].fence_identity, "me");
        pthread_mutex_unlock(&f->api->mu);
}

/* ---- faults ---- */

/* Returns whether a request met the fault. */
static bool once(enum fault fault, int countdown) {
        struct fixture *f = fixture_new(fault, countdown, 0, 0);
        struct hf_bootstrap_info info;

        install(f);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        for (size_t i = 0; i < 2; i++) {
                hf_bootstrap_info(f->bootstrap, i, &info);
                assert_true(info.complete);
                assert_int_equal(info.n_steps, 1);
        }
        assert_int_equal(n_commits(f, "configmaps/default/a"), 1);
        assert_int_equal(n_commits(f, "configmaps/default/b"), 1);
        /* two records, two completions */
        assert_int_equal(n_commits(f, "configmaps/kube-system/holdfast-bootstrap"), 4);
        assert_fenced(f);
        bool hit = atomic_load(&f->client.hit);
        fixture_free(f);
        return hit;
}

static void test_bootstrap_completes_when_any_write_fails_once(void **state) {
        int n = 0;

        while (once(FAULT_NOT_SENT, n))
                n++;
        assert_int_equal(n, 6); /* two objects, the ledger four times */
}

static void test_bootstrap_completes_when_any_reply_is_lost_once(void **state) {
        int n = 0;

        while (once(FAULT_REPLY_LOST, n))
                n++;
        assert_int_equal(n, 6);
}

static void test_after_a_conflict_the_ledger_is_read_again_after_a_pause(void **state) {
        struct fixture *f = fixture_new(FAULT_CONFLICT, 3, 0, 0);

        install(f);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        pthread_mutex_lock(&after_conflict.mu);
        /* the three conflicts, then the record */
        assert_int_equal(strncmp(after_conflict.calls, "WpGWpGWpGW", 10), 0);
        pthread_mutex_unlock(&after_conflict.mu);
        /* One conflict is no news, for others may write the ledger; more are failures. */
        pthread_mutex_lock(&f->mu);
        assert_int_equal(f->points[HF_BOOTSTRAP_FAILING], 2);
        pthread_mutex_unlock(&f->mu);
        assert_int_equal(n_commits(f, "configmaps/default/a"), 1);
        assert_int_equal(n_commits(f, "configmaps/kube-system/holdfast-bootstrap"), 4);
        fixture_free(f);
}

/* ---- the hook ---- */

static void *shut_down(void *ctx) {
        struct fixture *f = ctx;
        /* The hook waits once it watches. */
        fake_api_await_watch(f->api, 1);
        hf_hooks_shut_down(f->hooks);
        return NULL;
}

static void test_a_hook_waits_until_the_shutdown(void **state) {
        struct fixture *f = fixture_new(FAULT_NONE, -1, 0, 0);
        struct hf_status status = {0};
        pthread_t thread;

        assert_int_equal(hf_bootstrap_install(f->bootstrap, f->hooks, NULL, 0, NULL), 0);
        /* both hooks, both phases */
        assert_int_equal(hf_health_each(f->host.health, HF_READYZ, NULL, NULL), 4);
        /* only the hooks */
        assert_int_equal(hf_health_each(f->host.health, HF_LIVEZ, NULL, NULL), 2);
        assert_int_equal(pthread_create(&thread, NULL, shut_down, f), 0);
        assert_int_equal(hf_hooks_start(f->hooks, &status), HF_E_CANCELED);
        assert_int_equal(pthread_join(thread, NULL), 0);
        (void)hf_hooks_stop(f->hooks, &status);
        fixture_free(f);
}

static void *complete(void *ctx) {
        struct fixture *f = ctx;
        fake_api_await_watch(f->api, 1);
        fake_api_put(f->api, "configmaps/kube-system/holdfast-bootstrap",
                     "{\"metadata\":{},\"data\":{\"format\":\"1\"}}");
        fake_api_put(f->api, "configmaps/kube-system/holdfast-bootstrap",
                     "{\"metadata\":{},\"data\":{\"format\":\"77\",\"zero.completed\":\"9.0.0 "
                     "now\",\"one.completed\":\"9.0.0 now\"}}");
        return NULL;
}

/*
 * A process that does not contend becomes ready when another process, of any version, completes the
 * phase.
 */
static void test_a_hook_is_done_when_another_process_completes_the_phase(void **state) {
        struct fixture *f = fixture_new(FAULT_NONE, -1, 0, 0);
        struct hf_bootstrap_info info;
        pthread_t thread;

        assert_int_equal(hf_bootstrap_install(f->bootstrap, f->hooks, NULL, 0, NULL), 0);
        assert_int_equal(pthread_create(&thread, NULL, complete, f), 0);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(hf_health_each(f->host.health, HF_READYZ, NULL, NULL), 0);
        for (size_t i = 0; i < 2; i++) {
                hf_bootstrap_info(f->bootstrap, i, &info);
                assert_true(info.complete && info.n_settled == 1);
        }
        fixture_free(f);
}

/* It learns so from the ledger when it begins to lead, even if its own version never completes. */
static void test_a_leader_without_hooks_knows_that_an_older_version_was_complete(void **state) {
        struct fixture *f = fixture_new(FAULT_REFUSED, -1, 0, 0);
        struct hf_bootstrap_info info;

        fake_api_put(f->api, "configmaps/kube-system/holdfast-bootstrap",
                     "{\"metadata\":{},\"data\":{\"format\":\"1\",\"zero.completed\":\"0.9.0 "
                     "now\"}}");
        add_elector(f);
        assert_int_equal(hf_controllers_install(f->hooks, f->electors, NULL, 0, NULL), 0);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        await_point(f, HF_BOOTSTRAP_FAILING, 1);
        hf_bootstrap_info(f->bootstrap, 0, &info);
        assert_true(info.complete && info.n_settled == 0);
        hf_bootstrap_info(f->bootstrap, 1, &info);
        assert_false(info.complete);
        fixture_free(f);
}

static void test_a_hook_with_a_time_limit_lets_the_start_go_on(void **state) {
        struct fixture *f = fixture_new(FAULT_NONE, -1, 1, 0);
        struct hf_bootstrap_info info;

        assert_int_equal(hf_bootstrap_install(f->bootstrap, f->hooks, NULL, 0, NULL), 0);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        hf_bootstrap_info(f->bootstrap, 0, &info);
        assert_false(info.complete);
        fixture_free(f);
}

/* ---- the ledger is deleted ---- */

/* Otherwise a process that starts later would not become ready while the same leader leads. */
static void test_a_deleted_ledger_is_recreated_in_the_same_term(void **state) {
        struct fixture *f = fixture_new(FAULT_NONE, -1, 0, 0);
        struct hf_leader_info info;

        install(f);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        await_point(f, HF_BOOTSTRAP_COMPLETE, 2);
        fake_api_delete(f->api, "configmaps/kube-system/holdfast-bootstrap");
        await_point(f, HF_BOOTSTRAP_COMPLETE, 4);
        hf_elector_info(f->elector, &info);
        assert_int_equal(info.n_terms, 1);
        assert_int_equal(n_commits(f, "configmaps/default/a"), 1);
        assert_int_equal(n_commits(f, "configmaps/default/b"), 1);
        fixture_free(f);
}

/* ---- the ledger's namespace is missing ---- */

/* The server refuses the create of the ledger as not found. That is a failure, not a conflict. */
static void test_a_missing_namespace_of_the_ledger_is_a_failure(void **state) {
        struct fixture *f = fixture_new(FAULT_NO_NAMESPACE, -1, 1, 0);
        struct hf_bootstrap_info info;

        install(f);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        await_point(f, HF_BOOTSTRAP_FAILING, 1);
        hf_bootstrap_info(f->bootstrap, 0, &info);
        assert_true(info.failing);
        assert_false(info.complete);
        fixture_free(f);
}

/* ---- releasing after failures ---- */

static void test_a_leader_that_keeps_failing_releases_and_tries_again(void **state) {
        struct fixture *f = fixture_new(FAULT_REFUSED, -1, 1, 1);
        struct hf_leader_info info;

        install(f);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        await_point(f, HF_BOOTSTRAP_GAVE_WAY, 2);
        hf_elector_info(f->elector, &info);
        assert_true(info.n_terms >= 2);
        assert_int_equal(n_commits(f, "configmaps/default/a"), 0);
        pthread_mutex_lock(&f->api->mu);
        unsigned n_released = 0, n_events = 0;
        for (size_t i = 0; i < f->api->store.n_commits; i++) {
                n_released += strcmp(f->api->store.commits[i].key, "leases/default/lead") == 0 &&
                              !f->api->store.commits[i].holder[0];
                n_events += strncmp(f->api->store.commits[i].key,
                                    "events/kube-system/holdfast-bootstrap.", 38) == 0;
        }
        pthread_mutex_unlock(&f->api->mu);
        assert_true(n_released >= 1);
        assert_true(n_events >= 2);
        pthread_mutex_lock(&f->mu);
        assert_int_equal(f->points[HF_BOOTSTRAP_APPLIED], 0);
        pthread_mutex_unlock(&f->mu);
        fixture_free(f);
}

static void test_a_ledger_that_always_conflicts_makes_the_leader_give_way(void **state) {
        struct fixture *f = fixture_new(FAULT_CONFLICT, INT_MAX, 1, 1);

        install(f);
        assert_int_equal(hf_hooks_start(f->hooks, NULL), 0);
        await_point(f, HF_BOOTSTRAP_GAVE_WAY, 1);
        fixture_free(f);
}

/* ---- configurations that are refused ---- */

static void test_bad_configurations_are_refused(void **state) {
        static const struct hf_bootstrap_kind kinds[] = {{"v1", "ConfigMap", "configmaps", true}};
        const struct hf_bootstrap_phase good = {.name = "a"},
                                        twice[] = {{.name = "a"}, {.name = "a"}},
                                        bad = {.name = "A b"};
        const struct hf_bootstrap_config fine = {.size = sizeof fine,
                                                 .version = "1",
                                                 .kinds = kinds,
                                                 .n_kinds = 1,
                                                 .phases = &good,
                                                 .n_phases = 1};
        const struct hf_host host = {.size = sizeof host};
        struct hf_bootstrap *bootstrap;
        struct hf_status status = {0};
        struct hf_bootstrap_config config = fine;

        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), 0);
        assert_int_equal(hf_bootstrap_n_phases(bootstrap), 1);
        hf_bootstrap_free(bootstrap);
        config.version = "one";
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), HF_E_INVALID);
        assert_string_equal(status.message, "bootstrap: \"one\" is not a version");
        config = fine;
        config.n_phases = 0;
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), HF_E_INVALID);
        config = fine;
        config.phases = twice;
        config.n_phases = 2;
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), HF_E_INVALID);
        assert_string_equal(status.message, "bootstrap: there are two phases a");
        config = fine;
        config.phases = &bad;
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), HF_E_INVALID);
        config = fine;
        config.size = 0;
        assert_int_equal(hf_bootstrap_new(&host, &config, &bootstrap, &status), -EINVAL);
        assert_null(hf_bootstrap_free(NULL));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bootstrap_completes_when_any_write_fails_once),
                cmocka_unit_test(test_bootstrap_completes_when_any_reply_is_lost_once),
                cmocka_unit_test(test_a_hook_waits_until_the_shutdown),
                cmocka_unit_test(test_a_hook_is_done_when_another_process_completes_the_phase),
                cmocka_unit_test(
                        test_a_leader_without_hooks_knows_that_an_older_version_was_complete),
                cmocka_unit_test(test_a_hook_with_a_time_limit_lets_the_start_go_on),
                cmocka_unit_test(test_a_deleted_ledger_is_recreated_in_the_same_term),
                cmocka_unit_test(test_a_missing_namespace_of_the_ledger_is_a_failure),
                cmocka_unit_test(test_a_leader_that_keeps_failing_releases_and_tries_again),
                cmocka_unit_test(test_after_a_conflict_the_ledger_is_read_again_after_a_pause),
                cmocka_unit_test(test_a_ledger_that_always_conflicts_makes_the_leader_give_way),
                cmocka_unit_test(test_bad_configurations_are_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
