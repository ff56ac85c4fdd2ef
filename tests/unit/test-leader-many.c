/* SPDX-License-Identifier: Apache-2.0 */
/* Many electors of one set: how they watch their Leases together, and when they renew. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <malloc.h>

#include "elector_fixture.h"
#include "leader/electors.h"
#include "leader/lease_watches.h"

#define N_MAX  10
#define N_ROOM 200

/* A client that forwards everything. It can forbid the watch of a collection, as a role that names
 * its Leases does. */
struct forwarder {
        struct hf_client base;
        struct hf_client *inner;
        bool forbids_collections;
};

static int forward_request(struct hf_client *self, const struct hf_request *request,
                           hf_response_fn done, void *ctx, uint64_t *ret_id) {
        return hf_client_request(((struct forwarder *)self)->inner, request, done, ctx, ret_id);
}
static void forward_cancel(struct hf_client *self, uint64_t id) {
        hf_client_cancel(((struct forwarder *)self)->inner, id);
}
static int forward_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                         hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx,
                         uint64_t *ret_id) {
        struct forwarder *forwarder = (struct forwarder *)self;
        struct hf_status status = {0};

        if (spec->name || !forwarder->forbids_collections)
                return hf_client_watch(forwarder->inner, spec, on_event, on_end, ctx, ret_id);
        (void)hf_fail(&status, HF_E_FORBIDDEN, "leases is forbidden");
        on_end(ctx, HF_E_FORBIDDEN, &status);
        return 0;
}
static void forward_watch_cancel(struct hf_client *self, uint64_t id) {
        hf_client_watch_cancel(((struct forwarder *)self)->inner, id);
}

static struct fixture {
        struct fake_api *api;
        struct fake_api_client *client;
        struct forwarder forwarder;
        struct hf_electors *electors;
        struct hf_elector *list[N_ROOM];
        int n;
} f;

/* Starts n electors. The next renewal comes after retry_period. */
static void start(int n, hf_nsec retry_period, bool forbids_collections) {
        static const struct hf_client_ops ops = {.size = sizeof ops,
                                                 .request = forward_request,
                                                 .cancel = forward_cancel,
                                                 .watch = forward_watch,
                                                 .watch_cancel = forward_watch_cancel};

        f = (struct fixture){.api = fake_api_new(), .n = n};
        f.client = fake_api_client_new(f.api);
        f.forwarder =
                (struct forwarder){{&ops, &f.api->host}, &f.client->base, forbids_collections};
        assert_int_equal(hf_electors_new(&f.api->host, &f.electors), 0);
        for (int i = 0; i < n; i++) {
                char name[16];
                (void)snprintf(name, sizeof name, "lead-%d", i);
                struct hf_elector_config config =
                        {.size = sizeof config,
                         .ns = "kube-system",
                         .name = name,
                         .identity = "a",
                         .client = &f.forwarder.base,
                         .timing = {.lease_duration = 300 * HF_NSEC_PER_SEC,
                                    .renew_deadline = 200 * HF_NSEC_PER_SEC,
                                    .request_timeout = 20 * HF_NSEC_PER_SEC,
                                    .retry_period = retry_period}};
                assert_int_equal(hf_electors_add(f.electors, &config, &f.list[i], NULL), 0);
        }
        assert_int_equal(hf_electors_start(f.electors, NULL), 0);
}

static void stop(void) {
        assert_int_equal(hf_electors_stop(f.electors, NULL), 0);
        hf_electors_free(f.electors);
        hf_client_free(&f.client->base);
        assert_int_equal(f.api->n_open, 0);
        fake_api_free(f.api);
}

static int count_leading(void) {
        int n = 0;
        for (int i = 0; i < f.n; i++)
                n += hf_elector_may_act(f.list[i]);
        return n;
}
static bool all_lead(void *ctx) { return count_leading() == f.n; }
static bool one_has_lost(void *ctx) { return count_leading() == f.n - 1; }
static bool all_lead_and_watch_alone(void *ctx) {
        return count_leading() == f.n && f.api->n_open == (unsigned)f.n;
}
static bool watches_again(void *ctx) { return f.api->n_watches >= 2 && f.api->n_open == 1; }

/* As elector_fixture_await, but looks again every 5 ms: a change of may_act is not signalled. */
static void await(bool (*test)(void *ctx), int line) {
        hf_nsec until = hf_now(hf_clock_system()) + ELECTOR_FIXTURE_PATIENCE;
        for (;;) {
                pthread_mutex_lock(&f.api->mu);
                bool ok = test(NULL);
                pthread_mutex_unlock(&f.api->mu);
                if (ok)
                        return;
                if (hf_now(hf_clock_system()) > until)
                        fail_msg("line %d: the condition did not become true", line);
                (void)hf_cancel_wait(hf_cancel_never(),
                                     hf_now(hf_clock_system()) + 5 * HF_NSEC_PER_MSEC);
        }
}

static void overwrite(int i) {
        char key[40], text[160];
        (void)snprintf(key, sizeof key, "leases/kube-system/lead-%d", i);
        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"namespace\":\"kube-system\",\"name\":\"lead-%d\"},"
                       "\"spec\":{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":300}}",
                       i);
        fake_api_put(f.api, key, text);
}

/* The next renewal is a minute away, so it is the watch that ends the term. */
static void test_one_watch_serves_all_and_each_gets_its_own_events(void **state) {
        start(N_MAX, 120 * HF_NSEC_PER_SEC, false);
        await(all_lead, __LINE__);
        pthread_mutex_lock(&f.api->mu);
        assert_int_equal(f.api->n_watches, 1);
        pthread_mutex_unlock(&f.api->mu);
        overwrite(3);
        await(one_has_lost, __LINE__);
        assert_false(hf_elector_may_act(f.list[3]));
        stop();
}

static void test_the_shared_watch_is_opened_again_after_its_end(void **state) {
        start(N_MAX, 200 * HF_NSEC_PER_MSEC, false);
        await(all_lead, __LINE__);
        fake_api_end_watches(f.api, 0, NULL);
        await(watches_again, __LINE__);
        overwrite(N_MAX - 1);
        await(one_has_lost, __LINE__);
        assert_false(hf_elector_may_act(f.list[N_MAX - 1]));
        stop();
}

static void test_a_forbidden_collection_is_watched_lease_by_lease(void **state) {
        start(N_MAX, 200 * HF_NSEC_PER_MSEC, true);
        await(all_lead_and_watch_alone, __LINE__);
        overwrite(0);
        await(one_has_lost, __LINE__);
        assert_false(hf_elector_may_act(f.list[0]));
        stop();
}

static void test_a_few_electors_watch_alone(void **state) {
        start(HF__LEASE_WATCHES_SHARED - 1, 120 * HF_NSEC_PER_SEC, false);
        await(all_lead_and_watch_alone, __LINE__);
        stop();
}

/* The retry period is divided into 128 places. Ten electors are at least five places apart. */
static void test_each_elector_renews_at_a_place_of_its_own(void **state) {
        const hf_nsec period = 128 * HF_NSEC_PER_SEC;
        start(N_MAX, period, false);
        for (int i = 0; i < N_MAX; i++)
                for (int k = 0; k < i; k++) {
                        hf_nsec apart = f.electors->list[i]->core.config.renew_phase -
                                        f.electors->list[k]->core.config.renew_phase;
                        apart = (apart + period) % period;
                        assert_true(apart >= 5 * HF_NSEC_PER_SEC &&
                                    apart <= period - 5 * HF_NSEC_PER_SEC);
                }
        stop();
}

/* A process may have thousands of such electors. The text of the Lease comes on top of this. Under
 * a sanitizer the C library counts nothing. */
static void test_an_elector_without_controllers_takes_at_most_2_KiB(void **state) {
        enum { N = 200, FIXED = 4096 /* of the set */ };
        const struct hf_host host = {.size = sizeof host};
        struct hf_electors *electors;
        struct hf_elector_config config = {.size = sizeof config,
                                           .ns = "kube-system",
                                           .identity =
                                                   "node-1_5f0c7a3e-6a3c-4a5e-9d53-7b7f0a2f3f11",
                                           .client = &f.forwarder.base};

        size_t before = mallinfo2().uordblks;
        assert_int_equal(hf_electors_new(&host, &electors), 0);
        for (int i = 0; i < N; i++) {
                char name[16];
                (void)snprintf(name, sizeof name, "lead-%d", i);
                config.name = name;
                assert_int_equal(hf_electors_add(electors, &config, NULL, NULL), 0);
        }
        size_t taken = mallinfo2().uordblks - before;
        if (taken > FIXED + N * (size_t)2048)
                fail_msg("%zu bytes for each elector", taken / N);
        hf_electors_free(electors);
}

/* What it adds is the text of its Lease, its watch, and nothing for controllers that it does not
 * have. The Leases of the server stay, so they do not count. */
static void test_a_leading_elector_takes_at_most_3_KiB(void **state) {
        enum { FIXED = 32768 /* of the set, of its thread and its client */ };

        start(N_ROOM, 120 * HF_NSEC_PER_SEC, false);
        await(all_lead, __LINE__);
        size_t leading = mallinfo2().uordblks;
        assert_int_equal(hf_electors_stop(f.electors, NULL), 0);
        hf_electors_free(f.electors);
        size_t after = mallinfo2().uordblks;
        if (leading > after + FIXED + N_ROOM * (size_t)3072)
                fail_msg("%zu bytes for each elector", (leading - after) / N_ROOM);
        hf_client_free(&f.client->base);
        fake_api_free(f.api);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_watch_serves_all_and_each_gets_its_own_events),
                cmocka_unit_test(test_the_shared_watch_is_opened_again_after_its_end),
                cmocka_unit_test(test_a_forbidden_collection_is_watched_lease_by_lease),
                cmocka_unit_test(test_a_few_electors_watch_alone),
                cmocka_unit_test(test_each_elector_renews_at_a_place_of_its_own),
                cmocka_unit_test(test_an_elector_without_controllers_takes_at_most_2_KiB),
                cmocka_unit_test(test_a_leading_elector_takes_at_most_3_KiB),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
