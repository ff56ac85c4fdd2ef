/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests the rules of webhooks and policies name. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "server/admission/matching/matcher.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static struct hfd_admission_attributes attributes(const char *group, const char *version,
                                                  const char *plural) {
        const struct hfd_resource *row = hfd_resource_find(group, version, plural);

        assert_non_null(row);
        return (struct hfd_admission_attributes){.operation = HFD_ADMIT_CREATE,
                                                 .resource = row,
                                                 .kind = row,
                                                 .subresource = "",
                                                 .ns = row->namespaced ? "default" : "",
                                                 .name = "a"};
}

/* Whether the rule matches the request. Checks that `wants` then returns true as well. */
static bool matches(const char *rule, const struct hfd_admission_attributes *of, bool equivalent) {
        struct hf__json *json = parse(rule), *list = hf__json_array();
        struct hfd_rules *rules = NULL;

        assert_int_equal(hf__json_append(list, json), 0);
        assert_int_equal(hfd_rules_new(list, &rules), 0);
        bool found = hfd_rules_match(rules, of, equivalent) != NULL;
        if (found)
                assert_true(hfd_rules_may_match(rules, of, equivalent));
        free(rules);
        hf__json_free(list);
        return found;
}

#define RULE(groups, versions, operations, resources, more)                                        \
        "{\"apiGroups\":[" groups "],\"apiVersions\":[" versions "],\"operations\":[" operations   \
        "],\"resources\":[" resources "]" more "}"

static void a_rule_names_operation_group_version_and_resource(void **state) {
        struct hfd_admission_attributes of = attributes("", "v1", "configmaps");
        static const struct {
                const char *rule;
                bool matches;
        } cases[] = {
                {RULE("\"\"", "\"v1\"", "\"CREATE\"", "\"configmaps\"", ""), true},
                {RULE("\"*\"", "\"*\"", "\"*\"", "\"*\"", ""), true},
                {RULE("\"*\"", "\"*\"", "\"*\"", "\"*/*\"", ""), true},
                {RULE("\"\"", "\"v1\"", "\"UPDATE\",\"DELETE\"", "\"configmaps\"", ""), false},
                {RULE("\"apps\"", "\"v1\"", "\"CREATE\"", "\"configmaps\"", ""), false},
                {RULE("\"\"", "\"v2\"", "\"CREATE\"", "\"configmaps\"", ""), false},
                {RULE("\"\"", "\"v1\"", "\"CREATE\"", "\"secrets\"", ""), false},
                {RULE("\"\"", "\"v1\"", "\"CREATE\"", "\"configmaps/status\"", ""), false},
                {RULE("\"\"", "\"v1\"", "\"CREATE\"", "\"configmaps/*\"", ""), true},
                {RULE("\"\"", "\"v1\"", "\"CREATE\"", "\"config\"", ""), false},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                assert_int_equal(matches(cases[i].rule, &of, false), cases[i].matches);
}

static void a_subresource_needs_to_be_named(void **state) {
        struct hfd_admission_attributes of = attributes("", "v1", "namespaces");

        of.subresource = "status";
        assert_false(matches(RULE("\"\"", "\"v1\"", "\"*\"", "\"namespaces\"", ""), &of, false));
        assert_false(matches(RULE("\"\"", "\"v1\"", "\"*\"", "\"*\"", ""), &of, false));
        assert_true(matches(RULE("\"\"", "\"v1\"", "\"*\"", "\"*/status\"", ""), &of, false));
        assert_true(matches(RULE("\"\"", "\"v1\"", "\"*\"", "\"namespaces/*\"", ""), &of, false));
}

static void a_scope_is_that_of_the_resource(void **state) {
        struct hfd_admission_attributes map = attributes("", "v1", "configmaps"),
                                        ns = attributes("", "v1", "namespaces");

        ns.ns = "a"; /* a Namespace has its own name as its namespace, and is cluster-scoped */
        static const char cluster[] =
                RULE("\"\"", "\"v1\"", "\"*\"", "\"*\"", ",\"scope\":\"Cluster\"");
        static const char namespaced[] =
                RULE("\"\"", "\"v1\"", "\"*\"", "\"*\"", ",\"scope\":\"Namespaced\"");
        assert_true(matches(cluster, &ns, false));
        assert_false(matches(namespaced, &ns, false));
        assert_false(matches(cluster, &map, false));
        assert_true(matches(namespaced, &map, false));
}

static void names_restrict_a_rule(void **state) {
        struct hfd_admission_attributes of = attributes("", "v1", "configmaps");
        static const char rule[] =
                RULE("\"\"", "\"v1\"", "\"*\"", "\"*\"", ",\"resourceNames\":[\"b\",\"c\"]");

        assert_false(matches(rule, &of, false));
        of.name = "c";
        assert_true(matches(rule, &of, false));
}

static void an_equivalent_rule_names_another_version_of_the_objects(void **state) {
        struct hfd_admission_attributes of = attributes("events.k8s.io", "v1", "events");
        static const char rule[] = RULE("\"\"", "\"v1\"", "\"*\"", "\"events\"", "");

        assert_false(matches(rule, &of, false));
        assert_true(matches(rule, &of, true));
}

static void a_matcher_knows_excluding_rules_and_selectors_of_objects(void **state) {
        struct hfd_admission_attributes of = attributes("", "v1", "configmaps");
        struct hf__json *json = parse("{\"resourceRules\":[" RULE(
                "\"\"", "\"v1\"", "\"*\"", "\"*\"",
                "") "],\"excludeResourceRules\":[" RULE("\"\"", "\"v1\"", "\"*\"", "\"*\"",
                                                        ",\"resourceNames\":["
                                                        "\"free\"]") "],"
                                                                     "\"objectSele"
                                                                     "ctor\":{"
                                                                     "\"matchLabel"
                                                                     "s\":{\"a\":"
                                                                     "\"b\"}}}");
        struct hf__json *with = parse("{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"),
                        *without = parse("{\"metadata\":{}}");
        struct hfd_response response = {0};
        const struct hfd_resource *as;
        struct hfd_request_labels labels = {0};
        struct hfd_matcher matcher;

        assert_int_equal(hfd_matcher_init(&matcher, json), 0);
        assert_true(hfd_matcher_may_match(&matcher, &of));
        assert_int_equal(hfd_matcher_match(&matcher, &of, with, NULL, &labels, &as, &response),
                         HFD_MATCHER_YES);
        assert_int_equal(hfd_matcher_match(&matcher, &of, without, NULL, &labels, &as, &response),
                         HFD_MATCHER_NO);
        of.old = with; /* the old object counts too */
        assert_int_equal(hfd_matcher_match(&matcher, &of, without, NULL, &labels, &as, &response),
                         HFD_MATCHER_YES);
        of.name = "free";
        assert_int_equal(hfd_matcher_match(&matcher, &of, with, NULL, &labels, &as, &response),
                         HFD_MATCHER_NO);
        hfd_request_labels_done(&labels);
        hfd_matcher_done(&matcher);
        hf__json_free(with);
        hf__json_free(without);
        hf__json_free(json);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_rule_names_operation_group_version_and_resource),
                cmocka_unit_test(a_subresource_needs_to_be_named),
                cmocka_unit_test(a_scope_is_that_of_the_resource),
                cmocka_unit_test(names_restrict_a_rule),
                cmocka_unit_test(an_equivalent_rule_names_another_version_of_the_objects),
                cmocka_unit_test(a_matcher_knows_excluding_rules_and_selectors_of_objects),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
