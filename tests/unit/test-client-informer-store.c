/* SPDX-License-Identifier: Apache-2.0 */
/* How an informer reads the texts of lists and events, without a server, on the test's thread.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/client_port.h>
#include <holdfast/informer.h>

#include "base/buf.h"
#include "client/informer_handlers.h"
#include "client/informer_private.h"
#include "client/informer_store.h"

static const struct hf_host host = {.size = sizeof host};
static struct hf_client client = {.host = &host};
static struct hf_informer *informer;

static void make(bool metadata_only) {
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = &client,
                                                  .resource = {"", "v1", "things"},
                                                  .metadata_only = metadata_only};

        assert_int_equal(hf_informer_new(&host, &config, &informer), 0);
        informer->reflector.thread = pthread_self();
}

static int set_up(void **state) {
        make(false);
        return 0;
}

static int tear_down(void **state) {
        assert_null(hf_informer_free(informer));
        return 0;
}

/* Reads a list of one page. */
static int list(const char *body) {
        hf__informer_store_replace_begin(informer);
        int r = hf__informer_store_replace_page(informer, body, strlen(body));
        if (r == 0)
                hf__informer_store_replace_end(informer);
        return r;
}

static int apply(enum hf_event_type type, const char *object) {
        struct hf__buf *text = hf__buf_copy(object, strlen(object));
        int r = hf__informer_store_apply(informer, type, text);

        hf__buf_unref(text);
        return r;
}

/* Asserts that the informer has this text of the object; NULL = it does not have the object. */
static void expect(const char *ns, const char *name, const char *text) {
        char *object = NULL;
        int r = hf_informer_get(informer, ns, name, &object, NULL);

        assert_int_equal(r, text ? 0 : HF_E_NOT_FOUND);
        if (text)
                assert_string_equal(object, text);
        free(object);
}

#define ITEM     "{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"5\"}}"
#define TYPED(t) "{" t ",\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"5\"}}"

/* A list names the kind of its items only if its own ends with List. */
static void test_an_item_gets_the_kind_that_its_list_names(void **state) {
        static const struct {
                const char *list, *item;
        } cases[] = {
                {"\"kind\":\"ThingList\",\"apiVersion\":\"g/v1\"",
                 TYPED("\"kind\":\"Thing\",\"apiVersion\":\"g/v1\"")},
                {"\"kind\":\"ThingList\"", ITEM},
                {"\"apiVersion\":\"g/v1\"", ITEM},
                {"\"kind\":\"List\",\"apiVersion\":\"v1\"", ITEM},
                {"\"kind\":\"ist\",\"apiVersion\":\"v1\"", ITEM},
                {"\"kind\":\"x\",\"apiVersion\":\"v1\"", ITEM},
                {"\"kind\":\"Things\",\"apiVersion\":\"v1\"", ITEM},
                {"\"kind\":7,\"apiVersion\":\"v1\"", ITEM},
                {"\"kind\":\"Th\\u0069ngList\",\"apiVersion\":\"v1\"", ITEM},
                {"\"kind\":\"ThingList\",\"apiVersion\":12345}", ITEM},
                {"\"kind\":\"ThingList\",\"apiVersion\":\"v\\u0031\"", ITEM},
                {"\"kind\":\"XList\",\"apiVersion\":\"v1\"",
                 TYPED("\"kind\":\"X\",\"apiVersion\":\"v1\"")},
        };
        char body[256];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                (void)snprintf(body, sizeof body, "{\"items\":[" ITEM "],%s}", cases[i].list);
                assert_int_equal(list(body), 0);
                expect(NULL, "x", cases[i].item);
                assert_int_equal(list("{\"items\":[]}"), 0);
                expect(NULL, "x", NULL);
        }
        /* An item with a kind keeps it. */
        assert_int_equal(list("{\"kind\":\"ThingList\",\"apiVersion\":\"v1\",\"items\":[" TYPED(
                                 "\"kind\":\"Other\"") "]}"),
                         0);
        expect(NULL, "x", TYPED("\"kind\":\"Other\""));
}

static void test_a_list_has_items(void **state) {
        static const char *const bad[] = {"",
                                          "{}",
                                          "{\"items\":{}}",
                                          "{\"items\":7}",
                                          "{\"items\":nul}",
                                          "{\"items\":[7]}",
                                          "{\"items\":[{}]}",
                                          "{\"items\":[" ITEM " " ITEM "]}"};

        assert_int_equal(list("{\"items\":[" ITEM "]}"), 0);
        assert_int_equal(hf_informer_count(informer), 1);
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                assert_int_equal(list(bad[i]), -EPROTO);
        assert_int_equal(hf_informer_count(informer), 1);
        assert_int_equal(list("{\"items\":null}"), 0); /* as Go writes an empty list */
        assert_int_equal(hf_informer_count(informer), 0);
}

#define OBJECT(metadata) "{\"metadata\":{" metadata "}}"
#define VERSION31        "1234567890123456789012345678901"

static void test_an_object_needs_a_name_and_a_version(void **state) {
        static const char *const good[] =
                {OBJECT("\"name\":\"x\",\"resourceVersion\":\"5\""),
                 OBJECT("\"name\":\"x\",\"namespace\":\"\",\"resourceVersion\":\"\""),
                 OBJECT("\"resourceVersion\":\"" VERSION31 "\",\"name\":\"x\""),
                 OBJECT("\"uid\":7,\"resourceVersion\":\"6\",\"name\":\"x\""),
                 OBJECT("\"name\":\"x\",\"name\":\"y\",\"resourceVersion\":\"7\""),
                 OBJECT("\"name\":\"\\u0078\",\"name\":\"y\",\"resourceVersion\":\"8\"")};
        static const char *const bad[] =
                {OBJECT("\"resourceVersion\":\"5\""),
                 OBJECT("\"name\":\"\",\"resourceVersion\":\"5\""),
                 OBJECT("\"name\":7,\"resourceVersion\":\"5\""),
                 OBJECT("\"name\":null,\"resourceVersion\":\"5\""),
                 OBJECT("\"name\":\"x\""),
                 OBJECT("\"name\":\"x\",\"resourceVersion\":5"),
                 OBJECT("\"name\":\"x\",\"resourceVersion\":\"" VERSION31 "2\""),
                 OBJECT("\"name\":\"\\q\",\"resourceVersion\":\"5\""),
                 OBJECT("\"name\":\"x\",\"resourceVersion\":\"5\" \"a\":1"),
                 "{\"metadata\":[]}",
                 "{\"name\":\"x\"}",
                 "nonsense"};

        for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
                assert_int_equal(apply(HF_EVENT_MODIFIED, good[i]), 0);
                expect(NULL, "x", good[i]);
                assert_int_equal(hf_informer_count(informer), 1);
        }
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                assert_int_equal(apply(HF_EVENT_MODIFIED, bad[i]), -EPROTO);
                assert_int_equal(apply(HF_EVENT_DELETED, bad[i]), -EPROTO);
        }
        expect(NULL, "x", good[sizeof good / sizeof good[0] - 1]);
}

/* Most texts fit into an array on the stack. These together are longer. */
static void test_texts_of_metadata_have_any_length(void **state) {
        static const size_t lengths[] = {1, 100, 200, 252, 253};
        char name[254], uid[301], text[1200];

        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
                for (size_t n_uid = 0; n_uid < sizeof uid; n_uid++) {
                        memset(name, 'n', lengths[i]);
                        name[lengths[i]] = '\0';
                        memset(uid, 'u', n_uid);
                        uid[n_uid] = '\0';
                        (void)snprintf(text, sizeof text,
                                       OBJECT("\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"%s\","
                                              "\"resourceVersion\":\"%zu\""),
                                       name, name, uid, n_uid);
                        assert_int_equal(apply(HF_EVENT_ADDED, text), 0);
                        expect(name, name, text);
                }
        assert_int_equal(hf_informer_count(informer), 5);
}

static void test_a_version_may_become_shorter(void **state) {
        static const char *const versions[] = {"100", "7", "1000", "10", "100"};
        char text[128];

        for (size_t i = 0; i < 5; i++) {
                (void)snprintf(text, sizeof text,
                               OBJECT("\"name\":\"x\",\"resourceVersion\":\"%s\",\"n\":%zu"),
                               versions[i], i);
                assert_int_equal(apply(HF_EVENT_MODIFIED, text), 0);
                expect(NULL, "x", text);
        }
        /* The same version is the same object. */
        assert_int_equal(apply(HF_EVENT_MODIFIED,
                               OBJECT("\"name\":\"x\",\"resourceVersion\":\"100\",\"n\":9")),
                         0);
        expect(NULL, "x", text);
        assert_int_equal(apply(HF_EVENT_DELETED, text), 0);
        assert_int_equal(apply(HF_EVENT_DELETED, text), 0);
        expect(NULL, "x", NULL);
}

static struct {
        unsigned n;
        char object[200];
        bool is_present;
} deleted;

static void on_deleted(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                       const char *object, size_t n) {
        char *present = NULL;

        if (type != HF_EVENT_DELETED)
                return;
        deleted.n++;
        (void)snprintf(deleted.object, sizeof deleted.object, "%.*s", (int)n, object);
        deleted.is_present = hf_informer_get(informer, ns, name, &present, NULL) == 0;
        free(present);
}

/* A handler gets the state in the event, which is newer than the stored one. It no longer finds the
 * object in the informer. */
static void test_a_deletion_passes_the_last_state(void **state) {
        struct hf_informer_handler *handler = NULL;

        memset(&deleted, 0, sizeof deleted);
        assert_int_equal(hf_informer_add_handler(informer, on_deleted, NULL, &handler), 0);
        pthread_mutex_lock(&informer->mu);
        hf__informer_handlers_replay_locked(informer);
        pthread_mutex_unlock(&informer->mu);
        assert_int_equal(apply(HF_EVENT_ADDED, OBJECT("\"name\":\"x\",\"resourceVersion\":\"5\"")),
                         0);
        assert_int_equal(apply(HF_EVENT_DELETED,
                               OBJECT("\"name\":\"x\",\"resourceVersion\":\"6\"")),
                         0);
        assert_int_equal(deleted.n, 1);
        assert_string_equal(deleted.object, OBJECT("\"name\":\"x\",\"resourceVersion\":\"6\""));
        assert_false(deleted.is_present);
        hf_informer_remove_handler(informer, handler);
}

static void stop_informer(void *ctx, enum hf_event_type type, const char *ns, const char *name,
                          const char *object, size_t n) {
        ++*(unsigned *)ctx;
        pthread_mutex_lock(&informer->mu);
        informer->stop = true;
        pthread_mutex_unlock(&informer->mu);
}

/* A stop waits for the handler that runs, not for the rest of a large replay. */
static void test_a_replay_ends_at_a_stop(void **state) {
        struct hf_informer_handler *handler = NULL;
        unsigned n_calls = 0;

        assert_int_equal(apply(HF_EVENT_ADDED, OBJECT("\"name\":\"x\",\"resourceVersion\":\"5\"")),
                         0);
        assert_int_equal(apply(HF_EVENT_ADDED, OBJECT("\"name\":\"y\",\"resourceVersion\":\"6\"")),
                         0);
        assert_int_equal(hf_informer_add_handler(informer, stop_informer, &n_calls, &handler), 0);
        pthread_mutex_lock(&informer->mu);
        hf__informer_handlers_replay_locked(informer);
        informer->stop = false;
        pthread_mutex_unlock(&informer->mu);
        assert_int_equal(n_calls, 1);
        hf_informer_remove_handler(informer, handler);
}

static void test_an_item_that_cannot_be_cut_is_refused(void **state) {
        tear_down(NULL);
        make(true);
        assert_int_equal(list("{\"kind\":\"TList\",\"apiVersion\":\"v1\",\"items\":[{\"metadata\":{"
                              "\"name\":\"x\",\"resourceVersion\":\"5\"} \"a\":1}]}"),
                         -EPROTO);
        assert_int_equal(list("{\"items\":[{\"metadata\":{\"name\":\"x\",\"resourceVersion\":"
                              "\"5\"} \"a\":1}]}"),
                         -EPROTO);
        assert_int_equal(hf_informer_count(informer), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_an_item_gets_the_kind_that_its_list_names),
                TEST(test_a_list_has_items),
                TEST(test_an_object_needs_a_name_and_a_version),
                TEST(test_texts_of_metadata_have_any_length),
                TEST(test_a_version_may_become_shorter),
                TEST(test_a_deletion_passes_the_last_state),
                TEST(test_a_replay_ends_at_a_stop),
                TEST(test_an_item_that_cannot_be_cut_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
