/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists, selectors, and the other formats of a response, through the loopback client over the
 * memory store.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api_core_request.h"
#include "api_fixture.h"
#include "base/buf.h"
#include "base/json.h"
#include "server/handlers/documents/aggregated_discovery.h"
#include "server/handlers/documents/discovery.h"
#include "server/handlers/openapi/openapi.h"
#include "server/resources/custom/served_rows.h"
#include "server/resources/rows/resource_table.h"

/*
 * The workspace's namespace is ws-<name>, which is a label. With a longer name it could never
 * become Ready.
 */
static void test_workspace_names_are_limited_to_60_characters(void **state) {
        struct api_fixture *f = *state;
        char body[200];

        for (int n = 59; n <= 62; n++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%.*s\"}}", n,
                               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
                assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL,
                                                     NULL, body),
                                 n <= 60 ? 0 : HF_E_INVALID);
        }
        assert_non_null(strstr(f->last.body, "must be no more than 60 characters"));
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"a.b\"}}"),
                         HF_E_INVALID);
}

static void test_a_selector_has_a_limit_of_requirements(void **state) {
        struct api_fixture *f = *state;
        char query[600] = "labelSelector=";

        for (int i = 0; i < 65; i++)
                (void)snprintf(query + strlen(query), sizeof query - strlen(query), "%sk%d",
                               i > 0 ? "," : "", i);
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_workspaces, NULL, NULL, query,
                                             NULL),
                         HF_E_INVALID);
        assert_non_null(
                strstr(f->last.status.message, "more than 64 requirements in the label selector"));
}

static void test_selectors_filter_lists(void **state) {
        static const char *const wrong[] = {"a%3D%3D%3Db",  "a!%3D!b",        "a%3Db+c",
                                            "a%3Db)",       "a+in+(x%3Dy)",   "a%3D-b",
                                            "-a%3Db",       "a/%3Db",         "a//b",
                                            "/a%3Db",       "a%3Ex",          "a%3C",
                                            "a+in+(b,c+d)", "a+notin+(b,-c)", "!a/",
                                            "A/b/c%3Dd",    "parity%3E-1"};
        struct api_fixture *f = *state;
        char query[80];

        api_fixture_make_workspaces(f, 10);
        assert_int_equal(api_fixture_n_selected(f, NULL), 10);
        assert_string_equal(api_fixture_text_at(f, "kind"), "WorkspaceList");
        assert_int_equal(api_fixture_n_selected(f, "labelSelector=parity%3Dodd"), 5);
        assert_int_equal(api_fixture_n_selected(f, "labelSelector=parity!%3Dodd"), 5);
        assert_int_equal(api_fixture_n_selected(f,
                                                "labelSelector=parity+in+(odd,even),a.b/n%3D%3D3"),
                         1);
        assert_int_equal(api_fixture_n_selected(f, "labelSelector=parity+notin+(odd)"), 5);
        assert_int_equal(api_fixture_n_selected(f, "labelSelector=!parity"), 0);
        assert_int_equal(api_fixture_n_selected(f, "labelSelector=parity"), 10);
        assert_int_equal(api_fixture_n_selected(f, "labelSelector=a.b/n%3E7"), 2);
        assert_int_equal(api_fixture_n_selected(f, "labelSelector=a.b/n%3C2"), 2);
        /* "odd" and "even" are not 0 */
        assert_int_equal(api_fixture_n_selected(f, "labelSelector=parity%3C1"), 0);
        assert_int_equal(api_fixture_n_selected(f, "fieldSelector=metadata.name%3Dw03"), 1);
        assert_int_equal(api_fixture_n_selected(f, "fieldSelector=metadata.name!%3Dw03"), 9);
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_workspaces, NULL, NULL,
                                             "labelSelector=a+b+c", NULL),
                         HF_E_INVALID);
        assert_int_equal(api_fixture_n_selected(f, "labelSelector=parity%3D"), 0);
        assert_int_equal(api_fixture_n_selected(f, "labelSelector=parity+in+()"), 0);
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
                (void)snprintf(query, sizeof query, "labelSelector=%s", wrong[i]);
                assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_workspaces, NULL, NULL,
                                                     query, NULL),
                                 HF_E_INVALID);
        }
}

static void test_pages_of_a_list_show_one_revision(void **state) {
        struct api_fixture *f = *state;
        char token[600], revision[32], query[700];

        api_fixture_make_workspaces(f, 10);
        assert_int_equal(api_fixture_n_selected(f, "limit=4"), 4);
        (void)snprintf(token, sizeof token, "%s", api_fixture_text_at(f, "metadata.continue"));
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_non_null(strstr(f->last.body, "\"remainingItemCount\":6"));
        /* An object created between two pages is not in the list: all pages are of one revision. */
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"w055\"}}"),
                         0);
        (void)snprintf(query, sizeof query, "limit=4&continue=%s", token);
        assert_int_equal(api_fixture_n_selected(f, query), 4);
        assert_string_equal(api_fixture_text_at(f, "metadata.resourceVersion"), revision);
        assert_null(strstr(f->last.body, "w055"));
        (void)snprintf(query, sizeof query, "limit=4&continue=%s",
                       api_fixture_text_at(f, "metadata.continue"));
        assert_int_equal(api_fixture_n_selected(f, query), 2);
        assert_string_equal(api_fixture_text_at(f, "metadata.continue"), "");
        (void)snprintf(query, sizeof query, "continue=%s&resourceVersion=3", token);
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_workspaces, NULL, NULL, query,
                                             NULL),
                         HF_E_INVALID);
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_workspaces, NULL, NULL,
                                             "continue=bm9uc2Vuc2U", NULL),
                         HF_E_INVALID);
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_workspaces, NULL, NULL,
                                             "resourceVersionMatch=Exact", NULL),
                         HF_E_INVALID);
}

/* The first list of an informer has both. It expects all objects without a token. */
static void test_a_list_of_any_revision_ignores_its_limit(void **state) {
        static const char *const queries[] =
                {"limit=4&resourceVersion=0",
                 "limit=4&resourceVersion=0&resourceVersionMatch=NotOlderThan",
                 "limit=4&resourceVersion=0&labelSelector=parity"};
        struct api_fixture *f = *state;
        char query[700];

        api_fixture_make_workspaces(f, 10);
        assert_int_equal(api_fixture_n_selected(f, NULL), 10); /* now the cache has them */
        for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
                assert_int_equal(api_fixture_n_selected(f, queries[i]), 10);
                assert_string_equal(api_fixture_text_at(f, "metadata.continue"), "");
        }
        assert_int_equal(api_fixture_n_selected(f, "limit=4&resourceVersion="), 4);
        /* A page after the first one has the limit that its client names. */
        (void)snprintf(query, sizeof query, "limit=3&resourceVersion=0&continue=%s",
                       api_fixture_text_at(f, "metadata.continue"));
        assert_int_equal(api_fixture_n_selected(f, query), 3);
}

/* ---- other formats of a response, requested from the registry itself ---- */

static void list_as(struct api_fixture *f, enum hfd_format format) {
        struct api_core_request request = {.request = {.verb = HFD_LIST, .format = format}};

        request.request.resource =
                hfd_resource_find("tenancy.holdfast.dev", "v1alpha1", "workspaces");
        (void)api_core_request_run(f->registry, &request);
        (void)api_fixture_set_last(f, &request.response);
}

static void test_lists_are_rendered_as_tables_and_metadata(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        assert_int_equal(api_fixture_request_subresource(f, api_workspaces, "w", "status",
                                                         "{\"metadata\":{\"name\":\"w\"},"
                                                         "\"status\":{"
                                                         "\"phase\":\"Ready\"}}"),
                         0);
        list_as(f, HFD_AS_TABLE);
        assert_string_equal(api_fixture_text_at(f, "kind"), "Table");
        assert_int_equal(api_fixture_count_at(f, "columnDefinitions"), 3);
        assert_int_equal(api_fixture_count_at(f, "rows"), 1);
        assert_non_null(strstr(f->last.body, "\"cells\":[\"w\",\"Ready\",\""));
        assert_non_null(strstr(f->last.body, "\"object\":{\"kind\":\"PartialObjectMetadata\""));
        list_as(f, HFD_AS_PARTIAL);
        assert_string_equal(api_fixture_text_at(f, "kind"), "PartialObjectMetadataList");
        assert_null(strstr(f->last.body, "\"phase\":")); /* managedFields has "f:phase" */
}

static void test_discovery_serves_every_path(void **state) {
        static const char *const paths[] = {"/api", "/api/v1", "/apis", "/apis/coordination.k8s.io",
                                            "/apis/coordination.k8s.io/v1"};
        int code;

        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
                struct hf__json *json = NULL;
                struct hf__buf *buf = hfd_discovery(NULL, paths[i], &code);
                assert_int_equal(code, 200);
                assert_int_equal(hf__json_parse(buf->data, buf->n, &json, NULL), 0);
                hf__json_free(json);
                hf__buf_unref(buf);
        }
        assert_null(hfd_discovery(NULL, "/apis/apps", &code));
        assert_int_equal(code, 404);
        assert_null(hfd_discovery(NULL, "/apis/coordination.k8s.io/v9", &code));
}

static void test_openapi_describes_every_version(void **state) {
        static const char *const paths[] = {"/openapi/v2", "/openapi/v3", "/openapi/v3/",
                                            "/openapi/v3/api/v1",
                                            "/openapi/v3/apis/tenancy.holdfast.dev/v1alpha1"};
        static const char *const others[] = {"/openapi/", "/openapi/v3/api/v9",
                                             "/openapi/v3/apis//v1", "/openapi/v3/apis/apps",
                                             "/openapi/v3/apis/coordination.k8s.io/v9"};
        struct hfd_served_rows *rows = hfd_served_rows_new(NULL);
        struct hfd_openapi_document document;

        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
                struct hf__json *json = NULL;
                assert_true(hfd_openapi_find(rows, paths[i], &document));
                struct hf__buf *buf = hfd_openapi_render(rows, &document, NULL, NULL);
                assert_int_equal(hf__json_parse(buf->data, buf->n, &json, NULL), 0);
                hf__json_free(json);
                hf__buf_unref(buf);
        }
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
                assert_false(hfd_openapi_find(rows, others[i], &document));
        assert_true(hfd_openapi_find(rows, "/openapi/v2", &document));
        struct hf__buf *json = hfd_openapi_render(rows, &document, NULL, NULL);
        struct hf__buf *v2 = hfd_openapi_to_protobuf(&document, json);
        hf__buf_unref(json);
        hfd_served_rows_free(rows);
        assert_memory_equal(v2->data,
                            "\x0a\x03"
                            "2.0\x12",
                            6);
        assert_non_null(memmem(v2->data, v2->n, "/leases/{name}", 14));
        assert_null(memmem(v2->data, v2->n, "accessreviews/{name}",
                           20)); /* no such path: reviews can only be created */
        hf__buf_unref(v2);
}

/* A subresource of another kind names its group and version only if they are not the resource's. */
static void test_discovery_names_only_foreign_kinds_in_full(void **state) {
        int code;

        hfd_resources_add_workloads();
        struct hf__buf *plain = hfd_discovery(NULL, "/api/v1", &code);
        assert_non_null(strstr(plain->data, "{\"name\":\"pods/binding\",\"singularName\":\"\","
                                            "\"namespaced\":true,\"kind\":\"Binding\","));
        assert_non_null(strstr(plain->data,
                               "{\"name\":\"pods/eviction\",\"singularName\":\"\","
                               "\"namespaced\":true,\"group\":\"policy\",\"version\":\"v1\","
                               "\"kind\":\"Eviction\","));
        hf__buf_unref(plain);
        struct hf__buf *aggregated = hfd_aggregated_discovery(NULL, true, "v2");
        assert_non_null(strstr(aggregated->data,
                               "{\"subresource\":\"binding\",\"responseKind\":{\"group\":\"\","
                               "\"version\":\"\",\"kind\":\"Binding\"},"));
        assert_non_null(strstr(aggregated->data,
                               "{\"subresource\":\"eviction\",\"responseKind\":{\"group\":"
                               "\"policy\",\"version\":\"v1\",\"kind\":\"Eviction\"},"));
        hf__buf_unref(aggregated);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_workspace_names_are_limited_to_60_characters),
                API_TEST(test_a_selector_has_a_limit_of_requirements),
                API_TEST(test_selectors_filter_lists),
                API_TEST(test_pages_of_a_list_show_one_revision),
                API_TEST(test_a_list_of_any_revision_ignores_its_limit),
                API_TEST(test_lists_are_rendered_as_tables_and_metadata),
                cmocka_unit_test(test_discovery_serves_every_path),
                cmocka_unit_test(test_openapi_describes_every_version),
                cmocka_unit_test(test_discovery_names_only_foreign_kinds_in_full),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
