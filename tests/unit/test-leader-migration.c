/* SPDX-License-Identifier: Apache-2.0 */
/* Two Leases led as one, end to end over an API in memory. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "leader_node.h"

#define OLD_KEY "leases/kube-system/lead-old"

static uint64_t term_of(struct fake_api *api, const char *key) {
        pthread_mutex_lock(&api->mu);
        struct fake_object *object = fake_find(api, key);
        uint64_t term = object ? object->term : 0;
        pthread_mutex_unlock(&api->mu);
        return term;
}

static void steal(struct fake_api *api, const char *key, const char *name) {
        char text[200];
        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"holderIdentity\":\"thief\","
                       "\"leaseDurationSeconds\":1}}",
                       name);
        fake_put(api, key, text);
}

struct pair {
        struct node *a, *b;
        int n_ended;
};
static bool one_leads(void *ctx) {
        return leads(((struct pair *)ctx)->a) || leads(((struct pair *)ctx)->b);
}
static bool one_more_has_ended(void *ctx) {
        struct pair *pair = ctx;
        return pair->a->n_ended + pair->b->n_ended > pair->n_ended;
}

/* The real locks over two Leases: both are held, both are fenced by, the loss of either ends the
 * term, a stop releases both. */
static void test_two_leases_are_led_as_one(void **state) { /* CR12 */
        struct fake_api *api = fake_api_new();
        struct pair pair = {.a = node_start_migrating(api, "a"),
                            .b = node_start_migrating(api, "b")};
        struct hf_leader_info info;

        await_at(api, one_leads, &pair, __LINE__);
        struct node *first = hf_elector_may_act(pair.a->elector) ? pair.a : pair.b,
                    *second = first == pair.a ? pair.b : pair.a;
        AWAIT(first, has_written);
        hf_elector_info(first->elector, &info);
        assert_int_equal(info.term, term_of(api, KEY));
        assert_true(term_of(api, OLD_KEY) != 0 && term_of(api, OLD_KEY) < info.term);
        AWAIT(second, knows_holder);
        assert_false(hf_elector_may_act(second->elector));
        for (int i = 0; i < 2; i++) {
                lock_api(first);
                pair.n_ended = first->n_ended + second->n_ended;
                unlock_api(first);
                steal(api, i ? KEY : OLD_KEY, i ? "lead" : "lead-old");
                await_at(api, one_more_has_ended, &pair, __LINE__);
                await_at(api, one_leads, &pair, __LINE__);
        }
        node_stop(first);
        node_stop(second);
        for (int i = 0; i < 2; i++) {
                char *text = fake_get(api, i ? KEY : OLD_KEY);
                assert_non_null(strstr(text, "\"holderIdentity\":\"\""));
                free(text);
        }
        assert_true(check_witness(api) >= 1);
        node_free(first);
        node_free(second);
        fake_api_free(api);
}

/* The leader of two Leases loses the API, or the replies to its writes, which are applied: its term
 * ends in time, and one leads again. */
static void test_two_leases_outlive_a_bad_connection(void **state) {
        static const enum fake_mode modes[] = {FAKE_HANG, FAKE_LOSE_REPLY};
        struct fake_api *api = fake_api_new();
        struct pair pair = {.a = node_start_migrating(api, "a"),
                            .b = node_start_migrating(api, "b")};

        for (int i = 0; i < 2; i++) {
                await_at(api, one_leads, &pair, __LINE__);
                struct node *first = hf_elector_may_act(pair.a->elector) ? pair.a : pair.b,
                            *second = first == pair.a ? pair.b : pair.a;
                AWAIT(first, has_written);
                lock_api(first);
                pair.n_ended = first->n_ended + second->n_ended;
                unlock_api(first);
                fake_set_mode(first->client, modes[i], modes[i] == FAKE_LOSE_REPLY, 0, 0);
                await_at(api, one_more_has_ended, &pair, __LINE__);
                if (modes[i] == FAKE_HANG)
                        AWAIT(second, leads);
                fake_set_mode(first->client, FAKE_OK, false, 0, 0);
                await_at(api, one_leads, &pair, __LINE__);
        }
        node_stop(pair.a);
        node_stop(pair.b);
        assert_true(check_witness(api) >= 2);
        node_free(pair.a);
        node_free(pair.b);
        fake_api_free(api);
}

static void test_migrations_that_cannot_be_are_refused(void **state) {
        struct fake_api *api = fake_api_new();
        struct node *a = node_start_migrating(api, "a");
        struct hf_electors *electors;
        struct hf_status status = {0};
        assert_int_equal(hf_electors_new(&api->host, &electors), 0);
        struct hf_elector_config config = config_of(a, NULL, 0);
        config.migrate_from = "lead";
        assert_int_equal(hf_electors_add(electors, &config, NULL, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "itself"));
        config.migrate_from = "Upper";
        assert_int_equal(hf_electors_add(electors, &config, NULL, &status), HF_E_INVALID);
        config.migrate_from = NULL;
        config.migrate_from_ns = "elsewhere";
        assert_int_equal(hf_electors_add(electors, &config, NULL, &status), HF_E_INVALID);
        config.migrate_from = "lead"; /* in another namespace */
        assert_int_equal(hf_electors_add(electors, &config, NULL, &status), 0);
        config.ns = "elsewhere"; /* contended for already, as the old one */
        config.migrate_from = NULL;
        config.migrate_from_ns = NULL;
        assert_int_equal(hf_electors_add(electors, &config, NULL, &status), HF_E_EXISTS);
        assert_int_equal(hf_electors_stop(electors, NULL), 0);
        hf_electors_free(electors);
        node_stop(a);
        node_free(a);
        fake_api_free(api);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_two_leases_are_led_as_one),
                cmocka_unit_test(test_two_leases_outlive_a_bad_connection),
                cmocka_unit_test(test_migrations_that_cannot_be_are_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
