/* SPDX-License-Identifier: Apache-2.0 */
/* The filters before the handlers: refusals, requests in flight, the shutdown, their metrics. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <holdfast/metrics.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "fake_request.h"
#include "server/filters/filters.h"
#include "server/filters/request_context.h"

static struct hf_host host = {.size = sizeof host};
static struct hfd_router *router;
static struct hfd_auth *auth;
static struct hfd_filters *filters;
/* If set, the handler does not respond, and the test owns the reference to the request. */
static bool hold;

static void handle(void *ctx, struct hfd_http_request *request) {
        assert_string_equal(hfd_request_context(request)->user, "admin");
        if (hold)
                return;
        hfd_http_request_reply(request, 200, "text/plain", NULL, 0, NULL);
        hfd_http_request_unref(request);
}

static void start(bool send_retry_after) {
        const struct hfd_filters_config config = {.router = router,
                                                  .auth = auth,
                                                  .max_inflight = 2,
                                                  .max_mutating_inflight = 1,
                                                  .max_lease_inflight = 1,
                                                  .send_retry_after = send_retry_after};
        assert(hfd_filters_new(&host, &config, &filters) == 0);
        hold = false;
}

static int set_up(void **state) {
        assert(hf_metrics_new(&host.metrics) == 0);
        assert(hfd_router_new(&router) == 0 && hfd_auth_new(&host, NULL, &auth, NULL) == 0);
        assert(hfd_router_add(router, "/api/", handle, NULL) == 0 &&
               hfd_router_add(router, "/apis/", handle, NULL) == 0);
        assert(hfd_router_add(router, "/metrics", handle, NULL) == 0);
        start(true);
        return 0;
}

static int tear_down(void **state) {
        filters = hfd_filters_free(filters);
        router = hfd_router_free(router);
        auth = hfd_auth_free(auth);
        host.metrics = hf_metrics_free(host.metrics);
        return 0;
}

static struct hfd_http_request *send(struct hfd_http_request *request) {
        bool decided = hfd_request_context(request);

        if (!decided && hfd_filters_head(filters, request) == HFD_HTTP_REFUSED)
                hfd_http_request_unref(request);
        else
                hfd_filters_handle(filters, request);
        return request;
}

static void response(struct hfd_http_request *request) {
        hfd_http_request_reply(request, 200, "text/plain", NULL, 0, NULL);
        hfd_http_request_unref(request);
        fake_request_free(request);
}

static void expect_status(struct hfd_http_request *request, int code, const char *reason,
                          const char *message) {
        struct hf__json *json = NULL;
        int64_t said = 0;
        assert_int_equal(request->code, code);
        assert_string_equal(request->content_type, "application/json");
        assert_int_equal(hf__json_parse(request->body, request->n_body, &json, NULL), 0);
        assert_string_equal(hf__json_string(json, "kind"), "Status");
        assert_string_equal(hf__json_string(json, "status"), "Failure");
        assert_string_equal(hf__json_string(json, "reason"), reason);
        assert_string_equal(hf__json_string(json, "message"), message);
        assert_true(hf__json_i64(json, "code", &said) && said == code);
        hf__json_free(json);
        fake_request_free(request);
}

static void expect_text(struct hfd_http_request *request, int code, const char *text,
                        const char *header) {
        assert_int_equal(request->code, code);
        assert_string_equal(request->body, text);
        assert_non_null(strstr(request->headers, header));
        fake_request_free(request);
}

static int authenticate_without_memory(void *ctx, const char *token,
                                       const struct hfd_token_use *use, struct hfd_user *ret_user) {
        return -ENOMEM;
}

/* A client that gets a 401 throws its token away. */
static void test_a_shortage_of_memory_does_not_mean_bad_credentials(void **state) {
        struct hf__json *audiences = hf__json_array();
        const struct hfd_token_authenticator other = {.authenticate = authenticate_without_memory,
                                                      .audiences = audiences};
        struct hfd_http_request *request = fake_request_new("GET", "/api/v1/configmaps", "");

        hfd_auth_use(auth, &other);
        request->authorization = "Bearer good";
        assert_int_equal(send(request)->code, 503);
        assert_non_null(strstr(request->headers, "retry-after: 1\n"));
        fake_request_free(request);
        hf__json_free(audiences);
}

static void test_refusals_have_the_messages_of_kubernetes(void **state) {
        struct hfd_http_request *request = fake_request_new_admin("GET", "/api/v1/configmaps", "");
        request->peer = HFD_PEER_BAD;
        expect_status(send(request), 401, "Unauthorized", "Unauthorized");
        expect_status(send(fake_request_new("GET", "/x", "")), 403, "Forbidden",
                      "forbidden: User \"system:anonymous\" cannot get path \"/x\"");
        expect_status(send(fake_request_new("GET", "/metrics", "")), 403, "Forbidden",
                      "forbidden: User \"system:anonymous\" cannot get path \"/metrics\"");
        expect_status(send(fake_request_new("GET",
                                            "/apis/coordination.k8s.io/v1/namespaces/ns/leases/x",
                                            "")),
                      403, "Forbidden",
                      "leases.coordination.k8s.io \"x\" is forbidden: User \"system:anonymous\" "
                      "cannot get resource \"leases\" in API "
                      "group \"coordination.k8s.io\" in the namespace \"ns\"");
        expect_status(send(fake_request_new("POST", "/api/v1/namespaces/ns/configmaps", "")), 403,
                      "Forbidden",
                      "configmaps is forbidden: User \"system:anonymous\" cannot create resource "
                      "\"configmaps\" in API group \"\" in the "
                      "namespace \"ns\"");
        expect_status(send(fake_request_new("GET", "/api/v1/namespaces", "watch=1")), 403,
                      "Forbidden",
                      "namespaces is forbidden: User \"system:anonymous\" cannot watch resource "
                      "\"namespaces\" in API group \"\" at the "
                      "cluster scope");
        assert_int_equal(hfd_filters_inflight(filters), 0);
}

static void test_bad_paths_and_methods_are_refused(void **state) {
        expect_status(send(fake_request_new_admin("GET", "/api/v1/../x", "")), 400, "BadRequest",
                      "the path is not valid");
        expect_status(send(fake_request_new_admin("BREW", "/api/v1/configmaps", "")), 405,
                      "MethodNotAllowed",
                      "the server does not allow this method on the requested resource");
        expect_text(send(fake_request_new_admin("GET", "/nothing", "")), 404,
                    "404 page not found\n", "nosniff");
}

static struct hfd_http_request *impersonate(const char *name, const char *value, const char *header,
                                            bool admin) {
        struct hfd_http_request *request = admin ? fake_request_new_admin("GET", "/nothing", "")
                                                 : fake_request_new("GET", "/nothing", "");
        size_t n = 0;
        if (name)
                request->given[n++] = (struct hfd_header){name, value};
        request->given[n] = (struct hfd_header){header, "x"};
        return send(request);
}

/* Nothing of an impersonation is ever ignored: the request would run as somebody else. */
static void test_every_part_of_an_impersonation_counts(void **state) {
        static const char *const headers[] = {"impersonate-uid", "impersonate-extra-scopes",
                                              "impersonate-extra-"};
        static const char refused[] = "the headers of the impersonation name no user, too many "
                                      "groups or extra values, or a name that is too long";
        static const char joe[] = "forbidden: User \"joe\" cannot get path \"/nothing\"";
        static const char may_not[] =
                "users \"joe\" is forbidden: User \"system:anonymous\" cannot "
                "impersonate resource \"users\" in API group \"\" at the "
                "cluster scope";

        for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
                expect_status(impersonate(NULL, NULL, headers[i], true), 400, "BadRequest",
                              refused);
                expect_status(impersonate("impersonate-group", "system:masters", headers[i], true),
                              400, "BadRequest", refused);
        }
        for (size_t i = 0; i < 2; i++) {
                expect_status(impersonate("impersonate-user", "joe", headers[i], true), 403,
                              "Forbidden", joe);
                expect_status(impersonate("impersonate-user", "joe", headers[i], false), 403,
                              "Forbidden", may_not);
        }
        expect_status(impersonate("impersonate-user", "joe", "impersonate-extra-", true), 400,
                      "BadRequest", refused);
        expect_status(impersonate("impersonate-user", "joe", "x-impersonate-extra-a", true), 403,
                      "Forbidden", joe);
}

static void expect_too_many(struct hfd_http_request *request) {
        expect_text(send(request), 429, "Too many requests, please try again later.\n",
                    "retry-after: 1\n");
}

static void test_request_classes_have_separate_limits(void **state) {
        static const char lease[] = "/apis/coordination.k8s.io/v1/namespaces/n/leases/x";
        hold = true;
        struct hfd_http_request *read1 =
                send(fake_request_new_admin("GET", "/api/v1/configmaps", ""));
        struct hfd_http_request *read2 =
                send(fake_request_new_admin("GET", "/api/v1/configmaps", ""));
        expect_too_many(fake_request_new_admin("GET", "/api/v1/configmaps", ""));
        /* Probes and scrapes are admitted, but not everything that begins like one. */
        expect_too_many(fake_request_new_admin("GET", "/metricsfoo", ""));
        expect_too_many(fake_request_new_admin("GET", "/livezfoo", ""));
        struct hfd_http_request *write =
                send(fake_request_new_admin("PUT", "/api/v1/namespaces/n/configmaps/a", ""));
        expect_too_many(fake_request_new_admin("DELETE", "/api/v1/namespaces/n/configmaps/a", ""));
        struct hfd_http_request *renewal = send(fake_request_new_admin("PUT", lease, ""));
        assert_int_equal(renewal->code, 0);
        expect_too_many(fake_request_new_admin("GET", lease, ""));
        struct hfd_http_request *watch =
                send(fake_request_new_admin("GET", "/api/v1/configmaps", "watch=1"));
        assert_int_equal(watch->code, 0);
        struct hfd_http_request *scrape = send(fake_request_new_admin("GET", "/metrics", ""));
        assert_int_equal(scrape->code, 0);
        assert_int_equal(hfd_filters_inflight(filters), 4);

        response(read1);
        struct hfd_http_request *read3 =
                send(fake_request_new_admin("GET", "/api/v1/configmaps", ""));
        assert_int_equal(read3->code, 0);
        response(read2);
        response(read3);
        response(write);
        response(renewal);
        response(watch);
        response(scrape);
        assert_int_equal(hfd_filters_inflight(filters), 0);
        /* A refused request does not count as in flight. */
        struct hfd_http_request *anonymous = send(fake_request_new("GET", lease, ""));
        assert_int_equal(anonymous->code, 403);
        struct hfd_http_request *again = send(fake_request_new_admin("GET", lease, ""));
        assert_int_equal(again->code, 0);
        response(again);
        fake_request_free(anonymous);
}

static void test_during_shutdown_requests_get_429_with_retry_after(void **state) {
        hold = true;
        struct hfd_http_request *under_way =
                send(fake_request_new_admin("GET", "/api/v1/configmaps", ""));
        hfd_filters_refuse(filters);
        struct hfd_http_request *late =
                send(fake_request_new_admin("GET", "/api/v1/configmaps", "watch=1"));
        assert_non_null(strstr(late->headers, "connection: close\n"));
        expect_text(late, 429, "The apiserver is shutting down, please try again later.\n",
                    "retry-after: 5\n");
        hold = false;
        struct hfd_http_request *scrape = send(fake_request_new_admin("GET", "/metrics", ""));
        assert_int_equal(scrape->code, 200);
        fake_request_free(scrape);
        assert_int_equal(hfd_filters_inflight(filters), 1);
        assert_int_equal(hfd_filters_wait_drained(filters, hf_now(hf_clock_system())),
                         HF_E_TIMEOUT);
        response(under_way);
        assert_int_equal(hfd_filters_wait_drained(filters, HF_NSEC_NEVER), 0);
}

static void test_during_shutdown_requests_get_503(void **state) {
        hfd_filters_free(filters);
        start(false);
        hfd_filters_refuse(filters);
        struct hfd_http_request *late =
                send(fake_request_new_admin("GET", "/api/v1/configmaps", ""));
        assert_non_null(strstr(late->headers, "retry-after: 1\n"));
        assert_non_null(strstr(late->body, "\"details\":{\"causes\":[{\"reason\":\"NotApplied\","));
        assert_non_null(strstr(late->body, "}],\"retryAfterSeconds\":1}"));
        expect_status(late, 503, "ServiceUnavailable", "apiserver is shutting down");
        assert_int_equal(hfd_filters_inflight(filters), 0);
}

static void *wait_drained(void *ctx) {
        *(int *)ctx = hfd_filters_wait_drained(filters, HF_NSEC_NEVER);
        return NULL;
}

static void test_waiting_for_requests_ends_with_the_last_response(void **state) {
        pthread_t thread;
        int result = -1;
        hold = true;
        struct hfd_http_request *first =
                send(fake_request_new_admin("GET", "/api/v1/configmaps", ""));
        struct hfd_http_request *second =
                send(fake_request_new_admin("GET", "/api/v1/configmaps", ""));
        assert_int_equal(pthread_create(&thread, NULL, wait_drained, &result), 0);
        response(first);
        response(second);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(result, 0);
}

static void add_text(void *ctx, const char *text, size_t n) { hf__strbuf_add(ctx, text, n); }

static void test_metrics_have_bounded_labels(void **state) {
        struct hf__strbuf text = {0};
        fake_request_free(
                send(fake_request_new_admin("GET", "/apis/evil.example/v1/madeup123", "")));
        fake_request_free(
                send(fake_request_new_admin("POST", "/api/v1/namespaces/n/configmaps", "")));
        fake_request_free(send(fake_request_new("GET", "/api/v1/configmaps", "")));
        fake_request_free(send(fake_request_new_admin("GET",
                                                      "/apis/coordination.k8s.io/v1alpha2/"
                                                      "leasecandidates",
                                                      "")));
        hf_metrics_write(host.metrics, add_text, &text);
        assert_non_null(strstr(text.data, "apiserver_request_total{verb=\"LIST\",resource="
                                          "\"other\",code=\"200\"} 1\n"));
        assert_non_null(strstr(text.data, "apiserver_request_total{verb=\"POST\",resource="
                                          "\"configmaps\",code=\"200\"} 1\n"));
        assert_non_null(strstr(text.data, "apiserver_request_total{verb=\"LIST\",resource="
                                          "\"configmaps\",code=\"403\"} 1\n"));
        assert_non_null(
                strstr(text.data, "apiserver_request_duration_seconds_count{verb=\"LIST\"} 3\n"));
        assert_non_null(strstr(text.data, "resource=\"leasecandidates\",code=\"200\"} 1\n"));
        assert_non_null(
                strstr(text.data,
                       "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 0\n"));
        assert_null(strstr(text.data, "madeup123"));
        hf__strbuf_done(&text);
}

/*
 * A request whose body is still arriving when the shutdown begins is in flight: the server waits
 * for it and serves it.
 */
static void test_a_request_is_in_flight_from_its_head_on(void **state) {
        hfd_filters_free(filters);
        start(false);
        struct hfd_http_request *early =
                fake_request_new_admin("POST", "/api/v1/namespaces/n/configmaps", "");
        hfd_filters_head(filters, early);
        struct hfd_http_request *broken =
                fake_request_new_admin("POST", "/api/v1/namespaces/n/configmaps", "");
        hfd_filters_head(filters, broken);
        assert_int_equal(hfd_filters_inflight(filters), 2);
        hfd_filters_refuse(filters);
        struct hfd_http_request *late =
                fake_request_new_admin("POST", "/api/v1/namespaces/n/configmaps", "");
        assert_int_equal(hfd_filters_head(filters, late), HFD_HTTP_REFUSED);
        hfd_http_request_unref(late);
        assert_int_equal(hfd_filters_inflight(filters), 2);
        expect_status(late, 503, "ServiceUnavailable", "apiserver is shutting down");
        hfd_http_request_unref(broken); /* the handler never got the request */
        broken->code = 408;             /* the client did not send all of it in time */
        fake_request_free(broken);
        assert_int_equal(hfd_filters_wait_drained(filters, hf_now(hf_clock_system())),
                         HF_E_TIMEOUT);
        send(early);
        assert_int_equal(early->code, 200);
        fake_request_free(early);
        assert_int_equal(hfd_filters_wait_drained(filters, HF_NSEC_NEVER), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_refusals_have_the_messages_of_kubernetes,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_bad_paths_and_methods_are_refused, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_shortage_of_memory_does_not_mean_bad_credentials, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_every_part_of_an_impersonation_counts, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_request_classes_have_separate_limits, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_during_shutdown_requests_get_429_with_retry_after, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_during_shutdown_requests_get_503, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_request_is_in_flight_from_its_head_on,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_waiting_for_requests_ends_with_the_last_response, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_metrics_have_bounded_labels, set_up,
                                                tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
