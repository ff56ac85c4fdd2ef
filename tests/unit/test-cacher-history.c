/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recent past of the cache: its limits, lists of earlier revisions, and whole revisions. The
 * API runs over the memory store; the lists that the store is asked for are counted.
 */
#undef NDEBUG
#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
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
#include "counted_object_tree.h"
#include "server/cacher/state/cacher_state.h"
#include "server/resources/rows/resource_table.h"
#include "store_client.h"

/* ---- histories without a cacher ---- */

static struct hfd_change make_change(const char *kind, uint64_t revision, uint64_t before) {
        const struct hfd_resource *resource = hfd_resource_find("", "v1", kind);
        struct hfd_change change = {.type = before ? HF_EVENT_MODIFIED : HF_EVENT_ADDED,
                                    .object = hfd_object_unreadable(resource, "ns/a", revision)};

        assert_non_null(change.object);
        if (before)
                change.before = hfd_object_unreadable(resource, "ns/a", before);
        return change;
}

static size_t index_of(const char *kind) {
        return hfd_resource_index(hfd_resource_find("", "v1", kind));
}

static void trim(struct hfd_event_histories *histories, hf_nsec now) {
        struct hfd_history_garbage garbage = {.n = 0};
        bool done = false;

        while (!done) {
                done = hfd_event_histories_trim(histories, now, &garbage);
                hfd_history_garbage_free(&garbage);
        }
}

static void test_old_changes_are_dropped(void **state) {
        struct hfd_event_histories histories;
        struct hfd_object_tree tree = {0};
        struct hfd_history_garbage garbage = {.n = 0};
        struct hfd_event_history *history;

        hfd_event_histories_init(&histories);
        history = &histories.of[index_of("configmaps")];
        assert_true(histories.due == HF_NSEC_NEVER);
        for (uint64_t i = 1; i <= 1000; i++) /* one each second */
                hfd_event_history_add(&histories, make_change("configmaps", i, i - 1), &tree,
                                      (hf_nsec)i * HF_NSEC_PER_SEC, &garbage);
        assert_int_equal(history->n, 1000);
        trim(&histories, 1000 * HF_NSEC_PER_SEC);
        assert_int_equal(history->n, 75);
        assert_int_equal(history->floor, 925);
        assert_int_equal(hfd_event_history_at(history, 0)->object->revision, 926);
        assert_int_equal(hfd_event_history_after(history, 930), 5);
        assert_int_equal(hfd_event_history_after(history, 925), 0);
        assert_int_equal(hfd_event_history_after(history, 5000), 75);
        assert_true(history->space <= 256);
        /* An idle resource holds nothing, and the timer is not needed for it. */
        trim(&histories, histories.due);
        trim(&histories, 1100 * HF_NSEC_PER_SEC);
        assert_int_equal(history->n, 0);
        assert_null(history->ring);
        assert_int_equal(history->floor, 1000);
        assert_int_equal(histories.n_bytes, 0);
        assert_true(histories.due == HF_NSEC_NEVER);
        hfd_event_histories_done(&histories);
}

static void test_the_largest_history_loses_first(void **state) {
        struct hfd_event_histories histories;
        struct hfd_object_tree tree = {0};
        struct hfd_history_garbage garbage = {.n = 0};

        hfd_event_histories_init(&histories);
        histories.max_bytes = 20000;
        hfd_event_history_add(&histories, make_change("secrets", 1, 0), &tree, 1, &garbage);
        for (uint64_t i = 2; i <= 1000; i++) {
                hfd_event_history_add(&histories, make_change("configmaps", i, i - 1), &tree, 1,
                                      &garbage);
                trim(&histories, 1);
                assert_true(histories.n_bytes <= histories.max_bytes);
        }
        assert_int_equal(histories.of[index_of("secrets")].n, 1);
        assert_in_range(histories.of[index_of("configmaps")].n, 20, 500);
        hfd_event_histories_done(&histories);
}

/* ---- lists of the past ---- */

static atomic_int n_store_lists;

int __real_hfd_store_request_list(struct hfd_cacher *cacher, const char *prefix,
                                  const char *start_key, uint64_t revision, size_t limit,
                                  hf_nsec deadline, hfd_store_fn done, void *ctx);
int __wrap_hfd_store_request_list(struct hfd_cacher *cacher, const char *prefix,
                                  const char *start_key, uint64_t revision, size_t limit,
                                  hf_nsec deadline, hfd_store_fn done, void *ctx);

int __wrap_hfd_store_request_list(struct hfd_cacher *cacher, const char *prefix,
                                  const char *start_key, uint64_t revision, size_t limit,
                                  hf_nsec deadline, hfd_store_fn done, void *ctx) {
        atomic_fetch_add(&n_store_lists, 1);
        return __real_hfd_store_request_list(cacher, prefix, start_key, revision, limit, deadline,
                                             done, ctx);
}

static void list(struct api_fixture *f, const char *query) {
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_workspaces, NULL, NULL, query,
                                             NULL),
                         0);
}

static void change_everything(struct api_fixture *f) {
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"w055\"}}"),
                         0);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "w06", NULL,
                                             "{\"metadata\":{\"name\":\"w06\",\"labels\":"
                                             "{\"changed\":\"1\"}}}"),
                         0);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "w06", NULL,
                                             "{\"metadata\":{\"name\":\"w06\",\"labels\":"
                                             "{\"changed\":\"2\"}}}"),
                         0);
        assert_true(store_client_delete(f->store, "/registry/tenancy.holdfast.dev/workspaces/w07") >
                    0);
        assert_int_equal(api_fixture_n_selected(f, NULL), 10); /* the cache has seen all writes */
}

static void check_second_page(struct api_fixture *f, const char *revision) {
        assert_string_equal(api_fixture_text_at(f, "metadata.resourceVersion"), revision);
        assert_null(strstr(f->last.body, "w055"));
        assert_null(strstr(f->last.body, "changed"));
        assert_non_null(strstr(f->last.body, "\"w05\""));
        assert_non_null(strstr(f->last.body, "\"w06\""));
        assert_non_null(strstr(f->last.body, "\"w07\""));
}

static void test_pages_show_the_state_of_the_first_one(void **state) {
        struct api_fixture *f = *state;
        char query[700], exact[100], revision[32];

        atomic_store(&n_store_lists, 0);
        api_fixture_make_workspaces(f, 10);
        list(f, "limit=5");
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        (void)snprintf(query, sizeof query, "limit=3&continue=%s",
                       api_fixture_text_at(f, "metadata.continue"));
        (void)snprintf(exact, sizeof exact, "resourceVersionMatch=Exact&resourceVersion=%s",
                       revision);
        change_everything(f);
        list(f, query);
        check_second_page(f, revision);
        assert_non_null(strstr(f->last.body, "\"remainingItemCount\":2"));
        list(f, exact);
        check_second_page(f, revision);
        assert_int_equal(api_fixture_count_at(f, "items"), 10);
        assert_int_equal(atomic_load(&n_store_lists), 0);
}

/* Another instance has served the first page, so this one has kept no state of its revision. */
static void test_the_past_is_restored_from_the_history(void **state) {
        struct api_fixture *f = *state;
        char exact[100], revision[32];

        atomic_store(&n_store_lists, 0);
        api_fixture_make_workspaces(f, 10);
        list(f, NULL);
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        (void)snprintf(exact, sizeof exact, "resourceVersionMatch=Exact&limit=9&resourceVersion=%s",
                       revision);
        change_everything(f);
        for (int i = 0; i < 2; i++) { /* the second time the state is kept */
                list(f, exact);
                check_second_page(f, revision);
                assert_int_equal(api_fixture_count_at(f, "items"), 9);
        }
        assert_int_equal(atomic_load(&n_store_lists), 0);
}

static void forget_the_past(struct api_fixture *f) {
        pthread_mutex_lock(&f->cacher->mu);
        f->cacher->histories.max_bytes = 0;
        pthread_mutex_unlock(&f->cacher->mu);
}

static void test_beyond_the_history_pages_come_from_the_store(void **state) {
        struct api_fixture *f = *state;
        char query[700], revision[32];

        atomic_store(&n_store_lists, 0);
        api_fixture_make_workspaces(f, 10);
        list(f, "limit=5");
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        (void)snprintf(query, sizeof query, "limit=3&continue=%s",
                       api_fixture_text_at(f, "metadata.continue"));
        forget_the_past(f);
        change_everything(f);
        list(f, query);
        check_second_page(f, revision);
        assert_int_equal(atomic_load(&n_store_lists), 1);
        assert_int_equal(store_client_compact(f->store, store_client_revision(f->store)), 0);
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_workspaces, NULL, NULL, query,
                                             NULL),
                         HF_E_GONE);
        (void)snprintf(query, sizeof query, "limit=3&continue=%s",
                       api_fixture_text_at(f, "metadata.continue"));
        list(f, query);
        assert_non_null(strstr(f->last.body, "\"w055\""));
}

/* ---- the work of a page ---- */

static void fill_tree(struct api_fixture *f, unsigned n) {
        const struct hfd_resource *resource =
                hfd_resource_find("tenancy.holdfast.dev", "v1alpha1", "workspaces");
        struct hf__buf *bytes = hf__buf_copy("{}", 2);

        pthread_mutex_lock(&f->cacher->mu);
        for (unsigned i = 0; i < n; i++) {
                struct hfd_object *old;
                char path[32];
                (void)snprintf(path, sizeof path, "w%08u", i);
                assert_int_equal(hfd_object_tree_put(&f->cacher
                                                              ->trees[hfd_resource_index(resource)],
                                                     hfd_object_new(resource, path, 1, bytes),
                                                     &old),
                                 0);
                hfd_object_unref(old);
        }
        pthread_mutex_unlock(&f->cacher->mu);
        hf__buf_unref(bytes);
}

/* A continued list never waits, so this thread makes all comparisons of the page. */
static void test_a_page_costs_the_same_at_each_size(void **state) {
        struct api_fixture *f = *state;
        char query[700];

        for (unsigned n = 1000; n <= 64000; n *= 8) {
                fill_tree(f, n);
                list(f, "limit=500");
                assert_int_equal(api_fixture_count_at(f, "items"), 500);
                (void)snprintf(query, sizeof query, "limit=100&continue=%s",
                               api_fixture_text_at(f, "metadata.continue"));
                uint64_t before = counted_object_tree_comparisons();
                list(f, query);
                assert_true(counted_object_tree_comparisons() - before < 300);
                assert_int_equal(api_fixture_count_at(f, "items"), 100);
                (void)snprintf(query, sizeof query, "\"remainingItemCount\":%u}", n - 600);
                assert_non_null(strstr(f->last.body, query));
        }
}

/* ---- whole revisions ---- */

static void txn_both(struct api_fixture *f, int i) {
        char text[100];
        (void)snprintf(text, sizeof text,
                       "{\"metadata\":{\"name\":\"x\",\"labels\":{\"n\":\"%d\"}}}", i);
        struct hf__buf *value = hf__buf_copy(text, strlen(text));
        const struct hfd_op ops[] = {
                {HFD_PUT, "/registry/tenancy.holdfast.dev/workspaces/a", value},
                {HFD_PUT, "/registry/tenancy.holdfast.dev/workspaces/b", value},
                {HFD_PUT, "/registry/tenancy.holdfast.dev/workspaces/c", value},
        };
        const struct hfd_txn txn = {.ops = ops, .n_ops = 3};
        struct store_reply reply;

        assert_int_equal(store_client_txn(f->store, &txn, &reply), 0);
        store_reply_deinit(&reply);
        hf__buf_unref(value);
}

/*
 * The lock must not be released between two changes of one revision: a thread that takes it
 * there sees one without the other. So the thread that applies the changes must not lock again
 * between them.
 */
static _Thread_local uint64_t n_locks, n_locks_at_change, last_revision;
static atomic_uint n_together, n_torn;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
bool __real_hfd_event_history_add(struct hfd_event_histories *histories, struct hfd_change change,
                                  const struct hfd_object_tree *tree, hf_nsec now,
                                  struct hfd_history_garbage *garbage);
bool __wrap_hfd_event_history_add(struct hfd_event_histories *histories, struct hfd_change change,
                                  const struct hfd_object_tree *tree, hf_nsec now,
                                  struct hfd_history_garbage *garbage);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
        n_locks++;
        return __real_pthread_mutex_lock(mutex);
}

bool __wrap_hfd_event_history_add(struct hfd_event_histories *histories, struct hfd_change change,
                                  const struct hfd_object_tree *tree, hf_nsec now,
                                  struct hfd_history_garbage *garbage) {
        if (change.object->revision == last_revision) {
                atomic_fetch_add(&n_together, 1);
                atomic_fetch_add(&n_torn, n_locks != n_locks_at_change);
        }
        last_revision = change.object->revision;
        n_locks_at_change = n_locks;
        return __real_hfd_event_history_add(histories, change, tree, now, garbage);
}

/* Another program writes three objects in each transaction. No reader may see one without
 * others. */
static void test_readers_see_whole_revisions(void **state) {
        struct api_fixture *f = *state;

        atomic_store(&n_together, 0);
        atomic_store(&n_torn, 0);
        for (int i = 0; i < 100; i++)
                txn_both(f, i);
        assert_int_equal(api_fixture_n_selected(f, NULL), 3);
        assert_int_equal(atomic_load(&n_together), 200);
        assert_int_equal(atomic_load(&n_torn), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_old_changes_are_dropped),
                cmocka_unit_test(test_the_largest_history_loses_first),
                API_TEST(test_pages_show_the_state_of_the_first_one),
                API_TEST(test_the_past_is_restored_from_the_history),
                API_TEST(test_beyond_the_history_pages_come_from_the_store),
                API_TEST(test_a_page_costs_the_same_at_each_size),
                API_TEST(test_readers_see_whole_revisions),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
