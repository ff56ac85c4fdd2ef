/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates of objects that are in the store with their managedFields. An update by PUT does not
 * parse the list of the stored object unless it must, and a patch does. So the same change in both
 * ways must store the same bytes. (The cases of the list itself are in test-apply-renewal.c.)
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "store_client.h"
#include "store_reply.h"

#define KEY(name) "/registry/configmaps/default/" name
#define ENTRY(manager, operation, time, more, set)                                                 \
        "{\"manager\":\"" manager "\",\"operation\":\"" operation                                  \
        "\",\"apiVersion\":\"v1\",\"time\":\"" time                                                \
        "\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":" set more "}"
#define DATA_A "{\"f:data\":{\".\":{},\"f:a\":{}}}"
#define DATA_B "{\"f:data\":{\"f:b\":{}}}"
#define TIME   "2020-01-01T00:00:00Z"

static const char *const lists[] = {
        "",
        "\"managedFields\":[" ENTRY("m", "Update", TIME, "", DATA_A) "],",
        "\"managedFields\":[" ENTRY("a", "Apply", TIME, "", DATA_B) "," ENTRY("m", "Update", TIME,
                                                                              "", DATA_A) "],",
        "\"managedFields\":[" ENTRY("m", "Update", TIME, "", DATA_A) "," ENTRY("a", "Apply", TIME,
                                                                               "", DATA_B) "],",
        "\"managedFields\":[" ENTRY("m", "Update", TIME, ",\"subresource\":\"status\"",
                                    DATA_A) "],",
        "\"managedFields\":[" ENTRY("m", "Update", "2999-01-01T00:00:00Z", "", DATA_A) "],",
        "\"managedFields\":[" ENTRY("m\\n", "Update", TIME, "", DATA_A) "],",
        "\"managedFields\":[" ENTRY("m\x7f", "Update", TIME, "", DATA_A) "],",
        "\"managedFields\":[" ENTRY("m\xff", "Update", TIME, "", DATA_A) "],",
        "\"managedFields\":[ " ENTRY("m", "Update", TIME, "", DATA_A) "],",
        "\"managedFields\":[" ENTRY("m", "Update", TIME, "", DATA_A) "],\"labels\":{\"l\":\"x\"},",
        "\"managedFields\":null,",
};

static void store(struct api_fixture *f, const char *key, const char *name, const char *list) {
        char text[1500];

        (void)snprintf(text, sizeof text,
                       "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                       "\"%s\",\"namespace\":\"default\",%s\"uid\":\"u\",\"creationTimestamp\":"
                       "\"2020-01-01T00:00:00Z\"},\"data\":{\"a\":\"1\",\"b\":\"2\"}}",
                       name, list);
        assert_true(store_client_put(f->store, key, text) > 0);
}

/* The managers of the stored object, and what follows them; or its data. */
static const char *stored(struct api_fixture *f, const char *key, char *text, size_t max) {
        struct store_reply reply;

        assert_int_equal(store_client_get(f->store, key, &reply), 0);
        assert_int_equal(reply.n_kvs, 1);
        (void)snprintf(text, max, "%s", store_reply_value(&reply, 0));
        store_reply_deinit(&reply);
        const char *managers = strstr(text, "\"managedFields\"");
        return managers ? managers : strstr(text, "\"data\"");
}

static int put(struct api_fixture *f, const char *list, const char *data, const char *query) {
        char body[1500];

        (void)snprintf(body, sizeof body,
                       "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                       "\"put\"%s},\"data\":%s}",
                       strstr(list, "\"labels\"") ? ",\"labels\":{\"l\":\"x\"}" : "", data);
        return api_fixture_request(f, HF_VERB_UPDATE, api_configmaps, "default", "put", query,
                                   body);
}

static void check(struct api_fixture *f, const char *list, const char *data, const char *manager) {
        char before[2000], after[2000], patched[2000], query[80], dry[80], patch[200];
        char operation[200];

        store(f, KEY("put"), "put", list);
        store(f, KEY("mer"), "mer", list);
        store(f, KEY("jso"), "jso", list);
        (void)snprintf(query, sizeof query, "fieldManager=%s", manager);
        (void)snprintf(dry, sizeof dry, "fieldManager=%s&dryRun=All", manager);
        (void)snprintf(patch, sizeof patch, "{\"data\":%s}", data);
        (void)stored(f, KEY("put"), before, sizeof before);
        /* A dry run uses the version that the cache has; a get waits for the newest. */
        assert_int_equal(api_fixture_get(f, api_configmaps, "default", "put"), 0);
        assert_int_equal(put(f, list, data, dry), 0);
        const char *shown = strstr(f->last.body, "\"managedFields\"");
        char dry_shown[2000];
        (void)snprintf(dry_shown, sizeof dry_shown, "%s", shown ? shown : "none");
        (void)stored(f, KEY("put"), after, sizeof after);
        assert_string_equal(before, after);
        assert_int_equal(put(f, list, data, query), 0);
        shown = strstr(f->last.body, "\"managedFields\"");
        assert_string_equal(dry_shown, shown ? shown : "none");
        assert_int_equal(api_fixture_patch(f, api_configmaps, "default", "mer", HFD_SUB_NONE,
                                           HFD_PATCH_MERGE, query, patch),
                         0);
        (void)snprintf(operation, sizeof operation,
                       "[{\"op\":\"replace\",\"path\":\"/data\",\"value\":%s}]", data);
        assert_int_equal(api_fixture_patch(f, api_configmaps, "default", "jso", HFD_SUB_NONE,
                                           HFD_PATCH_JSON, query, operation),
                         0);
        const char *of_put = stored(f, KEY("put"), after, sizeof after);
        assert_string_equal(of_put, stored(f, KEY("jso"), patched, sizeof patched));
        assert_string_equal(of_put, stored(f, KEY("mer"), patched, sizeof patched));
}

static void test_a_put_and_a_patch_store_the_same(void **state) {
        static const char *const data[] = {"{\"a\":\"1\",\"b\":\"2\"}", "{\"a\":\"3\",\"b\":\"2\"}",
                                           "{\"a\":\"1\",\"b\":\"3\"}",
                                           "{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\"}"};
        static const char *const managers[] = {"m", "other"};

        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
                for (size_t d = 0; d < sizeof data / sizeof data[0]; d++)
                        for (size_t m = 0; m < 2; m++)
                                check(*state, lists[i], data[d], managers[m]);
}

/* A list that is no JSON makes the object unreadable, whatever the update does. */
static void test_an_object_with_a_broken_list_is_unreadable(void **state) {
        struct api_fixture *f = *state;
        static const char *const broken[] = {"\"managedFields\":[{\"manager\":\"m\"}}],",
                                             "\"managedFields\":[{\"manager\"}],",
                                             "\"managedFields\":[{\"manager\":\"m\",}],"};

        for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
                store(f, KEY("put"), "put", broken[i]);
                assert_int_not_equal(put(f, "", "{\"a\":\"1\"}", NULL), 0);
                assert_non_null(strstr(f->last.body, "\"code\":500"));
        }
}

/* Patches that name managedFields, or may mean them. */
static void test_a_patch_of_managed_fields_has_its_effect(void **state) {
        struct api_fixture *f = *state;
        static const struct {
                enum hfd_patch type;
                const char *patch, *left;
        } cases[] = {
                {HFD_PATCH_MERGE, "{\"metadata\":{\"managedFields\":[{}]}}", NULL},
                {HFD_PATCH_STRATEGIC, "{\"metadata\":{\"managedFields\":[{}]}}", NULL},
                {HFD_PATCH_JSON,
                 "[{\"op\":\"replace\",\"path\":\"/metadata/managedFields\",\"value\":[{}]}]",
                 NULL},
                {HFD_PATCH_MERGE, "{\"metadata\":{\"managedFields\":null}}", "\"m\""},
                {HFD_PATCH_MERGE,
                 "{\"metadata\":{\"managedFields\":[" ENTRY("z", "Update", TIME, "", DATA_B) "]}}",
                 "\"z\""},
                {HFD_PATCH_STRATEGIC,
                 "{\"metadata\":{\"labels\":{\"l\":\"x\"},\"$retainKeys\":[\"labels\",\"name\","
                 "\"namespace\",\"uid\",\"creationTimestamp\"]}}",
                 "\"m\""},
                {HFD_PATCH_STRATEGIC, "{\"metadata\":{\"labels\":{\"l\":\"x\"}}}", "\"m\""},
                {HFD_PATCH_MERGE, "{\"metadata\":{\"labels\":{\"l\":\"x\"}}}", "\"m\""},
        };
        char text[2000];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                store(f, KEY("mer"), "mer", lists[1]);
                assert_int_equal(api_fixture_patch(f, api_configmaps, "default", "mer",
                                                   HFD_SUB_NONE, cases[i].type, "fieldManager=m",
                                                   cases[i].patch),
                                 0);
                const char *managers = stored(f, KEY("mer"), text, sizeof text);
                if (cases[i].left ? !strstr(managers, cases[i].left)
                                  : strstr(text, "managedFields") != NULL)
                        fail_msg("case %zu: %s", i, text);
        }
}

/* The client's own list counts, and is stored as it is. */
static void test_a_list_from_the_client_replaces_the_stored_one(void **state) {
        struct api_fixture *f = *state;
        static const char with_list[] =
                "{\"metadata\":{\"name\":\"put\",\"managedFields\":%s},\"data\":{\"a\":\"1\","
                "\"b\":\"2\"}}";
        char body[1000], text[2000];

        store(f, KEY("put"), "put", lists[1]);
        (void)snprintf(body, sizeof body, with_list,
                       "[" ENTRY("z", "Update", TIME, "", DATA_B) "]");
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_configmaps, "default", "put",
                                             "fieldManager=m", body),
                         0);
        const char *managers = stored(f, KEY("put"), text, sizeof text);
        assert_non_null(strstr(managers, ENTRY("z", "Update", TIME, "", DATA_B) "]"));
        assert_null(strstr(managers, "\"m\""));
        (void)snprintf(body, sizeof body, with_list, "[{}]");
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_configmaps, "default", "put",
                                             "fieldManager=m", body),
                         0);
        assert_string_equal(stored(f, KEY("put"), text, sizeof text),
                            "\"data\":{\"a\":\"1\",\"b\":\"2\"}}");
}

#define LONG_50  "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"
#define LONG_150 LONG_50 LONG_50 LONG_50

/* Writes the data with one entry of managedFields more than the stored object has. */
static int put_with_entry(struct api_fixture *f, const char *entry) {
        char body[2000];

        (void)snprintf(body, sizeof body,
                       "{\"metadata\":{\"name\":\"put\",\"managedFields\":[%s]},\"data\":{\"a\":"
                       "\"3\",\"b\":\"2\"}}",
                       entry);
        return api_fixture_request(f, HF_VERB_UPDATE, api_configmaps, "default", "put",
                                   "fieldManager=m", body);
}

static void test_names_from_the_client_are_short_and_printable(void **state) {
        struct api_fixture *f = *state;
        static const char *const cases[][2] = {
                {ENTRY(LONG_150, "Update", TIME, "", DATA_B),
                 "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes"},
                {ENTRY("m\\u0007", "Update", TIME, "", DATA_B),
                 "metadata.managedFields[0].manager: Invalid value: \\\"m\\\\a\\\": invalid "
                 "character "
                 "U+0007 (at position 1)"},
                {ENTRY("m", "Update", TIME, ",\"subresource\":\"" LONG_150 LONG_150 "\"", DATA_B),
                 "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes"},
        };
        char list[1000];

        store(f, KEY("put"), "put", lists[1]);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                assert_int_not_equal(put_with_entry(f, cases[i][0]), 0);
                if (!strstr(f->last.body, cases[i][1]) || !strstr(f->last.body, "\"code\":422"))
                        fail_msg("%s", f->last.body);
        }
        /* An object that is stored with such a name remains writable, in each way. */
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                (void)snprintf(list, sizeof list, "\"managedFields\":[%s],", cases[i][0]);
                store(f, KEY("put"), "put", list);
                assert_int_equal(put_with_entry(f, cases[i][0]), 0);
                store(f, KEY("put"), "put", list);
                assert_int_equal(api_fixture_patch(f, api_configmaps, "default", "put",
                                                   HFD_SUB_NONE, HFD_PATCH_MERGE, "fieldManager=m",
                                                   "{\"data\":{\"a\":\"4\"}}"),
                                 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_put_and_a_patch_store_the_same,
                                                api_fixture_set_up_by_hand, api_fixture_tear_down),
                API_TEST(test_an_object_with_a_broken_list_is_unreadable),
                API_TEST(test_a_patch_of_managed_fields_has_its_effect),
                API_TEST(test_a_list_from_the_client_replaces_the_stored_one),
                API_TEST(test_names_from_the_client_are_short_and_printable),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
