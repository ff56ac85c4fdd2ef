/* SPDX-License-Identifier: Apache-2.0 */
/* What the cache keeps of an object, by which values it is found, and when it is told again. */
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

#include "api-fake.c"
#include "client/informer_private.h"
#include "client/metadata_transform.h"

static const struct hf_host host = {.size = sizeof host};

static struct {
        struct api_fake *fake;
        struct hf_informer *informer;
} w;

static void setup(const struct hf_informer_config *extra) {
        w.fake = api_fake_new(&host);
        struct hf_informer_config config = *extra;
        config.size = sizeof config;
        config.client = api_fake_client(w.fake);
        config.resource = (struct hf_resource){.group = "", .version = "v1", .plural = "things"};
        assert_int_equal(hf_informer_new(&host, &config, &w.informer), 0);
}

static void start(void) {
        assert_int_equal(hf_informer_start(w.informer), 0);
        assert_int_equal(hf_informer_wait(w.informer, NULL, hf_cancel_never()), 0);
}

static void teardown(void) {
        hf_informer_free(w.informer);
        hf_client_free(api_fake_client(w.fake));
}

static void wait_for(uint64_t revision) {
        char text[24];
        snprintf(text, sizeof text, "%llu", (unsigned long long)revision);
        assert_int_equal(hf_informer_wait(w.informer, text, hf_cancel_never()), 0);
}

/* ---- indexes ---- */

/* The letters of the object's "v" are its values. */
static void by_message(void *ctx, const char *ns, const char *name, const char *object, size_t n,
                       struct hf_informer_values *values) {
        const char *v = memmem(object, n, "\"v\":\"", 5);

        assert_non_null(v);
        for (v += 5; *v != '"'; v++) {
                char value[2] = {*v, '\0'};
                assert_int_equal(hf_informer_value(values, value), 0);
        }
}

static void by_namespace(void *ctx, const char *ns, const char *name, const char *object, size_t n,
                         struct hf_informer_values *values) {
        assert_int_equal(hf_informer_value(values, ns), 0);
}

static void note(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        char *text = ctx;
        assert_non_null(memmem(object, n, name, strlen(name)));
        sprintf(text + strlen(text), "%s/%s ", ns, name);
}

static void assert_found(const char *index, const char *value, const char *expected) {
        char text[1024] = "";
        assert_int_equal(hf_informer_by_index(w.informer, index, value, note, text), 0);
        assert_string_equal(text, expected);
}

static void setup_indexes(void) {
        setup(&(struct hf_informer_config){0});
        assert_int_equal(hf_informer_add_index(w.informer, "letter", by_message, NULL), 0);
        assert_int_equal(hf_informer_add_index(w.informer, "namespace", by_namespace, NULL), 0);
}

static void test_objects_are_found_by_their_values(void **state) {
        setup_indexes();
        api_fake_put(w.fake, "b", "two", "xy");
        api_fake_put(w.fake, "a", "one", "xx"); /* the same twice */
        api_fake_put(w.fake, "", "three", "");
        start();
        assert_found("letter", "x", "a/one b/two ");
        assert_found("letter", "y", "b/two ");
        assert_found("letter", "z", "");
        assert_found("letter", "", "");
        assert_found("namespace", "a", "a/one ");
        assert_found("namespace", "", "/three ");
        teardown();
}

static void test_values_follow_their_objects(void **state) {
        setup_indexes();
        start();
        api_fake_await_watch(w.fake, 1);
        wait_for(api_fake_put(w.fake, "a", "one", "xy"));
        assert_found("letter", "x", "a/one ");
        wait_for(api_fake_put(w.fake, "a", "one", "yz"));
        assert_found("letter", "x", "");
        assert_found("letter", "y", "a/one ");
        assert_found("letter", "z", "a/one ");
        wait_for(api_fake_put(w.fake, "a", "one", ""));
        assert_found("letter", "z", "");
        assert_found("namespace", "a", "a/one ");
        wait_for(api_fake_delete(w.fake, "a", "one"));
        assert_found("namespace", "a", "");
        teardown();
}

static void test_a_list_brings_the_values_up_to_date(void **state) {
        setup_indexes();
        api_fake_put(w.fake, "a", "goes", "x");
        api_fake_put(w.fake, "a", "changes", "x");
        start();
        api_fake_await_watch(w.fake, 1);
        api_fake_mute_watches(w.fake, true);
        api_fake_delete(w.fake, "a", "goes");
        api_fake_put(w.fake, "a", "changes", "y");
        uint64_t last = api_fake_put(w.fake, "a", "comes", "x");
        api_fake_compact(w.fake);
        api_fake_mute_watches(w.fake, false);
        wait_for(last);
        assert_found("letter", "x", "a/comes ");
        assert_found("letter", "y", "a/changes ");
        teardown();
}

static void test_indexes_are_named_and_made_before_the_start(void **state) {
        setup_indexes();
        assert_int_equal(hf_informer_add_index(w.informer, "letter", by_message, NULL),
                         HF_E_EXISTS);
        assert_int_equal(hf_informer_add_index(w.informer, "", by_message, NULL), -EINVAL);
        start();
        assert_int_equal(hf_informer_add_index(w.informer, "late", by_message, NULL), -EINVAL);
        assert_int_equal(hf_informer_by_index(w.informer, "late", "x", note, NULL), -EINVAL);
        teardown();
}

/* Against a plain look at all objects, over many changes. */
static void test_an_index_stays_equal_to_a_search(void **state) {
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
                                       ? api_fake_delete(w.fake, "a", name)
                                       : api_fake_put(w.fake, "a", name, values[rand_r(&seed) % 8]);
                }
                if (round % 7 == 0)
                        api_fake_compact(w.fake);
                wait_for(last);
                for (const char *message = "xyz"; *message; message++) {
                        char value[2] = {*message, '\0'}, text[1024] = "";
                        size_t n_found = 0, n_there = 0;
                        assert_int_equal(hf_informer_by_index(w.informer, "letter", value, note,
                                                              text),
                                         0);
                        for (const char *c = text; *c; c++)
                                n_found += *c == ' ';
                        for (size_t i = 0; i < w.fake->n_objects; i++) {
                                char key[80];
                                bool there = strchr(w.fake->objects[i].value, *message) != NULL;
                                snprintf(key, sizeof key, "a/%s ", w.fake->objects[i].name);
                                assert_int_equal(strstr(text, key) != NULL, there);
                                n_there += there;
                        }
                        assert_int_equal(n_found, n_there);
                }
        }
        teardown();
}

/* ---- what is kept ---- */

static void assert_cut(const char *object, const char *expected) {
        struct hf__buf *cut = NULL;
        char *exact = malloc(strlen(object)); /* so that reading past its end is seen */

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

static void test_metadata_is_cut_out(void **state) {
        assert_cut("{\"spec\":{\"a\":[1,{\"}\":\"]\"}]},\"kind\":\"T\", \"metadata\" : { "
                   "\"name\":\"n\" , \"managedFields\":[{\"x\":1}],"
                   "\"labels\":{\"managedFields\":\"stays\"}},\"apiVersion\":\"v1\",\"status\":7}",
                   "{\"kind\":\"T\",\"metadata\":{\"name\":\"n\",\"labels\":{\"managedFields\":"
                   "\"stays\"}},\"apiVersion\":\"v1\"}");
        assert_cut("{\"metadata\":{\"managedFields\":[]}}", "{\"metadata\":{}}");
        assert_cut("{\"metadata\":{\"managedFields\":[],\"name\":\"n\"},\"data\":{\"metadata\":{}}"
                   "}",
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
        api_fake_put(w.fake, "a", "listed", "big");
        start();
        api_fake_await_watch(w.fake, 1);
        assert_int_equal(hf_informer_get(w.informer, "a", "listed", &object, &n), 0);
        assert_string_equal(object, "{\"kind\":\"Thing\",\"metadata\":{\"namespace\":\"a\","
                                    "\"name\":\"listed\",\"uid\":\"1\","
                                    "\"resourceVersion\":\"2\"}}");
        assert_int_equal(n, strlen(object));
        free(object);
        wait_for(api_fake_put(w.fake, "a", "watched", "big"));
        assert_int_equal(hf_informer_get(w.informer, "a", "watched", &object, &n), 0);
        assert_null(strstr(object, "big"));
        free(object);
        wait_for(api_fake_delete(w.fake, "a", "watched"));
        assert_int_equal(hf_informer_count(w.informer), 1);
        teardown();
}

/* ---- resync ---- */

static struct {
        pthread_mutex_t mu;
        pthread_cond_t changed;
        unsigned n_added, n_modified, n_others;
} told = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void count(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                  const char *object, size_t n) {
        pthread_mutex_lock(&told.mu);
        told.n_added += type == HF_EVENT_ADDED;
        told.n_modified += type == HF_EVENT_MODIFIED;
        told.n_others += type != HF_EVENT_ADDED && type != HF_EVENT_MODIFIED;
        pthread_cond_broadcast(&told.changed);
        pthread_mutex_unlock(&told.mu);
}

static void test_handlers_are_told_again(void **state) {
        struct hf_informer_handler *handler = NULL;

        setup(&(struct hf_informer_config){.resync = HF_NSEC_PER_MSEC});
        api_fake_put(w.fake, "a", "one", "1");
        api_fake_put(w.fake, "a", "two", "1");
        start();
        assert_int_equal(hf_informer_add_handler(w.informer, count, NULL, &handler), 0);
        pthread_mutex_lock(&told.mu);
        while (told.n_modified < 10)
                pthread_cond_wait(&told.changed, &told.mu);
        assert_int_equal(told.n_added, 2);
        assert_int_equal(told.n_others, 0);
        pthread_mutex_unlock(&told.mu);
        wait_for(api_fake_delete(w.fake, "a", "one")); /* events come between */
        assert_int_equal(hf_informer_count(w.informer), 1);
        hf_informer_remove_handler(w.informer, handler);
        assert_int_equal(told.n_others, 1);
        assert_int_equal(api_fake_n_watches(w.fake), 1);
        teardown();
}

static void test_an_older_program_knows_less(void **state) {
        struct hf_informer_config config = {.size = offsetof(struct hf_informer_config,
                                                             metadata_only),
                                            .resync = -1,
                                            .metadata_only = true};

        w.fake = api_fake_new(&host);
        config.client = api_fake_client(w.fake);
        config.resource = (struct hf_resource){.group = "", .version = "v1", .plural = "things"};
        assert_int_equal(hf_informer_new(&host, &config, &w.informer),
                         0); /* what lies behind its size is not looked at */
        assert_false(w.informer->metadata_only);
        hf_informer_free(w.informer);
        config.size = sizeof config;
        assert_int_equal(hf_informer_new(&host, &config, &w.informer), -EINVAL);
        hf_client_free(api_fake_client(w.fake));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_objects_are_found_by_their_values),
                cmocka_unit_test(test_values_follow_their_objects),
                cmocka_unit_test(test_a_list_brings_the_values_up_to_date),
                cmocka_unit_test(test_indexes_are_named_and_made_before_the_start),
                cmocka_unit_test(test_an_index_stays_equal_to_a_search),
                cmocka_unit_test(test_metadata_is_cut_out),
                cmocka_unit_test(test_only_metadata_is_kept),
                cmocka_unit_test(test_handlers_are_told_again),
                cmocka_unit_test(test_an_older_program_knows_less),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
