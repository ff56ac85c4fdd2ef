/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry holds creates against the quotas of their namespace, in the transaction of the
 * create, also when two instances race; and the turns that creates of one instance take.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/registry/base/quota_charges.h"
#include "server/registry/base/quota_turns.h"
#include "server/registry/loopback.h"
#include "server/registry/write/quota/quota.h"
#include "server/resources/objects/object.h"
#include "time_units.h"

static const struct hf_resource quotas = {"", "v1", "resourcequotas"};
static const struct hf_resource configmaps = {"", "v1", "configmaps"};
static const struct hf_resource secrets = {"", "v1", "secrets"};

/* Waits until the instance has the newest version of all quotas: a consistent read waits for the
 * watch. */
static void settle(struct api_fixture *f) {
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, quotas, "default", NULL, NULL, NULL),
                         0);
}

/* Creates a quota. hard and used are its status, as a recount would leave it; NULL = none yet. */
static void make_quota(struct api_fixture *f, const char *name, const char *spec, const char *hard,
                       const char *used) {
        struct hf__strbuf body = {0};

        hf__strbuf_printf(&body, "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"hard\":{%s}}", name,
                          spec);
        if (hard)
                hf__strbuf_printf(&body, ",\"status\":{\"hard\":{%s},\"used\":{%s}}", hard, used);
        hf__strbuf_putc(&body, '}');
        api_fixture_make(f, quotas, "default", body.data);
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_UPDATE,
                                           .resource = quotas,
                                           .ns = "default",
                                           .name = name,
                                           .subresource = "status",
                                           .body = body.data,
                                           .n_body = body.n};
        assert_int_equal(api_fixture_send(f, &request), 0);
        hf__strbuf_done(&body);
        settle(f);
}

static int create_of(struct api_fixture *f, struct hf_resource resource, const char *name,
                     const char *query) {
        char body[100];

        (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"}}", name);
        return api_fixture_request(f, HF_VERB_CREATE, resource, "default", NULL, query, body);
}

static int create(struct api_fixture *f, const char *name) {
        return create_of(f, configmaps, name, NULL);
}

static void expect_used(struct api_fixture *f, const char *quota, const char *used) {
        assert_int_equal(api_fixture_get(f, quotas, "default", quota), 0);
        assert_string_equal(api_fixture_text_at(f, "status.used.configmaps"), used);
}

#define LIMIT(n) "\"configmaps\":\"" n "\""

static void a_create_is_charged_once_and_refused_beyond_the_limit(void **state) {
        struct api_fixture *f = *state;

        make_quota(f, "q", LIMIT("2"), LIMIT("2"), LIMIT("0"));
        assert_int_equal(create(f, "a"), 0);
        expect_used(f, "q", "1");
        assert_int_equal(create(f, "a"), HF_E_EXISTS); /* a failure costs nothing */
        expect_used(f, "q", "1");
        assert_int_equal(create_of(f, configmaps, "b", "dryRun=All"), 0);
        expect_used(f, "q", "1");
        assert_int_equal(create(f, "b"), 0);
        assert_int_equal(create_of(f, configmaps, "c", "dryRun=All"), HF_E_FORBIDDEN);
        assert_int_equal(create(f, "c"), HF_E_FORBIDDEN);
        api_fixture_expect_failure(f, 403, "Forbidden",
                                   "configmaps \"c\" is forbidden: exceeded quota: q, requested: "
                                   "configmaps=1, used: configmaps=2, limited: configmaps=2");
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, configmaps, "default", "a", NULL,
                                             "{\"metadata\":{\"name\":\"a\"}}"),
                         0);
        expect_used(f, "q", "2");
        assert_int_equal(create_of(f, secrets, "s", NULL), 0);
}

static void a_quota_that_was_never_counted_is_only_written(void **state) {
        struct api_fixture *f = *state;

        make_quota(f, "q", LIMIT("1"), NULL, NULL);
        char before[600];
        assert_int_equal(api_fixture_get(f, quotas, "default", "q"), 0);
        (void)snprintf(before, sizeof before, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(create(f, "a"), 0);
        assert_int_equal(create(f, "b"), 0);
        assert_int_equal(api_fixture_get(f, quotas, "default", "q"), 0);
        assert_string_not_equal(api_fixture_text_at(f, "metadata.resourceVersion"), before);
        assert_string_equal(api_fixture_text_at(f, "status.used.configmaps"), "");
}

static void a_quota_without_its_use_refuses(void **state) {
        struct api_fixture *f = *state;

        make_quota(f, "q", LIMIT("1"), LIMIT("1"), "");
        assert_int_equal(create(f, "a"), HF_E_FORBIDDEN);
        api_fixture_expect_failure(f, 403, "Forbidden",
                                   "configmaps \"a\" is forbidden: status unknown for quota: q, "
                                   "resources: configmaps");
}

static void a_quota_may_count_quotas(void **state) {
        struct api_fixture *f = *state;

        make_quota(f, "q", "\"resourcequotas\":\"2\"", "\"resourcequotas\":\"2\"",
                   "\"resourcequotas\":\"1\"");
        assert_int_equal(create_of(f, quotas, "q", NULL), HF_E_EXISTS);
        assert_int_equal(create_of(f, quotas, "r", NULL), 0);
        settle(f);
        assert_int_equal(create_of(f, quotas, "s", NULL), HF_E_FORBIDDEN);
}

static void the_number_of_quotas_is_limited(void **state) {
        struct api_fixture *f = *state;
        char name[20];

        for (int i = 0; i < HFD_QUOTAS_IN_NAMESPACE_MAX; i++) {
                (void)snprintf(name, sizeof name, "q%02d", i);
                if (i < HFD_WRITE_QUOTAS_MAX)
                        make_quota(f, name, LIMIT("9"), LIMIT("9"), LIMIT("0"));
                else
                        make_quota(f, name, "\"pods\":\"1\"", "\"pods\":\"1\"", "\"pods\":\"0\"");
        }
        assert_int_equal(create(f, "a"), 0);
        expect_used(f, "q00", "1");
        expect_used(f, "q07", "1");
        assert_int_equal(api_fixture_delete(f, quotas, "default", "q63", NULL), 0);
        settle(f);
        make_quota(f, "r", LIMIT("9"), LIMIT("9"), LIMIT("1"));
        assert_int_equal(create(f, "b"), HF_E_FORBIDDEN);
        expect_used(f, "q00", "1");
        assert_int_equal(api_fixture_delete(f, quotas, "default", "r", NULL), 0);
        settle(f);
        assert_int_equal(create(f, "b"), 0);
}

/* ---- two instances ---- */

#define HARD      30
#define N_THREADS 6 /* of two instances in turn */
#define N_CREATES 20

struct creator {
        pthread_t thread;
        struct hf_client *client;
        int number, n_created, n_refused, n_other;
};

static void *create_some(void *ctx) {
        struct creator *creator = ctx;
        char body[100];

        for (int i = 0; i < N_CREATES; i++) {
                struct api_response response;
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"c-%d-%d\"}}",
                               creator->number, i);
                const struct hf_request request = {.size = sizeof request,
                                                   .verb = HF_VERB_CREATE,
                                                   .resource = configmaps,
                                                   .ns = "default",
                                                   .body = body,
                                                   .n_body = strlen(body)};
                api_response_init(&response);
                assert_int_equal(hf_client_request(creator->client, &request, api_response_fill,
                                                   &response, NULL),
                                 0);
                int r = api_response_wait(&response);
                creator->n_created += r == 0;
                creator->n_refused += r == HF_E_FORBIDDEN;
                creator->n_other += r != 0 && r != HF_E_FORBIDDEN;
                api_response_deinit(&response);
        }
        return NULL;
}

static void racing_instances_fill_the_limit_and_never_exceed_it(void **state) {
        struct api_fixture *f = *state;
        const struct hfd_cacher_config config = {.store = f->store, .prefix = "/registry"};
        struct creator creators[N_THREADS] = {0};
        struct hfd_registry *registry;
        struct hfd_cacher *cacher;
        struct hf_client *client;
        struct hf_cancel *token;
        struct hf_status status;
        int n_created = 0, n_refused = 0;

        make_quota(f, "q", LIMIT("30"), LIMIT("30"), LIMIT("0"));
        assert_int_equal(hfd_cacher_new(&f->host, &config, &cacher), 0);
        assert_int_equal(hfd_registry_new(&f->host, cacher, &registry), 0);
        assert_int_equal(hfd_cacher_start(cacher), 0);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        hf_cancel_set_deadline(token, in_msec(10000));
        assert_int_equal(hfd_cacher_wait_synced(cacher, token, &status), 0);
        hf_cancel_unref(token);
        assert_int_equal(hfd_loopback_new(registry, &client), 0);
        for (int i = 0; i < N_THREADS; i++) {
                creators[i].number = i;
                creators[i].client = i % 2 ? client : f->client;
                assert_int_equal(pthread_create(&creators[i].thread, NULL, create_some,
                                                &creators[i]),
                                 0);
        }
        for (int i = 0; i < N_THREADS; i++) {
                assert_int_equal(pthread_join(creators[i].thread, NULL), 0);
                assert_int_equal(creators[i].n_other, 0);
                n_created += creators[i].n_created;
                n_refused += creators[i].n_refused;
        }
        assert_int_equal(n_created, HARD);
        assert_int_equal(n_refused, N_THREADS * N_CREATES - HARD);
        expect_used(f, "q", "30");
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, configmaps, "default", NULL, NULL,
                                             NULL),
                         0);
        assert_int_equal(api_fixture_count_at(f, "items"), HARD);
        hf_client_free(client);
        hfd_registry_free(registry);
        hfd_cacher_free(cacher);
}

/* Another instance has written the quota under an old key of the encryption. The watch of this
 * instance delivers the object that the conflict has recorded, so the object must have the mark:
 * without it, a write that changes nothing would be left out, and never encrypt the quota anew. */
static void a_quota_from_a_conflict_stays_marked_as_stale(void **state) {
        struct api_fixture *f = *state;
        const struct hfd_resource *row = hfd_quota_resource();
        struct hfd_quota_charges charges = {0};
        char key[] = "/registry/resourcequotas/default/q";
        bool synced;

        make_quota(f, "q", LIMIT("2"), LIMIT("2"), LIMIT("0"));
        struct hfd_object *old = hfd_cacher_newest(f->cacher, row, "default/q", &synced);
        assert_non_null(old);
        struct hf__json *json = hfd_object_parse(old);
        const struct hfd_kv kv = {.key = key,
                                  .value = hfd_object_encode(row, json),
                                  .mod_revision = old->revision + 1,
                                  .stale = true};
        hf__json_free(json);
        assert_non_null(kv.value);
        hfd_quota_charges_set(&charges, &old, 1);
        charges.of[0].key = strdup(key); /* without a version to be stored: the quota refuses */
        assert_null(hfd_quota_charges_update(&charges, f->cacher, false, &kv, 1));
        assert_int_equal(charges.of[0].object->revision, kv.mod_revision);
        assert_true(charges.of[0].object->stale);
        struct hfd_object *newest = hfd_cacher_newest(f->cacher, row, "default/q", &synced);
        assert_ptr_equal(newest, charges.of[0].object);
        hfd_object_unref(newest);
        hfd_quota_charges_clear(&charges);
        hf__buf_unref(kv.value);
}

/* ---- turns ---- */

static void turns_go_in_order_within_a_namespace(void **state) {
        struct hfd_quota_turn a = {"x", 5}, b = {"x", 5}, c = {"x", 6}, d = {"y", 1}, e = {"x", 4};
        struct hfd_quota_turns turns;

        assert_int_equal(hfd_quota_turns_init(&turns), 0);
        assert_int_equal(hfd_quota_turns_take(&turns, &a), HFD_TURN_HELD);
        assert_int_equal(hfd_quota_turns_take(&turns, &d), HFD_TURN_HELD);
        assert_int_equal(hfd_quota_turns_take(&turns, &b), HFD_TURN_WAITS);
        assert_int_equal(hfd_quota_turns_take(&turns, &c), HFD_TURN_WAITS);
        /* It could wait until 6, which is after its deadline. */
        assert_int_equal(hfd_quota_turns_take(&turns, &e), HFD_TURN_PASSED);
        assert_ptr_equal(hfd_quota_turns_leave(&turns, &a), &b);
        assert_null(hfd_quota_turns_leave(&turns, &d));
        assert_ptr_equal(hfd_quota_turns_leave(&turns, &b), &c);
        assert_int_equal(hfd_quota_turns_take(&turns, &e), HFD_TURN_PASSED);
        assert_int_equal(hfd_quota_turns_take(&turns, &d), HFD_TURN_HELD);
        assert_null(hfd_quota_turns_leave(&turns, &c));
        assert_int_equal(hfd_quota_turns_take(&turns, &e), HFD_TURN_HELD);
        assert_null(hfd_quota_turns_leave(&turns, &e));
        assert_null(hfd_quota_turns_leave(&turns, &d));
        hfd_quota_turns_done(&turns);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(a_create_is_charged_once_and_refused_beyond_the_limit),
                API_TEST(a_quota_that_was_never_counted_is_only_written),
                API_TEST(a_quota_without_its_use_refuses),
                API_TEST(a_quota_may_count_quotas),
                API_TEST(the_number_of_quotas_is_limited),
                API_TEST(racing_instances_fill_the_limit_and_never_exceed_it),
                API_TEST(a_quota_from_a_conflict_stays_marked_as_stale),
                cmocka_unit_test(turns_go_in_order_within_a_namespace),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
