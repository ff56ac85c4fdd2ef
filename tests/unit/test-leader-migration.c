/* SPDX-License-Identifier: Apache-2.0 */
/* Two Leases led as one, from end to end, over the fake API server. */
#undef NDEBUG
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "elector_fixture.h"

#define OLD_KEY "leases/kube-system/lead-old"

static uint64_t term_of(struct fake_api *api, const char *key) {
        pthread_mutex_lock(&api->mu);
        struct fake_object *object = fake_store_find(&api->store, key);
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
        fake_api_put(api, key, text);
}

struct pair {
        struct elector_fixture *a, *b;
        int n_ended;
};
static bool one_leads(void *ctx) {
        return elector_fixture_leads(((struct pair *)ctx)->a) ||
               elector_fixture_leads(((struct pair *)ctx)->b);
}
static bool one_more_has_ended(void *ctx) {
        struct pair *pair = ctx;
        return pair->a->n_ended + pair->b->n_ended > pair->n_ended;
}

static void print_time(char *text, size_t n) {
        time_t now = time(NULL);
        struct tm parts;

        assert_non_null(gmtime_r(&now, &parts));
        assert_int_equal(strftime(text, n, "%Y-%m-%dT%H:%M:%S", &parts), 19);
}

static void expect_time_between(const char *text, const char *key, const char *from,
                                const char *to) {
        const char *value = strstr(text, key);

        assert_non_null(value);
        value += strlen(key);
        if (strncmp(value, from, 19) < 0 || strncmp(value, to, 19) > 0)
                fail_msg("%.30s is not between %s and %s", value, from, to);
}

/*
 * CR12: The real locks over two Leases: both are held, writes are fenced by both, the loss of
 * either ends the term, and a stop releases both.
 */
static void test_two_leases_make_one_term(void **state) {
        struct fake_api *api = fake_api_new();
        struct pair pair = {.a = elector_fixture_start_migrating(api, "a"),
                            .b = elector_fixture_start_migrating(api, "b")};
        struct hf_leader_info info = {.size = sizeof info};

        elector_fixture_await(api, one_leads, &pair, __LINE__);
        struct elector_fixture *first = hf_elector_may_act(pair.a->elector) ? pair.a : pair.b,
                               *second = first == pair.a ? pair.b : pair.a;
        ELECTOR_AWAIT(first, elector_fixture_has_written);
        hf_elector_info(first->elector, &info);
        assert_int_equal(info.term, term_of(api, ELECTOR_FIXTURE_KEY));
        assert_true(term_of(api, OLD_KEY) != 0 && term_of(api, OLD_KEY) < info.term);
        ELECTOR_AWAIT(second, elector_fixture_knows_holder);
        assert_false(hf_elector_may_act(second->elector));
        for (int i = 0; i < 2; i++) {
                elector_fixture_lock(first);
                pair.n_ended = first->n_ended + second->n_ended;
                elector_fixture_unlock(first);
                steal(api, i ? ELECTOR_FIXTURE_KEY : OLD_KEY, i ? "lead" : "lead-old");
                elector_fixture_await(api, one_more_has_ended, &pair, __LINE__);
                elector_fixture_await(api, one_leads, &pair, __LINE__);
        }
        char before[32], after[32];
        print_time(before, sizeof before);
        elector_fixture_stop(first);
        elector_fixture_stop(second);
        print_time(after, sizeof after);
        for (int i = 0; i < 2; i++) {
                char *text = fake_api_get(api, i ? ELECTOR_FIXTURE_KEY : OLD_KEY);
                expect_time_between(text, "\"renewTime\":\"", before, after);
                assert_non_null(strstr(text, "\"holderIdentity\":\"\""));
                free(text);
        }
        assert_true(elector_fixture_check_commits(api) >= 1);
        elector_fixture_free(first);
        elector_fixture_free(second);
        fake_api_free(api);
}

/*
 * The leader of two Leases cannot reach the API, or loses the replies to applied writes. Its term
 * ends in time, and one of the two processes leads again.
 */
static void test_two_leases_survive_a_bad_connection(void **state) {
        static const enum fake_api_mode modes[] = {FAKE_API_HANGS, FAKE_API_LOSES_REPLIES};
        struct fake_api *api = fake_api_new();
        struct pair pair = {.a = elector_fixture_start_migrating(api, "a"),
                            .b = elector_fixture_start_migrating(api, "b")};

        for (int i = 0; i < 2; i++) {
                elector_fixture_await(api, one_leads, &pair, __LINE__);
                struct elector_fixture *first = hf_elector_may_act(pair.a->elector) ? pair.a
                                                                                    : pair.b,
                                       *second = first == pair.a ? pair.b : pair.a;
                ELECTOR_AWAIT(first, elector_fixture_has_written);
                elector_fixture_lock(first);
                pair.n_ended = first->n_ended + second->n_ended;
                elector_fixture_unlock(first);
                fake_api_client_set_mode(first->client, modes[i]);
                elector_fixture_await(api, one_more_has_ended, &pair, __LINE__);
                if (modes[i] == FAKE_API_HANGS)
                        ELECTOR_AWAIT(second, elector_fixture_leads);
                fake_api_client_set_mode(first->client, FAKE_API_RESPONDS);
                elector_fixture_await(api, one_leads, &pair, __LINE__);
        }
        elector_fixture_stop(pair.a);
        elector_fixture_stop(pair.b);
        assert_true(elector_fixture_check_commits(api) >= 2);
        elector_fixture_free(pair.a);
        elector_fixture_free(pair.b);
        fake_api_free(api);
}

static void test_bad_migrations_are_refused(void **state) {
        struct fake_api *api = fake_api_new();
        struct elector_fixture *a = elector_fixture_start_migrating(api, "a");
        struct hf_electors *electors;
        struct hf_status status = {0};
        assert_int_equal(hf_electors_new(&api->host, &electors), 0);
        struct hf_elector_config config = elector_fixture_config(a, NULL, 0);
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
        config.ns = "elsewhere"; /* another elector contends for it already, as its old Lease */
        config.migrate_from = NULL;
        config.migrate_from_ns = NULL;
        assert_int_equal(hf_electors_add(electors, &config, NULL, &status), HF_E_EXISTS);
        assert_int_equal(hf_electors_stop(electors, NULL), 0);
        hf_electors_free(electors);
        elector_fixture_stop(a);
        elector_fixture_free(a);
        fake_api_free(api);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_two_leases_make_one_term),
                cmocka_unit_test(test_two_leases_survive_a_bad_connection),
                cmocka_unit_test(test_bad_migrations_are_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
