/* SPDX-License-Identifier: Apache-2.0 */
/* The deletion of collections, through the loopback client. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "base/buf.h"
#include "server/pool/work_pool.h"
#include "server/registry/registry.h"
#include "server/registry/write/steps/start.h"
#include "server/resources/rows/resource_table.h"
#include "time_units.h"

/* ---- the linker redirects these functions ---- */

/* The next call fails, as if memory were short. */
static atomic_bool unpack_fails;

struct hf__buf *__real_hfd_unpack(const struct hf__buf *bytes);
struct hf__buf *__wrap_hfd_unpack(const struct hf__buf *bytes);
struct hf__buf *__wrap_hfd_unpack(const struct hf__buf *bytes) {
        return atomic_exchange(&unpack_fails, false) ? NULL : __real_hfd_unpack(bytes);
}

static struct {
        atomic_uint n_started;       /* deletes of collections */
        atomic_uint n_in_step;       /* those of the current step of the pool */
        atomic_uint most_in_step;    /* the largest number in one step */
        atomic_size_t max_body;      /* the largest body of a delete */
        atomic_bool pool_is_full;    /* for new large writes */
        atomic_bool abandoned;       /* the client has left */
        atomic_uint leaves_at;       /* the client leaves when that many deletes were started */
        atomic_uint fails_at;        /* this delete fails, and writes nothing */
        atomic_bool webhook_fails;   /* a webhook is its reason, and not the store */
        atomic_bool pool_stops;      /* steps that follow the first delete are cancelled */
        atomic_uint_least64_t owner; /* of the last delete */
} seen;

bool __real_hfd_work_is_cancelled(const struct hfd_work_pool *pool,
                                  const struct hfd_work_task *task);
bool __wrap_hfd_work_is_cancelled(const struct hfd_work_pool *pool,
                                  const struct hfd_work_task *task);
bool __wrap_hfd_work_is_cancelled(const struct hfd_work_pool *pool,
                                  const struct hfd_work_task *task) {
        seen.n_in_step = 0; /* a step begins */
        return (seen.pool_stops && seen.n_started > 0) || __real_hfd_work_is_cancelled(pool, task);
}

size_t __wrap_hfd_work_pending(struct hfd_work_pool *pool);
size_t __wrap_hfd_work_pending(struct hfd_work_pool *pool) {
        return seen.pool_is_full ? SIZE_MAX : 0;
}

static const struct hf_status no_leader = {.message = "there is no leader"};

void __real_hfd_write_start(struct hfd_registry *registry, struct hfd_request *request);
void __wrap_hfd_write_start(struct hfd_registry *registry, struct hfd_request *request);
void __wrap_hfd_write_start(struct hfd_registry *registry, struct hfd_request *request) {
        if (request->of_collection) {
                seen.owner = request->owner;
                if (++seen.n_in_step > seen.most_in_step)
                        seen.most_in_step = seen.n_in_step;
                if (request->n_body > seen.max_body)
                        seen.max_body = request->n_body;
                if (++seen.n_started == seen.leaves_at)
                        seen.abandoned = true;
                if (seen.n_started == seen.fails_at) {
                        struct hfd_response response = {0};
                        if (seen.webhook_fails)
                                hfd_response_status(&response, HF_E_UNAVAILABLE, 500, "",
                                                    "the webhook failed", NULL);
                        else
                                hfd_response_store_error(&response, HF_E_UNAVAILABLE, &no_leader);
                        request->done(request, &response);
                        hfd_response_done(&response);
                        return;
                }
        }
        __real_hfd_write_start(registry, request);
}

/* ---- the tests ---- */

static void make_many(struct api_fixture *f, int n) {
        char body[160];

        for (int i = 0; i < n; i++) {
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"w%03d\","
                               "\"labels\":{\"parity\":\"%s\"}%s}}",
                               i, i % 2 ? "odd" : "even",
                               i == 7 ? ",\"finalizers\":[\"a.b/c\"]" : "");
                api_fixture_make(f, api_configmaps, "default", body);
        }
}

static int sweep(struct api_fixture *f, const char *query, const char *options) {
        return api_fixture_request(f, HF_VERB_DELETE_COLLECTION, api_configmaps, "default", NULL,
                                   query, options);
}

static size_t n_left(struct api_fixture *f) {
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_configmaps, "default", NULL, NULL,
                                             NULL),
                         0);
        return api_fixture_count_at(f, "items");
}

static void test_deletecollection_deletes_what_is_selected(void **state) {
        struct api_fixture *f = *state;

        make_many(f, 100);
        assert_int_equal(sweep(f, "labelSelector=parity%3Deven", NULL), 0);
        assert_int_equal(f->last.status.http_code, 200);
        assert_string_equal(api_fixture_text_at(f, "kind"), "ConfigMapList");
        assert_string_not_equal(api_fixture_text_at(f, "metadata.resourceVersion"), "");
        assert_int_equal(api_fixture_count_at(f, "items"), 50);
        assert_int_equal(n_left(f), 50);
        assert_int_equal(sweep(f, "dryRun=All", NULL), 0);
        assert_int_equal(sweep(f, NULL, "{\"dryRun\":[\"All\"]}"), 0);
        assert_int_equal(n_left(f), 50);
        assert_int_equal(sweep(f, "fieldSelector=metadata.name%3Dw001", NULL), 0);
        assert_int_equal(sweep(f, "limit=9", NULL), 0);
        assert_int_equal(api_fixture_count_at(f, "items"), 9);
        assert_int_equal(n_left(f), 41); /* and w007, which a finalizer keeps */
        assert_int_equal(sweep(f, NULL, "{\"propagationPolicy\":\"Orphan\"}"), 0);
        assert_int_equal(n_left(f), 41);
        assert_int_equal(sweep(f, NULL, "{\"propagationPolicy\":\"Background\"}"), 0);
        assert_int_equal(n_left(f), 1);
        assert_non_null(strstr(f->last.body, "w007"));
        /* An empty selection is no error. */
        assert_int_equal(sweep(f, "labelSelector=parity%3Deven", NULL), 0);
        assert_int_equal(api_fixture_count_at(f, "items"), 0);
}

static void test_deletecollection_refuses_what_it_cannot_do(void **state) {
        struct api_fixture *f = *state;

        make_many(f, 1);
        /* Each object is deleted with the options, so a precondition is compared with each. */
        assert_int_equal(sweep(f, NULL, "{\"preconditions\":{\"uid\":\"other\"}}"), HF_E_CONFLICT);
        assert_int_equal(f->last.status.http_code, 409);
        assert_int_equal(sweep(f, NULL, "{\"propagationPolicy\":\"Sideways\"}"), HF_E_INVALID);
        assert_int_equal(sweep(f, "labelSelector=a+b+c", NULL), HF_E_INVALID);
        assert_int_equal(sweep(f, "continue=bm9uc2Vuc2U", NULL), HF_E_INVALID);
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE_COLLECTION, api_configmaps, NULL,
                                             NULL, NULL, NULL),
                         HF_E_INVALID);
        assert_int_equal(f->last.status.http_code, 405);
}

/* Creates a and b, and then replaces a and creates c. Returns the query that selects the first two
 * objects, in one static buffer. */
static const char *replace_a_after_the_list(struct api_fixture *f) {
        static char at[64];

        api_fixture_make(f, api_configmaps, "default", "{\"metadata\":{\"name\":\"a\"}}");
        api_fixture_make(f, api_configmaps, "default", "{\"metadata\":{\"name\":\"b\"}}");
        assert_int_equal(n_left(f), 2);
        (void)snprintf(at, sizeof at, "resourceVersionMatch=Exact&resourceVersion=%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(api_fixture_delete(f, api_configmaps, "default", "a", NULL), 0);
        api_fixture_make(f, api_configmaps, "default", "{\"metadata\":{\"name\":\"a\"}}");
        api_fixture_make(f, api_configmaps, "default", "{\"metadata\":{\"name\":\"c\"}}");
        return at;
}

/* An object that was recreated after the list is not the object that was selected. */
static void test_deletecollection_skips_objects_recreated_after_its_list(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(sweep(f, replace_a_after_the_list(f), NULL), 0);
        assert_int_equal(api_fixture_count_at(f, "items"), 1);
        assert_int_equal(api_fixture_get(f, api_configmaps, "default", "a"), 0);
        assert_int_equal(api_fixture_get(f, api_configmaps, "default", "b"), HF_E_NOT_FOUND);
        assert_int_equal(api_fixture_get(f, api_configmaps, "default", "c"), 0);
}

/* The sweep cannot know then which objects were recreated. */
static void test_deletecollection_deletes_nothing_by_name_if_memory_is_short(void **state) {
        struct api_fixture *f = *state;
        const char *selected = replace_a_after_the_list(f);

        atomic_store(&unpack_fails, true);
        assert_int_equal(sweep(f, selected, NULL), -ENOMEM);
        assert_false(atomic_load(&unpack_fails));
        assert_int_equal(f->last.status.http_code, 500);
        assert_int_equal(n_left(f), 3);
}

static void make_mebibytes(struct api_fixture *f, int from, int to) {
        enum { MEBIBYTE = 1 << 20 };
        char *body = malloc(MEBIBYTE + 1);

        assert_non_null(body);
        for (int i = from; i < to; i++) {
                int head = snprintf(body, MEBIBYTE,
                                    "{\"metadata\":{\"name\":\"m%d\"},\"data\":{\"a\":\"", i);
                memset(body + head, 'x', (size_t)(MEBIBYTE - head));
                strcpy(body + MEBIBYTE - 3, "\"}}");
                api_fixture_make(f, api_configmaps, "default", body);
        }
        free(body);
}

/* The response lists the objects up to its limit, or none of them. */
static void test_deletecollection_of_a_large_collection_returns_a_status(void **state) {
        struct api_fixture *f = *state;

        make_mebibytes(f, 0, 7);
        assert_int_equal(sweep(f, "dryRun=All", NULL), 0);
        assert_string_equal(api_fixture_text_at(f, "kind"), "ConfigMapList");
        assert_int_equal(api_fixture_count_at(f, "items"), 7);
        make_mebibytes(f, 7, 9);
        assert_int_equal(sweep(f, "dryRun=All", NULL), 0);
        assert_string_equal(api_fixture_text_at(f, "kind"), "Status");
        assert_int_equal(n_left(f), 9);
        assert_int_equal(sweep(f, "fieldSelector=metadata.name%3Dm3", NULL), 0);
        assert_string_equal(api_fixture_text_at(f, "kind"), "ConfigMapList");
        assert_int_equal(sweep(f, NULL, "{\"preconditions\":{\"uid\":\"other\"}}"), HF_E_CONFLICT);
        assert_int_equal(n_left(f), 8);
        assert_int_equal(sweep(f, NULL, NULL), 0);
        assert_int_equal(f->last.status.http_code, 200);
        assert_string_equal(f->last.body, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":"
                                          "{},\"status\":\"Success\","
                                          "\"details\":{\"kind\":\"configmaps\"}}\n");
        assert_int_equal(n_left(f), 0);
}

static void test_deletecollection_stays_within_its_namespace(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make(f, api_namespaces, NULL, "{\"metadata\":{\"name\":\"n\"}}");
        api_fixture_make(f, api_namespaces, NULL, "{\"metadata\":{\"name\":\"n2\"}}");
        api_fixture_make(f, api_configmaps, "n", "{\"metadata\":{\"name\":\"a\"}}");
        api_fixture_make(f, api_configmaps, "n2", "{\"metadata\":{\"name\":\"a\"}}");
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE_COLLECTION, api_configmaps, "n",
                                             NULL, NULL, NULL),
                         0);
        assert_int_equal(api_fixture_count_at(f, "items"), 1);
        assert_int_equal(api_fixture_get(f, api_configmaps, "n", "a"), HF_E_NOT_FOUND);
        assert_int_equal(api_fixture_get(f, api_configmaps, "n2", "a"), 0);
}

static void test_deletecollection_compares_the_fence(void **state) {
        struct api_fixture *f = *state;
        struct hf_fence fence = {.ns = "kube-system", .name = "l", .identity = "me"};

        api_fixture_make(f, api_leases, "kube-system",
                         "{\"metadata\":{\"name\":\"l\"},\"spec\":{\"holderIdentity\":\"me\"}}");
        fence.term = strtoull(api_fixture_text_at(f, "metadata.resourceVersion"), NULL, 10);
        make_many(f, 20);
        struct hf_fence stale = fence;
        stale.term++;
        assert_int_equal(api_fixture_request_fenced(f, HF_VERB_DELETE_COLLECTION, api_configmaps,
                                                    "default", NULL, NULL, NULL, &stale),
                         HF_E_STALE_TERM);
        assert_true(f->last.fence_echoed);
        assert_int_equal(n_left(f), 20);
        assert_int_equal(api_fixture_request_fenced(f, HF_VERB_DELETE_COLLECTION, api_configmaps,
                                                    "default", NULL, "labelSelector=parity%3Deven",
                                                    NULL, &fence),
                         0);
        assert_true(f->last.fence_echoed);
        assert_int_equal(n_left(f), 10);
        /* The fence is compared even if there is nothing to delete, and the response says so. */
        assert_int_equal(api_fixture_request_fenced(f, HF_VERB_DELETE_COLLECTION, api_configmaps,
                                                    "default", NULL, "labelSelector=parity%3Deven",
                                                    NULL, &fence),
                         0);
        assert_true(f->last.fence_echoed);
        assert_int_equal(api_fixture_request_fenced(f, HF_VERB_DELETE_COLLECTION, api_configmaps,
                                                    "default", NULL, "labelSelector=parity%3Deven",
                                                    NULL, &stale),
                         HF_E_STALE_TERM);
        assert_true(f->last.fence_echoed);
}

static void *sweep_thread(void *ctx) {
        struct api_fixture *f = ctx;
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_DELETE_COLLECTION,
                                     .resource = api_configmaps,
                                     .ns = "default"};

        assert_int_equal(hf_client_do(f->client, &request, hf_cancel_never(), NULL, NULL, NULL), 0);
        return NULL;
}

static void test_concurrent_deletecollections_succeed(void **state) {
        struct api_fixture *f = *state;
        pthread_t threads[4];

        make_many(f, 200);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_configmaps, "default", "w007",
                                             NULL, "{\"metadata\":{\"name\":\"w007\"}}"),
                         0);
        for (int i = 0; i < 4; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, sweep_thread, f), 0);
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        assert_int_equal(n_left(f), 0);
}

/* Other requests would wait for a step that deletes the whole collection. */
static void test_a_dry_run_of_a_collection_takes_many_steps(void **state) {
        struct api_fixture *f = *state;

        make_many(f, 300);
        seen.most_in_step = seen.n_in_step = 0;
        assert_int_equal(sweep(f, "dryRun=All", NULL), 0);
        assert_int_equal(api_fixture_count_at(f, "items"), 300);
        assert_in_range(seen.most_in_step, 1, 64);
        assert_int_equal(n_left(f), 300);
}

/* Each delete parses its body, so a large one of the collection is not given to each. */
static void test_deletes_of_a_collection_get_the_options_only(void **state) {
        enum { N = 1 << 20 };
        static const char head[] = "{\"preconditions\":{\"uid\":\"0\",\"uid\":\"other\"},"
                                   "\"dryRun\":[\"All\"],\"unknown\":\"";
        struct api_fixture *f = *state;
        char *body = malloc(N);

        assert_non_null(body);
        memset(body, 'x', N);
        memcpy(body, head, sizeof head - 1);
        strcpy(body + N - 3, "\"}");
        make_many(f, 20);
        seen.max_body = 0;
        assert_int_equal(sweep(f, NULL, body), HF_E_CONFLICT);
        assert_non_null(strstr(f->last.body, "(other)"));
        assert_in_range(seen.max_body, 1, 100);
        seen.max_body = 0;
        body[2] = 'q'; /* no preconditions any more, only members that are not known */
        assert_int_equal(sweep(f, NULL, body), 0);
        assert_int_equal(seen.max_body, 0);
        assert_int_equal(n_left(f), 20);
        free(body);
}

static sem_t done;
static int done_error;

static void on_done(struct hfd_request *request, const struct hfd_response *response) {
        done_error = response->status.error;
        sem_post(&done);
}

/* The deletes take the turns of the client's user, and none begins when the client has left. */
static void test_a_deletecollection_ends_when_its_client_leaves(void **state) {
        struct api_fixture *f = *state;
        struct hfd_request request = {.verb = HFD_DELETE_COLLECTION,
                                      .resource = hfd_resource_find("", "v1", "configmaps"),
                                      .ns = "default",
                                      .owner = 7,
                                      .abandoned = &seen.abandoned,
                                      .deadline = in_msec(60000),
                                      .done = on_done};

        make_many(f, 100);
        assert_int_equal(sem_init(&done, 0, 0), 0);
        seen.n_started = 0;
        seen.leaves_at = 40;
        hfd_registry_serve(f->registry, &request);
        sem_wait(&done);
        assert_int_equal(done_error, HF_E_TIMEOUT);
        assert_int_equal(seen.n_started, 40);
        assert_int_equal(seen.owner, 7);
        assert_in_range(n_left(f), 60, 99);
        seen.leaves_at = 0;
        seen.abandoned = false;
        sem_destroy(&done);
}

/* The collection was accepted, so the deletes of large objects are not refused one by one. */
static void test_a_full_pool_does_not_end_a_deletecollection(void **state) {
        struct api_fixture *f = *state;

        make_mebibytes(f, 0, 4);
        seen.pool_is_full = true;
        assert_int_equal(sweep(f, NULL, NULL), 0);
        seen.pool_is_full = false;
        assert_int_equal(n_left(f), 0);
}

/* A client repeats a write of which it knows that nothing was written. */
static void test_a_deletecollection_says_whether_nothing_was_written(void **state) {
        struct api_fixture *f = *state;

        make_many(f, 20);
        seen.n_started = 0;
        seen.fails_at = 1;
        assert_int_equal(sweep(f, "fieldSelector=metadata.name%3Dw001", NULL), HF_E_UNAVAILABLE);
        assert_non_null(strstr(f->last.body, "NotApplied"));
        assert_int_equal(n_left(f), 20);
        seen.n_started = 0;
        seen.fails_at = 10;
        assert_int_equal(sweep(f, NULL, NULL), HF_E_TIMEOUT);
        seen.fails_at = 0;
        assert_int_equal(f->last.status.http_code, 503);
        assert_int_equal(f->last.status.retry_after_s, 1);
        assert_null(strstr(f->last.body, "NotApplied"));
        assert_string_equal(api_fixture_text_at(f, "message"),
                            "the store is unavailable: there is no leader: not all of the "
                            "collection is deleted");
        assert_in_range(n_left(f), 1, 19);
}

/* The failure of a webhook does not claim that nothing was written, so it remains as it is. */
static void test_a_half_done_deletecollection_says_which_webhook_failed(void **state) {
        struct api_fixture *f = *state;

        make_many(f, 20);
        seen.n_started = 0;
        seen.fails_at = 10;
        seen.webhook_fails = true;
        assert_int_equal(sweep(f, NULL, NULL), HF_E_TIMEOUT);
        seen.fails_at = 0;
        seen.webhook_fails = false;
        assert_int_equal(f->last.status.http_code, 500);
        assert_string_equal(api_fixture_text_at(f, "message"), "the webhook failed");
        assert_in_range(n_left(f), 1, 19);
}

/* A stop of the server ends a sweep that has objects left, and only that. */
static void test_a_deletecollection_that_is_complete_is_not_canceled(void **state) {
        struct api_fixture *f = *state;

        make_many(f, 33);
        seen.pool_stops = true;
        seen.n_started = 0; /* the first 32 deletes are not started by the pool */
        assert_int_equal(sweep(f, "dryRun=All&limit=32", NULL), 0);
        assert_int_equal(api_fixture_count_at(f, "items"), 32);
        seen.n_started = 0;
        assert_int_equal(sweep(f, "dryRun=All", NULL), HF_E_TIMEOUT);
        seen.pool_stops = false;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_deletecollection_deletes_what_is_selected),
                API_TEST(test_deletecollection_refuses_what_it_cannot_do),
                API_TEST(test_deletecollection_skips_objects_recreated_after_its_list),
                API_TEST(test_deletecollection_deletes_nothing_by_name_if_memory_is_short),
                API_TEST(test_deletecollection_of_a_large_collection_returns_a_status),
                API_TEST(test_deletecollection_stays_within_its_namespace),
                API_TEST(test_deletecollection_compares_the_fence),
                API_TEST(test_concurrent_deletecollections_succeed),
                API_TEST(test_a_dry_run_of_a_collection_takes_many_steps),
                API_TEST(test_deletes_of_a_collection_get_the_options_only),
                API_TEST(test_a_deletecollection_ends_when_its_client_leaves),
                API_TEST(test_a_full_pool_does_not_end_a_deletecollection),
                API_TEST(test_a_deletecollection_says_whether_nothing_was_written),
                API_TEST(test_a_half_done_deletecollection_says_which_webhook_failed),
                API_TEST(test_a_deletecollection_that_is_complete_is_not_canceled),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
