/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API over a faulty store, whose watch ends or is late, whose history is lost, and whose
 * replies are lost.
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

#include "api_core_request.h"
#include "base/json.h"
#include "faulty_api_fixture.h"
#include "patience.h"
#include "server/handlers/protobuf_body.h"
#include "server/registry/base/registry_state.h"
#include "server/registry/loopback.h"
#include "server/resources/response.h"
#include "server/resources/rows/resource_table.h"
#include "store_client.h"

static void test_a_broken_watch_of_the_store_is_resumed(void **state) {
        struct faulty_api_fixture *f = *state;
        struct client_watch *seen;

        faulty_api_fixture_create(f, "a");
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "a", NULL, NULL), 0);
        seen = faulty_api_fixture_watch(f);
        client_watch_await(seen, 1);
        faulty_store_end_watch(&f->store, HF_E_UNAVAILABLE);
        faulty_api_fixture_create(f, "b");
        client_watch_await(seen, 2); /* events from the time without a watch arrive too */
        assert_false(seen->ended);
        assert_int_equal(faulty_api_fixture_end_watch(f, seen, 2), 0);
        client_watch_free(seen);
}

static void test_a_compacted_history_ends_watches(void **state) {
        struct faulty_api_fixture *f = *state;
        struct client_watch *seen;

        faulty_api_fixture_create(f, "a");
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "a", NULL, NULL), 0);
        seen = faulty_api_fixture_watch(f);
        client_watch_await(seen, 1);
        int n_lists = f->store.n_lists;
        faulty_store_end_watch(&f->store, HF_E_GONE);
        client_watch_await(seen, 1);
        assert_int_equal(client_watch_await_end(seen), HF_E_GONE);
        assert_true(f->store.n_lists > n_lists);
        faulty_api_fixture_create(f, "b");
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "b", NULL, NULL), 0);
        struct client_watch *again = faulty_api_fixture_watch(f);
        client_watch_await(again, 2);
        (void)faulty_api_fixture_end_watch(f, again, 2);
        client_watch_free(seen);
        client_watch_free(again);
}

/* A cache that is behind is used neither for a read nor to refuse a write. */
static void test_a_cache_that_is_behind_serves_nothing(void **state) {
        struct faulty_api_fixture *f = *state;

        faulty_api_fixture_create(f, "old");
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "old", NULL, NULL), 0);
        faulty_store_drop_events_for_good(&f->store);
        faulty_api_fixture_create(f, "new");
        int n_gets = f->store.n_gets;
        for (int i = 0; i < 3; i++)
                assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "new", NULL, NULL), 0);
        assert_int_equal(f->store.n_gets, n_gets + 3);
        for (int i = 0; i < 3; i++)
                assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "new", NULL, NULL), 0);
        /* After three late reads in a row, reads go to the store at once. */
        assert_int_equal(f->store.n_revisions, 1 + 3);
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_UPDATE, "new",
                                                    "{\"metadata\":{\"name\":\"new\"},"
                                                    "\"spec\":{\"n\":1}}",
                                                    NULL),
                         0);
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_DELETE, "new", NULL, NULL), 0);
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_DELETE, "new", NULL, NULL),
                         HF_E_NOT_FOUND);
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_LIST, NULL, NULL, NULL), 0);
}

/* A read by an elector neither requests the store's revision nor waits for the cache. */
static void test_a_read_of_an_elector_goes_to_the_store(void **state) {
        struct faulty_api_fixture *f = *state;
        struct hf_request get = {.size = sizeof get,
                                 .verb = HF_VERB_GET,
                                 .resource = api_leases,
                                 .ns = "default",
                                 .name = "a",
                                 .lane = HF_LANE_LEASE};
        char *body = NULL;

        faulty_store_drop_events_for_good(&f->store);
        faulty_api_fixture_put(f, "/registry/leases/default/a",
                               "{\"metadata\":{\"name\":\"a\"},"
                               "\"spec\":{\"holderIdentity\":\"h\"}}");
        assert_int_equal(hf_client_do(f->client, &get, f->token, &body, NULL, NULL), 0);
        assert_non_null(strstr(body, "\"h\""));
        assert_int_equal(f->store.n_revisions, 0);
        free(body);
}

/* A create that looks for the default class makes do with the classes that the cache has, for as
 * long as the cache is behind. */
static void test_a_claim_is_created_while_the_cache_is_behind(void **state) {
        static const char claim[] = "{\"metadata\":{\"generateName\":\"c\"},\"spec\":{"
                                    "\"accessModes\":[\"ReadWriteOnce\"],\"resources\":{"
                                    "\"requests\":{\"storage\":\"1\"}}}}";
        struct faulty_api_fixture *f = *state;
        const struct hf_request create = {.size = sizeof create,
                                          .verb = HF_VERB_CREATE,
                                          .resource = {"", "v1", "persistentvolumeclaims"},
                                          .ns = "default",
                                          .body = claim,
                                          .n_body = sizeof claim - 1};

        faulty_api_fixture_put(f, "/registry/storageclasses/known",
                               "{\"metadata\":{\"name\":\"known\",\"annotations\":{"
                               "\"storageclass.kubernetes.io/is-default-class\":\"true\"}},"
                               "\"provisioner\":\"p\"}");
        faulty_api_fixture_create(f, "old");
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "old", NULL, NULL), 0);
        faulty_store_drop_events_for_good(&f->store);
        faulty_api_fixture_create(f, "new");
        for (int i = 0; i < 5; i++) {
                struct hf_status status = {0};
                char *body = NULL;
                int r = hf_client_do(f->client, &create, f->token, &body, NULL, &status);
                assert_string_equal(status.message, "");
                assert_int_equal(r, 0);
                assert_non_null(strstr(body, "\"storageClassName\":\"known\""));
                free(body);
        }
}

/* The write has read a class that was the default. While it waits, the cache learns that another
 * class is the default now: nothing is wrong with a change of the first one's labels. */
static void test_a_class_that_is_no_default_any_more_may_change(void **state) {
#define CLASS(name, more)                                                                          \
        "{\"kind\":\"PriorityClass\",\"apiVersion\":\"scheduling.k8s.io/v1\",\"metadata\":{"       \
        "\"name\":\"" name "\",\"uid\":\"" name "\"},\"value\":1" more "}"
        static const char labels[] = "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}";
        struct faulty_api_fixture *f = *state;
        struct api_core_request request = {
                .request = {.verb = HFD_PATCH,
                            .patch = HFD_PATCH_MERGE,
                            .resource =
                                    hfd_resource_find("scheduling.k8s.io", "v1", "priorityclasses"),
                            .name = "first",
                            .body = labels,
                            .n_body = sizeof labels - 1}};

        faulty_api_fixture_put(f, "/registry/priorityclasses/first",
                               CLASS("first", ",\"globalDefault\":true"));
        faulty_api_fixture_create(f, "a");
        struct client_watch *seen = faulty_api_fixture_watch(f);
        client_watch_await(seen, 1);
        f->store.hold = true; /* the write waits for the store's revision */
        api_core_request_begin(f->registry, &request);
        assert_false(f->store.hold);
        faulty_api_fixture_put(f, "/registry/priorityclasses/first", CLASS("first", ""));
        faulty_api_fixture_put(f, "/registry/priorityclasses/second",
                               CLASS("second", ",\"globalDefault\":true"));
        faulty_api_fixture_create(f, "b");
        client_watch_await(seen, 2); /* the cache has all changes */
        const struct hfd_store_reply reply = {
                .revision = (uint64_t)
                        store_client_mod_revision(f->store.inner,
                                                  "/registry/tenancy.holdfast.dev/workspaces/b")};
        f->store.held(f->store.held_ctx, &reply);
        (void)api_core_request_wait(&request);
        (void)faulty_api_fixture_end_watch(f, seen, 2);
        client_watch_free(seen);
        assert_string_equal(request.response.status.message, "");
        assert_int_equal(request.response.status.http_code, 200);
        assert_non_null(strstr(request.response.body, "\"a\":\"b\""));
        assert_null(strstr(request.response.body, "globalDefault"));
        api_response_deinit(&request.response);
#undef CLASS
}

/* ---- a watch that hangs ---- */

/* The event of our own write does not arrive, so the watch is opened anew. No event is lost. */
static void test_a_watch_that_hangs_is_opened_anew(void **state) {
        struct faulty_api_fixture *f = *state;
        struct client_watch *seen;

        faulty_api_fixture_create(f, "a");
        seen = faulty_api_fixture_watch(f);
        client_watch_await(seen, 1);
        faulty_store_drop_events(&f->store, true);
        for (int i = 0; i < 3; i++) {
                char body[64];
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"b%d\"}}", i);
                assert_int_equal(faulty_api_fixture_request(f, HF_VERB_CREATE, NULL, body, NULL),
                                 0);
        }
        client_watch_await(seen, 4);
        assert_false(seen->ended);
        assert_int_equal(faulty_store_n_suspected(&f->store), 1);
        hfd_cacher_end_watches(f->cacher);
        (void)client_watch_await_end(seen);
        client_watch_free(seen);
}

/*
 * Another instance writes, and this one only reads. It learns the store's revision, but not whether
 * a watched key was written. It must notice the hanging watch even without any request.
 */
static void hang_while_others_write(struct faulty_api_fixture *f, bool reads) {
        struct client_watch *seen = faulty_api_fixture_watch(f);

        faulty_api_fixture_put(f, "/registry/tenancy.holdfast.dev/workspaces/a",
                               "{\"metadata\":{\"name\":\"a\"}}");
        client_watch_await(seen, 1);
        faulty_store_drop_events(&f->store, true);
        faulty_api_fixture_put(f, "/registry/tenancy.holdfast.dev/workspaces/b",
                               "{\"metadata\":{\"name\":\"b\"}}");
        if (reads)
                assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "none", NULL, NULL),
                                 HF_E_NOT_FOUND);
        client_watch_await(seen, 2);
        assert_false(seen->ended);
        assert_int_equal(faulty_store_n_suspected(&f->store), 1);
        assert_true(store_client_mod_revision(f->store.inner, "/registry.holdfast/progress") > 0);
        hfd_cacher_end_watches(f->cacher);
        (void)client_watch_await_end(seen);
        client_watch_free(seen);
}

static void test_a_watch_that_hangs_while_others_write(void **state) {
        hang_while_others_write(*state, true);
}

static void test_a_watch_that_hangs_without_requests(void **state) {
        hang_while_others_write(*state, false);
}

/* Another program writes outside of our prefix: the watch is healthy, and is left alone. */
static void test_writes_outside_of_the_prefix_do_not_reopen_the_watch(void **state) {
        struct faulty_api_fixture *f = *state;
        hf_nsec time;

        faulty_api_fixture_create(f, "a");
        for (int i = 0; i < 3; i++) {
                uint64_t revision = store_client_put(f->store.inner, "/elsewhere", "x");
                assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "a", NULL, NULL), 0);
                PATIENCE_AWAIT(hfd_cacher_revision(f->cacher) >= revision);
        }
        assert_int_equal(faulty_store_n_suspected(&f->store), 0);
        assert_int_equal(hfd_cacher_lag(f->cacher, &time), 0);
        assert_int_equal(time, 0);
}

/* Opening the watch anew does not help: the lag is reported until the cache has caught up. */
static void test_the_lag_of_the_cache_is_reported(void **state) {
        struct faulty_api_fixture *f = *state;
        hf_nsec time;
        char body[64];

        assert_int_equal(hfd_cacher_lag(f->cacher, &time), 0);
        faulty_store_drop_events_for_good(&f->store);
        for (int i = 0; i < 5; i++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"a%d\"}}", i);
                assert_int_equal(faulty_api_fixture_request(f, HF_VERB_CREATE, NULL, body, NULL),
                                 0);
        }
        PATIENCE_AWAIT(faulty_store_n_suspected(&f->store) > 0);
        assert_int_equal(hfd_cacher_lag(f->cacher, &time), 5);
        assert_true(time >= HF_NSEC_PER_SEC);
        faulty_store_drop_events(&f->store, false);
        PATIENCE_AWAIT(hfd_cacher_lag(f->cacher, &time) == 0);
        assert_int_equal(time, 0);
}

static void test_a_write_with_a_lost_reply_is_reported_as_unknown(void **state) {
        struct faulty_api_fixture *f = *state;
        struct hf_status status;

        f->store.txn_error = HF_E_TIMEOUT;
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_CREATE, NULL,
                                                    "{\"metadata\":{\"name\":\"a\"}}", &status),
                         HF_E_TIMEOUT);
        assert_int_equal(status.http_code, 504);
        assert_string_equal(status.reason, "Timeout");
        f->store.txn_error = HF_E_UNAVAILABLE;
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_CREATE, NULL,
                                                    "{\"metadata\":{\"name\":\"b\"}}", &status),
                         HF_E_UNAVAILABLE);
        assert_int_equal(status.http_code, 503);
        assert_int_equal(status.retry_after_s, 1);
        f->store.txn_error = 0;
        assert_int_equal(faulty_api_fixture_request(f, HF_VERB_GET, "a", NULL, NULL),
                         0); /* the write was applied all the same */
}

/* A client may repeat a write only if the 503 says that nothing was written. */
static void test_a_503_says_whether_nothing_was_written(void **state) {
        struct hfd_response certain = {0}, unknown = {0}, full = {0};

        hfd_response_store_error(&certain, HF_E_UNAVAILABLE, NULL);
        assert_int_equal(certain.code, 503);
        assert_int_equal(certain.status.error, HF_E_UNAVAILABLE);
        assert_non_null(strstr(certain.body->data, "\"causes\":[{\"reason\":\"NotApplied\","));
        hfd_response_done(&certain);
        hfd_response_store_error(&unknown, HF_E_CANCELED, NULL);
        assert_int_equal(unknown.code, 503);
        assert_int_equal(unknown.status.error, HF_E_CANCELED);
        assert_null(strstr(unknown.body->data, "NotApplied"));
        hfd_response_done(&unknown);
        hfd_response_store_error(&full, -ENOSPC, NULL);
        assert_int_equal(full.code, 503);
        assert_int_equal(full.status.error, -ENOSPC);
        assert_non_null(strstr(full.body->data, "the store is full"));
        assert_null(strstr(full.body->data, "NotApplied"));
        hfd_response_done(&full);
}

/* The client is freed while requests are under way: each gets its reply. */
static void test_freeing_the_client_ends_its_watches(void **state) {
        struct faulty_api_fixture *f = *state;
        struct client_watch *seen;

        seen = faulty_api_fixture_watch(f);
        faulty_api_fixture_create(f, "a");
        client_watch_await(seen, 1);
        hf_client_free(f->client);
        f->client = NULL;
        assert_true(seen->ended);
        assert_int_equal(seen->error, HF_E_CANCELED);
        assert_int_equal(hfd_loopback_new(f->registry, &f->client), 0);
        client_watch_free(seen);
}

static void test_a_protobuf_body_is_decoded(void **state) {
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
        /*
         * A message truncated anywhere is refused or decoded as a smaller one, without a read
         * beyond its end.
         */
        for (size_t cut = 0; cut < n; cut++) {
                char *copy = malloc(cut ? cut : 1);
                memcpy(copy, body, cut);
                json = NULL;
                if (!hfd_protobuf_to_json(ns, false, copy, cut, &json))
                        hf__json_free(json);
                free(copy);
        }
}

static void test_the_series_of_a_protobuf_event_is_kept(void **state) {
        /* Unknown{typeMeta{v1, Event}, raw: Event{series{count: 7, lastObservedTime{1 s, 2
         * us}}}} */
        static const char body[] = "k8s\0\x0a\x0b\x0a\x02v1\x12\x05"
                                   "Event\x12\x0b\x5a\x09\x08\x07\x12\x05\x08\x01\x10\xd0\x0f";
        const struct hfd_resource *events = hfd_resource_find("", "v1", "events");
        struct hf__json *json = NULL;
        int64_t count = 0;

        assert_int_equal(hfd_protobuf_to_json(events, false, body, sizeof body - 1, &json), 0);
        assert_true(hf__json_i64(json, "series.count", &count) && count == 7);
        assert_string_equal(hf__json_string(json, "series.lastObservedTime"),
                            "1970-01-01T00:00:01.000002Z");
        hf__json_free(json);
}

/* Appends a varint. Returns the position behind it. */
static char *put_varint(char *at, uint64_t value) {
        for (; value > 127; value >>= 7)
                *at++ = (char)(value | 128);
        *at++ = (char)value;
        return at;
}

/* Decodes a Lease whose renewTime has these parts, and compares the time. text NULL: the Lease is
 * refused; "": the time is absent. */
static void expect_renew_time(int64_t seconds, int64_t nanos, const char *text) {
        char time[32], body[128], *at = time;
        struct hf__json *json = NULL;

        *at++ = '\x08';
        at = put_varint(at, (uint64_t)seconds);
        *at++ = '\x10';
        at = put_varint(at, (uint64_t)nanos);
        size_t n_time = (size_t)(at - time);
        memcpy(body, "k8s", 4);
        at = body + 4;
        *at++ = '\x12';
        *at++ = (char)(n_time + 4);
        *at++ = '\x12'; /* spec */
        *at++ = (char)(n_time + 2);
        *at++ = '\x22'; /* renewTime */
        *at++ = (char)n_time;
        memcpy(at, time, n_time);
        int r = hfd_protobuf_to_json(hfd_resource_find("coordination.k8s.io", "v1", "leases"),
                                     false, body, (size_t)(at - body) + n_time, &json);
        assert_int_equal(r, text ? 0 : HF_E_INVALID);
        if (!text)
                return;
        const char *found = hf__json_string(json, "spec.renewTime");
        assert_string_equal(found ? found : "", text);
        hf__json_free(json);
}

/* client-go sends such times: time.Time{} with some seconds added is in the year 1. */
static void test_protobuf_times_have_the_years_1_to_9999(void **state) {
        expect_renew_time(-62135596798, 0, "0001-01-01T00:00:02.000000Z");
        expect_renew_time(-1, 999999999, "1969-12-31T23:59:59.999999Z");
        expect_renew_time(253402300799, 1000, "9999-12-31T23:59:59.000001Z");
        expect_renew_time(-62135596800, 0, ""); /* Go's zero time */
        expect_renew_time(-62135596801, 0, NULL);
        expect_renew_time(253402300800, 0, NULL);
        expect_renew_time(0, -1, NULL);
        expect_renew_time(0, 1000000000, NULL);
}

/* ---- namespaces and collections ---- */

static int create(struct faulty_api_fixture *f, const struct hf_resource *resource, const char *ns,
                  const char *body, struct hf_status *status) {
        struct hf_request make = {.size = sizeof make,
                                  .verb = HF_VERB_CREATE,
                                  .resource = *resource,
                                  .ns = ns,
                                  .body = body,
                                  .n_body = strlen(body)};

        return hf_client_do(f->client, &make, f->token, NULL, NULL, status);
}

#define OPEN_NS "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\"}}"
#define LABELED_NS                                                                                 \
        "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\",\"labels\":{"  \
        "\"deletionTimestamp\":\"no\"}}}"
#define ENDING_NS                                                                                  \
        "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n\","              \
        "\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"}}"

/*
 * Another instance changes a namespace, and the cache of this instance is behind. The cached
 * namespace must neither permit nor prevent a creation. The object that the failed transaction
 * returned decides, without another read.
 */
static void test_a_stale_namespace_in_the_cache_decides_nothing(void **state) {
        struct faulty_api_fixture *f = *state;
        struct hf_status status;

        faulty_api_fixture_put(f, "/registry/namespaces/n", OPEN_NS);
        while (create(f, &api_configmaps, "n", "{\"metadata\":{\"name\":\"a\"}}", NULL) ==
               HF_E_NOT_FOUND)
                ;
        struct hf_request get = {.size = sizeof get,
                                 .verb = HF_VERB_GET,
                                 .resource = api_namespaces,
                                 .name = "n"};
        assert_int_equal(hf_client_do(f->client, &get, f->token, NULL, NULL, NULL),
                         0); /* the cache has it */
        faulty_store_drop_events(&f->store, true);
        faulty_api_fixture_put(f, "/registry/namespaces/n", ENDING_NS);
        int n_gets = f->store.n_gets;
        assert_int_equal(create(f, &api_configmaps, "n", "{\"metadata\":{\"name\":\"b\"}}",
                                &status),
                         HF_E_FORBIDDEN);
        assert_int_equal(f->store.n_gets, n_gets);
        assert_int_equal(store_client_mod_revision(f->store.inner, "/registry/configmaps/n/b"), 0);
        faulty_api_fixture_put(f, "/registry/namespaces/n", LABELED_NS);
        assert_int_equal(create(f, &api_configmaps, "n", "{\"metadata\":{\"name\":\"b\"}}",
                                &status),
                         0);
        assert_int_equal(f->store.n_gets, n_gets);
}

/* The opposite case: the cached namespace is being deleted, but it was recreated meanwhile. */
static void test_a_namespace_that_was_recreated_is_used(void **state) {
        struct faulty_api_fixture *f = *state;
        struct hf_request get = {.size = sizeof get,
                                 .verb = HF_VERB_GET,
                                 .resource = api_namespaces,
                                 .name = "n"};

        faulty_api_fixture_put(f, "/registry/namespaces/n", ENDING_NS);
        assert_int_equal(hf_client_do(f->client, &get, f->token, NULL, NULL, NULL), 0);
        assert_int_equal(create(f, &api_configmaps, "n", "{\"metadata\":{\"name\":\"a\"}}", NULL),
                         HF_E_FORBIDDEN);
        faulty_store_drop_events(&f->store, true);
        faulty_api_fixture_put(f, "/registry/namespaces/n", OPEN_NS);
        assert_int_equal(create(f, &api_configmaps, "n", "{\"metadata\":{\"name\":\"a\"}}", NULL),
                         0);
}

/* The second attempt parses the body again. */
static void test_a_conflict_does_not_repeat_warnings(void **state) {
        struct faulty_api_fixture *f = *state;
        static const char body[] =
                "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"1\",\"k\":\"2\"}}";
        struct api_core_request update = {
                .request = {.verb = HFD_UPDATE,
                            .resource = hfd_resource_find("", "v1", "configmaps"),
                            .ns = "default",
                            .name = "a",
                            .body = body,
                            .n_body = sizeof body - 1}};
        struct hf_request get = {.size = sizeof get,
                                 .verb = HF_VERB_GET,
                                 .resource = api_configmaps,
                                 .ns = "default",
                                 .name = "a"};

        assert_int_equal(create(f, &api_configmaps, "default", "{\"metadata\":{\"name\":\"a\"}}",
                                NULL),
                         0);
        assert_int_equal(hf_client_do(f->client, &get, f->token, NULL, NULL, NULL), 0);
        faulty_store_drop_events(&f->store, true);
        faulty_api_fixture_put(f, "/registry/configmaps/default/a",
                               "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"u\"}}");
        assert_int_equal(api_core_request_run(f->registry, &update), 0);
        assert_string_equal(update.warnings, "duplicate field \"data.k\"");
        api_response_deinit(&update.response);
}

/* As in Kubernetes, which reads DeleteOptions without strictness. */
static void test_the_mistakes_of_delete_options_are_not_reported(void **state) {
        struct faulty_api_fixture *f = *state;
        static const char body[] = "{\"gracePeriodSeconds\":1,\"gracePeriodSeconds\":0}";
        struct api_core_request delete = {
                .request = {.verb = HFD_DELETE_OBJECT,
                            .resource = hfd_resource_find("", "v1", "configmaps"),
                            .ns = "default",
                            .name = "a",
                            .body = body,
                            .n_body = sizeof body - 1}};

        assert_int_equal(create(f, &api_configmaps, "default", "{\"metadata\":{\"name\":\"a\"}}",
                                NULL),
                         0);
        assert_int_equal(api_core_request_run(f->registry, &delete), 0);
        assert_string_equal(delete.warnings, "");
        api_response_deinit(&delete.response);
}

#define ACCOUNT_POD(account)                                                                       \
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\",\"namespace\":"      \
        "\"default\",\"uid\":\"u\"},\"spec\":{\"serviceAccountName\":\"" account                   \
        "\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"

/* The cache has a pod whose account may not use the Secret; the store has a newer one of the same
 * name, whose account may. */
static void test_an_old_pod_does_not_refuse_ephemeral_containers(void **state) {
        static const struct hf_resource pods = {"", "v1", "pods"},
                                        accounts = {"", "v1", "serviceaccounts"};
        static const char body[] =
                "{\"spec\":{\"ephemeralContainers\":[{\"name\":\"e\",\"image\":\"i\",\"env\":[{"
                "\"name\":\"E\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"s\",\"key\":\"k\"}}"
                "}]}]}}";
        struct faulty_api_fixture *f = *state;
        struct api_core_request patch = {
                .request = {.verb = HFD_PATCH,
                            .patch = HFD_PATCH_STRATEGIC,
                            .subresource = HFD_SUB_EPHEMERAL_CONTAINERS,
                            .resource = hfd_resource_find("", "v1", "pods"),
                            .ns = "default",
                            .name = "p",
                            .body = body,
                            .n_body = sizeof body - 1}};
        struct hf_request get = {.size = sizeof get,
                                 .verb = HF_VERB_GET,
                                 .resource = pods,
                                 .ns = "default",
                                 .name = "p"};

        assert_int_equal(create(f, &accounts, "default",
                                "{\"metadata\":{\"name\":\"bound\",\"annotations\":{"
                                "\"kubernetes.io/enforce-mountable-secrets\":\"true\"}}}",
                                NULL),
                         0);
        assert_int_equal(create(f, &accounts, "default", "{\"metadata\":{\"name\":\"free\"}}",
                                NULL),
                         0);
        faulty_api_fixture_put(f, "/registry/pods/default/p", ACCOUNT_POD("bound"));
        assert_int_equal(hf_client_do(f->client, &get, f->token, NULL, NULL, NULL), 0);
        f->registry->assigns_accounts = true;
        assert_int_equal(api_core_request_run(f->registry, &patch), HF_E_FORBIDDEN);
        api_response_deinit(&patch.response);
        faulty_store_drop_events(&f->store, true);
        faulty_api_fixture_put(f, "/registry/pods/default/p", ACCOUNT_POD("free"));
        patch.request.deadline = 0;
        assert_int_equal(api_core_request_run(f->registry, &patch), 0);
        api_response_deinit(&patch.response);
}

#define OLD_PARAMS "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}"
#define NEW_PARAMS "{\"apiVersion\":\"v1\",\"kind\":\"Secret\"}"
#define POLICY(params)                                                                             \
        "{\"kind\":\"ValidatingAdmissionPolicy\","                                                 \
        "\"apiVersion\":\"admissionregistration.k8s.io/v1\",\"metadata\":{\"name\":\"p\","         \
        "\"uid\":\"u\",\"generation\":1},\"spec\":{\"failurePolicy\":\"Fail\","                    \
        "\"paramKind\":" params                                                                    \
        ",\"matchConstraints\":{\"matchPolicy\":\"Equivalent\",\"namespaceSelector\":{},"          \
        "\"objectSelector\":{},\"resourceRules\":[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"]," \
        "\"operations\":[\"CREATE\"],\"resources\":[\"pods\"],\"scope\":\"*\"}]},"                 \
        "\"validations\":[{\"expression\":\"true\"}]}}"

/*
 * Another instance changes the params of a policy, and the cache of this instance is behind. A
 * user who may not read the new params may write them, because the newest version has them.
 */
static void test_stale_params_in_the_cache_refuse_nothing(void **state) {
        struct faulty_api_fixture *f = *state;
        static const char key[] = "/registry/validatingadmissionpolicies/p",
                          body[] = "{\"spec\":{\"paramKind\":" NEW_PARAMS "}}";
        struct hfd_requester user = {.subject = {.name = "u"}};
        struct api_core_request patch = {
                .request = {.verb = HFD_PATCH,
                            .resource = hfd_resource_find("admissionregistration.k8s.io", "v1",
                                                          "validatingadmissionpolicies"),
                            .name = "p",
                            .requester = &user,
                            .patch = HFD_PATCH_MERGE,
                            .body = body,
                            .n_body = sizeof body - 1}};
        struct api_core_request again = patch;
        struct hf_request get = {.size = sizeof get,
                                 .verb = HF_VERB_GET,
                                 .resource = {.group = "admissionregistration.k8s.io",
                                              .version = "v1",
                                              .plural = "validatingadmissionpolicies"},
                                 .name = "p"};

        faulty_api_fixture_put(f, key, POLICY(OLD_PARAMS));
        assert_int_equal(hf_client_do(f->client, &get, f->token, NULL, NULL, NULL), 0);
        faulty_store_drop_events(&f->store, true);
        assert_int_equal(api_core_request_run(f->registry, &patch), HF_E_INVALID);
        api_response_deinit(&patch.response);
        faulty_api_fixture_put(f, key, POLICY(NEW_PARAMS));
        assert_int_equal(api_core_request_run(f->registry, &again), 0);
        api_response_deinit(&again.response);
}

/*
 * The replies of some deletes are lost: the response says that the outcome is unknown, and the next
 * request deletes the rest.
 */
static void test_deletecollection_reports_unknown_outcomes(void **state) {
        struct faulty_api_fixture *f = *state;
        struct hf_status status;
        struct hf_request sweep = {.size = sizeof sweep,
                                   .verb = HF_VERB_DELETE_COLLECTION,
                                   .resource = api_configmaps,
                                   .ns = "default"};
        char body[80];

        for (int i = 0; i < 100; i++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"w%02d\"}}", i);
                assert_int_equal(create(f, &api_configmaps, "default", body, NULL), 0);
        }
        f->store.txn_error = HF_E_TIMEOUT;
        assert_int_equal(hf_client_do(f->client, &sweep, f->token, NULL, NULL, &status),
                         HF_E_TIMEOUT);
        assert_int_equal(status.http_code, 504);
        assert_true(store_client_mod_revision(f->store.inner, "/registry/configmaps/default/w99") >
                    0); /* the watch ended early */
        f->store.txn_error = 0;
        sweep.deadline = hf_now(hf_clock_system()) - 1;
        assert_int_equal(hf_client_do(f->client, &sweep, f->token, NULL, NULL, &status),
                         HF_E_TIMEOUT);
        sweep.deadline = 0;
        assert_int_equal(hf_client_do(f->client, &sweep, f->token, NULL, NULL, &status), 0);
        assert_int_equal(store_client_mod_revision(f->store.inner,
                                                   "/registry/configmaps/default/w99"),
                         0);
}

int main(void) {
        hfd_resources_add_workloads();
        const struct CMUnitTest tests[] = {
                FAULTY_API_TEST(test_a_broken_watch_of_the_store_is_resumed),
                FAULTY_API_TEST(test_a_compacted_history_ends_watches),
                FAULTY_API_TEST(test_a_cache_that_is_behind_serves_nothing),
                FAULTY_API_TEST(test_a_read_of_an_elector_goes_to_the_store),
                FAULTY_API_TEST(test_a_claim_is_created_while_the_cache_is_behind),
                FAULTY_API_TEST(test_a_class_that_is_no_default_any_more_may_change),
                FAULTY_API_TEST(test_a_watch_that_hangs_is_opened_anew),
                FAULTY_API_TEST(test_a_watch_that_hangs_while_others_write),
                FAULTY_API_TEST(test_a_watch_that_hangs_without_requests),
                FAULTY_API_TEST(test_writes_outside_of_the_prefix_do_not_reopen_the_watch),
                FAULTY_API_TEST(test_the_lag_of_the_cache_is_reported),
                FAULTY_API_TEST(test_a_write_with_a_lost_reply_is_reported_as_unknown),
                FAULTY_API_TEST(test_a_stale_namespace_in_the_cache_decides_nothing),
                FAULTY_API_TEST(test_a_namespace_that_was_recreated_is_used),
                FAULTY_API_TEST(test_a_conflict_does_not_repeat_warnings),
                FAULTY_API_TEST(test_the_mistakes_of_delete_options_are_not_reported),
                FAULTY_API_TEST(test_an_old_pod_does_not_refuse_ephemeral_containers),
                FAULTY_API_TEST(test_stale_params_in_the_cache_refuse_nothing),
                FAULTY_API_TEST(test_deletecollection_reports_unknown_outcomes),
                cmocka_unit_test(test_a_503_says_whether_nothing_was_written),
                FAULTY_API_TEST(test_freeing_the_client_ends_its_watches),
                cmocka_unit_test(test_a_protobuf_body_is_decoded),
                cmocka_unit_test(test_the_series_of_a_protobuf_event_is_kept),
                cmocka_unit_test(test_protobuf_times_have_the_years_1_to_9999),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
