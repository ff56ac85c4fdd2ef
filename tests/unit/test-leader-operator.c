/* SPDX-License-Identifier: Apache-2.0 */
/* A controller of a kind: its finalizer, what it owns, its status, and what it refuses. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/operator.h>

#include "fake_api_client.h"
#include "leader/operator_work.h"
#include "patience.h"

#define THING "things/default/a"
#define PART  "parts/default/a-part"

static const struct hf_resource things = {"", "v1", "things"};
static const struct hf_resource parts = {"", "v1", "parts"};
static const struct hf_resource shared = {"", "v1", "shared"};

static atomic_int n_reconciles, n_finalizes;
static atomic_int n_settled; /* reconciles of an object that had its status already */
static atomic_bool wants_part;
static struct fake_api_client *the_client;

/* A part that the informer does not have is deleted without a request, so a server that refuses all
 * requests does no harm. */
static void delete_what_is_absent(struct hf_operator_work *work) {
        fake_api_client_refuse(the_client, HF_E_UNAVAILABLE, 0);
        assert_int_equal(hf_operator_delete(work, parts, "never-was"), 0);
        fake_api_client_set_mode(the_client, FAKE_API_RESPONDS);
}

static int reconcile(void *ctx, struct hf_operator_work *work, hf_nsec *ret_again) {
        const struct hf_condition ready = {.size = sizeof ready,
                                           .type = "Ready",
                                           .status = "True",
                                           .reason = "Done"};
        size_t n;
        int r;

        assert_ptr_equal(ctx, &n_reconciles);
        assert_string_equal(hf_operator_ns(work), "default");
        assert_string_equal(hf_operator_name(work), "a");
        assert_non_null(strstr(hf_operator_object(work, &n), "\"finalizers\":[\"x.io/f\"]"));
        assert_int_equal(strlen(hf_operator_object(work, NULL)), n);
        bool is_settled = strstr(hf_operator_object(work, NULL), "\"observedGeneration\":3");
        if (wants_part)
                r = hf_operator_upsert(work, parts, "a-part",
                                       "{\"apiVersion\":\"v1\",\"kind\":\"Part\",\"v\":1}");
        else
                r = hf_operator_delete(work, parts, "a-part");
        /* A collection that the operator does not watch. */
        if (r == 0 && wants_part)
                r = hf_operator_upsert(work, shared, "extra",
                                       "{\"apiVersion\":\"v1\",\"kind\":\"Extra\"}");
        else if (r == 0)
                r = hf_operator_delete(work, shared, "extra");
        delete_what_is_absent(work);
        assert_int_equal(hf_operator_report(work, "3", &ready), HF_E_INVALID);
        assert_int_equal(hf_operator_report(work, "[3]", &ready), HF_E_INVALID);
        if (r == 0)
                r = hf_operator_report(work, "{\"parts\":1}", &ready);
        hf_operator_event(work, HF_RECORDER_NORMAL, "Worked", "%s", "well");
        atomic_fetch_add(&n_reconciles, 1);
        atomic_fetch_add(&n_settled, is_settled);
        return r;
}

static int finalize(void *ctx, struct hf_operator_work *work) {
        /* The first try fails, so the object keeps its finalizer. */
        if (atomic_fetch_add(&n_finalizes, 1) == 0)
                return HF_E_UNAVAILABLE;
        return hf_operator_merge(work, shared, "log",
                                 "{\"apiVersion\":\"v1\",\"kind\":\"Log\",\"a\":\"gone\"}");
}

/* NULL is the core group too, also where the requests say "". */
static const struct hf_operator_owned owned = {.size = sizeof owned,
                                               .resource = {NULL, "v1", "parts"}};

static struct hf_operator_config config_with(struct hf_client *client) {
        return (struct hf_operator_config){.size = sizeof(struct hf_operator_config),
                                           .name = "things",
                                           .ns = "default",
                                           .identity = "one",
                                           .client = client,
                                           .resource = things,
                                           .kind = "Thing",
                                           .finalizer = "x.io/f",
                                           .owned = &owned,
                                           .n_owned = 1,
                                           .reconcile = reconcile,
                                           .finalize = finalize,
                                           .ctx = &n_reconciles};
}

static bool has_event(struct fake_api *api, const char *message) {
        bool found = false;

        pthread_mutex_lock(&api->mu);
        for (size_t i = 0; i < api->store.n_objects && !found; i++)
                found = strncmp(api->store.objects[i]->key, "events/default/", 15) == 0 &&
                        strstr(api->store.objects[i]->text->data, message);
        pthread_mutex_unlock(&api->mu);
        return found;
}

/* Waits until the object has the text, or until there is none if text is NULL. */
static void await(struct fake_api *api, const char *key, const char *text) {
        for (;;) {
                pthread_mutex_lock(&api->mu);
                uint64_t revision = api->store.revision;
                pthread_mutex_unlock(&api->mu);
                char *object = fake_api_get(api, key);
                bool found = text ? object && strstr(object, text) : !object;

                free(object);
                if (found)
                        return;
                pthread_mutex_lock(&api->mu);
                while (api->store.revision == revision)
                        pthread_cond_wait(&api->changed, &api->mu);
                pthread_mutex_unlock(&api->mu);
        }
}

static void test_it_works_from_the_finalizer_to_the_end(void **state) {
        struct fake_api *api = fake_api_new();
        struct fake_api_client *client = fake_api_client_new(api);
        const struct hf_operator_config config = config_with(&client->base);
        struct hf_status status = {0};
        struct hf_operator *op = NULL;
        char *part;

        the_client = client;
        wants_part = true;
        fake_api_put(api, THING,
                     "{\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"metadata\":{\"namespace\":"
                     "\"default\",\"name\":\"a\",\"uid\":\"u-1\",\"generation\":3}}");
        assert_int_equal(hf_operator_new(&api->host, &config, &op, &status), 0);
        assert_int_equal(hf_operator_start(op, &status), 0);

        await(api, THING, "\"status\":{\"parts\":1,\"conditions\":[{");
        await(api, THING, "\"observedGeneration\":3");
        PATIENCE_AWAIT(has_event(api, "\"message\":\"well\""));
        part = fake_api_get(api, PART);
        assert_non_null(strstr(part, "\"uid\":\"u-1\""));
        free(part);

        /* A lost part is created again, even if nothing else happens. A part that is not wanted
         * is deleted. */
        PATIENCE_AWAIT(n_settled > 0);
        fake_api_delete(api, PART);
        await(api, PART, "\"v\":1");
        await(api, "shared/default/extra", "Extra");
        wants_part = false;
        fake_api_put(api, THING,
                     "{\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"metadata\":{\"namespace\":"
                     "\"default\",\"name\":\"a\",\"uid\":\"u-1\",\"generation\":4,\"finalizers\":["
                     "\"x.io/f\"]}}");
        await(api, PART, NULL);
        await(api, THING, "\"observedGeneration\":4");
        await(api, "shared/default/extra", NULL);

        fake_api_put(api, THING,
                     "{\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"metadata\":{\"namespace\":"
                     "\"default\",\"name\":\"a\",\"uid\":\"u-1\",\"deletionTimestamp\":"
                     "\"2026-01-01T00:00:00Z\",\"finalizers\":[\"x.io/f\"]}}");
        await(api, "shared/default/log", "\"a\":\"gone\"");
        await(api, THING, "\"finalizers\":[]");
        assert_int_equal(n_finalizes, 2);
        assert_int_equal(hf_operator_stop(op, &status), 0);
        await(api, "leases/default/things", "\"holderIdentity\":\"\"");
        assert_null(hf_operator_free(op));
        hf_client_free(&client->base);
        fake_api_free(api);
}

static int delete_part(void *ctx, struct hf_operator_work *work, hf_nsec *ret_again) {
        return hf_operator_delete(work, parts, "a-part");
}

/* The server of this test knows no selectors, so the first of two owned collections is replaced by
 * one that has nothing: that of another namespace. */
static void test_a_collection_that_lacks_an_object_hides_it_in_no_other(void **state) {
        const struct hf_operator_owned twice[] = {owned, owned};
        struct fake_api *api = fake_api_new();
        struct fake_api_client *client = fake_api_client_new(api);
        struct hf_operator_config config = config_with(&client->base);
        const struct hf_informer_config elsewhere = {.size = sizeof elsewhere,
                                                     .client = &client->base,
                                                     .resource = parts,
                                                     .ns = "elsewhere"};
        struct hf_status status = {0};
        struct hf_operator *op = NULL;

        config.owned = twice;
        config.n_owned = 2;
        config.finalizer = NULL;
        config.finalize = NULL;
        config.reconcile = delete_part;
        fake_api_put(api, THING,
                     "{\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"metadata\":{\"namespace\":"
                     "\"default\",\"name\":\"a\",\"uid\":\"u-1\"}}");
        fake_api_put(api, PART,
                     "{\"apiVersion\":\"v1\",\"kind\":\"Part\",\"metadata\":{\"namespace\":"
                     "\"default\",\"name\":\"a-part\",\"uid\":\"u-2\",\"ownerReferences\":[{"
                     "\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"name\":\"a\",\"uid\":\"u-1\","
                     "\"controller\":true}]}}");
        assert_int_equal(hf_operator_new(&api->host, &config, &op, &status), 0);
        hf_informer_free(op->informers[0]);
        assert_int_equal(hf_informer_new(&api->host, &elsewhere, &op->informers[0]), 0);
        assert_int_equal(hf_operator_start(op, &status), 0);
        await(api, PART, NULL);
        assert_int_equal(hf_operator_stop(op, &status), 0);
        assert_null(hf_operator_free(op));
        hf_client_free(&client->base);
        fake_api_free(api);
}

/* Leaves out the required member with this number. False: there are fewer. */
static bool leave_out(struct hf_operator_config *config, int number) {
        switch (number) {
        case 0: config->name = NULL; return true;
        case 1: config->ns = NULL; return true;
        case 2: config->identity = NULL; return true;
        case 3: config->client = NULL; return true;
        case 4: config->resource.group = NULL; return true;
        case 5: config->resource.version = NULL; return true;
        case 6: config->resource.plural = NULL; return true;
        case 7: config->kind = NULL; return true;
        case 8: config->reconcile = NULL; return true;
        default: return false;
        }
}

static void test_what_is_missing_is_named(void **state) {
        static const struct hf_operator_owned many[HF_OPERATOR_OWNED_MAX + 1];
        struct fake_api *api = fake_api_new();
        struct fake_api_client *client = fake_api_client_new(api);
        struct hf_operator_config config = config_with(&client->base);
        struct hf_status status = {0};
        struct hf_operator *op = NULL;

        for (int i = 0; leave_out(&config, i); i++) {
                assert_int_equal(hf_operator_new(&api->host, &config, &op, &status), -EINVAL);
                assert_string_equal(status.message, "an operator lacks a required member");
                config = config_with(&client->base);
        }
        config.finalize = NULL;
        assert_int_equal(hf_operator_new(&api->host, &config, &op, &status), -EINVAL);
        assert_string_equal(status.message, "things: finalizer is set, and finalize is not");
        config = config_with(&client->base);
        config.owned = many;
        config.n_owned = HF_OPERATOR_OWNED_MAX + 1;
        assert_int_equal(hf_operator_new(&api->host, &config, &op, &status), -EINVAL);
        assert_string_equal(status.message, "things: more than 8 owned collections");
        config.size = 3;
        assert_int_equal(hf_operator_new(&api->host, &config, &op, &status), -EINVAL);
        assert_null(op);
        assert_null(hf_operator_free(NULL));
        /* An operator that was never started can be freed, too. */
        config = config_with(&client->base);
        assert_int_equal(hf_operator_new(&api->host, &config, &op, &status), 0);
        hf_operator_free(op);
        hf_client_free(&client->base);
        fake_api_free(api);
}

static atomic_uint n_returned, n_retries;
static atomic_uint n_seen[2]; /* reconciles of the objects a and b */

static int note_name(void *ctx, struct hf_operator_work *work, hf_nsec *ret_again) {
        const struct hf_condition ready = {.type = "Ready", .status = "True", .reason = "Done"};

        /* A condition without a size is refused. */
        assert_int_equal(hf_operator_report(work, NULL, &ready), -EINVAL);
        assert_int_equal(hf_operator_merge(work, shared, "log", "[]"), HF_E_INVALID);
        atomic_fetch_add(&n_seen[*hf_operator_name(work) - 'a'], 1);
        return 0;
}

static void note_line(void *ctx, enum hf_log_level level, const char *component,
                      const char *message) {
        if (strstr(message, " failed ("))
                atomic_fetch_add(&n_returned, 1);
        if (strstr(message, "the key will be retried"))
                atomic_fetch_add(&n_retries, 1);
}

static void put_plain(struct fake_api *api, const char *name) {
        char key[64], text[160];

        (void)snprintf(key, sizeof key, "things/default/%s", name);
        (void)snprintf(text, sizeof text,
                       "{\"kind\":\"Thing\",\"metadata\":{\"namespace\":\"default\",\"name\":"
                       "\"%s\"}}",
                       name);
        fake_api_put(api, key, text);
}

/* A deleted object needs no work, and is not a failure. One worker takes the keys in turn, so
 * the next object shows that the key of the first one was worked on. */
static void test_an_object_that_is_gone_is_no_failure(void **state) {
        struct fake_api *api = fake_api_new();
        struct fake_api_client *client = fake_api_client_new(api);
        struct hf_operator_config config = config_with(&client->base);
        struct hf_host host = api->host;
        struct hf_status status = {0};
        struct hf_operator *op = NULL;

        host.log.write = note_line;
        config.finalizer = NULL;
        config.reconcile = note_name;
        put_plain(api, "a");
        assert_int_equal(hf_operator_new(&host, &config, NULL, &status), -EINVAL);
        assert_int_equal(hf_operator_new(&host, &config, &op, &status), 0);
        assert_int_equal(hf_operator_start(op, &status), 0);
        PATIENCE_AWAIT(atomic_load(&n_seen[0]) > 0);
        fake_api_delete(api, "things/default/a");
        put_plain(api, "b");
        PATIENCE_AWAIT(atomic_load(&n_seen[1]) > 0);
        assert_int_equal(hf_operator_stop(op, &status), 0);
        assert_int_equal(atomic_load(&n_retries), 0);
        assert_null(hf_operator_free(op));
        hf_client_free(&client->base);
        fake_api_free(api);
}

/* With an invalid definition the controller must not report success. */
static void test_a_definition_that_is_none_fails_the_term(void **state) {
        struct fake_api *api = fake_api_new();
        struct fake_api_client *client = fake_api_client_new(api);
        struct hf_operator_config config = config_with(&client->base);
        struct hf_host host = api->host;
        struct hf_status status = {0};
        struct hf_operator *op = NULL;

        host.log.write = note_line;
        config.definition = "{\"kind\":\"Other\"}";
        assert_int_equal(hf_operator_new(&host, &config, &op, &status), 0);
        assert_int_equal(hf_operator_start(op, &status), 0);
        PATIENCE_AWAIT(atomic_load(&n_returned) > 0);
        assert_int_equal(hf_operator_stop(op, &status), 0);
        assert_null(hf_operator_free(op));
        hf_client_free(&client->base);
        fake_api_free(api);
}

static atomic_uint n_calls;

/* The first two calls wait for each other, so they need two workers. Each asks for one more. */
static int meet_and_write(void *ctx, struct hf_operator_work *work, hf_nsec *ret_again) {
        char name[HF_NAME_MAX + 8];

        if (atomic_fetch_add(&n_calls, 1) < 2)
                *ret_again = 1;
        PATIENCE_AWAIT(atomic_load(&n_calls) >= 2);
        (void)snprintf(name, sizeof name, "of-%s", hf_operator_name(work));
        assert_int_equal(hf_operator_upsert(work, shared, name,
                                            "{\"apiVersion\":\"v1\",\"kind\":\"Extra\"}"),
                         0);
        return 0;
}

/* The server of this test has no fences and ignores selectors. */
static void test_the_configuration_reaches_every_part(void **state) {
        static const char thing[] = "{\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"metadata\":{"
                                    "\"namespace\":\"default\",\"name\":\"%s\",\"uid\":\"u-%s\"}}";
        struct hf_operator_owned selected = owned;
        struct fake_api *api = fake_api_new();
        struct fake_api_client *client = fake_api_client_new(api);
        struct hf_operator_config config = config_with(&client->base);
        struct hf_status status = {0};
        struct hf_operator *op = NULL;
        char text[160];

        client->ignores_fences = true;
        selected.query = "labelSelector=mine";
        config.owned = &selected;
        config.unfenced = true;
        config.n_workers = 2;
        config.timing = (struct hf_leader_timing){.lease_duration = 7 * HF_NSEC_PER_SEC,
                                                  .renew_deadline = 5 * HF_NSEC_PER_SEC,
                                                  .retry_period = HF_NSEC_PER_SEC};
        config.finalizer = NULL;
        config.reconcile = meet_and_write;
        assert_int_equal(hf_operator_new(&api->host, &config, &op, &status), 0);
        assert_int_equal(hf_informer_start(op->informers[0]), 0);
        fake_api_await_list(api, 1);
        fake_api_last_list_query(api, text);
        assert_non_null(strstr(text, "labelSelector=mine"));
        assert_null(hf_operator_free(op));

        (void)snprintf(text, sizeof text, thing, "a", "a");
        fake_api_put(api, "things/default/a", text);
        (void)snprintf(text, sizeof text, thing, "b", "b");
        fake_api_put(api, "things/default/b", text);
        assert_int_equal(hf_operator_new(&api->host, &config, &op, &status), 0);
        assert_int_equal(hf_operator_start(op, &status), 0);
        await(api, "leases/default/things", "\"leaseDurationSeconds\":7");
        await(api, "shared/default/of-a", "Extra");
        await(api, "shared/default/of-b", "Extra");
        PATIENCE_AWAIT(atomic_load(&n_calls) >= 4);
        assert_int_equal(hf_operator_stop(op, &status), 0);
        assert_null(hf_operator_free(op));
        hf_client_free(&client->base);
        fake_api_free(api);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_works_from_the_finalizer_to_the_end),
                cmocka_unit_test(test_a_collection_that_lacks_an_object_hides_it_in_no_other),
                cmocka_unit_test(test_what_is_missing_is_named),
                cmocka_unit_test(test_an_object_that_is_gone_is_no_failure),
                cmocka_unit_test(test_a_definition_that_is_none_fails_the_term),
                cmocka_unit_test(test_the_configuration_reaches_every_part),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
