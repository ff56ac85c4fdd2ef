/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates that leave the fields of every manager as they are: the test checks which of them are
 * recognized, and that managedFields are then the same as when the sets are built, whether the
 * list of the old object was parsed or stays text. A list that differs from the stored one is not
 * recognized, so an entry with a foreign member forces the sets.
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

#include "apply_fixture.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/apply/managers.h"
#include "server/apply/ownership.h"
#include "server/apply/renewal.h"
#include "server/apply/settled.h"

#define OWNED                                                                                      \
        "{'manager':'m1','operation':'Update','apiVersion':'v1','time':'2026-01-01T00:00:00Z',"    \
        "'fieldsType':'FieldsV1','fieldsV1':{'f:data':{'.':{},'f:a':{},'f:b':{}}}}"
#define OTHER                                                                                      \
        "{'manager':'m0','operation':'Update','apiVersion':'v1','time':'2026-01-01T00:00:00Z',"    \
        "'fieldsType':'FieldsV1','fieldsV1':{'f:data':{'f:c':{}}}}"
#define APPLIED                                                                                    \
        "{'manager':'m1','operation':'Apply','apiVersion':'v1','time':'2026-01-01T00:00:00Z',"     \
        "'fieldsType':'FieldsV1','fieldsV1':{'f:data':{'f:c':{}}}}"

static struct hfd_writer writer_of(const char *manager) {
        return (struct hfd_writer){manager, "", "v1", "2026-02-01T00:00:00Z"};
}

static struct hf__json *thing(const char *metadata, const char *rest) {
        char text[4000];

        (void)snprintf(text, sizeof text,
                       "{'apiVersion':'v1','kind':'Thing','metadata':{'name':'t'%s}%s}", metadata,
                       rest);
        return apply_fixture_parse(text);
}

/* Whether the update of live to object is recognized. */
static bool is_recognized(struct hf__json *live, struct hf__json *object,
                          const struct hfd_writer *writer, struct hfd_renewal *ret_renewal) {
        const struct hfd_manager self = {.name = writer->manager,
                                         .subresource = writer->subresource,
                                         .api_version = writer->api_version,
                                         .time = writer->now};

        const struct hf__json *list = hf__json_path(live, "metadata.managedFields");
        struct hf__strbuf text = {0};

        hf__json_print(list, &text);
        bool found = hfd_renewal_find(apply_fixture_thing, live, object, list, text.data, text.n,
                                      &self, ret_renewal);
        if (found && ret_renewal->is_renewed)
                assert_memory_equal(text.data + ret_renewal->time_at - 8, "\"time\":\"", 8);
        hf__strbuf_done(&text);
        return found;
}

/* A copy of live whose list of managers stays text. */
static struct hf__json *with_text(const struct hf__json *live) {
        struct hf__json *copy = hf__json_dup(live), *list;
        struct hf__strbuf text = {0};

        hf__json_print(hf__json_path(copy, "metadata.managedFields"), &text);
        assert_int_equal(hf__json_set_string(copy, "metadata.managedFields", ""), 0);
        list = hf__json_path(copy, "metadata.managedFields");
        assert_int_equal(hf__json_set_raw(list, text.data, text.n), 0);
        hf__strbuf_done(&text);
        return copy;
}

/* Asserts that an update has the same result whether the list of live was parsed or is text. */
static void check_text(const struct hf__json *live, const struct hf__json *object,
                       const struct hfd_writer *writer, bool takes_list) {
        struct hf__json *parsed = hf__json_dup(live), *text = with_text(live),
                        *of_parsed = hf__json_dup(object), *of_text = hf__json_dup(object);
        bool changed, text_changed;

        assert_int_equal(hfd_ownership_update(apply_fixture_thing, parsed, of_parsed, writer,
                                              takes_list, &changed),
                         0);
        assert_int_equal(hfd_ownership_update(apply_fixture_thing, text, of_text, writer,
                                              takes_list, &text_changed),
                         0);
        assert_string_equal(apply_fixture_print(of_parsed), apply_fixture_print(of_text));
        assert_int_equal(changed, text_changed);
        if (!takes_list || !changed) /* otherwise it may have lost its list */
                assert_string_equal(apply_fixture_print(parsed), apply_fixture_print(text));
        if (!changed) /* they are compared once more */
                assert_int_equal(hf__json_equal(parsed, of_parsed), hf__json_equal(text, of_text));
        assert_int_equal(hf__json_expand(of_text, "metadata.managedFields"), 0);
        assert_true(hf__json_equal(of_parsed, of_text));
        hf__json_free(parsed);
        hf__json_free(text);
        hf__json_free(of_parsed);
        hf__json_free(of_text);
}

/* Makes the update, either as it is or with a list that forces the sets. Consumes object. */
static struct hf__json *update(const struct hf__json *live, struct hf__json *object,
                               const struct hfd_writer *writer, bool takes_list, bool makes_sets) {
        struct hf__json *before = hf__json_dup(live), *list;
        bool changed;

        if (makes_sets) {
                list = hf__json_dup(hf__json_path(live, "metadata.managedFields"));
                assert_int_equal(hf__json_put_string(hf__json_first(list), "foreign", "x"), 0);
                assert_int_equal(hf__json_set(object, "metadata.managedFields", list), 0);
        }
        assert_int_equal(hfd_ownership_update(apply_fixture_thing, before, object, writer,
                                              takes_list, &changed),
                         0);
        list = hf__json_path(object, "metadata.managedFields");
        for (struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                hf__json_drop(m, "foreign");
        if (!changed) /* an update that changes nothing is found by another comparison */
                assert_true(hf__json_equal(before, live));
        hf__json_free(before);
        return object;
}

/* Checks that the update has the same result in each way. Returns whether it is recognized.
 * Consumes object. */
static bool check(struct hf__json *live, struct hf__json *object, const struct hfd_writer *writer,
                  struct hfd_renewal *ret_renewal) {
        check_text(live, object, writer, false);
        check_text(live, object, writer, true);
        bool recognized = is_recognized(live, object, writer, ret_renewal);
        struct hf__json *sets = update(live, hf__json_dup(object), writer, false, true),
                        *copied = update(live, hf__json_dup(object), writer, false, false),
                        *taken = update(live, object, writer, true, false);

        assert_string_equal(apply_fixture_print(copied), apply_fixture_print(taken));
        assert_string_equal(apply_fixture_print(hf__json_path(copied, "metadata.managedFields")),
                            apply_fixture_print(hf__json_path(sets, "metadata.managedFields")));
        hf__json_free(sets);
        hf__json_free(copied);
        hf__json_free(taken);
        return recognized;
}

static const struct {
        const char *list, *old, *new, *manager;
        bool is_recognized, is_renewed;
} cases[] = {
        /* The owner changes its own fields, or nothing. */
        {OWNED, ",'data':{'a':'1','b':'2'}", ",'data':{'a':'1','b':'3'}", "m1", true, true},
        {OWNED, ",'data':{'a':'1','b':'2'}", ",'data':{'b':'3','a':'1'}", "m1", true, true},
        {OWNED, ",'data':{'a':'1','b':'2'}", ",'data':{'a':'1','b':'2'}", "m1", true, false},
        {OWNED, ",'data':{'a':'1','b':'2'}", ",'data':{'a':'1','b':'2'}", "m2", true, false},
        {OTHER "," OWNED, ",'data':{'a':'1','c':'2'}", ",'data':{'a':'2','c':'2'}", "m1", true,
         true},
        {APPLIED "," OWNED, ",'data':{'a':'1','c':'2'}", ",'data':{'a':'2','c':'2'}", "m1", true,
         true},
        /* A field is added or removed. */
        {OWNED, ",'data':{'a':'1'}", ",'data':{'a':'1','b':'2'}", "m1", false, false},
        {OWNED, ",'data':{'a':'1','b':'2'}", ",'data':{'a':'1'}", "m1", false, false},
        {OWNED, ",'data':{'a':'1','b':'2'}", "", "m1", false, false},
        {OWNED, ",'data':{'a':'1'}", ",'data':'1'", "m1", false, false},
        /* The writer does not own the field yet, or shares it. */
        {OWNED, ",'data':{'a':'1','b':'2'}", ",'data':{'a':'1','b':'3'}", "m2", false, false},
        {OWNED, ",'data':{'c':'1'}", ",'data':{'c':'2'}", "m1", false, false},
        {OTHER "," OWNED, ",'data':{'c':'1'}", ",'data':{'c':'2'}", "m1", false, false},
        {APPLIED "," OWNED, ",'data':{'c':'1'}", ",'data':{'c':'2'}", "m1", false, false},
        /* The entry would get another position. */
        {OTHER "," OWNED, ",'data':{'c':'1'}", ",'data':{'c':'2'}", "m0", false, false},
        /* The list is not in order, has a manager twice, or is malformed. */
        {OWNED "," OTHER, ",'data':{'a':'1'}", ",'data':{'a':'2'}", "m1", false, false},
        {OWNED "," OWNED, ",'data':{'a':'1'}", ",'data':{'a':'2'}", "m1", false, false},
        {"{'manager':'m1'}", ",'data':{'a':'1'}", ",'data':{'a':'2'}", "m1", false, false},
};

static void test_what_is_recognized(void **state) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                const struct hfd_writer writer = writer_of(cases[i].manager);
                struct hfd_renewal renewal = {0};
                char metadata[3000];
                (void)snprintf(metadata, sizeof metadata, ",'managedFields':[%s]", cases[i].list);
                struct hf__json *live = thing(metadata, cases[i].old);
                bool recognized = check(live, thing("", cases[i].new), &writer, &renewal);
                if (recognized != cases[i].is_recognized ||
                    renewal.is_renewed != cases[i].is_renewed)
                        fail_msg("case %zu: %d, renewed %d", i, recognized, renewal.is_renewed);
                hf__json_free(live);
        }
}

/* ---- lists that stay text ---- */

#define ENTRY(manager, operation, time, more, set)                                                 \
        "{'manager':'" manager "','operation':'" operation "','apiVersion':'v1','time':'" time     \
        "','fieldsType':'FieldsV1','fieldsV1':" set more "}"
#define DATA_A "{'f:data':{'.':{},'f:a':{}}}"
#define DATA_B "{'f:data':{'f:b':{}}}"
#define OLDER  "2026-01-01T00:00:00Z"

static const char *const lists[] = {
        OWNED,
        APPLIED "," OWNED,
        OTHER "," OWNED,
        OWNED "," OTHER,
        OWNED "," OWNED,
        ENTRY("m1", "Update", OLDER, ",'subresource':'status'", DATA_A),
        OWNED "," ENTRY("m1", "Update", OLDER, ",'subresource':'status'", DATA_B),
        ENTRY("m1", "Update", OLDER, ",'subresource':''", DATA_A),
        ENTRY("m1", "Update", "2026-01-01T00:00:00.123456Z", "", DATA_A),
        ENTRY("m1", "Update", "2027-01-01T00:00:00Z", "", DATA_A) "," ENTRY("m2", "Update", OLDER,
                                                                            "", DATA_B),
        ENTRY("m1", "Update", "", "", DATA_A),
        ENTRY("m1", "Apply", OLDER, "", DATA_A),
        ENTRY("m1", "Apply", OLDER, "", DATA_A) "," ENTRY("m2", "Apply", OLDER, "", DATA_A),
        ENTRY("m1", "Other", OLDER, "", DATA_A),
        ENTRY("m\\\"1", "Update", OLDER, "", DATA_A),
        ENTRY("m\xc3\xa4", "Update", OLDER, "", DATA_A),
        ENTRY("m1", "Update", OLDER, ",'foreign':'x'", DATA_A),
        ENTRY("m1", "Update", OLDER, ",'subresource':null", DATA_A),
        ENTRY("m1", "Update", OLDER, "", "{}"),
        ENTRY("m1", "Update", OLDER, "", "null"),
        ENTRY("m1", "Update", OLDER, "", "{'f:data':{'.':{},'x:a':{}}}"),
        ENTRY("m1", "Update", OLDER, "", "{'f:data':{'.':{'f:a':{}}}}"),
        ENTRY("m1", "Update", OLDER, "", "{'f:data':{'f:a':{'f:below':{}}}}"),
        ENTRY("m1", "Update", OLDER, "", "{'f:data':{'f:a':1}}"),
        ENTRY("m1", "Update", OLDER, "", "{'f:spec':{'f:set':{'v:\\\"x\\\"':{}}}}"),
        "{'fieldsV1':" DATA_A ",'fieldsType':'FieldsV1','time':'" OLDER
        "','apiVersion':'v1','operation':'Update','manager':'m1'}",
        "{'operation':'Update','apiVersion':'v1','time':'" OLDER
        "','fieldsType':'FieldsV1','fieldsV1':" DATA_A "}",
        "{'manager':'m1','operation':'Update','apiVersion':'v1','fieldsType':'FieldsV1','fieldsV1'"
        ":" DATA_A "}",
        "{'manager':'m1'}",
        "{}",
        "1",
        "",
};

/* What the client sends as its list; NULL = none, "=" = the list of live. */
static const char *const sent_lists[] = {
        NULL,
        "=",
        "[]",
        "[{}]",
        "null",
        "[1]",
        "'x'",
        "[" OWNED "]",
        "[{'fieldsV1':{'f:data':{'.':{},'f:a':{},'f:b':{}}},'fieldsType':'FieldsV1','time':'" OLDER
        "','apiVersion':'v1','operation':'Update','manager':'m1'}]",
        "[" ENTRY("m9", "Update", OLDER, "", DATA_B) "]",
};

/* The new object, with the list that the client sends. */
static struct hf__json *sent_thing(const struct hf__json *live, const char *rest,
                                   const char *list) {
        struct hf__json *object = thing("", rest), *value = NULL;

        if (!list)
                return object;
        if (*list == '=')
                value = hf__json_dup(hf__json_path(live, "metadata.managedFields"));
        else
                value = apply_fixture_parse(list);
        assert_int_equal(hf__json_set(object, "metadata.managedFields", value), 0);
        return object;
}

static void check_each_object(const struct hf__json *live, const char *sent) {
        static const char *const changes[] = {",'data':{'a':'1','b':'2'}",
                                              ",'data':{'a':'1','b':'3'}",
                                              ",'data':{'a':'0','b':'2'}",
                                              ",'data':{'b':'2','a':'0'}",
                                              ",'data':{'a':'1'}",
                                              ",'data':{'a':'1','b':'2','c':'3'}"};
        static const char *const managers[] = {"m1", "m2", "m\"1", "m\xc3\xa4", ""};
        static const char *const subresources[] = {"", "status"};

        for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
                for (size_t m = 0; m < sizeof managers / sizeof managers[0]; m++)
                        for (size_t k = 0; k < 2; k++) {
                                struct hf__json *object = sent_thing(live, changes[i], sent);
                                struct hfd_writer writer = writer_of(managers[m]);
                                writer.subresource = subresources[k];
                                check_text(live, object, &writer, false);
                                check_text(live, object, &writer, true);
                                hf__json_free(object);
                        }
}

static void test_a_list_that_stays_text_has_the_same_effect(void **state) {
        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
                for (size_t k = 0; k < sizeof sent_lists / sizeof sent_lists[0]; k++) {
                        char metadata[2000];
                        (void)snprintf(metadata, sizeof metadata, ",'managedFields':[%s]",
                                       lists[i]);
                        struct hf__json *live = thing(metadata, ",'data':{'a':'1','b':'2'}");
                        check_each_object(live, sent_lists[k]);
                        hf__json_free(live);
                }
}

/* A list that is a settled one but for a part that is missing, or is another byte. */
static void test_a_broken_text_is_no_settled_list(void **state) {
        static const char text[] =
                "[{\"manager\":\"m\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"t\","
                "\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:data\":{\".\":{},\"f:a\":{}}}}]";
        size_t n = sizeof text - 1;
        char broken[sizeof text + 1];
        struct hf__arena scratch;
        struct hfd_settled settled;

        for (size_t cut = 0; cut <= n; cut++) {
                hf__arena_init(&scratch);
                assert_int_equal(hfd_settled_read(&scratch, apply_fixture_thing, text, cut,
                                                  &settled),
                                 cut == n);
                hf__arena_deinit(&scratch);
        }
        for (size_t at = 0; at < n; at++) {
                memcpy(broken, text, at);
                memcpy(broken + at, text + at + 1, n - at);
                if (strchr("[]{}:,\"", text[at])) {
                        hf__arena_init(&scratch);
                        assert_false(hfd_settled_read(&scratch, apply_fixture_thing, broken, n - 1,
                                                      &settled));
                        hf__arena_deinit(&scratch);
                }
        }
}

/* Another program may store a name twice: its entries are joined when the list is parsed, while a
 * settled one has each entry once. */
static void test_a_list_with_a_name_twice_is_not_settled(void **state) {
        static const char *const sets[] = {"\"f:data\":{\"f:a\":{}},\"f:data\":{\"f:b\":{}}",
                                           "\"f:data\":{\"f:a\":{},\"f:a\":{}}",
                                           "\"f:data\":{\"f:a\":{},\".\":{}}",
                                           "\"f:data\":{\".\":{},\"f:a\":{},\"f:b\":{}}"};
        struct hf__arena scratch;
        struct hfd_settled settled;
        char text[300];

        for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
                (void)snprintf(text, sizeof text,
                               "[{\"manager\":\"m\",\"operation\":\"Update\",\"apiVersion\":"
                               "\"v1\",\"time\":\"t\",\"fieldsType\":\"FieldsV1\","
                               "\"fieldsV1\":{%s}}]",
                               sets[i]);
                hf__arena_init(&scratch);
                assert_int_equal(hfd_settled_read(&scratch, apply_fixture_thing, text, strlen(text),
                                                  &settled),
                                 i == 3);
                hf__arena_deinit(&scratch);
        }
}

/* No manager owns the generation. */
static void test_fields_without_owners(void **state) {
        const struct hfd_writer writer = writer_of("m1");
        struct hfd_renewal renewal = {0};
        struct hf__json *live = thing(",'generation':1,'managedFields':[" OWNED "]", "");

        assert_true(check(live, thing(",'generation':2", ""), &writer, &renewal));
        assert_true(renewal.changed);
        assert_false(renewal.is_renewed);
        hf__json_free(live);
}

/* Changes the values of some fields of an object. */
static void change(uint64_t *seed, struct hf__json *json) {
        for (struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m)) {
                if (hf__json_is_string(m) && apply_fixture_random(seed, 4) == 0 &&
                    strcmp(hf__json_key(m) ? hf__json_key(m) : "", "name") != 0)
                        assert_int_equal(hf__json_set_text(m, "changed"), 0);
                else if (hf__json_is_object(m) && apply_fixture_random(seed, 2) == 0)
                        change(seed, m);
        }
}

/* Random objects, created by one manager and updated by it or another one. */
static void test_random_updates(void **state) {
        static const char *const arrays[] = {"spec.items", "spec.ports", "spec.set", "spec.whole"};
        uint64_t seed = 7;
        int n_recognized = 0, n_renewed = 0;

        for (int i = 0; i < 600; i++) {
                struct hf__json *live = apply_fixture_random_thing(&seed, 0);
                struct hfd_writer writer = {"m1", "", "v1", "2026-01-01T00:00:00Z"};
                struct hfd_renewal renewal = {0};
                /* Elements of these lists have steps of other kinds. No update is recognized with
                 * them. */
                for (size_t k = 0; i % 4 > 0 && k < sizeof arrays / sizeof arrays[0]; k++)
                        hf__json_remove(live, arrays[k]);
                assert_int_equal(hfd_ownership_update(apply_fixture_thing, NULL, live, &writer,
                                                      false, &(bool){false}),
                                 0);
                for (int k = 0; k < 3 && hf__json_path(live, "metadata.managedFields"); k++) {
                        struct hf__json *object = hf__json_dup(live);
                        hf__json_remove(object, "metadata.managedFields");
                        change(&seed, object);
                        writer = writer_of(apply_fixture_random(&seed, 3) > 0 ? "m1" : "m2");
                        renewal = (struct hfd_renewal){0};
                        n_recognized += check(live, hf__json_dup(object), &writer, &renewal);
                        n_renewed += renewal.is_renewed;
                        object = update(live, object, &writer, false, false);
                        hf__json_free(live);
                        live = object;
                }
                hf__json_free(live);
        }
        assert_true(n_recognized > 100);
        assert_true(n_renewed > 20);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_recognized),
                cmocka_unit_test(test_a_list_that_stays_text_has_the_same_effect),
                cmocka_unit_test(test_a_broken_text_is_no_settled_list),
                cmocka_unit_test(test_a_list_with_a_name_twice_is_not_settled),
                cmocka_unit_test(test_fields_without_owners),
                cmocka_unit_test(test_random_updates),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
