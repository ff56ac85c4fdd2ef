/* SPDX-License-Identifier: Apache-2.0 */
/* What the path, method and query of a request say: resource, name, verb, parameters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <holdfast/error.h>

#include "server/filters/request/query.h"
#include "server/filters/request/request_info.h"

struct path_case {
        const char *path, *group, *version, *resource, *ns, *name, *subresource;
};

static void test_resource_paths_are_parsed(void **state) {
        static const struct path_case cases[] = {
                {"/api/v1/namespaces", "", "v1", "namespaces", "", "", ""},
                {"/api/v1/namespaces/", "", "v1", "namespaces", "", "", ""},
                {"/api/v1/namespaces/a", "", "v1", "namespaces", "", "a", ""},
                {"/api/v1/namespaces/a/status", "", "v1", "namespaces", "", "a", "status"},
                {"/api/v1/namespaces/a/finalize", "", "v1", "namespaces", "", "a", "finalize"},
                {"/api/v1/namespaces/a/configmaps", "", "v1", "configmaps", "a", "", ""},
                {"/api/v1/namespaces/a/configmaps/b", "", "v1", "configmaps", "a", "b", ""},
                {"/api/v1/configmaps", "", "v1", "configmaps", "", "", ""},
                {"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x",
                 "coordination.k8s.io", "v1", "leases", "kube-system", "x", ""},
                {"/apis/tenancy.holdfast.dev/v1alpha1/workspaces/w/status", "tenancy.holdfast.dev",
                 "v1alpha1", "workspaces", "", "w", "status"},
                {"/apis/g/v1/things/n/a/b/c", "g", "v1", "things", "", "n", "a/b/c"},
                {"/apis/g/v1/things/system%3Anode", "g", "v1", "things", "", "system:node", ""},
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hfd_request_path path;
                assert_int_equal(hfd_request_path_parse(cases[i].path, &path), 0);
                assert_true(path.is_resource);
                assert_string_equal(path.group, cases[i].group);
                assert_string_equal(path.version, cases[i].version);
                assert_string_equal(path.resource, cases[i].resource);
                assert_string_equal(path.ns, cases[i].ns);
                assert_string_equal(path.name, cases[i].name);
                assert_string_equal(path.subresource, cases[i].subresource);
        }
}

static void test_other_paths_are_not_resources(void **state) {
        static const char *const paths[] = {"/",          "/api",
                                            "/api/",      "/api/v1",
                                            "/apis",      "/apis/g",
                                            "/apis/g/v1", "/apix",
                                            "/healthz",   "/healthz/a/b/c",
                                            "/version",   "/apiv/v1/configmaps"};
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
                struct hfd_request_path path;
                assert_int_equal(hfd_request_path_parse(paths[i], &path), 0);
                assert_false(path.is_resource);
                assert_string_equal(path.resource, "");
                assert_string_equal(path.group, "");
        }
}

static void test_invalid_paths_are_refused(void **state) {
        static const char *const paths[] = {"",
                                            "api",
                                            "//",
                                            "/api//v1",
                                            "/api/v1/../secrets",
                                            "/api/v1/./x",
                                            "/api/v1/configmaps//",
                                            "/api/v1/namespaces/%2e%2e/configmaps",
                                            "/api/v1/namespaces/a%2Fb/configmaps",
                                            "/api/v1/namespaces/a%00b",
                                            "/api/v1/namespaces/a%0ab",
                                            "/api/v1/namespaces/%7f",
                                            "/api/v1/configmaps/%zz",
                                            "/api/v1/configmaps/a%2",
                                            "/api/v1/configmaps/a%",
                                            "/api/v1/configmaps/%ff",
                                            "/api/v1/configmaps/\xc3",
                                            "/api%/v1/configmaps/a",
                                            "/apis%/g/v1/things/a",
                                            "/healthz/../metrics"};
        char long_path[400] = "/api/v1/configmaps/";
        struct hfd_request_path path;
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
                assert_int_equal(hfd_request_path_parse(paths[i], &path), HF_E_INVALID);
        size_t n = strlen(long_path);
        memset(long_path + n, 'a', 254);
        assert_int_equal(hfd_request_path_parse(long_path, &path), HF_E_INVALID);
        long_path[n + 253] = '\0';
        assert_int_equal(hfd_request_path_parse(long_path, &path), 0);
        assert_int_equal(strlen(path.name), 253);
}

static void test_method_and_query_determine_the_verb(void **state) {
        struct hfd_request_path object, collection, other;
        assert_int_equal(hfd_request_path_parse("/api/v1/configmaps/a", &object), 0);
        assert_int_equal(hfd_request_path_parse("/api/v1/configmaps", &collection), 0);
        assert_int_equal(hfd_request_path_parse("/healthz", &other), 0);
        assert_string_equal(hfd_request_verb("GET", &object, ""), "get");
        assert_string_equal(hfd_request_verb("GET", &object, "watch=1"), "get");
        assert_string_equal(hfd_request_verb("GET", &collection, ""), "list");
        assert_string_equal(hfd_request_verb("HEAD", &collection, ""), "list");
        assert_string_equal(hfd_request_verb("HEAD", &collection, "watch=1"), "list");
        assert_string_equal(hfd_request_verb("GET", &collection, "limit=5&watch=true"), "watch");
        assert_string_equal(hfd_request_verb("GET", &collection, "watch"), "watch");
        assert_string_equal(hfd_request_verb("GET", &collection, "watch=0"), "list");
        assert_string_equal(hfd_request_verb("GET", &collection, "watch=False"), "list");
        assert_string_equal(hfd_request_verb("POST", &collection, "watch=1"), "create");
        assert_string_equal(hfd_request_verb("PUT", &object, ""), "update");
        assert_string_equal(hfd_request_verb("PATCH", &object, ""), "patch");
        assert_string_equal(hfd_request_verb("DELETE", &object, ""), "delete");
        assert_string_equal(hfd_request_verb("DELETE", &collection, ""), "deletecollection");
        assert_string_equal(hfd_request_verb("GET", &other, "watch=1"), "get");
        assert_string_equal(hfd_request_verb("POST", &other, ""), "post");
        assert_string_equal(hfd_request_verb("BREW", &object, ""), "");
}

static void test_query_parameters_are_decoded(void **state) {
        const char *query = "a=1&b&exclude=x%2Fy&exclude=two+words&bad=%zz&a%62=3";
        char value[16], tiny[3], name[HF_NAME_MAX + 1];
        const char *cursor;
        assert_int_equal(hfd_query_get(query, "a", value, sizeof value), 0);
        assert_string_equal(value, "1");
        cursor = query;
        assert_int_equal(hfd_query_next(&cursor, "a", value, sizeof value), 0);
        assert_int_equal(hfd_query_next(&cursor, "a", value, sizeof value), HF_E_NOT_FOUND);
        assert_int_equal(hfd_query_get(query, "b", value, sizeof value), 0);
        assert_string_equal(value, "");
        cursor = query;
        assert_int_equal(hfd_query_next(&cursor, "exclude", value, sizeof value), 0);
        assert_string_equal(value, "x/y");
        assert_int_equal(hfd_query_next(&cursor, "exclude", value, sizeof value), 0);
        assert_string_equal(value, "two words");
        assert_int_equal(hfd_query_get(query, "exclude", tiny, sizeof tiny), HF_E_INVALID);
        assert_int_equal(hfd_query_get(query, "bad", value, sizeof value), HF_E_INVALID);
        assert_int_equal(hfd_query_get(query, "ab", value, sizeof value), 0);
        assert_string_equal(value, "3");
        assert_int_equal(hfd_query_get("", "a", value, sizeof value), HF_E_NOT_FOUND);
        assert_true(hfd_query_selected_name("watch=1&fieldSelector=metadata.name%3Dx", name));
        assert_string_equal(name, "x");
        assert_true(hfd_query_selected_name("fieldSelector=metadata.namespace==n,metadata.name==yy",
                                            name));
        assert_string_equal(name, "yy");
        assert_false(hfd_query_selected_name("fieldSelector=metadata.name!=x", name));
        assert_false(hfd_query_selected_name("fieldSelector=metadata.namespace=x", name));
        assert_false(hfd_query_selected_name("", name));
}

/* Otherwise a list could be authorized for one object and have others. */
static void test_a_selected_name_is_a_term_of_the_selector(void **state) {
        static const char *const others[] = {"type!=a\\,metadata.name=b",
                                             "a=\\\\\\,metadata.name=b",
                                             "metadata.name=b\\",
                                             "metadata.name=b\\x",
                                             "metadata.name=a=b",
                                             "metadata.name=a/b",
                                             "metadata.name=..",
                                             "metadata.name=,metadata.name=b"};
        static const struct {
                const char *selector, *name;
        } names[] = {{"metadata.name=a\\,b", "a,b"},
                     {"metadata.name==\\=\\\\", "=\\"},
                     {"type!=a\\\\,metadata.name=b", "b"},
                     {"type!=\\,,metadata.name=b,x=y", "b"}};
        char name[HF_NAME_MAX + 1], query[128];

        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
                (void)snprintf(query, sizeof query, "fieldSelector=%s", others[i]);
                assert_false(hfd_query_selected_name(query, name));
        }
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                (void)snprintf(query, sizeof query, "fieldSelector=%s", names[i].selector);
                assert_true(hfd_query_selected_name(query, name));
                assert_string_equal(name, names[i].name);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_resource_paths_are_parsed),
                cmocka_unit_test(test_other_paths_are_not_resources),
                cmocka_unit_test(test_invalid_paths_are_refused),
                cmocka_unit_test(test_method_and_query_determine_the_verb),
                cmocka_unit_test(test_query_parameters_are_decoded),
                cmocka_unit_test(test_a_selected_name_is_a_term_of_the_selector),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
