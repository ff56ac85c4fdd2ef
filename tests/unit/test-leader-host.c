/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program that embeds the library can do with it: drive it by its own hooks, read health and
 * metrics, pass structs of another release, and lead in two clusters.
 */
#undef NDEBUG
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

#include <curl/curl.h>
#include <signal.h>

#include <holdfast/health.h>
#include <holdfast/hooks.h>
#include <holdfast/informer.h>
#include <holdfast/metrics.h>

#include "base/strbuf.h"
#include "embedder.h"

/* ---- the host's own hooks, health and metrics ---- */

static void *stop_on_another_thread(void *ctx) {
        struct embedder *e = ctx;
        return (void *)(intptr_t)hf_electors_stop(e->electors, NULL);
}

/*
 * A host with its own hooks does not need those of the library: start returns at once, and any
 * thread may call stop.
 */
static void test_a_hosts_own_hooks_can_drive_it(void **state) {
        struct embedder *e = embedder_new();
        pthread_t thread;
        void *result = NULL;

        assert_int_equal(hf_electors_start(e->electors, NULL), 0); /* the host's post-start hook */
        embedder_await_leading(e);
        /* the host's pre-shutdown hook */
        assert_int_equal(pthread_create(&thread, NULL, stop_on_another_thread, e), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_int_equal((intptr_t)result, 0);
        assert_int_equal(e->n_ended, 1);
        char *lease = fake_api_get(e->api, "leases/default/lead");
        assert_non_null(strstr(lease, "\"holderIdentity\":\"\"")); /* released */
        free(lease);
        embedder_free(e);
}

static int own_start(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status) {
        *(bool *)ctx = true;
        return 0;
}

/* A host without its own hooks registers one pair of hooks for all electors. */
static void test_our_hooks_drive_it(void **state) {
        struct embedder *e = embedder_new();
        struct hf_hooks *hooks = NULL;
        struct hf_status status = {0};
        bool own = false;
        static const char *const after[] = {"own"};
        const struct hf_hook hook = {.size = sizeof hook,
                                     .name = "own",
                                     .start = own_start,
                                     .ctx = &own};

        assert_int_equal(hf_hooks_new(&e->host, NULL, &hooks), 0);
        assert_int_equal(hf_hooks_add(hooks, &hook, HF_HOOKS_HERE, &status), 0);
        assert_int_equal(hf_controllers_install(hooks, e->electors, after, 1, &status), 0);
        assert_int_equal(hf_hooks_start(hooks, &status), 0);
        assert_true(own);
        embedder_await_leading(e);
        assert_int_equal(hf_hooks_stop(hooks, &status), 0);
        assert_int_equal(e->n_ended, 1);
        hf_hooks_fire_stopped(hooks);
        hf_hooks_free(hooks);
        embedder_free(e);
}

static void collect_check(void *ctx, const char *name, bool healthy, const char *reason) {
        char *text = ctx;
        (void)snprintf(text + strlen(text), 1024 - strlen(text), "%s=%d ", name, healthy);
}
static void collect_text(void *ctx, const char *text, size_t n) { hf__strbuf_add(ctx, text, n); }

static void test_health_and_metrics_are_enumerated(void **state) {
        struct embedder *e = embedder_new();
        char checks[1024] = "";
        struct hf__strbuf text = {0};

        assert_int_equal(hf_electors_start(e->electors, NULL), 0);
        embedder_await_leading(e);
        assert_int_equal(hf_health_each(e->host.health, HF_LIVEZ, collect_check, checks), 0);
        assert_string_equal(checks, "leaderElection=1 ");
        hf_metrics_write(e->host.metrics, collect_text, &text);
        assert_int_equal(text.error, 0);
        assert_non_null(strstr(text.data, "\nleader_election_master_status{"));
        assert_non_null(strstr(text.data, "# TYPE holdfast_leader_term gauge"));
        hf__strbuf_done(&text);
        assert_int_equal(hf_electors_stop(e->electors, NULL), 0);
        embedder_free(e);
}

/* ---- structs that grow ---- */

/*
 * Members that an older program does not know get their defaults. Members beyond its struct are
 * ignored.
 */
static void test_smaller_and_larger_configurations_work(void **state) {
        struct embedder *e = embedder_new();
        const struct hf_controller one = {.size = sizeof one,
                                          .name = "one",
                                          .run = embedder_controller,
                                          .ctx = e};
        const struct hf_controller two = {.size = sizeof two,
                                          .name = "two",
                                          .run = embedder_controller,
                                          .ctx = e};
        struct {
                struct hf_elector_config config;
                char more[16];
        } newer = {.config = embedder_config(e, &two)};
        struct hf_elector_config older = embedder_config(e, &one), none = older;
        struct hf_status status = {0};

        older.name = "older";
        older.size = offsetof(struct hf_elector_config, labels);
        older.labels = (const char *const *)(uintptr_t)0x10;
        older.on_change = (void (*)(void *, const struct hf_leader_info *))(uintptr_t)0x10;
        if (hf_electors_add(e->electors, &older, NULL, &status) != 0)
                fail_msg("%s", status.message);
        newer.config.name = "newer";
        newer.config.size = sizeof newer;
        assert_int_equal(hf_electors_add(e->electors, &newer.config, NULL, &status), 0);
        newer.config.name = "newest";
        newer.more[15] = 1;
        assert_int_equal(hf_electors_add(e->electors, &newer.config, NULL, &status), -EINVAL);
        assert_non_null(strstr(status.message, "size"));
        none.name = "none";
        none.size = 0;
        assert_int_equal(hf_electors_add(e->electors, &none, NULL, &status), -EINVAL);
        assert_int_equal(hf_electors_start(e->electors, &status), 0);
        embedder_await_leading(e);
        assert_int_equal(hf_electors_stop(e->electors, NULL), 0);

        struct hf_informer_config small = {.client = &e->client->base,
                                           .resource = {"", "v1", "configmaps"}};
        struct hf_informer *informer = NULL;
        small.size = offsetof(struct hf_informer_config, ns);
        small.ns = small.query = (const char *)(uintptr_t)0x10;
        assert_int_equal(hf_informer_new(&e->host, &small, &informer), 0);
        hf_informer_free(informer);
        small.size = 0;
        assert_int_equal(hf_informer_new(&e->host, &small, &informer), -EINVAL);
        embedder_free(e);
}

/* Electors for one Lease name in two clusters both lead, each with a controller of one name. */
static void test_two_clusters_may_have_the_same_lease(void **state) {
        struct embedder *e = embedder_new(), *other = embedder_new();
        const struct hf_controller same = {.size = sizeof same,
                                           .name = "worker",
                                           .run = embedder_controller,
                                           .ctx = other};
        struct hf_elector_config west = embedder_config(other, &same);
        struct hf_elector *in_west;
        struct hf_status status = {0};

        assert_int_equal(hf_electors_add(e->electors, &west, NULL, &status), HF_E_EXISTS);
        assert_non_null(strstr(status.message, "there already is an elector for the Lease "));
        west.cluster = "west side";
        assert_int_equal(hf_electors_add(e->electors, &west, NULL, &status), HF_E_INVALID);
        west.cluster = "west";
        if (hf_electors_add(e->electors, &west, &in_west, &status) != 0)
                fail_msg("%s", status.message);
        assert_int_equal(hf_electors_add(e->electors, &west, NULL, &status), HF_E_EXISTS);
        assert_int_equal(hf_electors_start(e->electors, &status), 0);
        embedder_await_leading(e);
        embedder_await_leading(other);
        assert_true(hf_elector_may_act(e->elector) && hf_elector_may_act(in_west));
        assert_int_equal(hf_electors_stop(e->electors, NULL), 0);
        embedder_free(other);
        embedder_free(e);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_hosts_own_hooks_can_drive_it),
                cmocka_unit_test(test_our_hooks_drive_it),
                cmocka_unit_test(test_health_and_metrics_are_enumerated),
                cmocka_unit_test(test_smaller_and_larger_configurations_work),
                cmocka_unit_test(test_two_clusters_may_have_the_same_lease),
        };
        (void)signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        curl_global_cleanup();
        return failed;
}
