/* SPDX-License-Identifier: Apache-2.0 */
/* The balancer of shards deletes the Leases of instances that ended long ago. */
#undef NDEBUG
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/shards.h>

#include "elector_fixture.h"
#include "leader/shards_core.h"

/* Other Leases of the namespace do not concern the group. */
#define SELECTOR "labelSelector=holdfast.dev%2Fshards%3Djobs"

/* A client that forwards everything except the first DELETE, which it refuses. If the instance
 * comes back, it renews its Lease before each DELETE, and all are forwarded. */
static struct fixture {
        struct hf_client base;
        struct fake_api *api;
        struct fake_api_client *inner;
        struct hf_electors *electors;
        bool comes_back;
        unsigned n_deletes, n_kept; /* guarded by api->mu */
        atomic_uint n_lists;
        char key[80];        /* of the Lease of the instance that ended */
        hf_response_fn done; /* of the last DELETE */
        void *done_ctx;
} f;

static void put_old_member(int second) {
        uint64_t member = hf__shards_key("old");
        char text[300];

        (void)snprintf(f.key, sizeof f.key, "leases/kube-system/jobs-member-%016" PRIx64, member);
        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"namespace\":\"kube-system\",\"name\":\"jobs-member-%"
                       "016" PRIx64 "\"},\"spec\":{\"holderIdentity\":\"old\","
                       "\"leaseDurationSeconds\":1,\"renewTime\":\"2026-01-01T00:00:%02d.000000Z\"}"
                       "}",
                       member, second);
        (void)fake_api_put(f.api, f.key, text);
}

static void on_deleted(void *ctx, const struct hf_response *response) {
        if (response->error == HF_E_CONFLICT) {
                pthread_mutex_lock(&f.api->mu);
                f.n_kept++;
                pthread_cond_broadcast(&f.api->changed);
                pthread_mutex_unlock(&f.api->mu);
        }
        f.done(f.done_ctx, response);
}

static int forward_request(struct hf_client *self, const struct hf_request *request,
                           hf_response_fn done, void *ctx, uint64_t *ret_id) {
        if (request->verb == HF_VERB_LIST) {
                assert_non_null(request->query);
                assert_ptr_equal(strstr(request->query, SELECTOR), request->query);
                atomic_fetch_add(&f.n_lists, 1);
        }
        if (request->verb != HF_VERB_DELETE)
                return hf_client_request(&f.inner->base, request, done, ctx, ret_id);
        /* The balancer divides nothing meanwhile, so it deletes for a retry period at most. */
        assert_true(request->deadline <=
                    hf_now(hf_host_clock(&f.api->host)) + 100 * HF_NSEC_PER_MSEC);
        pthread_mutex_lock(&f.api->mu);
        unsigned n_before = f.n_deletes++;
        pthread_cond_broadcast(&f.api->changed);
        pthread_mutex_unlock(&f.api->mu);
        if (f.comes_back) {
                put_old_member((int)n_before % 60);
                f.done = done;
                f.done_ctx = ctx;
                return hf_client_request(&f.inner->base, request, on_deleted, NULL, ret_id);
        }
        if (n_before > 0)
                return hf_client_request(&f.inner->base, request, done, ctx, ret_id);
        struct hf_response refused = {.size = sizeof refused, .error = HF_E_TOO_MANY};
        (void)hf_fail(&refused.status, HF_E_TOO_MANY, "refused by the test");
        done(ctx, &refused);
        return 0;
}
static void forward_cancel(struct hf_client *self, uint64_t id) {
        hf_client_cancel(&f.inner->base, id);
}
static int forward_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                         hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx,
                         uint64_t *ret_id) {
        return hf_client_watch(&f.inner->base, spec, on_event, on_end, ctx, ret_id);
}
static void forward_watch_cancel(struct hf_client *self, uint64_t id) {
        hf_client_watch_cancel(&f.inner->base, id);
}

static int run_shard(struct hf_term *term, unsigned shard, void *ctx) {
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        return 0;
}

static bool is_deleted(void *ctx) { return fake_store_find(&f.api->store, f.key) == NULL; }

static bool is_kept(void *ctx) { return f.n_kept > 0; }

static void begin(bool comes_back) {
        static const struct hf_client_ops ops = {.size = sizeof ops,
                                                 .request = forward_request,
                                                 .cancel = forward_cancel,
                                                 .watch = forward_watch,
                                                 .watch_cancel = forward_watch_cancel};
        const struct hf_elector_config elector = {.size = sizeof elector,
                                                  .ns = "kube-system",
                                                  .name = "jobs",
                                                  .identity = "a",
                                                  .client = &f.base,
                                                  .timing = {.lease_duration = HF_NSEC_PER_SEC,
                                                             .renew_deadline =
                                                                     600 * HF_NSEC_PER_MSEC,
                                                             .retry_period =
                                                                     100 * HF_NSEC_PER_MSEC}};
        const struct hf_shard_controller controller = {.size = sizeof controller,
                                                       .name = "job",
                                                       .run = run_shard};
        const struct hf_shards_config config = {.size = sizeof config,
                                                .elector = &elector,
                                                .n_shards = 1,
                                                .controllers = &controller,
                                                .n_controllers = 1};

        f = (struct fixture){.api = fake_api_new(), .comes_back = comes_back};
        f.base = (struct hf_client){.ops = &ops, .host = &f.api->host};
        f.inner = fake_api_client_new(f.api);
        put_old_member(0);
        assert_int_equal(hf_electors_new(&f.api->host, &f.electors), 0);
        assert_int_equal(hf_shards_add(f.electors, &config, NULL, NULL), 0);
        assert_int_equal(hf_electors_start(f.electors, NULL), 0);
}

static void finish(void) {
        assert_int_equal(hf_electors_stop(f.electors, NULL), 0);
        hf_electors_free(f.electors);
        hf_client_free(&f.inner->base);
        fake_api_free(f.api);
}

static void test_a_delete_that_failed_is_tried_again(void **state) {
        begin(false);
        elector_fixture_await(f.api, is_deleted, NULL, __LINE__);
        assert_true(f.n_deletes >= 2);
        assert_true(atomic_load(&f.n_lists) >= 1);
        finish();
}

/* The instance has acquired its Lease after the balancer saw that it was old. Without the Lease it
 * would lose its term. */
static void test_an_instance_that_comes_back_keeps_its_lease(void **state) {
        begin(true);
        elector_fixture_await(f.api, is_kept, NULL, __LINE__);
        pthread_mutex_lock(&f.api->mu);
        assert_false(is_deleted(NULL));
        pthread_mutex_unlock(&f.api->mu);
        finish();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_delete_that_failed_is_tried_again),
                cmocka_unit_test(test_an_instance_that_comes_back_keeps_its_lease),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
