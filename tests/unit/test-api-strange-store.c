/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API over a store with unexpected content: a restored backup, or values that are not objects.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "client_watch.h"
#include "patience.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/sync/cache_audit.h"
#include "server/cacher/sync/consistent_read.h"
#include "server/resources/rows/resource_table.h"
#include "store_client.h"

/* ---- watches ---- */

static struct client_watch *watch(struct api_fixture *f, const char *revision) {
        const struct hf_watch_spec spec = {.size = sizeof spec,
                                           .resource = api_workspaces,
                                           .resource_version = revision};

        return client_watch_new(f->client, &spec);
}

/* The client has seen a revision of the old history that the new one has not reached. */
static void test_a_watch_from_a_lost_history_is_gone(void **state) {
        struct api_fixture *f = *state;
        struct client_watch *lost;

        lost = watch(f, "1000000");
        assert_int_equal(client_watch_await_end(lost), HF_E_GONE);
        assert_int_equal(lost->n, 0);
        client_watch_free(lost);
}

/* A revision that the store has reached is accepted, even if the cache has not reached it yet. */
static void test_a_watch_may_begin_at_the_clients_own_write(void **state) {
        struct api_fixture *f = *state;
        struct client_watch *seen[50];
        char body[80];

        for (int i = 0; i < 50; i++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"w%02d\"}}", i);
                assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL,
                                                     NULL, body),
                                 0);
                seen[i] = watch(f, api_fixture_text_at(f, "metadata.resourceVersion"));
        }
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"x\"}}"),
                         0);
        for (size_t i = 0; i < 50; i++)
                client_watch_await(seen[i], 50 - i);
        hfd_cacher_end_watches(f->cacher);
        for (size_t i = 0; i < 50; i++) {
                assert_int_equal(client_watch_await_end(seen[i]), 0);
                assert_int_equal(seen[i]->n, 50 - i);
        }
        for (int i = 0; i < 50; i++)
                client_watch_free(seen[i]);
}

struct late {
        struct hfd_consistent_read reader; /* first: ready gets a pointer to it */
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool ready;
};

static void on_ready(struct hfd_consistent_read *reader) {
        struct late *late = (struct late *)reader;

        pthread_mutex_lock(&late->mu);
        late->ready = true;
        pthread_cond_signal(&late->cond);
        pthread_mutex_unlock(&late->mu);
}

/*
 * A list that requests a revision of the lost history times out. That does not make the cache late:
 * it continues to serve reads.
 */
static void test_reads_of_a_lost_history_do_not_disable_the_cache(void **state) {
        struct api_fixture *f = *state;

        for (int i = 0; i < 5; i++) {
                struct late late = {.reader = {.ready = on_ready, .deadline = HF_NSEC_NEVER},
                                    .mu = PTHREAD_MUTEX_INITIALIZER,
                                    .cond = PTHREAD_COND_INITIALIZER};
                hfd_consistent_read_after(f->cacher, &late.reader, 1000000, HF_NSEC_PER_MSEC);
                pthread_mutex_lock(&late.mu);
                PATIENCE_AWAIT_LOCKED(&late.cond, &late.mu, late.ready);
                pthread_mutex_unlock(&late.mu);
                assert_int_equal(late.reader.outcome, HF_E_TIMEOUT);
        }
        pthread_mutex_lock(&f->cacher->mu);
        assert_int_equal(f->cacher->reads->direct_until, 0);
        pthread_mutex_unlock(&f->cacher->mu);
}

/* ---- values that are not valid objects ---- */

/* text NULL deletes the key. */
static void write_raw(struct api_fixture *f, const char *key, const char *text) {
        uint64_t revision =
                text ? store_client_put(f->store, key, text) : store_client_delete(f->store, key);

        assert_true(revision > 0);
}

static bool audit_runs(struct api_fixture *f) {
        pthread_mutex_lock(&f->cacher->mu);
        bool runs = f->cacher->audit->running;
        pthread_mutex_unlock(&f->cacher->mu);
        return runs;
}

static void audit(struct api_fixture *f) {
        hfd_cache_audit_start(f->cacher);
        PATIENCE_AWAIT(!audit_runs(f));
}

/* Invalid values among the objects end no watch, however often the audit runs. */
static void test_the_audit_expects_values_that_are_not_objects(void **state) {
        struct api_fixture *f = *state;
        struct client_watch *before, *after;

        write_raw(f, "/registry/tenancy.holdfast.dev/workspaces/bad", "no object");
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"good\"}}"),
                         0);
        before = watch(f, NULL);
        client_watch_await(before, 1);
        audit(f);
        assert_false(before->ended);
        /* This difference is real. The list that follows it finds the invalid value too. */
        pthread_mutex_lock(&f->cacher->mu);
        struct hfd_object *removed = NULL;
        assert_int_equal(hfd_object_tree_remove(&f->cacher->trees[hfd_resource_index(
                                                        hfd_resource_find(api_workspaces.group,
                                                                          api_workspaces.version,
                                                                          api_workspaces.plural))],
                                                "good", &removed),
                         0);
        hfd_object_unref(removed);
        pthread_mutex_unlock(&f->cacher->mu);
        audit(f);
        assert_int_equal(client_watch_await_end(before), HF_E_GONE);
        after = watch(f, NULL);
        client_watch_await(after, 1);
        audit(f);
        write_raw(f, "/registry/tenancy.holdfast.dev/workspaces/bad", NULL);
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"next\"}}"),
                         0);
        client_watch_await(after, 2);
        audit(f);
        assert_false(after->ended);
        hfd_cacher_end_watches(f->cacher);
        (void)client_watch_await_end(after);
        client_watch_free(before);
        client_watch_free(after);
}

/*
 * An object that is overwritten with an invalid value is deleted, until the value is valid again.
 */
static void test_an_object_overwritten_with_an_invalid_value_is_deleted(void **state) {
        struct api_fixture *f = *state;
        struct client_watch *seen;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"a\"}}"),
                         0);
        seen = watch(f, NULL);
        client_watch_await(seen, 1);
        write_raw(f, "/registry/tenancy.holdfast.dev/workspaces/a", "no object");
        client_watch_await(seen, 2);
        assert_int_equal(seen->events[seen->n - 1].type, HF_EVENT_DELETED);
        audit(f);
        write_raw(f, "/registry/tenancy.holdfast.dev/workspaces/a",
                  "{\"metadata\":{\"name\":\"a\"}}");
        client_watch_await(seen, 3);
        assert_int_equal(seen->events[seen->n - 1].type, HF_EVENT_ADDED);
        assert_int_equal(hfd_object_tree_size(&f->cacher->unreadable), 0);
        audit(f);
        assert_false(seen->ended);
        hfd_cacher_end_watches(f->cacher);
        (void)client_watch_await_end(seen);
        client_watch_free(seen);
}

/*
 * Another program may store an object under a key that ends with a slash: its name is empty. It is
 * served with the collection, and is deleted with it.
 */
static void test_an_object_without_a_name_is_deleted_with_its_collection(void **state) {
        struct api_fixture *f = *state;
        struct store_reply reply;

        write_raw(f, "/registry/configmaps/default/", "{\"metadata\":{\"namespace\":\"default\"}}");
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE_COLLECTION, api_configmaps,
                                             "default", NULL, NULL, NULL),
                         0);
        assert_int_equal(store_client_get(f->store, "/registry/configmaps/default/", &reply), 0);
        assert_int_equal(reply.n_kvs, 0);
        store_reply_deinit(&reply);
}

/* From now on, lists of earlier revisions come from the store. */
static void forget_the_past(struct api_fixture *f) {
        pthread_mutex_lock(&f->cacher->mu);
        f->cacher->histories.max_bytes = 0;
        pthread_mutex_unlock(&f->cacher->mu);
}

/* A page of the store with one invalid value is one object short, but need not be the last page. */
static void test_a_page_with_an_invalid_value_is_not_the_last(void **state) {
        struct api_fixture *f = *state;
        char query[160];
        int n_pages = 0;
        bool seen_a = false, seen_c = false;

        forget_the_past(f);
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"c\"}}"),
                         0);
        write_raw(f, "/registry/tenancy.holdfast.dev/workspaces/b", "no object");
        write_raw(f, "/registry/tenancy.holdfast.dev/workspaces/b1", "no object");
        write_raw(f, "/registry/tenancy.holdfast.dev/workspaces/b2", "no object");
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"a\"}}"),
                         0);
        (void)snprintf(query, sizeof query, "resourceVersionMatch=Exact&limit=1&resourceVersion=%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"later\"}}"),
                         0);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_workspaces, NULL, "later", NULL,
                                             NULL),
                         0); /* the cache has passed that revision */
        do {                 /* some pages have a token but no object */
                assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_workspaces, NULL, NULL,
                                                     query, NULL),
                                 0);
                (void)snprintf(query, sizeof query, "limit=1&continue=%s",
                               api_fixture_text_at(f, "metadata.continue"));
                seen_a |= strstr(f->last.body, "\"name\":\"a\"") != NULL;
                seen_c |= strstr(f->last.body, "\"name\":\"c\"") != NULL;
                assert_null(strstr(f->last.body, "later"));
        } while (*api_fixture_text_at(f, "metadata.continue") && ++n_pages < 10);
        assert_true(seen_a && seen_c);
        assert_string_equal(api_fixture_text_at(f, "metadata.continue"), "");
}

/* Reads of the store and of the cache agree about a value that is not an object. */
static void test_an_invalid_value_is_not_found(void **state) {
        struct api_fixture *f = *state;

        write_raw(f, "/registry/tenancy.holdfast.dev/workspaces/bad", "no object");
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_workspaces, NULL, "bad", NULL,
                                             NULL),
                         HF_E_NOT_FOUND);
        pthread_mutex_lock(&f->cacher->mu); /* reads go to the store */
        f->cacher->reads->direct_until = HF_NSEC_NEVER;
        pthread_mutex_unlock(&f->cacher->mu);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_workspaces, NULL, "bad", NULL,
                                             NULL),
                         HF_E_NOT_FOUND);
}

/* Writes over a value that is not an object name its key, and change nothing. */
static void test_writes_over_an_invalid_value_name_it(void **state) {
        static const char *const values[] =
                {"no object", "{\"kind\":\"Workspace\",\"apiVersion\":\"tenancy.holdfast.dev/"
                              "v1alpha1\",\"metadata\":{\"name\":"};
        static const char why[] = "Internal error occurred: the value stored at /registry/tenancy."
                                  "holdfast.dev/workspaces/bad is not a valid object";
        static const char body[] = "{\"metadata\":{\"name\":\"bad\"}}";
        struct api_fixture *f = *state;
        struct store_reply reply;

        for (size_t i = 0; i < 2; i++) {
                write_raw(f, "/registry/tenancy.holdfast.dev/workspaces/bad", values[i]);
                if (i ==
                    0) { /* the list shows the second one by its metadata alone, so it exists */
                        (void)api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL,
                                                  NULL, body);
                        api_fixture_expect_failure(f, 500, "InternalError", why);
                }
                (void)api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "bad", NULL,
                                          body);
                api_fixture_expect_failure(f, 500, "InternalError", why);
                (void)api_fixture_patch(f, api_workspaces, NULL, "bad", HFD_SUB_NONE,
                                        HFD_PATCH_MERGE, NULL, "{\"spec\":{}}");
                api_fixture_expect_failure(f, 500, "InternalError", why);
                (void)api_fixture_delete(f, api_workspaces, NULL, "bad", NULL);
                api_fixture_expect_failure(f, 500, "InternalError", why);
                assert_int_equal(store_client_get(f->store,
                                                  "/registry/tenancy.holdfast.dev/workspaces/bad",
                                                  &reply),
                                 0);
                assert_int_equal(reply.n_kvs, 1);
                store_reply_deinit(&reply);
        }
        write_raw(f, "/registry/namespaces/odd", "no object");
        (void)api_fixture_request(f, HF_VERB_CREATE, api_configmaps, "odd", NULL, NULL,
                                  "{\"metadata\":{\"name\":\"a\"}}");
        api_fixture_expect_failure(f, 500, "InternalError",
                                   "Internal error occurred: the value stored at "
                                   "/registry/namespaces/odd is not a valid object");
}

/* ---- memory ---- */

struct hfd_object *__real_hfd_object_new(const struct hfd_resource *resource, const char *path,
                                         uint64_t revision, const struct hf__buf *stored);
struct hfd_object *__wrap_hfd_object_new(const struct hfd_resource *resource, const char *path,
                                         uint64_t revision, const struct hf__buf *stored);
static atomic_bool out_of_memory;

struct hfd_object *__wrap_hfd_object_new(const struct hfd_resource *resource, const char *path,
                                         uint64_t revision, const struct hf__buf *stored) {
        return atomic_load(&out_of_memory) && strcmp(path, "b") == 0
                       ? NULL
                       : __real_hfd_object_new(resource, path, revision, stored);
}

/* A list that has no memory for one of its objects fails: without it, the list would be wrong. */
static void test_a_list_without_memory_for_an_object_fails(void **state) {
        struct api_fixture *f = *state;

        write_raw(f, "/registry/tenancy.holdfast.dev/workspaces/a",
                  "{\"metadata\":{\"name\":\"a\"}}");
        write_raw(f, "/registry/tenancy.holdfast.dev/workspaces/b",
                  "{\"metadata\":{\"name\":\"b\"}}");
        assert_int_equal(api_fixture_n_selected(f, NULL), 2);
        pthread_mutex_lock(&f->cacher->mu);
        f->cacher->reads->direct_until = HF_NSEC_NEVER;
        pthread_mutex_unlock(&f->cacher->mu);
        assert_int_equal(api_fixture_n_selected(f, NULL), 2);
        atomic_store(&out_of_memory, true);
        assert_int_not_equal(api_fixture_request(f, HF_VERB_LIST, api_workspaces, NULL, NULL, NULL,
                                                 NULL),
                             0);
        assert_non_null(strstr(f->last.body, "\"code\":500"));
        assert_int_not_equal(api_fixture_request(f, HF_VERB_GET, api_workspaces, NULL, "b", NULL,
                                                 NULL),
                             HF_E_NOT_FOUND);
        assert_non_null(strstr(f->last.body, "\"code\":500"));
        atomic_store(&out_of_memory, false);
}

/* A large reply of the store becomes a page in several steps, once without and once with a limit.
 */
static void test_a_large_list_from_the_store(void **state) {
        struct api_fixture *f = *state;
        char revision[32], query[160];
        size_t n = 0;

        forget_the_past(f);
        api_fixture_make_workspaces(f, 600);
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"later\"}}"),
                         0);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_workspaces, NULL, "later", NULL,
                                             NULL),
                         0); /* the cache has passed that revision */
        (void)snprintf(query, sizeof query, "resourceVersionMatch=Exact&resourceVersion=%s",
                       revision);
        assert_int_equal(api_fixture_n_selected(f, query), 600);
        assert_null(strstr(f->last.body, "later"));
        assert_string_equal(api_fixture_text_at(f, "metadata.continue"), "");
        (void)snprintf(query, sizeof query,
                       "resourceVersionMatch=Exact&labelSelector=parity%%3Dodd&resourceVersion=%s",
                       revision);
        assert_int_equal(api_fixture_n_selected(f, query), 300);
        (void)snprintf(query, sizeof query,
                       "resourceVersionMatch=Exact&limit=270&resourceVersion=%s", revision);
        for (int page = 0; page < 3; page++) {
                n += api_fixture_n_selected(f, query);
                assert_int_equal(n, page < 2 ? 270u * (unsigned)(page + 1) : 600u);
                (void)snprintf(query, sizeof query, "limit=270&continue=%s",
                               api_fixture_text_at(f, "metadata.continue"));
        }
        assert_string_equal(api_fixture_text_at(f, "metadata.continue"), "");
}

/* Until the cache is filled, reads come from the store, which may be behind, too. */
static void test_a_store_behind_the_named_revision_is_not_read(void **state) {
        struct api_fixture *f = *state;
        static const char *const names[] = {"w", NULL};
        char message[128];

        api_fixture_make(f, api_workspaces, NULL, "{\"metadata\":{\"name\":\"w\"}}");
        (void)snprintf(message, sizeof message,
                       "Timeout: Too large resource version: 1000000, current: %s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        pthread_mutex_lock(&f->cacher->mu);
        f->cacher->synced = false;
        pthread_mutex_unlock(&f->cacher->mu);
        for (size_t i = 0; i < 2; i++) {
                enum hf_verb verb = names[i] ? HF_VERB_GET : HF_VERB_LIST;
                assert_int_equal(api_fixture_request(f, verb, api_workspaces, NULL, names[i],
                                                     "resourceVersion=1000000", NULL),
                                 HF_E_TIMEOUT);
                api_fixture_expect_failure(f, 504, "Timeout", message);
                assert_int_equal(api_fixture_request(f, verb, api_workspaces, NULL, names[i],
                                                     "resourceVersion=1", NULL),
                                 0);
        }
}

/* The key of the first list has an escape, so it is found only when the object is parsed. */
static void test_an_object_with_two_lists_of_managers_is_updated(void **state) {
        struct api_fixture *f = *state;

        write_raw(f, "/registry/tenancy.holdfast.dev/workspaces/twice",
                  "{\"kind\":\"Workspace\",\"apiVersion\":\"tenancy.holdfast.dev/v1alpha1\","
                  "\"metadata\":{\"name\":\"twice\",\"uid\":\"u\","
                  "\"managed\\u0046ields\":{\"a\":\"b\"},\"managedFields\":[{}]}}");
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "twice", NULL,
                                             "{\"metadata\":{\"name\":\"twice\","
                                             "\"labels\":{\"a\":\"b\"}}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "metadata.labels.a"), "b");
        assert_int_equal(api_fixture_count_at(f, "metadata.managedFields"), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_a_watch_from_a_lost_history_is_gone),
                API_TEST(test_a_watch_may_begin_at_the_clients_own_write),
                API_TEST(test_reads_of_a_lost_history_do_not_disable_the_cache),
                API_TEST(test_the_audit_expects_values_that_are_not_objects),
                API_TEST(test_an_object_overwritten_with_an_invalid_value_is_deleted),
                API_TEST(test_an_object_without_a_name_is_deleted_with_its_collection),
                API_TEST(test_a_page_with_an_invalid_value_is_not_the_last),
                API_TEST(test_an_invalid_value_is_not_found),
                API_TEST(test_writes_over_an_invalid_value_name_it),
                API_TEST(test_an_object_with_two_lists_of_managers_is_updated),
                API_TEST(test_a_list_without_memory_for_an_object_fails),
                API_TEST(test_a_large_list_from_the_store),
                API_TEST(test_a_store_behind_the_named_revision_is_not_read),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
