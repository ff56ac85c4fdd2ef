/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates that leave the fields of every manager as they are: the test checks which of them are
 * recognized, and that managedFields are then the same as when the sets are built. A list that
 * differs from the stored one is not recognized, so an entry with a foreign member forces the sets.
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
#include "base/json.h"
#include "server/apply/managers.h"
#include "server/apply/ownership.h"
#include "server/apply/renewal.h"

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

        return hfd_renewal_find(apply_fixture_thing, live, object,
                                hf__json_path(live, "metadata.managedFields"), &self, ret_renewal);
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
        static const char *const lists[] = {"spec.items", "spec.ports", "spec.set", "spec.whole"};
        uint64_t seed = 7;
        int n_recognized = 0, n_renewed = 0;

        for (int i = 0; i < 600; i++) {
                struct hf__json *live = apply_fixture_random_thing(&seed, 0);
                struct hfd_writer writer = {"m1", "", "v1", "2026-01-01T00:00:00Z"};
                struct hfd_renewal renewal = {0};
                /* Elements of these lists have steps of other kinds. No update is recognized with
                 * them. */
                for (size_t k = 0; i % 4 > 0 && k < sizeof lists / sizeof lists[0]; k++)
                        hf__json_remove(live, lists[k]);
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
                cmocka_unit_test(test_fields_without_owners),
                cmocka_unit_test(test_random_updates),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
