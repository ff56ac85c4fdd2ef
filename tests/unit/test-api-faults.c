/* SPDX-License-Identifier: Apache-2.0 */
/* The API over a store that misbehaves: its watch ends or is late, its history is gone, its replies
 * are lost. */
#undef NDEBUG
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "faulty_box.h"
#include "server/handlers/protobuf_body.h"

static void test_broken_watch_goes_on(void **state) {
        struct box *box = *state;
        struct seen seen;

        assert_int_equal(request(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}"), 0);
        assert_int_equal(request(box, HF_VERB_GET, "a", NULL), 0);
        watch(box, &seen);
        await(&seen, 1, false);
        end_watch_as(&box->store, HF_E_UNAVAILABLE);
        assert_int_equal(request(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"b\"}}"), 0);
        await(&seen, 2, false); /* what was written while nobody watched comes, too */
        assert_false(seen.ended);
        hfd_cacher_end_watches(box->cacher);
        await(&seen, 2, true);
        assert_int_equal(seen.error, 0);
}

static void test_lost_history_closes_watches(void **state) {
        struct box *box = *state;
        struct seen seen;

        assert_int_equal(request(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}"), 0);
        assert_int_equal(request(box, HF_VERB_GET, "a", NULL), 0);
        watch(box, &seen);
        await(&seen, 1, false);
        int n_lists = box->store.n_lists;
        end_watch_as(&box->store, HF_E_GONE);
        await(&seen, 1, true);
        assert_int_equal(seen.error, HF_E_GONE);
        assert_true(box->store.n_lists > n_lists);
        assert_int_equal(request(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"b\"}}"), 0);
        assert_int_equal(request(box, HF_VERB_GET, "b", NULL), 0);
        struct seen again;
        watch(box, &again);
        await(&again, 2, false);
        hfd_cacher_end_watches(box->cacher);
        await(&again, 2, true);
}

/* A cache that is behind is never believed: not for a read, not for a refusal of a write. */
static void test_late_cache(void **state) {
        struct box *box = *state;

        assert_int_equal(request(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"old\"}}"),
                         0);
        assert_int_equal(request(box, HF_VERB_GET, "old", NULL), 0);
        pthread_mutex_lock(&box->store.mu);
        box->store.deaf = true;
        pthread_mutex_unlock(&box->store.mu);
        assert_int_equal(request(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"new\"}}"),
                         0);
        int n_gets = box->store.n_gets;
        for (int i = 0; i < 3; i++)
                assert_int_equal(request(box, HF_VERB_GET, "new", NULL), 0);
        assert_int_equal(box->store.n_gets, n_gets + 3);
        for (int i = 0; i < 3; i++)
                assert_int_equal(request(box, HF_VERB_GET, "new", NULL), 0);
        /* After three late ones in a row the store is asked at once. */
        assert_int_equal(box->store.n_revisions, 1 + 3);
        assert_int_equal(request(box, HF_VERB_UPDATE, "new",
                                 "{\"metadata\":{\"name\":\"new\"},\"spec\":{\"n\":1}}"),
                         0);
        assert_int_equal(request(box, HF_VERB_DELETE, "new", NULL), 0);
        assert_int_equal(request(box, HF_VERB_DELETE, "new", NULL), HF_E_NOT_FOUND);
        assert_int_equal(request(box, HF_VERB_LIST, NULL, NULL), 0);
}

static void test_lost_reply_is_unknown(void **state) {
        struct box *box = *state;
        struct hf_status status;

        box->store.txn_error = HF_E_TIMEOUT;
        assert_int_equal(call_status(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}",
                                     &status),
                         HF_E_TIMEOUT);
        assert_int_equal(status.http_code, 504);
        assert_string_equal(status.reason, "Timeout");
        box->store.txn_error = HF_E_UNAVAILABLE;
        assert_int_equal(call_status(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"b\"}}",
                                     &status),
                         HF_E_UNAVAILABLE);
        assert_int_equal(status.http_code, 503);
        assert_int_equal(status.retry_after_s, 1);
        box->store.txn_error = 0;
        assert_int_equal(request(box, HF_VERB_GET, "a", NULL), 0); /* it was done after all */
}

/* Free while calls are under way: each is answered. */
static void test_free_with_calls(void **state) {
        struct box *box = *state;
        struct seen seen;

        watch(box, &seen);
        assert_int_equal(request(box, HF_VERB_CREATE, NULL, "{\"metadata\":{\"name\":\"a\"}}"), 0);
        await(&seen, 1, false);
        hf_client_free(box->client);
        box->client = NULL;
        assert_true(seen.ended);
        assert_int_equal(seen.error, HF_E_CANCELED);
        assert_int_equal(hfd_loopback_new(box->registry, &box->client), 0);
}

static void test_protobuf_body(void **state) {
        /* k8s\0, Unknown{typeMeta{v1, Namespace}, raw: Namespace{metadata{name: a}}} */
        static const char body[] =
                "k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x05\x0a\x03\x0a\x01"
                "a";
        static const struct hfd_resource *ns;
        struct hf__json *json = NULL;
        size_t n = sizeof body - 1;

        ns = hfd_resource_namespaces();
        assert_int_equal(hfd_protobuf_to_json(ns, false, body, n, &json), 0);
        assert_string_equal(hf__json_string(json, "metadata.name"), "a");
        assert_string_equal(hf__json_string(json, "kind"), "Namespace");
        hf__json_free(json);
        for (size_t cut = 0; cut < n;
             cut++) { /* cut short anywhere: refused, or a smaller message; never a read beyond */
                char *copy = malloc(cut ? cut : 1);
                memcpy(copy, body, cut);
                json = NULL;
                if (!hfd_protobuf_to_json(ns, false, copy, cut, &json))
                        hf__json_free(json);
                free(copy);
        }
}

/* ---- namespaces and collections ---- */

static const struct hf_resource configmaps = {"", "v1", "configmaps"};
static const struct hf_resource namespaces = {"", "v1", "namespaces"};

static int create(struct box *box, const struct hf_resource *resource, const char *ns,
                  const char *body, struct hf_status *status) {
        struct hf_request make = {.verb = HF_VERB_CREATE,
                                  .resource = *resource,
                                  .ns = ns,
                                  .body = body,
                                  .n_body = strlen(body)};

        return hf_client_do(box->client, &make, box->token, NULL, NULL, status);
}

#define OPEN_NS "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\"}}"
#define LABELED_NS                                                                                 \
        "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\",\"labels\":{"  \
        "\"deletionTimestamp\":\"no\"}}}"
#define ENDING_NS                                                                                  \
        "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\","              \
        "\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"}}"

/*
 * Another instance changes a namespace, and this one's cache does not hear of it. What the cache
 * says of it is believed neither for a creation nor for a refusal; and what the failed transaction
 * read is enough, no further look is taken.
 */
static void test_stale_namespace(void **state) {
        struct box *box = *state;
        struct hf_status status;

        put_raw(box, "/registry/namespaces/n", OPEN_NS);
        while (create(box, &configmaps, "n", "{\"metadata\":{\"name\":\"a\"}}", NULL) ==
               HF_E_NOT_FOUND)
                ;
        struct hf_request get = {.verb = HF_VERB_GET, .resource = namespaces, .name = "n"};
        assert_int_equal(hf_client_do(box->client, &get, box->token, NULL, NULL, NULL),
                         0); /* the cache has it */
        make_deaf(box);
        put_raw(box, "/registry/namespaces/n", ENDING_NS);
        int n_gets = box->store.n_gets;
        assert_int_equal(create(box, &configmaps, "n", "{\"metadata\":{\"name\":\"b\"}}", &status),
                         HF_E_FORBIDDEN);
        assert_int_equal(box->store.n_gets, n_gets);
        assert_int_equal(revision_of(box, "/registry/configmaps/n/b"), 0);
        put_raw(box, "/registry/namespaces/n", LABELED_NS);
        assert_int_equal(create(box, &configmaps, "n", "{\"metadata\":{\"name\":\"b\"}}", &status),
                         0);
        assert_int_equal(box->store.n_gets, n_gets);
}

/* The other way round: the cache's last word is that it ends, while it is there anew. */
static void test_namespace_made_anew(void **state) {
        struct box *box = *state;
        struct hf_request get = {.verb = HF_VERB_GET, .resource = namespaces, .name = "n"};

        put_raw(box, "/registry/namespaces/n", ENDING_NS);
        assert_int_equal(hf_client_do(box->client, &get, box->token, NULL, NULL, NULL), 0);
        assert_int_equal(create(box, &configmaps, "n", "{\"metadata\":{\"name\":\"a\"}}", NULL),
                         HF_E_FORBIDDEN);
        make_deaf(box);
        put_raw(box, "/registry/namespaces/n", OPEN_NS);
        assert_int_equal(create(box, &configmaps, "n", "{\"metadata\":{\"name\":\"a\"}}", NULL), 0);
}

/* The replies of some deletes are lost: the answer says that not all is known, and the rest is
 * there for the next call. */
static void test_collection_over_a_bad_store(void **state) {
        struct box *box = *state;
        struct hf_status status;
        struct hf_request sweep = {.verb = HF_VERB_DELETE_COLLECTION,
                                   .resource = configmaps,
                                   .ns = "default"};
        char body[80];

        for (int i = 0; i < 100; i++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"w%02d\"}}", i);
                assert_int_equal(create(box, &configmaps, "default", body, NULL), 0);
        }
        box->store.txn_error = HF_E_TIMEOUT;
        assert_int_equal(hf_client_do(box->client, &sweep, box->token, NULL, NULL, &status),
                         HF_E_TIMEOUT);
        assert_int_equal(status.http_code, 504);
        assert_true(revision_of(box, "/registry/configmaps/default/w99") > 0); /* it ended early */
        box->store.txn_error = 0;
        sweep.deadline = hf_now(hf_clock_system()) - 1;
        assert_int_equal(hf_client_do(box->client, &sweep, box->token, NULL, NULL, &status),
                         HF_E_TIMEOUT);
        sweep.deadline = 0;
        assert_int_equal(hf_client_do(box->client, &sweep, box->token, NULL, NULL, &status), 0);
        assert_int_equal(revision_of(box, "/registry/configmaps/default/w99"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_broken_watch_goes_on),
                TEST(test_lost_history_closes_watches),
                TEST(test_late_cache),
                TEST(test_lost_reply_is_unknown),
                TEST(test_stale_namespace),
                TEST(test_namespace_made_anew),
                TEST(test_collection_over_a_bad_store),
                TEST(test_free_with_calls),
                cmocka_unit_test(test_protobuf_body),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
