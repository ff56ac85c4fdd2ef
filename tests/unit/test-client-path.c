/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of requests, and parts of a JSON text that are found without parsing it. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/http/engine.h"
#include "base/strbuf.h"
#include "client/json_span.h"
#include "client/resource_path.h"
#include "client/rest_servers.h"

static const struct hf_resource core = {.group = "", .version = "v1", .plural = "configmaps"};
static const struct hf_resource leases = {.group = "coordination.k8s.io",
                                          .version = "v1",
                                          .plural = "leases"};

static void expect_path(const struct hf_resource *resource, const char *ns, const char *name,
                        const char *query, const char *expected) {
        struct hf__strbuf out = {0};
        struct hf_request request = {.size = sizeof request,
                                     .resource = *resource,
                                     .ns = ns,
                                     .name = name,
                                     .query = query};

        hf__resource_path(&out, &request);
        assert_int_equal(out.error, 0);
        assert_string_equal(out.data, expected);
        hf__strbuf_done(&out);
}

static void test_request_paths_are_escaped(void **state) {
        expect_path(&core, NULL, NULL, NULL, "/api/v1/configmaps");
        expect_path(&core, "", "", "", "/api/v1/configmaps");
        expect_path(&core, "a", "b", NULL, "/api/v1/namespaces/a/configmaps/b");
        expect_path(&leases, "a", NULL, "limit=1",
                    "/apis/coordination.k8s.io/v1/namespaces/a/leases?limit=1");
        expect_path(&leases, "a", "../x?y z", NULL,
                    "/apis/coordination.k8s.io/v1/namespaces/a/leases/..%2Fx%3Fy%20z");
}

static void test_subresource_paths_are_built(void **state) {
        struct hf__strbuf out = {0};
        struct hf_request request = {.size = sizeof request,
                                     .resource = {"", "v1", "namespaces"},
                                     .name = "a",
                                     .subresource = "finalize"};

        hf__resource_path(&out, &request);
        assert_string_equal(out.data, "/api/v1/namespaces/a/finalize");
        hf__strbuf_reset(&out);
        request.subresource = "";
        hf__resource_path(&out, &request);
        assert_string_equal(out.data, "/api/v1/namespaces/a");
        hf__strbuf_done(&out);
}

static void test_watch_paths_are_built(void **state) {
        struct hf__strbuf out = {0};
        struct hf_watch_spec spec = {.size = sizeof spec, .resource = leases, .ns = "a"};

        hf__watch_path(&out, &spec, 0);
        assert_string_equal(out.data, "/apis/coordination.k8s.io/v1/namespaces/a/leases?watch=1");
        hf__strbuf_reset(&out);
        spec.name = "the/lease";
        spec.query = "labelSelector=x";
        spec.resource_version = "42";
        spec.bookmarks = true;
        hf__watch_path(&out, &spec, 300);
        assert_string_equal(out.data, "/apis/coordination.k8s.io/v1/namespaces/a/"
                                      "leases?watch=1&fieldSelector=metadata.name%3Dthe%2Flease"
                                      "&resourceVersion=42&allowWatchBookmarks=true&labelSelector="
                                      "x&timeoutSeconds=300");
        hf__strbuf_done(&out);
}

/* The scheme of the URL decides whether TLS is used, not the host. */
static void test_a_server_is_reached_over_tls_or_not(void **state) {
        static const struct {
                const char *url, *stored; /* stored NULL: refused */
                bool over_tls;
        } cases[] = {{"https://h", "https://h", true},
                     {"http://h", "http://h", false},
                     {"http://s:1/p//", "http://s:1/p", false},
                     {"https://h:1/", "https://h:1", true},
                     {"https://", NULL, false},
                     {"http:///p", NULL, false},
                     {"https://:1", NULL, false},
                     {"ftp://h", NULL, false},
                     {"http://h?q", NULL, false},
                     {"http://u@h", NULL, false},
                     {"", NULL, false},
                     {NULL, NULL, false}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__rest_servers servers = {0};
                int r = hf__rest_servers_init(&servers, cases[i].url, NULL, 0, NULL);
                assert_int_equal(r, cases[i].stored ? 0 : HF_E_INVALID);
                if (r == 0) {
                        assert_string_equal(servers.urls[0], cases[i].stored);
                        assert_int_equal(servers.over_tls, cases[i].over_tls);
                        assert_int_equal(servers.max_url, strlen(cases[i].stored));
                }
                hf__rest_servers_done(&servers);
        }
}

/* Which failures show that a server does not serve, so that requests begin at the next one. And
 * which allow a read, a write, and a write of the Lease's lane to be sent there, too. */
static void test_a_failure_shows_whether_a_server_is_away(void **state) {
        static const char *const others[] = {"http://b"};
        static const struct {
                int outcome, code;
                bool is_away, read, write, lease;
        } cases[] = {{0, 429, true, false, false, true},
                     {0, 500, false, false, false, false},
                     {0, 502, true, true, false, false},
                     {0, 503, true, true, false, false},
                     {0, 504, true, false, false, false},
                     {0, 404, false, false, false, false},
                     {HF_E_UNAVAILABLE, 0, true, true, true, true},
                     {HF_E_UNAUTHORIZED, 0, true, true, true, true},
                     {HF_E_TIMEOUT, 0, true, true, false, false},
                     {HF_E_TIMEOUT, 200, false, true, false, false},
                     {HF_E_CANCELED, 0, false, false, false, false},
                     {HF_E_TOO_LARGE, 200, false, false, false, false},
                     {-ENOMEM, 0, false, false, false, false}};

        for (size_t i = 0; i < 3 * sizeof cases / sizeof cases[0]; i++) {
                const struct hf__http_result result = {.outcome = cases[i / 3].outcome,
                                                       .code = cases[i / 3].code};
                const bool may_go_on[] = {cases[i / 3].read, cases[i / 3].write,
                                          cases[i / 3].lease};
                const enum hf_lane lane = i % 3 == 2 ? HF_LANE_LEASE : HF_LANE_DEFAULT;
                struct hf__rest_servers servers = {0};
                struct hf__rest_route route;
                assert_int_equal(hf__rest_servers_init(&servers, "http://a", others, 1, NULL), 0);
                hf__rest_route_begin(&route, &servers);
                assert_int_equal(hf__rest_route_failed(&route, &servers, &result, i % 3 != 0, lane,
                                                       0),
                                 false); /* no time is left */
                hf__rest_route_begin(&route, &servers);
                assert_int_equal(route.at, cases[i / 3].is_away);
                assert_int_equal(hf__rest_route_failed(&route, &servers, &result, i % 3 != 0, lane,
                                                       1),
                                 may_go_on[i % 3]);
                assert_true(hf__rest_route_next(&route, &servers));
                assert_false(hf__rest_route_next(&route, &servers));
                hf__rest_servers_done(&servers);
        }
}

static bool member(const char *text, const char *key, struct hf__span *ret_value) {
        return hf__span_member((struct hf__span){text, strlen(text)}, key, ret_value);
}

static void expect_member(const char *text, const char *key, const char *expected) {
        struct hf__span value;
        bool found = member(text, key, &value);

        assert_int_equal(found, expected != NULL);
        if (expected) {
                assert_int_equal(value.n, strlen(expected));
                assert_memory_equal(value.data, expected, value.n);
        }
}

static bool is_plain(const char *text) {
        return hf__span_is_plain((struct hf__span){text, strlen(text)});
}

static void test_a_string_without_escapes_is_plain(void **state) {
        assert_true(is_plain("\"\""));
        assert_true(is_plain("\"a-b.c\""));
        assert_true(is_plain("\"\xc3\xa4\""));
        assert_false(is_plain("\"a\\u0062\""));
        assert_false(is_plain("\"a\nb\""));
        assert_false(is_plain("\"a\"b\""));
        assert_false(is_plain("\"a"));
        assert_false(is_plain("\""));
        assert_false(is_plain("a"));
        assert_false(is_plain(""));
        assert_false(is_plain("null"));
}

static void test_members_are_found_in_a_text(void **state) {
        expect_member("{\"a\":1,\"b\":{\"c\":[1,\"}\"]} , \"d\":\"x\\\"y\"}", "a", "1");
        expect_member("{\"a\":1,\"b\":{\"c\":[1,\"}\"]} , \"d\":\"x\\\"y\"}", "b",
                      "{\"c\":[1,\"}\"]}");
        expect_member(" { \"a\" : 1 , \"d\" : \"x\\\"y\" } ", "d", "\"x\\\"y\"");
        expect_member("{\"b\":{\"a\":1}}", "a", NULL); /* only members of the object itself */
        expect_member("{\"a\":true}", "a", "true");
        expect_member("{}", "a", NULL);
        expect_member("[1]", "a", NULL);
        expect_member("", "a", NULL);
        expect_member("{\"a\":", "a", NULL);
        expect_member("{\"a\":\"x", "a", NULL);
        expect_member("{\"a\":{\"b\":1}", "a",
                      "{\"b\":1}"); /* the member is complete, whatever follows */
        expect_member("{\"a\":{\"b\":1", "a", NULL);
        expect_member("{\"a\":}", "a", NULL);
}

static void expect_elements(const char *text, size_t expected, int end) {
        struct hf__span array = {text, strlen(text)}, element;
        size_t at = 0, n = 0;
        int r;

        while ((r = hf__span_next(array, &at, &element)) > 0)
                n++;
        assert_int_equal(r, end);
        assert_int_equal(n, expected);
}

static void test_elements_are_iterated(void **state) {
        expect_elements("[]", 0, 0);
        expect_elements(" [ ] ", 0, 0);
        expect_elements("[1]", 1, 0);
        expect_elements("[ {\"a\":[1,2]} , [3] ,\"]\", 4 ]", 4, 0);
        expect_elements("[1,2", 1, -EPROTO);
        expect_elements("[1,]", 1, -EPROTO);
        expect_elements("[1 2]", 1, -EPROTO);
        expect_elements("{}", 0, -EPROTO);
        expect_elements("", 0, -EPROTO);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_request_paths_are_escaped),
                cmocka_unit_test(test_subresource_paths_are_built),
                cmocka_unit_test(test_watch_paths_are_built),
                cmocka_unit_test(test_a_server_is_reached_over_tls_or_not),
                cmocka_unit_test(test_a_failure_shows_whether_a_server_is_away),
                cmocka_unit_test(test_a_string_without_escapes_is_plain),
                cmocka_unit_test(test_members_are_found_in_a_text),
                cmocka_unit_test(test_elements_are_iterated),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
