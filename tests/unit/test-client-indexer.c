/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of an object an informer keeps, and lookups by indexed values. */
#undef NDEBUG
#include <assert.h>
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

#include <holdfast/informer.h>

#include "base/buf.h"
#include "client/informer_private.h"
#include "client/metadata_transform.h"
#include "fake_api_client.h"
#include "patience.h"

static const struct hf_host host = {.size = sizeof host};

static struct {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_informer *informer;
} f;

static void make_api(void) {
        f.api = fake_api_new();
        f.client = fake_api_client_new(f.api);
}

static void free_api(void) {
        hf_client_free(&f.client->base);
        fake_api_free(f.api);
}

static void setup(const struct hf_informer_config *extra) {
        make_api();
        struct hf_informer_config config = *extra;
        config.size = sizeof config;
        config.client = &f.client->base;
        config.resource = (struct hf_resource){.group = "", .version = "v1", .plural = "things"};
        assert_int_equal(hf_informer_new(&host, &config, &f.informer), 0);
}

static void start(void) {
        assert_int_equal(hf_informer_start(f.informer), 0);
        assert_int_equal(hf_informer_wait(f.informer, NULL, hf_cancel_never()), 0);
}

static void teardown(void) {
        hf_informer_free(f.informer);
        free_api();
}

static void wait_for(uint64_t revision) {
        char text[24];
        snprintf(text, sizeof text, "%llu", (unsigned long long)revision);
        assert_int_equal(hf_informer_wait(f.informer, text, hf_cancel_never()), 0);
}

/* ---- indexes ---- */

/* Each letter of the object's "v" is one of its values. */
static void by_message(void *ctx, const char *ns, const char *name, const char *object, size_t n,
                       struct hf_informer_values *values) {
        const char *v = memmem(object, n, "\"v\":\"", 5);

        assert_non_null(v);
        for (v += 5; *v != '"'; v++) {
                char value[2] = {*v, '\0'};
                assert_int_equal(hf_informer_values_add(values, value), 0);
        }
}

static void by_namespace(void *ctx, const char *ns, const char *name, const char *object, size_t n,
                         struct hf_informer_values *values) {
        assert_int_equal(hf_informer_values_add(values, ns), 0);
}

static void note(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        char *text = ctx;
        assert_non_null(memmem(object, n, name, strlen(name)));
        sprintf(text + strlen(text), "%s/%s ", ns, name);
}

static void assert_found(const char *index, const char *value, const char *expected) {
        char text[1024] = "";
        assert_int_equal(hf_informer_by_index(f.informer, index, value, note, text), 0);
        assert_string_equal(text, expected);
}

/* A value of each length. */
static void by_lengths(void *ctx, const char *ns, const char *name, const char *object, size_t n,
                       struct hf_informer_values *values) {
        char value[301];

        for (size_t i = 0; i < sizeof value; i++) {
                memset(value, 'v', i);
                value[i] = '\0';
                assert_int_equal(hf_informer_values_add(values, value), 0);
        }
}

static void fail_at_first(void *ctx, const char *ns, const char *name, const char *object, size_t n,
                          struct hf_informer_values *values) {
        unsigned *n_calls = ctx;

        hf_informer_values_fail(NULL);
        if ((*n_calls)++ == 0)
                hf_informer_values_fail(values);
        else
                assert_int_equal(hf_informer_values_add(values, "v"), 0);
}

static void setup_indexes(void) {
        setup(&(struct hf_informer_config){0});
        assert_int_equal(hf_informer_add_index(f.informer, "letter", by_message, NULL), 0);
        assert_int_equal(hf_informer_add_index(f.informer, "namespace", by_namespace, NULL), 0);
}

static void test_values_have_any_length(void **state) {
        char value[301];

        setup(&(struct hf_informer_config){0});
        assert_int_equal(hf_informer_add_index(f.informer, "length", by_lengths, NULL), 0);
        fake_api_put_thing(f.api, "a", "one", "1");
        start();
        for (size_t i = 0; i < sizeof value; i++) {
                memset(value, 'v', i);
                value[i] = '\0';
                assert_found("length", value, "a/one ");
        }
        char *key = fake_store_key("things", "a", "one");
        wait_for(fake_api_delete(f.api, key));
        free(key);
        assert_found("length", "v", "");
        teardown();
}

/* The object is delivered again, as after any shortage of memory. */
static void test_an_index_function_may_fail(void **state) {
        unsigned n_calls = 0;

        setup(&(struct hf_informer_config){0});
        assert_int_equal(hf_informer_add_index(f.informer, "i", fail_at_first, &n_calls), 0);
        fake_api_put_thing(f.api, "a", "one", "1");
        start();
        assert_found("i", "v", "a/one ");
        assert_int_equal(n_calls, 2);
        teardown();
}

static void test_objects_are_found_by_their_values(void **state) {
        setup_indexes();
        fake_api_put_thing(f.api, "b", "two", "xy");
        fake_api_put_thing(f.api, "a", "one", "xx"); /* the same value twice */
        fake_api_put_thing(f.api, "", "three", "");
        start();
        assert_found("letter", "x", "a/one b/two ");
        assert_found("letter", "y", "b/two ");
        assert_found("letter", "z", "");
        assert_found("letter", "", "");
        assert_found("namespace", "a", "a/one ");
        assert_found("namespace", "", "/three ");
        teardown();
}

static void test_indexed_values_follow_changes(void **state) {
        setup_indexes();
        start();
        fake_api_await_watch(f.api, 1);
        wait_for(fake_api_put_thing(f.api, "a", "one", "xy"));
        assert_found("letter", "x", "a/one ");
        wait_for(fake_api_put_thing(f.api, "a", "one", "yz"));
        assert_found("letter", "x", "");
        assert_found("letter", "y", "a/one ");
        assert_found("letter", "z", "a/one ");
        wait_for(fake_api_put_thing(f.api, "a", "one", ""));
        assert_found("letter", "z", "");
        assert_found("namespace", "a", "a/one ");
        wait_for(fake_api_delete_thing(f.api, "a", "one"));
        assert_found("namespace", "a", "");
        teardown();
}

static void test_a_new_list_updates_the_indexes(void **state) {
        setup_indexes();
        fake_api_put_thing(f.api, "a", "goes", "x");
        fake_api_put_thing(f.api, "a", "changes", "x");
        start();
        fake_api_await_watch(f.api, 1);
        fake_api_client_hold_events(f.client, true);
        fake_api_delete_thing(f.api, "a", "goes");
        fake_api_put_thing(f.api, "a", "changes", "y");
        uint64_t last = fake_api_put_thing(f.api, "a", "comes", "x");
        fake_api_compact(f.api);
        fake_api_client_hold_events(f.client, false);
        wait_for(last);
        assert_found("letter", "x", "a/comes ");
        assert_found("letter", "y", "a/changes ");
        teardown();
}

static void test_indexes_are_added_before_the_start(void **state) {
        setup_indexes();
        assert_int_equal(hf_informer_add_index(f.informer, "letter", by_message, NULL),
                         HF_E_EXISTS);
        assert_int_equal(hf_informer_add_index(f.informer, "", by_message, NULL), -EINVAL);
        start();
        assert_int_equal(hf_informer_add_index(f.informer, "late", by_message, NULL), -EINVAL);
        assert_int_equal(hf_informer_by_index(f.informer, "late", "x", note, NULL), -EINVAL);
        teardown();
}

static bool has_message(const struct fake_object *object, char message) {
        const char *value = strstr(object->text->data, "\"v\":\"");

        assert_non_null(value);
        value += strlen("\"v\":\"");
        return memchr(value, message, strcspn(value, "\"")) != NULL;
}

/* Compares the index with a search of all objects, during many changes. */
static void test_an_index_equals_a_full_search(void **state) {
        static const char *const values[] = {"", "x", "y", "xy", "yx", "xyz", "zzz", "z"};
        unsigned seed = 11;

        setup_indexes();
        start();
        for (int round = 0; round < 50; round++) {
                uint64_t last = 0;
                for (int i = 0; i < 10; i++) {
                        char name[8];
                        snprintf(name, sizeof name, "n%d", rand_r(&seed) % 12);
                        last = rand_r(&seed) % 3 == 0
                                       ? fake_api_delete_thing(f.api, "a", name)
                                       : fake_api_put_thing(f.api, "a", name,
                                                            values[rand_r(&seed) % 8]);
                }
                if (round % 7 == 0)
                        fake_api_compact(f.api);
                wait_for(last);
                for (const char *message = "xyz"; *message; message++) {
                        char value[2] = {*message, '\0'}, text[1024] = "";
                        size_t n_found = 0, n_there = 0;
                        assert_int_equal(hf_informer_by_index(f.informer, "letter", value, note,
                                                              text),
                                         0);
                        for (const char *c = text; *c; c++)
                                n_found += *c == ' ';
                        for (size_t i = 0; i < f.api->store.n_objects; i++) {
                                const struct fake_object *object = f.api->store.objects[i];
                                char key[80];
                                bool there = has_message(object, *message);
                                snprintf(key, sizeof key, "%s ", object->key + strlen("things/"));
                                assert_int_equal(strstr(text, key) != NULL, there);
                                n_there += there;
                        }
                        assert_int_equal(n_found, n_there);
                }
        }
        teardown();
}

/* ---- the kept part of an object ---- */

static void assert_cut_to(const char *object, const char *expected) {
        struct hf__buf *cut = NULL;
        char *exact = malloc(strlen(object)); /* so that the sanitizers see a read past its end */

        memcpy(exact, object, strlen(object));
        int r = hf__metadata_transform(exact, strlen(object), &cut);
        free(exact);
        if (!expected) {
                assert_int_equal(r, -EPROTO);
                return;
        }
        assert_int_equal(r, 0);
        assert_string_equal(cut->data, expected);
        assert_int_equal(cut->n, strlen(expected));
        hf__buf_unref(cut);
}

/* Asserts that the informer keeps only `expected` of the object, however much more that has. */
static void assert_cut(const char *object, const char *expected) {
        static char large[100000];

        assert_cut_to(object, expected);
        if (object[0] != '{' || object[1] == '}')
                return;
        memset(large, 'x', sizeof large);
        memcpy(large, "{\"spec\":\"", 9);
        (void)strcpy(large + 90000, "\",");
        (void)strcat(large + 90000, object + 1);
        assert_cut_to(large, expected);
}

static void test_the_metadata_is_cut_out_of_an_object(void **state) {
        assert_cut("{\"spec\":{\"a\":[1,{\"}\":\"]\"}]},\"kind\":\"T\", \"metadata\" : { "
                   "\"name\":\"n\" , \"managedFields\":[{\"x\":1}],"
                   "\"labels\":{\"managedFields\":\"stays\"}},\"apiVersion\":\"v1\",\"status\":7}",
                   "{\"kind\":\"T\",\"metadata\":{\"name\":\"n\",\"labels\":{\"managedFields\":"
                   "\"stays\"}},\"apiVersion\":\"v1\"}");
        assert_cut("{\"metadata\":{\"managedFields\":[]}}", "{\"metadata\":{}}");
        assert_cut("{\"metadata\":{\"managedFields\":[],\"name\":\"n\"},"
                   "\"data\":{\"metadata\":{}}}",
                   "{\"metadata\":{\"name\":\"n\"}}");
        assert_cut("{}", "{}");
        assert_cut("{\"metadata\":[]}", NULL);
        assert_cut("{\"metadata\":{\"name\":\"n\"}", NULL);
        assert_cut("{\"metadata\":{\"name\":\"n}", NULL);
        assert_cut("[]", NULL);
        assert_cut("", NULL);
}

static void test_only_metadata_is_kept(void **state) {
        char *object = NULL;
        size_t n = 0;

        setup(&(struct hf_informer_config){.metadata_only = true});
        fake_api_put_thing(f.api, "a", "listed", "big");
        start();
        fake_api_await_watch(f.api, 1);
        assert_int_equal(hf_informer_get(f.informer, "a", "listed", &object, &n), 0);
        assert_string_equal(object, "{\"kind\":\"Thing\",\"metadata\":{\"namespace\":\"a\","
                                    "\"name\":\"listed\",\"uid\":\"1\","
                                    "\"resourceVersion\":\"2\"}}");
        assert_int_equal(n, strlen(object));
        free(object);
        wait_for(fake_api_put_thing(f.api, "a", "watched", "big"));
        assert_int_equal(hf_informer_get(f.informer, "a", "watched", &object, &n), 0);
        assert_null(strstr(object, "big"));
        free(object);
        wait_for(fake_api_delete_thing(f.api, "a", "watched"));
        assert_int_equal(hf_informer_count(f.informer), 1);
        teardown();
}

static void test_members_beyond_the_size_are_ignored(void **state) {
        struct hf_informer_config config = {.size = offsetof(struct hf_informer_config,
                                                             metadata_only),
                                            .resync = -1,
                                            .metadata_only = true};

        make_api();
        config.client = &f.client->base;
        config.resource = (struct hf_resource){.group = "", .version = "v1", .plural = "things"};
        /* fields beyond the struct's size are ignored */
        assert_int_equal(hf_informer_new(&host, &config, &f.informer), 0);
        assert_null(f.informer->transform);
        hf_informer_free(f.informer);
        config.size = sizeof config;
        assert_int_equal(hf_informer_new(&host, &config, &f.informer), -EINVAL);
        free_api();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_objects_are_found_by_their_values),
                cmocka_unit_test(test_values_have_any_length),
                cmocka_unit_test(test_an_index_function_may_fail),
                cmocka_unit_test(test_indexed_values_follow_changes),
                cmocka_unit_test(test_a_new_list_updates_the_indexes),
                cmocka_unit_test(test_indexes_are_added_before_the_start),
                cmocka_unit_test(test_an_index_equals_a_full_search),
                cmocka_unit_test(test_the_metadata_is_cut_out_of_an_object),
                cmocka_unit_test(test_only_metadata_is_kept),
                cmocka_unit_test(test_members_beyond_the_size_are_ignored),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
