/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two instances share the shards of a group, in real time over the fake API server. What they
 * decide is tested by test-leader-shards; this is about the Leases by which they see each other,
 * about the hand-over of a shard, and about decisions that lack memory when they are made.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/shards.h>
#include <holdfast/workqueue.h>

#include "elector_fixture.h"
#include "leader/electors.h"

#define N_SHARDS 2

struct instance {
        struct fake_api_client *client;
        struct hf_electors *electors;
        struct hf_shards *shards;
        atomic_int n_running; /* shards */
        atomic_int n_changes; /* calls of on_change for a Lease that is not a shard's */
};

static struct fake_api *api;

/* ---- a shortage: the linker redirects these functions here ---- */

static atomic_bool has_no_room;  /* no key can be queued */
static atomic_bool is_forgetful; /* every other call of hf__elector_hold_back fails */
static atomic_uint n_refused, n_hold_backs, n_told; /* n_told: electors that need not hold back */

int __real_hf_workqueue_add(struct hf_workqueue *queue, const char *key);
int __wrap_hf_workqueue_add(struct hf_workqueue *queue, const char *key);
int __wrap_hf_workqueue_add(struct hf_workqueue *queue, const char *key) {
        if (!atomic_load(&has_no_room))
                return __real_hf_workqueue_add(queue, key);
        atomic_fetch_add(&n_refused, 1);
        return -ENOMEM;
}

int __real_hf__elector_hold_back(struct hf_elector *elector, hf_nsec duration);
int __wrap_hf__elector_hold_back(struct hf_elector *elector, hf_nsec duration);
int __wrap_hf__elector_hold_back(struct hf_elector *elector, hf_nsec duration) {
        if (atomic_load(&is_forgetful) && atomic_fetch_add(&n_hold_backs, 1) % 2 == 0)
                return -ENOMEM;
        int r = __real_hf__elector_hold_back(elector, duration);
        pthread_mutex_lock(&api->mu);
        atomic_fetch_add(&n_told, r == 0 && duration == 0);
        pthread_cond_broadcast(&api->changed);
        pthread_mutex_unlock(&api->mu);
        return r;
}

/* ---- an instance ---- */

static int run_shard(struct hf_term *term, unsigned shard, void *ctx) {
        struct instance *instance = ctx;

        atomic_fetch_add(&instance->n_running, 1);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        atomic_fetch_sub(&instance->n_running, 1);
        return 0;
}

static void on_change(void *ctx, const struct hf_leader_info *info) {
        struct instance *instance = ctx;

        if (strstr(info->name, "-member-"))
                atomic_fetch_add(&instance->n_changes, 1);
}

static void begin_instance(struct instance *instance, const char *identity) {
        const struct hf_elector_config elector = {.size = sizeof elector,
                                                  .ns = "kube-system",
                                                  .name = "jobs",
                                                  .identity = identity,
                                                  .timing = {.lease_duration = 3 * HF_NSEC_PER_SEC,
                                                             .renew_deadline = 2 * HF_NSEC_PER_SEC,
                                                             .retry_period =
                                                                     100 * HF_NSEC_PER_MSEC},
                                                  .events = true,
                                                  .on_change = on_change,
                                                  .ctx = instance,
                                                  .client = &instance->client->base};
        const struct hf_shard_controller controller = {.size = sizeof controller,
                                                       .name = "job",
                                                       .run = run_shard,
                                                       .ctx = instance};
        const struct hf_shards_config config = {.size = sizeof config,
                                                .elector = &elector,
                                                .n_shards = N_SHARDS,
                                                .controllers = &controller,
                                                .n_controllers = 1};

        assert_int_equal(hf_electors_new(&api->host, &instance->electors), 0);
        assert_int_equal(hf_shards_add(instance->electors, &config, &instance->shards, NULL), 0);
        assert_int_equal(hf_electors_start(instance->electors, NULL), 0);
}

static void end_instance(struct instance *instance) {
        assert_int_equal(hf_electors_stop(instance->electors, NULL), 0);
        assert_int_equal(atomic_load(&instance->n_running), 0);
        assert_int_equal(atomic_load(&instance->n_changes), 0);
        hf_electors_free(instance->electors);
        hf_client_free(&instance->client->base);
}

/* How many shards an identity holds. With api->mu. */
static unsigned n_held_by(const char *identity) {
        char key[64], holder[64];
        unsigned n = 0;

        (void)snprintf(holder, sizeof holder, "\"holderIdentity\":\"%s\"", identity);
        for (unsigned i = 0; i < N_SHARDS; i++) {
                (void)snprintf(key, sizeof key, "leases/kube-system/jobs-%u", i);
                const struct fake_object *object = fake_store_find(&api->store, key);
                n += object && strstr(object->text->data, holder);
        }
        return n;
}

static bool a_has_all(void *ctx) { return n_held_by("a") == N_SHARDS; }
static bool each_has_one(void *ctx) { return n_held_by("a") == 1 && n_held_by("b") == 1; }
static bool b_has_all(void *ctx) { return n_held_by("b") == N_SHARDS; }

/* Leases of the namespace that look like those of the group, but do not belong to it. */
static void put_strange_leases(void) {
        static const char *const names[] = {"jobs",          "jobs-",   "jobs-x",
                                            "jobs-00",       "jobs-2",  "jobs-member-",
                                            "jobs-member-1", "jobsx-0", "other"};
        char key[64], text[200];

        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                (void)snprintf(key, sizeof key, "leases/kube-system/%s", names[i]);
                (void)snprintf(text, sizeof text,
                               "{\"metadata\":{\"namespace\":\"kube-system\",\"name\":\"%s\"},"
                               "\"spec\":{\"holderIdentity\":\"c\",\"leaseDurationSeconds\":3}}",
                               names[i]);
                (void)fake_api_put(api, key, text);
        }
}

/* The shard that moves ends its term by a hand-over, not by a loss. */
static unsigned n_handed_over(struct instance *instance) {
        unsigned n = 0;

        for (unsigned i = 0; i < N_SHARDS; i++) {
                struct hf_leader_info info = {.size = sizeof info};
                hf_elector_info(hf_shards_elector(instance->shards, i), &info);
                n += strcmp(info.last_end, "handed over") == 0;
                assert_true(info.last_end[0] == '\0' || strcmp(info.last_end, "handed over") == 0);
        }
        return n;
}

static bool has_member_event(void) {
        bool found = false;

        pthread_mutex_lock(&api->mu);
        for (size_t i = 0; i < api->store.n_objects; i++)
                found |= strncmp(api->store.objects[i]->key, "events/", 7) == 0 &&
                         strstr(api->store.objects[i]->key, "-member-");
        pthread_mutex_unlock(&api->mu);
        return found;
}

static void test_a_second_instance_gets_its_share_and_inherits_the_rest(void **state) {
        static struct instance a, b;

        api = fake_api_new();
        a.client = fake_api_client_new(api);
        b.client = fake_api_client_new(api);
        put_strange_leases();
        begin_instance(&a, "a");
        elector_fixture_await(api, a_has_all, NULL, __LINE__);
        begin_instance(&b, "b");
        elector_fixture_await(api, each_has_one, NULL, __LINE__);
        assert_int_equal(n_handed_over(&a), 1);
        end_instance(&a);
        elector_fixture_await(api, b_has_all, NULL, __LINE__);
        end_instance(&b);
        /* The Lease of an instance says that it lives; nobody is interested in its leader. */
        assert_false(has_member_event());
        fake_api_free(api);
}

static bool is_refused_again_and_again(void *ctx) { return atomic_load(&n_refused) >= 8; }

static bool all_are_told(void *ctx) { return atomic_load(&n_told) >= N_SHARDS; }

/* A decision that could not be queued is not forgotten when its event has been observed, and an
 * elector that could not be told is told later. The instance is alone, so fewer than eight events
 * call for a decision. */
static void test_a_decision_survives_a_shortage_of_memory(void **state) {
        static struct instance a;

        api = fake_api_new();
        a.client = fake_api_client_new(api);
        atomic_store(&n_told, 0);
        atomic_store(&has_no_room, true);
        atomic_store(&is_forgetful, true);
        begin_instance(&a, "a");
        elector_fixture_await(api, is_refused_again_and_again, NULL, __LINE__);
        assert_int_equal(atomic_load(&n_told), 0);
        atomic_store(&has_no_room, false);
        elector_fixture_await(api, all_are_told, NULL, __LINE__);
        assert_true(atomic_load(&n_hold_backs) >= 2 * N_SHARDS);
        atomic_store(&is_forgetful, false);
        end_instance(&a);
        fake_api_free(api);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_second_instance_gets_its_share_and_inherits_the_rest),
                cmocka_unit_test(test_a_decision_survives_a_shortage_of_memory),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
