/* SPDX-License-Identifier: Apache-2.0 */
/* Which configurations of shards are accepted, up to which limits, and which electors they make. */
#undef NDEBUG
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/shards.h>

#include "fake_api_client.h"
#include "leader/electors.h"
#include "leader/shards_core.h"
#include "patience.h"

static int run_shard(struct hf_term *term, unsigned shard, void *ctx) { return 0; }
static int run_controller(struct hf_term *term, void *ctx) { return 0; }

static const struct hf_controller own_controller = {.size = sizeof own_controller,
                                                    .name = "own",
                                                    .run = run_controller};

static struct fixture {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_electors *electors;
        struct hf_elector_config elector;
        struct hf_shard_controller controllers[2];
        struct hf_shards_config config;
        char name[HF_SHARDS_NAME_MAX + 2], ns[HF_NAME_MAX + 2];
} f;

static int set_up(void **state) {
        f = (struct fixture){.api = fake_api_new()};
        f.client = fake_api_client_new(f.api);
        assert_int_equal(hf_electors_new(&f.api->host, &f.electors), 0);
        f.elector = (struct hf_elector_config){.size = sizeof f.elector,
                                               .ns = "kube-system",
                                               .name = "jobs",
                                               .identity = "a",
                                               .client = &f.client->base};
        for (int i = 0; i < 2; i++)
                f.controllers[i] = (struct hf_shard_controller){.size = sizeof f.controllers[i],
                                                                .name = i ? "second" : "first",
                                                                .run = run_shard};
        f.config = (struct hf_shards_config){.size = sizeof f.config,
                                             .elector = &f.elector,
                                             .n_shards = 3,
                                             .controllers = f.controllers,
                                             .n_controllers = 2};
        return 0;
}

static int tear_down(void **state) {
        assert_null(hf_electors_free(f.electors));
        hf_client_free(&f.client->base);
        fake_api_free(f.api);
        return 0;
}

static void expect_refused(const char *expected) {
        struct hf_status status = {0};

        assert_int_equal(hf_shards_add(f.electors, &f.config, NULL, &status), HF_E_INVALID);
        assert_string_equal(status.message, expected);
        assert_int_equal(f.electors->n, 0);
        (void)tear_down(NULL);
        (void)set_up(NULL);
}

static void test_what_is_wrong_is_said(void **state) {
        f.elector.name = NULL;
        expect_refused("shards : the name must have 1 to 63 bytes");
        f.elector.name = "";
        expect_refused("shards : the name must have 1 to 63 bytes");
        f.elector.identity = NULL;
        expect_refused("shards jobs: there is no identity or no namespace");
        f.elector.ns = NULL;
        expect_refused("shards jobs: there is no identity or no namespace");
        f.config.n_shards = 0;
        expect_refused("shards jobs: there must be 1 to 1024 shards");
        f.config.n_shards = HF_SHARDS_MAX + 1;
        expect_refused("shards jobs: there must be 1 to 1024 shards");
        f.elector.controllers = &own_controller;
        f.elector.n_controllers = 1;
        expect_refused("shards jobs: the elector's configuration sets controllers, migrate_from or "
                       "coordinated");
        f.elector.migrate_from = "old";
        expect_refused("shards jobs: the elector's configuration sets controllers, migrate_from or "
                       "coordinated");
        f.elector.coordinated = true;
        expect_refused("shards jobs: the elector's configuration sets controllers, migrate_from or "
                       "coordinated");
        f.config.n_controllers = 0;
        expect_refused("shards jobs: there are no controllers");
        f.config.controllers = NULL;
        expect_refused("shards jobs: there are no controllers");
        f.controllers[1].name = NULL;
        expect_refused("shards jobs: a controller has no name or no run function");
        f.controllers[0].run = NULL;
        expect_refused("shards jobs: a controller has no name or no run function");
}

static void test_the_times_are_checked(void **state) {
        struct hf_status status = {0};

        f.elector.timing.retry_period = -1;
        assert_int_equal(hf_shards_add(f.electors, &f.config, NULL, &status), HF_E_INVALID);
        assert_true(status.message[0]);
        f.elector.timing = (struct hf_leader_timing){.lease_duration = -1};
        assert_int_equal(hf_shards_add(f.electors, &f.config, NULL, &status), HF_E_INVALID);
        assert_int_equal(f.electors->n, 0);
}

/* The size is what tells a library which members the program knows. */
static void test_a_controller_without_a_size_is_refused(void **state) {
        struct hf_status status = {0};

        f.controllers[1].size = 0;
        assert_int_equal(hf_shards_add(f.electors, &f.config, NULL, &status), -EINVAL);
        assert_non_null(strstr(status.message, "the member size of struct hf_shard_controller"));
        assert_int_equal(f.electors->n, 0);
}

static void test_names_may_be_as_long_as_they_may(void **state) {
        struct hf_status status = {0};
        struct hf_shards *shards = NULL;

        memset(f.name, 'n', HF_SHARDS_NAME_MAX + 1);
        f.elector.name = f.name;
        assert_int_equal(hf_shards_add(f.electors, &f.config, NULL, &status), HF_E_INVALID);
        f.name[HF_SHARDS_NAME_MAX] = '\0';
        memset(f.ns, 'n', HF_NAME_MAX + 1);
        f.elector.ns = f.ns;
        assert_int_equal(hf_shards_add(f.electors, &f.config, NULL, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "the namespace is too long"));
        f.elector.ns = "kube-system";
        assert_int_equal(hf_shards_add(f.electors, &f.config, &shards, &status), 0);
        struct hf_leader_info info = {.size = sizeof info};
        hf_elector_info(hf_shards_elector(shards, 2), &info);
        assert_non_null(strstr(info.name, f.name));
}

static void test_there_is_an_elector_for_each_shard_and_one_for_the_instance(void **state) {
        struct hf_shards *shards = NULL;

        assert_int_equal(hf_shards_add(f.electors, &f.config, &shards, NULL), 0);
        assert_int_equal(f.electors->n, 4);
        for (unsigned i = 0; i < 3; i++)
                for (unsigned k = 0; k < i; k++)
                        assert_ptr_not_equal(hf_shards_elector(shards, i),
                                             hf_shards_elector(shards, k));
        assert_null(hf_shards_elector(shards, 3));
}

/* Each elector of a shard runs all of the shard's controllers, by names of their own. */
static void test_each_shard_has_all_controllers(void **state) {
        struct hf_shards *shards = NULL;
        char name[32];

        assert_int_equal(hf_shards_add(f.electors, &f.config, &shards, NULL), 0);
        for (unsigned i = 0; i < 3; i++) {
                const struct hf_elector *elector = hf_shards_elector(shards, i);
                assert_int_equal(elector->n_controllers, 2);
                /* Until the balancer decides, it leaves free Leases to others. */
                assert_int_equal(elector->core.hold_back,
                                 3 * elector->core.config.timing.retry_period);
                for (unsigned k = 0; k < 2; k++) {
                        (void)snprintf(name, sizeof name, "%s-%u", k ? "second" : "first", i);
                        assert_string_equal(elector->controllers[k].name, name);
                }
        }
}

/* The label of the group is added to those of the configuration. */
static void test_the_leases_have_all_labels(void **state) {
        static const char *const labels[] = {"a=b", "c=d"};
        struct hf_shards *shards = NULL;
        char key[80], *text;

        f.elector.labels = labels;
        f.elector.n_labels = 2;
        assert_int_equal(hf_shards_add(f.electors, &f.config, &shards, NULL), 0);
        assert_int_equal(hf_electors_start(f.electors, NULL), 0);
        (void)snprintf(key, sizeof key, "leases/kube-system/jobs-member-%016" PRIx64,
                       hf__shards_key("a"));
        PATIENCE_AWAIT((text = fake_api_get(f.api, key)) != NULL);
        assert_non_null(strstr(text, "\"a\":\"b\""));
        assert_non_null(strstr(text, "\"c\":\"d\""));
        assert_non_null(strstr(text, "\"holdfast.dev/shards\":\"jobs\""));
        free(text);
        assert_int_equal(hf_electors_stop(f.electors, NULL), 0);
}

static void test_the_greatest_number_of_shards_is_accepted(void **state) {
        struct hf_shards *shards = NULL;

        f.config.n_shards = HF_SHARDS_MAX;
        assert_int_equal(hf_shards_add(f.electors, &f.config, &shards, NULL), 0);
        assert_int_equal(f.electors->n, HF_SHARDS_MAX + 1);
        assert_non_null(hf_shards_elector(shards, HF_SHARDS_MAX - 1));
        assert_null(hf_shards_elector(shards, HF_SHARDS_MAX));
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
                TEST(test_what_is_wrong_is_said),
                TEST(test_the_times_are_checked),
                TEST(test_a_controller_without_a_size_is_refused),
                TEST(test_names_may_be_as_long_as_they_may),
                TEST(test_there_is_an_elector_for_each_shard_and_one_for_the_instance),
                TEST(test_each_shard_has_all_controllers),
                TEST(test_the_leases_have_all_labels),
                TEST(test_the_greatest_number_of_shards_is_accepted),
#undef TEST
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
