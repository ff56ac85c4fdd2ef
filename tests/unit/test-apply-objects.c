/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-side apply of objects: which values are merged in which order, which are removed, and
 * which managers conflict. The expected objects are those of Kubernetes.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "apply_fixture.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/apply/apply.h"
#include "server/apply/compare.h"
#include "server/apply/sets/fields_json.h"

/* ---- one object, and those who write it ---- */

static struct hf__json *live;
static struct hfd_apply_failure failure;
static const char *now = "2026-01-01T00:00:00Z";

static int set_up(void **state) {
        live = NULL;
        failure = (struct hfd_apply_failure){0};
        now = "2026-01-01T00:00:00Z";
        return 0;
}

static int tear_down(void **state) {
        live = hf__json_free(live);
        hfd_apply_failure_done(&failure);
        return 0;
}

static int apply_json(const char *manager, const struct hf__json *config, bool force) {
        const struct hfd_writer writer = {manager, "", "v1", now};
        struct hf__json *object = NULL;

        hfd_apply_failure_done(&failure);
        int r = hfd_apply(apply_fixture_thing, live, config, &writer, force, &object, &failure);
        if (r == 0) {
                hf__json_free(live);
                live = object;
        }
        return r;
}

/* spec: members of the spec, without braces. */
static int apply_spec(const char *manager, const char *spec, bool force) {
        char text[4000];

        (void)snprintf(text, sizeof text,
                       "{'apiVersion':'v1','kind':'Thing','metadata':{'name':'t'},'spec':{%s}}",
                       spec);
        struct hf__json *config = apply_fixture_parse(text);
        int r = apply_json(manager, config, force);
        hf__json_free(config);
        return r;
}

static void update_spec(const char *manager, const char *subresource, const char *spec) {
        const struct hfd_writer writer = {manager, subresource, "v1", now};
        char text[4000];

        (void)snprintf(text, sizeof text,
                       "{'apiVersion':'v1','kind':'Thing','metadata':{'name':'t'},'spec':{%s}}",
                       spec);
        struct hf__json *object = apply_fixture_parse(text);
        assert_int_equal(hfd_ownership_update(apply_fixture_thing, live, object, &writer, false,
                                              &(bool){false}),
                         0);
        hf__json_free(live);
        live = object;
}

static const char *spec_text(void) { return apply_fixture_print(hf__json_get(live, "spec")); }

/* The fields that a manager owns; "" = none. */
static const char *owned(const char *manager) {
        const struct hf__json *list = hf__json_path(live, "metadata.managedFields");

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                if (hf__json_has_text(m, "manager", manager))
                        return apply_fixture_print(hf__json_get(m, "fieldsV1"));
        return "";
}

/* ---- merge ---- */

static void test_configurations_are_merged_by_the_types_of_lists_and_maps(void **state) {
        /* what m1 applied, what m2 applies, the result */
        static const char *const table[][3] = {
                {"'text':'a'", "'count':1", "{'text':'a','count':1}"},
                /* A set keeps what others have added. */
                {"'set':['a','b']", "'set':['c']", "{'set':['a','b','c']}"},
                /* The order of the configuration decides, and elements of others stay in place. */
                {"'set':['a','b','c','d']", "'set':['d','c','b','a']", "{'set':['d','c','b','a']}"},
                {"'set':['a','b','c']", "'set':['x','b','y']", "{'set':['a','x','b','c','y']}"},
                {"'set':['a','b','c']", "'set':['c','x','a']", "{'set':['b','c','x','a']}"},
                {"'set':['a','b']", "'set':['x','a']", "{'set':['x','a','b']}"},
                {"'set':[]", "'set':['x']", "{'set':['x']}"},
                {"'items':[{'name':'a','value':'1'},{'name':'b'}]",
                 "'items':[{'name':'b','labels':{'l':'1'}},{'name':'c'}]",
                 "{'items':[{'name':'a','value':'1'},{'name':'b','labels':{'l':'1'}},"
                 "{'name':'c'}]}"},
                /* A key that is omitted has its default. */
                {"'ports':[{'port':1,'protocol':'TCP'},{'port':1,'protocol':'UDP'}]",
                 "'ports':[{'port':1,'name':'a'}]",
                 "{'ports':[{'port':1,'protocol':'TCP','name':'a'},{'port':1,'protocol':'UDP'}]}"},
                {"'wild':{'x':{'a':1},'l':[1]}", "'wild':{'x':{'b':2}}",
                 "{'wild':{'x':{'a':1,'b':2},'l':[1]}}"},
                {"'named':{'a':{'value':'1'}}", "'named':{'a':{'name':'n'},'b':{}}",
                 "{'named':{'a':{'value':'1','name':'n'},'b':{}}}"},
        };

        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                live = hf__json_free(live);
                assert_int_equal(apply_spec("m1", table[i][0], false), 0);
                if (apply_spec("m2", table[i][1], false) != 0)
                        fail_msg("%s: %s", table[i][1], failure.message.data);
                assert_string_equal(spec_text(), table[i][2]);
        }
}

static void test_values_that_are_one_field_are_replaced(void **state) {
        static const char *const table[][4] = {
                {"'atomicList':['a','b']", "'atomicList':['c']", "{'atomicList':['c']}",
                 ".spec.atomicList"},
                {"'atomicMap':{'a':'1'}", "'atomicMap':{'b':'2'}", "{'atomicMap':{'b':'2'}}",
                 ".spec.atomicMap"},
                {"'selector':{'name':'a'}", "'selector':{'value':'b'}",
                 "{'selector':{'value':'b'}}", ".spec.selector"},
                {"'whole':[{'name':'a','value':'1'}]", "'whole':[{'name':'a','value':'2'}]",
                 "{'whole':[{'name':'a','value':'2'}]}", ".spec.whole[name=\"a\"]"},
                {"'wild':{'l':[1,2]}", "'wild':{'l':[3]}", "{'wild':{'l':[3]}}", ".spec.wild.l"},
                {"'wild':{'l':{'a':1}}", "'wild':{'l':3}", "{'wild':{'l':3}}", NULL},
        };

        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                live = hf__json_free(live);
                assert_int_equal(apply_spec("m1", table[i][0], false), 0);
                if (table[i][3]) {
                        assert_int_equal(apply_spec("m2", table[i][1], false), HF_E_CONFLICT);
                        assert_string_equal(hf__json_string(hf__json_first(failure.causes),
                                                            "field"),
                                            table[i][3]);
                }
                assert_int_equal(apply_spec("m2", table[i][1], true), 0);
                assert_string_equal(spec_text(), table[i][2]);
        }
}

static void test_configurations_with_wrong_lists_are_refused(void **state) {
        static const char *const table[][2] = {
                {"'set':['a','b','a']", ".spec.set: duplicate entries for key [=\"a\"]"},
                {"'items':[{'name':'a'},{'name':'a'}]",
                 ".spec.items: duplicate entries for key [name=\"a\"]"},
                {"'ports':[{'port':1},{'port':1,'protocol':'TCP'}]",
                 ".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]"},
                {"'items':[{'name':'a'},{'value':'a'}]",
                 ".spec.items: element 1: associative list with keys has an element that omits all "
                 "key fields [\"name\"] (and doesn't have default values for any key fields)"},
                {"'items':[1]",
                 ".spec.items: element 0: associative list with keys may not have non-map "
                 "elements"},
                {"'set':[{}]",
                 ".spec.set: element 0: associative list without keys has an element that's a map "
                 "type"},
        };

        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                assert_int_equal(apply_spec("m1", table[i][0], false), HF_E_INVALID);
                assert_string_equal(failure.message.data, table[i][1]);
        }
}

/* ---- removal ---- */

static void test_what_is_applied_no_more_is_removed_unless_others_own_it(void **state) {
        /* what m1 applied, what m2 applied, what m1 applies now, the result */
        static const char *const table[][4] = {
                {"'text':'a','count':1", "", "'text':'a'", "{'text':'a'}"},
                {"'text':'a','count':1", "'count':1", "'text':'a'", "{'text':'a','count':1}"},
                {"'set':['a','b']", "'set':['b']", "'set':['c']", "{'set':['b','c']}"},
                {"'items':[{'name':'a','value':'1'}]", "'items':[{'name':'a'}]", "'count':1",
                 "{'items':[{'name':'a'}],'count':1}"},
                {"'items':[{'name':'a','value':'1'},{'name':'b'}]", "", "'items':[{'name':'b'}]",
                 "{'items':[{'name':'b'}]}"},
                {"'items':[{'name':'a'},{'name':'b'}]", "", "'count':1", "{'count':1}"},
                {"'named':{'a':{'value':'1','labels':{'l':'1'}}}", "",
                 "'named':{'a':{'value':'1'}}", "{'named':{'a':{'value':'1'}}}"},
                {"'atomicMap':{'a':'1'},'count':1", "", "'count':1", "{'count':1}"},
                {"'wild':{'x':{'y':1}}", "'wild':{'x':{'z':2}}", "'count':1",
                 "{'wild':{'x':{'z':2}},'count':1}"},
        };

        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                live = hf__json_free(live);
                assert_int_equal(apply_spec("m1", table[i][0], false), 0);
                assert_int_equal(apply_spec("m2", table[i][1], false), 0);
                assert_int_equal(apply_spec("m1", table[i][2], false), 0);
                assert_string_equal(spec_text(), table[i][3]);
        }
}

static void test_fields_that_a_manager_has_not_applied_are_not_removed(void **state) {
        update_spec("u", "", "'text':'a','set':['x'],'items':[{'name':'i'}]");
        assert_int_equal(apply_spec("m1", "'count':1", false), 0);
        assert_int_equal(apply_spec("m1", "'count':2", false), 0);
        assert_string_equal(spec_text(),
                            "{'text':'a','set':['x'],'items':[{'name':'i'}],'count':2}");
}

/* An entry that a client has written owns an element, and nothing in it. */
static void own_element(const char *manager, const char *element) {
        struct hf__json *list = hf__json_path(live, "metadata.managedFields");
        char text[500];

        (void)snprintf(text, sizeof text,
                       "{'manager':'%s','operation':'Update','apiVersion':'v1','fieldsType':"
                       "'FieldsV1','fieldsV1':{'f:spec':{'f:items':{'k:{\\'name\\':\\'%s\\'}':"
                       "{}}}}}",
                       manager, element);
        assert_int_equal(hf__json_append(list, apply_fixture_parse(text)), 0);
}

static void test_an_element_that_stays_keeps_its_keys(void **state) {
        assert_int_equal(apply_spec("m1", "'items':[{'name':'x'},{'name':'y'}]", false), 0);
        own_element("m2", "x");
        assert_int_equal(apply_spec("m1", "'items':[{'name':'y','value':'1'}]", false), 0);
        assert_string_equal(spec_text(), "{'items':[{'name':'x'},{'name':'y','value':'1'}]}");
        assert_string_equal(owned("m2"), "{'f:spec':{'f:items':{'k:{\\'name\\':\\'x\\'}':{}}}}");
        /* Other members of such an element go. */
        assert_int_equal(apply_spec("m1", "'items':[{'name':'x','value':'2'}]", false), 0);
        assert_int_equal(apply_spec("m1", "'count':1", false), 0);
        assert_string_equal(spec_text(), "{'items':[{'name':'x'}],'count':1}");
}

static void test_lists_that_become_empty_are_removed(void **state) {
        update_spec("u", "", "'set':[],'text':'a'");
        assert_int_equal(apply_spec("m1", "'set':['a'],'count':1", false), 0);
        assert_int_equal(apply_spec("m1", "'count':1", false), 0);
        assert_string_equal(spec_text(), "{'text':'a','count':1}");
        /* An empty list that is applied stays. */
        assert_int_equal(apply_spec("m2", "'named':{'a':{'value':'1'}}", false), 0);
        assert_int_equal(apply_spec("m2", "'named':{}", false), 0);
        assert_string_equal(spec_text(), "{'text':'a','count':1,'named':{}}");
}

/* ---- conflicts ---- */

static void test_the_same_value_is_shared(void **state) {
        assert_int_equal(apply_spec("m1", "'text':'a'", false), 0);
        assert_int_equal(apply_spec("m2", "'text':'a'", false), 0);
        assert_string_equal(owned("m1"), "{'f:spec':{'f:text':{}}}");
        assert_string_equal(owned("m2"), "{'f:spec':{'f:text':{}}}");
        assert_int_equal(apply_spec("m1", "'text':'b'", false), HF_E_CONFLICT);
}

static void test_one_conflict_is_named_in_one_line(void **state) {
        update_spec("m1", "", "'text':'a'");
        assert_int_equal(apply_spec("m2", "'text':'b'", false), HF_E_CONFLICT);
        assert_string_equal(failure.message.data, "Apply failed with 1 conflict: conflict with "
                                                  "\"m1\" using v1: .spec.text");
        assert_string_equal(apply_fixture_print(failure.causes),
                            "[{'reason':'FieldManagerConflict','message':'conflict with "
                            "\\'m1\\' using v1','field':'.spec.text'}]");
        assert_string_equal(spec_text(), "{'text':'a'}");
}

static void test_conflicts_are_listed_by_manager(void **state) {
        assert_int_equal(apply_spec("m2", "'count':1", false), 0);
        update_spec("m1", "", "'count':1,'text':'a','set':['x'],'named':{'a':{'value':'1'}}");
        update_spec("m1", "status", "'count':1,'text':'a','set':['x'],'named':{'a':{'value':'2'}}");
        assert_int_equal(apply_spec("m3", "'count':2,'text':'b','named':{'a':{'value':'3'}}",
                                    false),
                         HF_E_CONFLICT);
        assert_string_equal(failure.message.data,
                            "Apply failed with 3 conflicts: "
                            "conflicts with \"m1\" with subresource \"status\" using v1:\n"
                            "- .spec.named.a.value\n"
                            "conflicts with \"m1\" using v1:\n"
                            "- .spec.text\n"
                            "conflicts with \"m2\":\n"
                            "- .spec.count");
        assert_int_equal(hf__json_count(failure.causes), 3);
}

/* Their names are sorted as JSON of Go, which ends them with a quote. */
static void test_conflicting_managers_have_the_order_of_kubernetes(void **state) {
        static const char *const names[] = {"m b", "m!",    "m",  "m#", "m[",
                                            "m\n", "m\x01", "m<", "ma"};
        static const char *const shown[] = {"m b",  "m!",       "m",  "m#", "m[",
                                            "m\\n", "m\\u0001", "m<", "ma"};
        enum { N = sizeof names / sizeof names[0] };
        const char *at;

        for (size_t i = 0; i < N; i++)
                assert_int_equal(apply_spec(names[i], "'text':'a'", false), 0);
        assert_int_equal(apply_spec("other", "'text':'b'", false), HF_E_CONFLICT);
        at = failure.message.data;
        for (size_t i = 0; i < N; i++) {
                char name[16];
                (void)snprintf(name, sizeof name, "\"%s\":", shown[i]);
                at = strstr(at, name);
                if (!at)
                        fail_msg("%s is not in its place: %s", name, failure.message.data);
        }
}

/* The version that a manager has applied does not decide, so the longer name of a subresource comes
 * first. The managers of updates are sorted by their versions. */
static void test_the_version_that_was_applied_is_not_in_the_order_of_managers(void **state) {
        static const char object[] =
                "{'apiVersion':'v1','kind':'Thing','metadata':{'name':'t','managedFields':["
                "{'manager':'m','operation':'%s','apiVersion':'v1','fieldsType':'FieldsV1',"
                "'fieldsV1':{'f:spec':{'f:text':{}}}},"
                "{'manager':'m','operation':'%s','apiVersion':'v2','fieldsType':'FieldsV1',"
                "'fieldsV1':{'f:spec':{'f:count':{}}},'subresource':'status'}]},"
                "'spec':{'text':'a','count':1}}";
        static const struct {
                const char *operation, *first;
        } rows[] = {{"Apply", ".spec.count"}, {"Update", ".spec.text"}};
        char text[1000];

        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                (void)snprintf(text, sizeof text, object, rows[i].operation, rows[i].operation);
                hf__json_free(live);
                live = apply_fixture_parse(text);
                assert_int_equal(apply_spec("other", "'text':'b','count':2", false), HF_E_CONFLICT);
                assert_int_equal(hf__json_count(failure.causes), 2);
                assert_string_equal(hf__json_string(hf__json_first(failure.causes), "field"),
                                    rows[i].first);
        }
}

static void test_force_takes_fields_over(void **state) {
        assert_int_equal(apply_spec("m1", "'text':'a','count':1", false), 0);
        assert_int_equal(apply_spec("m2", "'text':'b'", true), 0);
        assert_string_equal(spec_text(), "{'text':'b','count':1}");
        assert_string_equal(owned("m1"), "{'f:spec':{'f:count':{}}}");
        assert_string_equal(owned("m2"), "{'f:spec':{'f:text':{}}}");
}

/* An object with many fields of one value. */
static struct hf__json *make_wide(const char *value) {
        struct hf__strbuf out = {0};

        hf__strbuf_puts(&out, "{'spec':{'wild':{");
        for (unsigned i = 0; i < 1000; i++)
                hf__strbuf_printf(&out, "%s'k%u':'%s'", i > 0 ? "," : "", i, value);
        hf__strbuf_puts(&out, "}}}");
        struct hf__json *json = apply_fixture_parse(out.data);
        hf__strbuf_done(&out);
        return json;
}

static void test_the_list_of_conflicts_is_limited(void **state) {
        struct hf__json *first = make_wide("1"), *second = make_wide("2");

        assert_int_equal(apply_json("m1", first, false), 0);
        assert_int_equal(apply_json("m2", second, false), HF_E_CONFLICT);
        assert_int_equal(hf__json_count(failure.causes), HFD_CONFLICTS_LISTED_MAX);
        assert_non_null(strstr(failure.message.data, "Apply failed with 1000 conflicts: "));
        hf__json_free(first);
        hf__json_free(second);
}

static void test_a_long_path_is_cut(void **state) {
        struct hf__json *config = apply_fixture_parse("{'spec':{'wild':{}}}");
        struct hf__json *wild = hf__json_path(config, "spec.wild");
        char key[2000];

        memset(key, 'k', sizeof key - 1);
        key[sizeof key - 1] = 0;
        for (int i = 0; i < 2; i++) {
                assert_int_equal(hf__json_put_string(wild, key, i ? "2" : "1"), 0);
                assert_int_equal(apply_json(i ? "m2" : "m1", config, false), i ? HF_E_CONFLICT : 0);
        }
        assert_string_equal(hf__json_string(hf__json_first(failure.causes), "field"),
                            ".spec.wild....");
        hf__json_free(config);
}

static void test_the_name_of_a_manager_is_cut(void **state) {
        char name[5000];

        memset(name, 'm', sizeof name - 1);
        name[sizeof name - 1] = 0;
        assert_int_equal(apply_spec(name, "'text':'1'", false), 0);
        assert_int_equal(apply_spec("m2", "'text':'2'", false), HF_E_CONFLICT);
        const char *cause = hf__json_string(hf__json_first(failure.causes), "message");
        assert_in_range(strlen(cause), HFD_CONFLICTS_NAME_MAX, HFD_CONFLICTS_NAME_MAX + 100);
        assert_string_equal(cause + strlen(cause) - 5, "m\"...");
}

/* ---- properties ---- */

static void assert_same(uint64_t seed, const struct hf__json *a, const struct hf__json *b) {
        if (!hf__json_equal(a, b))
                fail_msg("seed %llu: %s is not %s", (unsigned long long)seed,
                         apply_fixture_print(a), apply_fixture_print(b));
}

static void test_an_apply_that_is_repeated_changes_nothing(void **state) {
        for (uint64_t i = 1; i <= 500; i++) {
                uint64_t seed = i * 104729;
                live = hf__json_free(live);
                for (int k = 0; k < 4; k++) {
                        static const char *const names[] = {"m1", "m2", "m3", "kubectl"};
                        const char *name = names[apply_fixture_random(&seed, 4)];
                        struct hf__json *config = apply_fixture_random_thing(&seed, 0);
                        now = "2026-01-01T00:00:00Z";
                        assert_int_equal(apply_json(name, config, true), 0);
                        struct hf__json *before = hf__json_dup(live);
                        now = "2027-01-01T00:00:00Z";
                        if (apply_json(name, config, false) != 0)
                                fail_msg("seed %llu: %s", (unsigned long long)i,
                                         failure.message.data);
                        assert_same(i, live, before);
                        hf__json_free(before);
                        hf__json_free(config);
                }
        }
}

/* Lists keep the order in which they were applied, so their elements are compared as sets. */
static void sort_lists(struct hf__json *json) {
        struct hf__json *sorted[50], *next;
        size_t n = 0;

        for (struct hf__json *m = hf__json_first(json); m; m = next) {
                next = hf__json_next(m);
                sort_lists(m);
                if (hf__json_is_array(json))
                        sorted[n++] = hf__json_detach(json, m);
        }
        for (size_t i = 0; i < n; i++) {
                size_t least = i;
                for (size_t k = i + 1; k < n; k++)
                        if (strcmp(apply_fixture_print(sorted[k]),
                                   apply_fixture_print(sorted[least])) < 0)
                                least = k;
                struct hf__json *value = sorted[least];
                sorted[least] = sorted[i];
                assert_int_equal(hf__json_append(json, value), 0);
        }
}

static void test_appliers_of_different_fields_commute(void **state) {
        for (uint64_t i = 1; i <= 300; i++) {
                struct hf__json *configs[4], *first = NULL;
                uint64_t seed = i * 15485863;
                for (unsigned k = 0; k < 4; k++)
                        configs[k] = apply_fixture_random_thing(&seed, k + 1);
                for (int turn = 0; turn < 2; turn++) {
                        live = hf__json_free(live);
                        for (int k = 0; k < 4; k++) {
                                static const char *const names[] = {"m0", "m1", "m2", "m3"};
                                int which = turn ? 3 - k : k;
                                assert_int_equal(apply_json(names[which], configs[which], false),
                                                 0);
                        }
                        sort_lists(live);
                        if (!first)
                                first = hf__json_dup(live);
                }
                assert_same(i, live, first);
                hf__json_free(first);
                for (unsigned k = 0; k < 4; k++)
                        hf__json_free(configs[k]);
        }
}

static void test_a_comparison_says_what_a_second_one_undoes(void **state) {
        for (uint64_t i = 1; i <= 1000; i++) {
                uint64_t seed = i * 7919;
                struct hf__json *a = apply_fixture_random_thing(&seed, 0);
                struct hf__json *b = apply_fixture_random_thing(&seed, 0);
                struct hf__arena s;
                hf__arena_init(&s);
                struct hfd_changes there = hfd_compare(&s, apply_fixture_thing, a, b);
                struct hfd_changes back = hfd_compare(&s, apply_fixture_thing, b, a);
                struct hfd_changes none = hfd_compare(&s, apply_fixture_thing, a, a);
                assert_true(hfd_fields_equal(there.added, back.removed));
                assert_true(hfd_fields_equal(there.removed, back.added));
                assert_true(hfd_fields_equal(there.modified, back.modified));
                assert_true(!none.added && !none.modified && !none.removed);
                assert_null(hfd_fields_intersect(&s, there.added, there.modified));
                assert_null(hfd_fields_intersect(&s, there.added, there.removed));
                assert_null(hfd_fields_intersect(&s, there.removed, there.modified));
                hf__arena_deinit(&s);
                hf__json_free(a);
                hf__json_free(b);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_configurations_are_merged_by_the_types_of_lists_and_maps),
                TEST(test_values_that_are_one_field_are_replaced),
                TEST(test_configurations_with_wrong_lists_are_refused),
                TEST(test_what_is_applied_no_more_is_removed_unless_others_own_it),
                TEST(test_fields_that_a_manager_has_not_applied_are_not_removed),
                TEST(test_an_element_that_stays_keeps_its_keys),
                TEST(test_lists_that_become_empty_are_removed),
                TEST(test_the_same_value_is_shared),
                TEST(test_one_conflict_is_named_in_one_line),
                TEST(test_conflicts_are_listed_by_manager),
                TEST(test_conflicting_managers_have_the_order_of_kubernetes),
                TEST(test_the_version_that_was_applied_is_not_in_the_order_of_managers),
                TEST(test_force_takes_fields_over),
                TEST(test_the_list_of_conflicts_is_limited),
                TEST(test_a_long_path_is_cut),
                TEST(test_the_name_of_a_manager_is_cut),
                TEST(test_an_apply_that_is_repeated_changes_nothing),
                TEST(test_appliers_of_different_fields_commute),
                TEST(test_a_comparison_says_what_a_second_one_undoes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
