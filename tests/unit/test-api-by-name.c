/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists, watches and deletions of a collection whose selector names one object, or one namespace:
 * they look at that object, or at that namespace, only, whatever else the collection contains. Work
 * is counted in objects, never in time.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "api_core_request.h"
#include "api_fixture.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/watch/snapshot.h"
#include "server/cacher/watch/watcher.h"
#include "server/registry/list/continue_token.h"
#include "server/registry/list/list_page.h"
#include "server/registry/list/rendering.h"
#include "server/resources/rows/resource_table.h"
#include "server/storage/memory/store.h"
#include "store_client.h"

/* ---- counting ---- */

/* The number of objects that iterators have returned, in all threads, and the number of keys that
 * the store has listed. */
static atomic_uint n_visited, n_stored;

struct hfd_object *__real_hfd_object_iter_next(struct hfd_object_iter *iter);
struct hfd_object *__wrap_hfd_object_iter_next(struct hfd_object_iter *iter);
void __real_hfd_list_page_from_store(struct hfd_list_page *page, const struct hfd_read *read,
                                     const struct hfd_store_reply *reply);
void __wrap_hfd_list_page_from_store(struct hfd_list_page *page, const struct hfd_read *read,
                                     const struct hfd_store_reply *reply);

struct hfd_object *__wrap_hfd_object_iter_next(struct hfd_object_iter *iter) {
        struct hfd_object *object = __real_hfd_object_iter_next(iter);

        if (object)
                atomic_fetch_add(&n_visited, 1);
        return object;
}

void __wrap_hfd_list_page_from_store(struct hfd_list_page *page, const struct hfd_read *read,
                                     const struct hfd_store_reply *reply) {
        atomic_fetch_add(&n_stored, (unsigned)reply->n_kvs);
        __real_hfd_list_page_from_store(page, read, reply);
}

static const struct hfd_resource *configmaps(void) {
        return hfd_resource_find(api_configmaps.group, api_configmaps.version,
                                 api_configmaps.plural);
}

/* Puts default/c, default/c0000, default/c0001, ... into the cacher's tree, each of them a prefix
 * or a neighbor of others, and lone/c. */
static void fill_tree(struct api_fixture *f, unsigned n) {
        struct hfd_object_tree *tree = &f->cacher->trees[hfd_resource_index(configmaps())];
        struct hf__buf *bytes = hf__buf_copy("{}", 2);

        pthread_mutex_lock(&f->cacher->mu);
        for (unsigned i = 0; i <= n; i++) {
                struct hfd_object *old;
                char path[32] = "default/c";
                if (i == n)
                        (void)snprintf(path, sizeof path, "lone/c");
                else if (i > 0)
                        (void)snprintf(path, sizeof path, "default/c%04u", i);
                assert_int_equal(hfd_object_tree_put(tree,
                                                     hfd_object_new(configmaps(), path, 1, bytes),
                                                     &old),
                                 0);
                hfd_object_unref(old);
        }
        pthread_mutex_unlock(&f->cacher->mu);
        hf__buf_unref(bytes);
}

/* ---- the kinds of work; each function returns the number of visited objects ---- */

static unsigned list_work(struct api_fixture *f, const char *ns, const char *query) {
        unsigned before = atomic_load(&n_visited);

        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_configmaps, ns, NULL, query,
                                             NULL),
                         0);
        assert_int_equal(api_fixture_count_at(f, "items"), 1);
        assert_string_equal(api_fixture_text_at(f, "metadata.continue"), "");
        return atomic_load(&n_visited) - before;
}

static unsigned sweep_work(struct api_fixture *f) {
        unsigned before = atomic_load(&n_visited);

        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE_COLLECTION, api_configmaps,
                                             "default", NULL,
                                             "resourceVersion=0&fieldSelector=metadata.name%3Dc",
                                             NULL),
                         0);
        return atomic_load(&n_visited) - before;
}

static void parse_fields(const char *text, struct hfd_selector *ret_fields) {
        char reason[256];

        assert_int_equal(hfd_selector_parse(text, true, configmaps(), ret_fields, reason,
                                            sizeof reason),
                         0);
}

/* Renders the list for an HTTP response, or with frames, the initial events of a watch. */
static unsigned rendering_work(struct api_fixture *f, const char *ns, const char *text,
                               bool frames) {
        struct hfd_request request = {.resource = configmaps()};
        struct hfd_selector fields;
        struct hfd_rendering_spec spec = {.request = &request, .fields = &fields, .frames = frames};
        struct hfd_rendering_cursor cursor = {0};
        struct hfd_rendering *rendering;
        struct hfd_snapshot snapshot;
        struct hf__buf *chunk;
        unsigned before = atomic_load(&n_visited), n = 0;

        (void)snprintf(request.ns, sizeof request.ns, "%s", ns);
        parse_fields(text, &fields);
        if (frames)
                spec.name = hfd_selector_name(&fields);
        assert_true(hfd_snapshot_take(f->cacher, configmaps(), 0, &snapshot));
        assert_int_equal(hfd_rendering_get(f->registry->renderings, &spec, &snapshot, &rendering),
                         0);
        while (!cursor.ended) {
                assert_int_equal(hfd_rendering_next(rendering, &cursor, &chunk), 0);
                n += chunk != NULL;
                hf__buf_unref(chunk);
        }
        assert_int_equal(n, 1);
        hfd_rendering_unref(rendering);
        hfd_selector_done(&fields);
        return atomic_load(&n_visited) - before;
}

static bool on_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        unsigned *n_events = ctx;

        for (size_t i = 0; i < n; i++)
                assert_string_equal(hfd_object_name(items[i].object), "c");
        *n_events += (unsigned)n;
        return true;
}

static void on_end(void *ctx, int error, const struct hfd_response *response) {}

/* A watch in the process, whose watcher delivers the objects that exist. */
static unsigned watch_work(struct api_fixture *f, const char *ns, const char *text) {
        static const struct hfd_watch_sink sink = {.events = on_events, .end = on_end};
        struct hfd_selector labels = {0}, fields;
        struct hfd_response response = {0};
        const struct hfd_watcher_spec spec = {.resource = configmaps(),
                                              .ns = ns,
                                              .name = "",
                                              .labels = &labels,
                                              .fields = &fields};
        struct hfd_watcher *watcher;
        unsigned before = atomic_load(&n_visited), n_events = 0;

        parse_fields(text, &fields);
        assert_true(hfd_watcher_new(f->cacher, &spec, &sink, &n_events, &response, &watcher));
        hfd_watcher_start(watcher); /* delivers on this thread */
        assert_int_equal(n_events, 1);
        hfd_watcher_cancel(watcher);
        hfd_watcher_unref(watcher);
        return atomic_load(&n_visited) - before;
}

/* A list visits its object twice at most: when it looks at the size, and when it lists it. */
static void test_a_name_costs_the_same_among_any_number_of_objects(void **state) {
        struct api_fixture *f = *state;

        for (unsigned n = 20; n <= 5120; n *= 4) {
                fill_tree(f, n);
                assert_true(list_work(f, "default",
                                      "resourceVersion=0&fieldSelector=metadata.name%3Dc") <= 2);
                assert_true(list_work(f, "default", "limit=1&fieldSelector=metadata.name%3Dc") <=
                            2);
                assert_true(list_work(f, "default",
                                      "resourceVersion=0&fieldSelector=metadata.namespace!%3Da,"
                                      "metadata.name!%3Dc0001,metadata.name%3Dc") <= 2);
                assert_true(rendering_work(f, "default", "metadata.name=c", false) <= 1);
                assert_true(rendering_work(f, "default", "metadata.name=c", true) <= 1);
                assert_true(watch_work(f, "default", "metadata.name=c") <= 1);
                assert_true(sweep_work(f) <= 2);
        }
}

/* In a list or a watch of all namespaces. */
static void test_a_namespace_costs_the_same_among_any_number_of_objects(void **state) {
        struct api_fixture *f = *state;

        for (unsigned n = 20; n <= 5120; n *= 4) {
                fill_tree(f, n);
                assert_true(
                        list_work(f, NULL,
                                  "resourceVersion=0&fieldSelector=metadata.namespace%3Dlone") <=
                        2);
                assert_true(list_work(f, NULL,
                                      "limit=9&fieldSelector=metadata.name!%3Da,"
                                      "metadata.namespace%3Dlone") <= 2);
                assert_true(
                        list_work(f, NULL,
                                  "resourceVersion=0&fieldSelector=metadata.namespace%3Ddefault,"
                                  "metadata.name%3Dc") <= 2);
                assert_true(rendering_work(f, "", "metadata.namespace=lone", false) <= 1);
                assert_true(rendering_work(f, "", "metadata.namespace=lone", true) <= 1);
                assert_true(watch_work(f, "", "metadata.namespace=lone") <= 1);
        }
}

/* ---- what is selected ---- */

#define NAME "\"name\":\""

static void expect_names(struct api_fixture *f, const char *ns, const char *query,
                         const char *expected) {
        char names[200] = "";
        size_t n = 0;

        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_configmaps, ns, NULL, query,
                                             NULL),
                         0);
        for (const char *at = f->last.body; (at = strstr(at, NAME)) != NULL;) {
                at += strlen(NAME);
                n += (size_t)snprintf(names + n, sizeof names - n, "%.*s ", (int)strcspn(at, "\""),
                                      at);
        }
        assert_string_equal(names, expected);
}

static void make_configmaps(struct api_fixture *f) {
        static const char *const names[] = {"a", "a.b", "ab", "b"};
        char body[80];

        api_fixture_make(f, api_namespaces, NULL, "{\"metadata\":{\"name\":\"defaults\"}}");
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"}}", names[i]);
                api_fixture_make(f, api_configmaps, "default", body);
                api_fixture_make(f, api_configmaps, "defaults", body);
        }
}

static void test_a_name_selects_no_name_that_begins_with_it(void **state) {
        struct api_fixture *f = *state;
        char query[600], longest[HF_NAME_MAX + 2];

        make_configmaps(f);
        expect_names(f, "default", "fieldSelector=metadata.name%3Da", "a ");
        expect_names(f, "default", "fieldSelector=metadata.name%3Dab", "ab ");
        expect_names(f, "default", "fieldSelector=metadata.name%3Dc", "");
        expect_names(f, "default", "fieldSelector=metadata.name%3D", "");
        expect_names(f, "default", "fieldSelector=metadata.name%3D..%2Fdefaults%2Fa", "");
        expect_names(f, "default", "fieldSelector=metadata.name!%3Da", "a.b ab b ");
        expect_names(f, "default", "fieldSelector=metadata.name%3Da,metadata.name!%3Db", "a ");
        expect_names(f, "default", "fieldSelector=metadata.name%3Da,metadata.name!%3Da", "");
        expect_names(f, "default", "fieldSelector=metadata.name%3Da,metadata.name%3Db", "");
        expect_names(f, "default", "fieldSelector=metadata.namespace%3Ddefaults,metadata.name%3Da",
                     "");
        expect_names(f, NULL, "fieldSelector=metadata.name%3Da", "a a ");
        expect_names(f, NULL, "fieldSelector=metadata.namespace%3Ddefaults,metadata.name%3Da",
                     "a ");
        /* Longer than any name. */
        memset(longest, 'a', sizeof longest);
        longest[HF_NAME_MAX + 1] = '\0';
        (void)snprintf(query, sizeof query, "fieldSelector=metadata.name%%3D%s", longest);
        expect_names(f, "default", query, "");
        expect_names(f, NULL, query, "");
}

static void test_a_namespace_selects_no_namespace_that_begins_with_it(void **state) {
        struct api_fixture *f = *state;
        char query[900], longest[HF_NAME_MAX + 2];

        make_configmaps(f);
        expect_names(f, NULL, "fieldSelector=metadata.namespace%3Ddefaults", "a a.b ab b ");
        expect_names(f, NULL, "fieldSelector=metadata.namespace%3Ddefault", "a a.b ab b ");
        expect_names(f, NULL, "fieldSelector=metadata.namespace!%3Ddefaults", "a a.b ab b ");
        expect_names(f, NULL, "fieldSelector=metadata.namespace%3Ddefaul", "");
        expect_names(f, NULL, "fieldSelector=metadata.namespace%3Ddefault%2Fa", "");
        expect_names(f, NULL, "fieldSelector=metadata.namespace%3D", "");
        expect_names(f, NULL,
                     "fieldSelector=metadata.namespace%3Ddefault,metadata.namespace%3Ddefaults",
                     "");
        expect_names(f, "default", "fieldSelector=metadata.namespace%3Ddefaults", "");
        /* Longer than any namespace. */
        memset(longest, 'a', sizeof longest);
        longest[HF_NAME_MAX + 1] = '\0';
        (void)snprintf(query, sizeof query, "fieldSelector=metadata.namespace%%3D%s", longest);
        expect_names(f, NULL, query, "");
        /* The token says where the list continues in the order of all namespaces. */
        expect_names(f, NULL, "limit=2&fieldSelector=metadata.namespace%3Ddefaults", "a a.b ");
        (void)snprintf(query, sizeof query,
                       "limit=2&continue=%s&fieldSelector=metadata.namespace%%3Ddefaults",
                       api_fixture_text_at(f, "metadata.continue"));
        expect_names(f, NULL, query, "ab b ");
        assert_string_equal(api_fixture_text_at(f, "metadata.continue"), "");
}

static void test_a_name_limits_and_continues(void **state) {
        struct api_fixture *f = *state;
        char query[900], token[600];

        make_configmaps(f);
        expect_names(f, "default", "limit=1&fieldSelector=metadata.name%3Da", "a ");
        assert_string_equal(api_fixture_text_at(f, "metadata.continue"), "");
        /* The token comes from another list. This list continues behind a.b too. */
        expect_names(f, "default", "limit=2", "a a.b ");
        (void)snprintf(token, sizeof token, "%s", api_fixture_text_at(f, "metadata.continue"));
        (void)snprintf(query, sizeof query, "limit=2&continue=%s&fieldSelector=metadata.name%%3Da",
                       token);
        expect_names(f, "default", query, "");
        (void)snprintf(query, sizeof query, "limit=1&continue=%s&fieldSelector=metadata.name%%3Dab",
                       token);
        expect_names(f, "default", query, "ab ");
        assert_string_equal(api_fixture_text_at(f, "metadata.continue"), "");
        /* In a list of all namespaces, objects of this name follow in other namespaces. */
        expect_names(f, NULL, "limit=1&fieldSelector=metadata.name%3Da", "a ");
        (void)snprintf(query, sizeof query, "limit=1&continue=%s&fieldSelector=metadata.name%%3Da",
                       api_fixture_text_at(f, "metadata.continue"));
        expect_names(f, NULL, query, "a ");
}

static void test_a_name_deletes_one_object(void **state) {
        struct api_fixture *f = *state;

        make_configmaps(f);
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE_COLLECTION, api_configmaps,
                                             "default", NULL, "fieldSelector=metadata.name%3Da",
                                             NULL),
                         0);
        expect_names(f, "default", NULL, "a.b ab b ");
        expect_names(f, "defaults", NULL, "a a.b ab b ");
}

/* ---- from the store ---- */

struct unfilled {
        struct hf_host host;
        struct hfd_store *store;
        struct hfd_cacher *cacher; /* never started, so each list reads the store */
        struct hfd_registry *registry;
};

static void set_up_unfilled(struct unfilled *u) {
        *u = (struct unfilled){.host = {.size = sizeof u->host}};
        assert_int_equal(hfd_memory_store_new(&u->host, &u->store), 0);
        const struct hfd_cacher_config config = {.store = u->store, .prefix = "/registry"};
        assert_int_equal(hfd_cacher_new(&u->host, &config, &u->cacher), 0);
        assert_int_equal(hfd_registry_new(&u->host, u->cacher, &u->registry), 0);
}

static void tear_down_unfilled(struct unfilled *u) {
        hfd_registry_free(u->registry);
        hfd_cacher_free(u->cacher);
        u->store->ops->free(u->store);
}

/* after: the path behind which the list continues; NULL = from the start. Returns the number of
 * keys that the store has sent. */
static unsigned list_stored(struct unfilled *u, const char *fields, uint64_t limit,
                            const char *after, const char *expected) {
        struct hf__strbuf token = {0};
        /* Without a name, all namespaces are listed. */
        const char *ns = strstr(fields, "metadata.name=") ? "default" : "";
        struct api_core_request request = {
                .request = {.verb = HFD_LIST, .resource = configmaps(), .options.limit = limit}};
        unsigned before = atomic_load(&n_stored);

        if (after) {
                hfd_continue_token_append(&token, store_client_revision(u->store), after);
                request.request.options.continue_token = token.data;
        }
        (void)snprintf(request.request.ns, sizeof request.request.ns, "%s", ns);
        parse_fields(fields, &request.request.options.fields);
        assert_int_equal(api_core_request_run(u->registry, &request), 0);
        assert_non_null(strstr(request.response.body, expected));
        assert_null(strstr(request.response.body, "\"continue\""));
        api_response_deinit(&request.response);
        return atomic_load(&n_stored) - before;
}

static void test_a_name_or_a_namespace_costs_the_store_its_keys(void **state) {
        struct unfilled u;
        char key[64], value[128];

        set_up_unfilled(&u);
        for (int i = 0; i < 200; i++) {
                (void)snprintf(key, sizeof key, "/registry/configmaps/default/c%.*d", i > 0 ? 4 : 0,
                               i);
                (void)snprintf(value, sizeof value, "{\"metadata\":{\"name\":\"%s\"}}",
                               strrchr(key, '/') + 1);
                assert_true(store_client_put(u.store, key, value) > 0);
        }
        assert_int_equal(list_stored(&u, "metadata.name=c", 0, NULL, "\"name\":\"c\""), 1);
        assert_int_equal(list_stored(&u, "metadata.name=c", 1, NULL, "\"name\":\"c\""), 1);
        assert_int_equal(list_stored(&u, "metadata.name=c0150", 0, NULL, "\"name\":\"c0150\""), 1);
        /* No object c01 exists. The first key that begins with that name belongs to c0100. */
        assert_int_equal(list_stored(&u, "metadata.name=c01", 0, NULL, "\"items\":[]"), 1);
        assert_int_equal(list_stored(&u, "metadata.name=c01", 1, NULL, "\"items\":[]"), 1);
        assert_int_equal(list_stored(&u, "metadata.name=d", 0, NULL, "\"items\":[]"), 0);
        /* The token comes from a list of all names. */
        assert_int_equal(list_stored(&u, "metadata.name=c0150", 1, "default/c0020", "\"c0150\""),
                         1);
        assert_int_equal(list_stored(&u, "metadata.name=c", 1, "default/c0020", "\"items\":[]"), 1);
        assert_true(store_client_put(u.store, "/registry/configmaps/lone/c",
                                     "{\"metadata\":{\"name\":\"c\"}}") > 0);
        assert_int_equal(list_stored(&u, "metadata.namespace=lone", 0, NULL, "\"name\":\"c\""), 1);
        assert_int_equal(list_stored(&u, "metadata.namespace=lone", 1, "default/c0020",
                                     "\"name\":\"c\""),
                         1);
        tear_down_unfilled(&u);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_a_name_costs_the_same_among_any_number_of_objects),
                API_TEST(test_a_namespace_costs_the_same_among_any_number_of_objects),
                API_TEST(test_a_name_selects_no_name_that_begins_with_it),
                API_TEST(test_a_namespace_selects_no_namespace_that_begins_with_it),
                API_TEST(test_a_name_limits_and_continues),
                API_TEST(test_a_name_deletes_one_object),
                cmocka_unit_test(test_a_name_or_a_namespace_costs_the_store_its_keys),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
