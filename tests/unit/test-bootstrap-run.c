/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shell of bootstrap over a fake API: every write's reply lost, or the write itself, one after
 * the other; the hook; giving way.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_api.h"

#include <holdfast/bootstrap.h>
#include <holdfast/health.h>
#include <holdfast/metrics.h>

#define GUARD (60 * HF_NSEC_PER_SEC)

enum fault { FAULT_NONE, FAULT_REPLY_LOST, FAULT_NOT_SENT, FAULT_REFUSED };

/* The client of the elector: Lease traffic as it is, other writes with a fault. Dry runs it answers
 * itself: the fake has none. */
struct split {
        struct hf_client base; /* first */
        struct fake_client *inner;
        enum fault fault;
        atomic_int countdown; /* to the write that has the fault; < 0: none has. FAULT_REFUSED: all
                                 have */
        atomic_bool hit;
};

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

        if (write && request->query && strstr(request->query, "dryRun=All"))
                return response(done, ctx, 0, request, ret_id);
        if (write && split->fault == FAULT_REFUSED)
                return response(done, ctx, HF_E_INVALID, request, ret_id);
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

struct world {
        struct fake_api *api;
        struct hf_host host;
        struct split client;
        struct hf_bootstrap *bootstrap;
        struct hf_electors *electors;
        struct hf_elector *elector;
        struct hf_hooks *hooks;
        pthread_mutex_t mu;
        pthread_cond_t changed;
        unsigned points[HF_BOOTSTRAP_GAVE_WAY + 1]; /* guarded by mu: how often each came */
};

static void on_progress(void *ctx, enum hf_bootstrap_point point,
                        const struct hf_bootstrap_info *info) {
        struct world *w = ctx;
        pthread_mutex_lock(&w->mu);
        w->points[point]++;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->mu);
}

static void await_point(struct world *w, enum hf_bootstrap_point point, unsigned n) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + GUARD;

        pthread_mutex_lock(&w->mu);
        while (w->points[point] < n && hf_now(clock) < until)
                (void)clock->wait(clock->ctx, &w->changed, &w->mu, until);
        assert_true(w->points[point] >= n);
        pthread_mutex_unlock(&w->mu);
}

#define CONFIGMAP(name)                                                                            \
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"" name             \
        "\",\"namespace\":\"default\"},\"data\":{\"k\":\"v\"}}"

static int bootstrap_new(struct world *w, hf_nsec patience, hf_nsec give_way_after) {
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
                                                   .ctx = w};
        return hf_bootstrap_new(&w->host, &config, &w->bootstrap, NULL);
}

static struct world *world_new(enum fault fault, int countdown, hf_nsec patience,
                               hf_nsec give_way_after) {
        static const struct hf_client_ops ops = {split_call, split_cancel, split_watch,
                                                 split_watch_cancel, split_free};
        struct world *w = calloc(1, sizeof *w);

        assert_non_null(w);
        assert_int_equal(hf__mutex_init(&w->mu), 0);
        assert_int_equal(hf_cond_init(&w->changed), 0);
        w->api = fake_api_new();
        w->host.size = sizeof w->host;
        assert_int_equal(hf_health_new(&w->host.health), 0);
        assert_int_equal(hf_metrics_new(&w->host.metrics), 0);
        w->client = (struct split){.base = {.ops = &ops, .host = &w->host},
                                   .inner = fake_client_new(w->api),
                                   .fault = fault};
        atomic_store(&w->client.countdown, countdown);
        assert_int_equal(bootstrap_new(w, patience, give_way_after), 0);
        assert_int_equal(hf_electors_new(&w->host, &w->electors), 0);
        assert_int_equal(hf_hooks_new(&w->host, &w->client.base, &w->hooks), 0);
        return w;
}

static void add_elector(struct world *w) {
        size_t n;
        const struct hf_controller *controllers = hf_bootstrap_controllers(w->bootstrap, &n);
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .ns = "default",
                                                 .name = "lead",
                                                 .identity = "me",
                                                 .client = &w->client.base,
                                                 .timing = {.lease_duration = 4 * HF_NSEC_PER_SEC,
                                                            .renew_deadline = 2 * HF_NSEC_PER_SEC,
                                                            .retry_period = 50 * HF_NSEC_PER_MSEC},
                                                 .controllers = controllers,
                                                 .n_controllers = n};
        assert_int_equal(n, 2);
        assert_string_equal(controllers[1].after[0], "bootstrap-zero");
        assert_int_equal(hf_electors_add(w->electors, &config, &w->elector, NULL), 0);
        hf_bootstrap_set_elector(w->bootstrap, w->elector);
}

static void install(struct world *w) {
        static const char *const after[] = {"start-controllers", NULL};
        add_elector(w);
        assert_int_equal(hf_controllers_install(w->hooks, w->electors, NULL, NULL), 0);
        assert_int_equal(hf_bootstrap_install(w->bootstrap, w->hooks, after, NULL), 0);
}

static void world_free(struct world *w) {
        struct hf_status status = {0};
        (void)hf_hooks_stop(w->hooks, &status);
        hf_hooks_stopped(w->hooks);
        hf_hooks_free(w->hooks);
        hf_electors_free(w->electors);
        hf_bootstrap_free(w->bootstrap);
        hf_client_free(&w->client.base);
        fake_api_free(w->api);
        assert_int_equal(hf_health_each(w->host.health, HF_READYZ | HF_HEALTHZ, NULL, NULL), 0);
        hf_health_free(w->host.health);
        hf_metrics_free(w->host.metrics);
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->mu);
        free(w);
}

static unsigned n_commits(struct world *w, const char *key) {
        unsigned n = 0;
        pthread_mutex_lock(&w->api->mu);
        for (size_t i = 0; i < w->api->n_commits; i++)
                n += strcmp(w->api->commits[i].key, key) == 0 &&
                     w->api->commits[i].holder[0] != '-';
        pthread_mutex_unlock(&w->api->mu);
        return n;
}

static void assert_fenced(struct world *w) {
        pthread_mutex_lock(&w->api->mu);
        for (size_t i = 0; i < w->api->n_commits; i++)
                if (strncmp(w->api->commits[i].key, "configmaps/", 11) == 0)
                        assert_string_equal(w->api->commits[i].fence_identity, "me");
        pthread_mutex_unlock(&w->api->mu);
}

/* ---- faults ---- */

/* True: the fault was met. */
static bool once(enum fault fault, int countdown) {
        struct world *w = world_new(fault, countdown, 0, 0);
        struct hf_bootstrap_info info;

        install(w);
        assert_int_equal(hf_hooks_start(w->hooks, NULL), 0);
        for (size_t i = 0; i < 2; i++) {
                hf_bootstrap_info(w->bootstrap, i, &info);
                assert_true(info.complete);
                assert_int_equal(info.n_steps, 1);
        }
        assert_int_equal(n_commits(w, "configmaps/default/a"), 1);
        assert_int_equal(n_commits(w, "configmaps/default/b"), 1);
        assert_int_equal(n_commits(w, "configmaps/kube-system/holdfast-bootstrap"),
                         4); /* two records, two completions */
        assert_fenced(w);
        bool hit = atomic_load(&w->client.hit);
        world_free(w);
        return hit;
}

static void test_each_write_fails_once(void **state) {
        int n = 0;

        while (once(FAULT_NOT_SENT, n))
                n++;
        assert_int_equal(n, 6); /* two objects, four times the ledger */
}

static void test_each_reply_is_lost_once(void **state) {
        int n = 0;

        while (once(FAULT_REPLY_LOST, n))
                n++;
        assert_int_equal(n, 6);
}

/* ---- the hook ---- */

static void *shut_down(void *ctx) {
        struct world *w = ctx;
        /* The hook watches: it waits. */
        pthread_mutex_lock(&w->api->mu);
        while (!w->api->watches)
                pthread_cond_wait(&w->api->changed, &w->api->mu);
        pthread_mutex_unlock(&w->api->mu);
        hf_hooks_shut_down(w->hooks);
        return NULL;
}

static void test_a_hook_waits_until_it_is_told_to_stop(void **state) {
        struct world *w = world_new(FAULT_NONE, -1, 0, 0);
        struct hf_status status = {0};
        pthread_t thread;

        assert_int_equal(hf_bootstrap_install(w->bootstrap, w->hooks, NULL, NULL), 0);
        assert_int_equal(hf_health_each(w->host.health, HF_READYZ, NULL, NULL),
                         4); /* both hooks, both phases */
        assert_int_equal(hf_health_each(w->host.health, HF_LIVEZ, NULL, NULL),
                         2); /* the hooks alone */
        assert_int_equal(pthread_create(&thread, NULL, shut_down, w), 0);
        assert_int_equal(hf_hooks_start(w->hooks, &status), HF_E_CANCELED);
        assert_int_equal(pthread_join(thread, NULL), 0);
        (void)hf_hooks_stop(w->hooks, &status);
        world_free(w);
}

static void *complete(void *ctx) {
        struct world *w = ctx;
        pthread_mutex_lock(&w->api->mu);
        while (!w->api->watches)
                pthread_cond_wait(&w->api->changed, &w->api->mu);
        pthread_mutex_unlock(&w->api->mu);
        fake_put(w->api, "configmaps/kube-system/holdfast-bootstrap",
                 "{\"metadata\":{},\"data\":{\"format\":\"1\"}}");
        fake_put(w->api, "configmaps/kube-system/holdfast-bootstrap",
                 "{\"metadata\":{},\"data\":{\"format\":\"77\",\"zero.completed\":\"9.0.0 "
                 "now\",\"one.completed\":\"9.0.0 now\"}}");
        return NULL;
}

/* Who does not contend is ready by others' work, of whatever version. */
static void test_a_hook_is_done_when_anybody_has_completed_the_phase(void **state) {
        struct world *w = world_new(FAULT_NONE, -1, 0, 0);
        pthread_t thread;

        assert_int_equal(hf_bootstrap_install(w->bootstrap, w->hooks, NULL, NULL), 0);
        assert_int_equal(pthread_create(&thread, NULL, complete, w), 0);
        assert_int_equal(hf_hooks_start(w->hooks, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(hf_health_each(w->host.health, HF_READYZ, NULL, NULL), 0);
        world_free(w);
}

static void test_a_hook_with_patience_lets_go(void **state) {
        struct world *w = world_new(FAULT_NONE, -1, 1, 0);
        struct hf_bootstrap_info info;

        assert_int_equal(hf_bootstrap_install(w->bootstrap, w->hooks, NULL, NULL), 0);
        assert_int_equal(hf_hooks_start(w->hooks, NULL), 0);
        hf_bootstrap_info(w->bootstrap, 0, &info);
        assert_false(info.complete);
        world_free(w);
}

/* ---- the ledger is deleted ---- */

/* Who begins afterwards would never be ready else, for as long as the same one leads. */
static void test_a_deleted_ledger_is_made_anew_in_the_same_term(void **state) {
        struct world *w = world_new(FAULT_NONE, -1, 0, 0);
        struct hf_leader_info info;

        install(w);
        assert_int_equal(hf_hooks_start(w->hooks, NULL), 0);
        await_point(w, HF_BOOTSTRAP_COMPLETE, 2);
        fake_delete(w->api, "configmaps/kube-system/holdfast-bootstrap");
        await_point(w, HF_BOOTSTRAP_COMPLETE, 4);
        hf_elector_info(w->elector, &info);
        assert_int_equal(info.n_terms, 1);
        assert_int_equal(n_commits(w, "configmaps/default/a"), 1);
        assert_int_equal(n_commits(w, "configmaps/default/b"), 1);
        world_free(w);
}

/* ---- giving way ---- */

static void test_a_leader_that_keeps_failing_gives_way_and_tries_again(void **state) {
        struct world *w = world_new(FAULT_REFUSED, -1, 1, 1);
        struct hf_leader_info info;

        install(w);
        assert_int_equal(hf_hooks_start(w->hooks, NULL), 0);
        await_point(w, HF_BOOTSTRAP_GAVE_WAY, 2);
        hf_elector_info(w->elector, &info);
        assert_true(info.n_terms >= 2);
        assert_int_equal(n_commits(w, "configmaps/default/a"), 0);
        pthread_mutex_lock(&w->api->mu);
        unsigned n_released = 0, n_events = 0;
        for (size_t i = 0; i < w->api->n_commits; i++) {
                n_released += strcmp(w->api->commits[i].key, "leases/default/lead") == 0 &&
                              !w->api->commits[i].holder[0];
                n_events += strncmp(w->api->commits[i].key,
                                    "events/kube-system/holdfast-bootstrap.", 38) == 0;
        }
        pthread_mutex_unlock(&w->api->mu);
        assert_true(n_released >= 1);
        assert_true(n_events >= 2);
        pthread_mutex_lock(&w->mu);
        assert_int_equal(w->points[HF_BOOTSTRAP_APPLIED], 0);
        pthread_mutex_unlock(&w->mu);
        world_free(w);
}

/* ---- what is refused at once ---- */

static void test_a_configuration_that_makes_no_sense(void **state) {
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
                cmocka_unit_test(test_each_write_fails_once),
                cmocka_unit_test(test_each_reply_is_lost_once),
                cmocka_unit_test(test_a_hook_waits_until_it_is_told_to_stop),
                cmocka_unit_test(test_a_hook_is_done_when_anybody_has_completed_the_phase),
                cmocka_unit_test(test_a_hook_with_patience_lets_go),
                cmocka_unit_test(test_a_deleted_ledger_is_made_anew_in_the_same_term),
                cmocka_unit_test(test_a_leader_that_keeps_failing_gives_way_and_tries_again),
                cmocka_unit_test(test_a_configuration_that_makes_no_sense),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
