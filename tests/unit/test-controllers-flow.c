/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that the controller flow-control writes. */
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

#include "base/json.h"
#include "base/strbuf.h"
#include "server/controllers/flow/flow_core.h"

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static void expect_json(const struct hf__json *json, const char *text) {
        struct hf__strbuf printed = {0};

        hf__json_print(json, &printed);
        assert_string_equal(printed.data, text);
        hf__strbuf_done(&printed);
}

#define OBJECT(generation, annotations, spec)                                                      \
        "{\"metadata\":{\"generation\":" generation annotations "},\"spec\":" spec "}"
#define MARK(value) ",\"annotations\":{\"apf.kubernetes.io/autoupdate-spec\":\"" value "\"}"
#define SAYS(value) "{\"apf.kubernetes.io/autoupdate-spec\":\"" value "\"}"

static void test_what_users_may_keep(void **state) {
        /* The stored object has the spec {"a":1}, and the server's is {"a":2}. */
        static const struct {
                const char *generation, *mark;
                bool mandatory, changed, replaced;
                const char *annotations;
        } cases[] = {
                {"1", MARK("true"), false, true, true, SAYS("true")},
                {"7", MARK("T"), false, true, true, SAYS("T")},
                {"1", MARK("false"), false, false, false, SAYS("false")},
                {"1", MARK("False"), false, false, false, SAYS("False")},
                {"1", "", false, true, true, SAYS("true")},
                {"2", "", false, true, false, SAYS("false")},
                {"2", MARK("maybe"), false, true, false, SAYS("false")},
                {"1", MARK("maybe"), false, true, true, SAYS("true")},
                {"9", MARK("false"), true, true, true, SAYS("true")},
                {"9", "", true, true, true, SAYS("true")},
        };
        struct hf__json *wanted = parse("{\"spec\":{\"a\":2}}");

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char text[400];
                bool changed = false;
                (void)snprintf(text, sizeof text, OBJECT("%s", "%s", "{\"a\":1}"),
                               cases[i].generation, cases[i].mark);
                struct hf__json *object = parse(text);
                assert_int_equal(hfd_flow_revise(object, wanted, cases[i].mandatory, &changed), 0);
                assert_int_equal(changed, cases[i].changed);
                expect_json(hf__json_get(object, "spec"),
                            cases[i].replaced ? "{\"a\":2}" : "{\"a\":1}");
                expect_json(hf__json_path(object, "metadata.annotations"), cases[i].annotations);
                assert_int_equal(hfd_flow_revise(object, wanted, cases[i].mandatory, &changed), 0);
                assert_false(changed);
                hf__json_free(object);
        }
        hf__json_free(wanted);
}

static void test_what_is_kept_for_the_exempt_level_is_the_users(void **state) {
        struct hf__json *wanted = parse("{\"spec\":{\"type\":\"Exempt\",\"exempt\":{\"n\":0}}}"),
                        *object = parse(OBJECT("3", MARK("true"),
                                               "{\"type\":\"Exempt\",\"exempt\":{\"n\":9}}"));
        bool changed = true;

        assert_int_equal(hfd_flow_revise(object, wanted, true, &changed), 0);
        assert_false(changed);
        hf__json_remove(object, "spec.exempt");
        assert_int_equal(hfd_flow_revise(object, wanted, true, &changed), 0);
        assert_true(changed);
        expect_json(hf__json_get(object, "spec"), "{\"type\":\"Exempt\",\"exempt\":{\"n\":0}}");
        hf__json_free(object);
        hf__json_free(wanted);
}

static void test_only_marked_objects_are_leftovers(void **state) {
        static const struct {
                const char *mark;
                bool is_leftover;
        } cases[] = {{MARK("true"), true},
                     {MARK("1"), true},
                     {MARK("false"), false},
                     {MARK("maybe"), false},
                     {"", false}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char text[200];
                (void)snprintf(text, sizeof text, OBJECT("1", "%s", "{}"), cases[i].mark);
                struct hf__json *object = parse(text);
                assert_int_equal(hfd_flow_is_leftover(object), cases[i].is_leftover);
                hf__json_free(object);
        }
}

static void test_the_condition_says_whether_the_level_exists(void **state) {
        struct hf__json *schema =
                parse("{\"spec\":{\"priorityLevelConfiguration\":{\"name\":\"x\"}}}");
        bool changed = false;

        assert_int_equal(hfd_flow_set_dangling(schema, false, "T1", &changed), 0);
        assert_true(changed);
        expect_json(hf__json_path(schema, "status.conditions"),
                    "[{\"type\":\"Dangling\",\"status\":\"True\",\"lastTransitionTime\":\"T1\","
                    "\"reason\":\"NotFound\",\"message\":\"This FlowSchema references the "
                    "PriorityLevelConfiguration object named \\\"x\\\" but there is no such "
                    "object\"}]");
        assert_int_equal(hfd_flow_set_dangling(schema, false, "T2", &changed), 0);
        assert_false(changed);
        assert_int_equal(hfd_flow_set_dangling(schema, true, "T3", &changed), 0);
        assert_true(changed);
        expect_json(hf__json_path(schema, "status.conditions"),
                    "[{\"type\":\"Dangling\",\"status\":\"False\",\"lastTransitionTime\":\"T3\","
                    "\"reason\":\"Found\",\"message\":\"This FlowSchema references the "
                    "PriorityLevelConfiguration object named \\\"x\\\" and it exists\"}]");
        hf__json_free(schema);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_users_may_keep),
                cmocka_unit_test(test_what_is_kept_for_the_exempt_level_is_the_users),
                cmocka_unit_test(test_only_marked_objects_are_leftovers),
                cmocka_unit_test(test_the_condition_says_whether_the_level_exists),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
