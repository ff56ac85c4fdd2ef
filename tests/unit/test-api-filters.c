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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <holdfast/metrics.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "fake_request.h"
#include "server/auth/files.h"
#include "server/auth/write_file.h"
#include "server/filters/authorization.h"
#include "server/filters/filters.h"
#include "server/filters/request_context.h"
#include "server/flow/flow_levels.h"

static struct hf_host host = {.size = sizeof host};
static struct hfd_router *router;
static struct hfd_auth *auth;
static struct hfd_filters *filters;
static struct hfd_flow_control *flow;
static struct hfd_authorizer *authorizer; /* NULL = only the fixed rules */
static struct hfd_audit *audit;           /* NULL = there is no audit log */
/* If set, the handler does not respond, and the test owns the reference to the request. */
static bool hold;
static int n_handled;

static void handle(void *ctx, struct hfd_http_request *request) {
        assert_int_equal(strcmp(hfd_request_context(request)->user, "admin"), 0);
        n_handled++;
        if (hold)
                return;
        hfd_http_request_reply(request, 200, "text/plain", NULL, 0, NULL);
        hfd_http_request_unref(request);
}

static void start(bool send_retry_after) {
        const struct hfd_filters_config config = {.router = router,
                                                  .auth = auth,
                                                  .authorizer = authorizer,
                                                  .flow = flow,
                                                  .audit = audit,
                                                  .send_retry_after = send_retry_after};
        assert(hfd_filters_new(&host, &config, &filters) == 0);
        hold = false;
        n_handled = 0;
}

static int set_up(void **state) {
        assert(hf_metrics_new(&host.metrics) == 0);
        assert(hfd_router_new(&router) == 0 && hfd_auth_new(&host, NULL, &auth, NULL) == 0);
        assert(hfd_router_add(router, "/api/", handle, NULL) == 0 &&
               hfd_router_add(router, "/apis/", handle, NULL) == 0);
        assert(hfd_router_add(router, "/metrics", handle, NULL) == 0);
        /* Without objects only the two mandatory levels exist, and catch-all has both seats. */
        assert(hfd_flow_control_new(&host, 2, &flow) == 0);
        start(true);
        return 0;
}

/* Every user may do everything, and requests wait in a queue for two seats. */
static int set_up_queue(void **state) {
        static const char level[] = "{\"metadata\":{\"name\":\"queue\"},\"spec\":{\"type\":"
                                    "\"Limited\",\"limited\":{\"nominalConcurrencyShares\":2,"
                                    "\"borrowingLimitPercent\":0,\"limitResponse\":{\"type\":"
                                    "\"Queue\",\"queuing\":{\"queues\":1,\"handSize\":1}}}}}",
                          schema[] = "{\"metadata\":{\"name\":\"users\"},\"spec\":{"
                                     "\"priorityLevelConfiguration\":{\"name\":\"queue\"},"
                                     "\"matchingPrecedence\":9000,\"distinguisherMethod\":{"
                                     "\"type\":\"ByUser\"},\"rules\":[{\"subjects\":[{\"kind\":"
                                     "\"User\",\"user\":{\"name\":\"admin\"}}],"
                                     "\"nonResourceRules\":[{\"verbs\":[\"*\"],"
                                     "\"nonResourceURLs\":[\"*\"]}],\"resourceRules\":[{"
                                     "\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":["
                                     "\"*\"],\"clusterScope\":true,\"namespaces\":[\"*\"]}]}]}}";
        struct hf__json *json = NULL;

        assert(hfd_authorizer_new(&host, HFD_MODE_ALWAYS_ALLOW, &authorizer) == 0);
        (void)set_up(state);
        hfd_filters_free(filters);
        hfd_flow_control_free(flow);
        assert(hfd_flow_control_new(&host, 7, &flow) == 0); /* 5 of the seats are catch-all's */
        start(true);
        struct hfd_flow_builder *builder = hfd_flow_builder_new();
        assert(hf__json_parse(level, strlen(level), &json, NULL) == 0);
        assert(hfd_flow_builder_add_level(builder, json) == 0);
        hf__json_free(json);
        assert(hf__json_parse(schema, strlen(schema), &json, NULL) == 0);
        assert(hfd_flow_builder_add_schema(builder, json) == 0);
        hf__json_free(json);
        return hfd_flow_control_use(flow, builder);
}

static int tear_down(void **state) {
        filters = hfd_filters_free(filters);
        audit = hfd_audit_free(audit);
        flow = hfd_flow_control_free(flow);
        router = hfd_router_free(router);
        auth = hfd_auth_free(auth);
        authorizer = hfd_authorizer_free(authorizer);
        host.metrics = hf_metrics_free(host.metrics);
        return 0;
}

static struct hfd_http_request *send(struct hfd_http_request *request) {
        enum hfd_http_verdict verdict = HFD_HTTP_READ_BODY;

        if (!hfd_request_context(request))
                verdict = hfd_filters_head(filters, request);
        if (verdict == HFD_HTTP_REFUSED || verdict == HFD_HTTP_REFUSED_STRANGER)
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

/* A client that gets a 401 discards its token. */
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

/* Whether the functions below find no memory. */
static bool lacks_requester, lacks_context;

struct hfd_requester *__real_hfd_requester_new(const struct hfd_user *user);
struct hfd_requester *__wrap_hfd_requester_new(const struct hfd_user *user);
struct hfd_requester *__wrap_hfd_requester_new(const struct hfd_user *user) {
        return lacks_requester ? NULL : __real_hfd_requester_new(user);
}

int __real_hfd_request_context_new(struct hfd_filters *of, struct hfd_http_request *request,
                                   const char *user, struct hfd_request_context **ret_context);
int __wrap_hfd_request_context_new(struct hfd_filters *of, struct hfd_http_request *request,
                                   const char *user, struct hfd_request_context **ret_context);
int __wrap_hfd_request_context_new(struct hfd_filters *of, struct hfd_http_request *request,
                                   const char *user, struct hfd_request_context **ret_context) {
        return lacks_context ? -ENOMEM
                             : __real_hfd_request_context_new(of, request, user, ret_context);
}

/* Whether everybody may do everything, the anonymous user too. */
static bool allows_all;

bool __real_hfd_authorization_filter(struct hfd_request_context *context,
                                     const struct hfd_user *user);
bool __wrap_hfd_authorization_filter(struct hfd_request_context *context,
                                     const struct hfd_user *user);
bool __wrap_hfd_authorization_filter(struct hfd_request_context *context,
                                     const struct hfd_user *user) {
        return allows_all || __real_hfd_authorization_filter(context, user);
}

static void check_verdict(struct hfd_http_request *request, enum hfd_http_verdict verdict,
                          int code) {
        assert_int_equal(hfd_filters_head(filters, request), verdict);
        assert_int_equal(request->code, code);
        hfd_http_request_unref(request);
        fake_request_free(request);
}

/* Lack of memory makes nobody known. */
static void test_a_stranger_without_memory_stays_one(void **state) {
        static const char path[] = "/api/v1/namespaces/ns/configmaps";
        struct hfd_http_request *bad = fake_request_new("GET", path, "");

        lacks_requester = allows_all = true;
        check_verdict(fake_request_new("POST", path, ""), HFD_HTTP_REFUSED_STRANGER, 503);
        check_verdict(fake_request_new_admin("POST", path, ""), HFD_HTTP_REFUSED, 503);
        lacks_requester = allows_all = false;
        lacks_context = true;
        check_verdict(fake_request_new("GET", path, ""), HFD_HTTP_REFUSED_STRANGER, 503);
        check_verdict(fake_request_new_admin("GET", path, ""), HFD_HTTP_REFUSED, 503);
        bad->authorization = "Bearer wrong";
        check_verdict(bad, HFD_HTTP_REFUSED_STRANGER, 401);
        lacks_context = false;
}

/* Only of a sender who is known the connection keeps the limits of one. */
static void test_a_refusal_says_whether_the_sender_is_known(void **state) {
        struct hfd_http_request *bad = fake_request_new("GET", "/api/v1/configmaps", ""),
                                *nobody = fake_request_new("GET", "/api/v1/configmaps", ""),
                                *known = fake_request_new_admin("GET", "/api/v1/configmaps",
                                                                "timeout=x");

        bad->authorization = "Bearer wrong";
        assert_int_equal(hfd_filters_head(filters, bad), HFD_HTTP_REFUSED_STRANGER);
        assert_int_equal(hfd_filters_head(filters, nobody), HFD_HTTP_REFUSED_STRANGER);
        assert_int_equal(hfd_filters_head(filters, known), HFD_HTTP_REFUSED);
        for (size_t i = 0; i < 3; i++) {
                struct hfd_http_request *request = i == 0 ? bad : known;
                if (i == 1)
                        request = nobody;
                hfd_http_request_unref(request);
                fake_request_free(request);
        }
}

static char audit_dir[] = "/tmp/hf-filters-XXXXXX", policy_path[64], log_path[64];

/* Begins an audit log of everything. */
static void begin_audit_log(void) {
        static const char policy[] = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
                                     "rules:\n- level: RequestResponse\n";
        struct hfd_audit_config config = {.policy_file = policy_path, .log = {.path = log_path}};
        struct hf_status status = {0};

        (void)strcpy(audit_dir, "/tmp/hf-filters-XXXXXX");
        assert_non_null(mkdtemp(audit_dir));
        (void)snprintf(policy_path, sizeof policy_path, "%s/policy", audit_dir);
        (void)snprintf(log_path, sizeof log_path, "%s/log", audit_dir);
        assert_int_equal(hfd_write_file(policy_path, policy, 0600, &status), 0);
        assert_int_equal(hfd_audit_new(&host, &config, &audit, &status), 0);
        hfd_filters_free(filters);
        start(true);
}

/* Ends the log, and returns its text, which the caller frees. */
static char *end_audit_log(void) {
        struct hf_status status = {0};
        char *log = NULL;

        filters = hfd_filters_free(filters);
        audit = hfd_audit_free(audit);
        assert_int_equal(hfd_read_file(log_path, &log, &status), 0);
        assert_int_equal(unlink(policy_path), 0);
        assert_int_equal(unlink(log_path), 0);
        assert_int_equal(rmdir(audit_dir), 0);
        return log;
}

/* As in Kubernetes, a request that no handler can serve has a record, too. */
static void test_the_audit_log_has_bad_paths_and_methods(void **state) {
        begin_audit_log();
        struct hfd_http_request *requests[] =
                {send(fake_request_new_admin("GET", "/api/v1/../x", "")),
                 send(fake_request_new_admin("BREW", "/api/v1/configmaps", ""))};
        assert_int_equal(requests[0]->code, 400);
        assert_int_equal(requests[1]->code, 405);
        fake_request_free(requests[0]);
        fake_request_free(requests[1]);
        char *log = end_audit_log();
        const char *path = strstr(log, "\"requestURI\":\"/api/v1/../x\"");
        assert_non_null(path);
        assert_non_null(strstr(path, "\"code\":400"));
        const char *method = strstr(path, "\"requestURI\":\"/api/v1/configmaps\"");
        assert_non_null(method);
        assert_non_null(strstr(method, "\"code\":405"));
        free(log);
}

/* The words are those of kube-apiserver. */
static void test_the_audit_log_says_how_a_sender_has_tried(void **state) {
        static const struct {
                const char *header, *query;
                enum hfd_peer_cert peer;
                const char *attempts;
        } cases[] = {
                {"bearer x", "", HFD_PEER_NONE, "bearer"},
                {"Bearer x", "access_token=", HFD_PEER_BAD, "bearer, x509"},
                {"Basic YTpi", "a=1&access_token=long", HFD_PEER_BAD, "basic, access_token, x509"},
                {"Basic YWI=", "access_token=t", HFD_PEER_BAD, "access_token, x509"},
                {"Basic ?", "", HFD_PEER_BAD, "x509"},
                {" Bearer wrong", "", HFD_PEER_BAD, "bearer, x509"},
                {"Bearer  ", "", HFD_PEER_BAD, "x509"},
        };

        begin_audit_log();
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hfd_http_request *request =
                        fake_request_new("GET", "/api/v1/configmaps", cases[i].query);
                request->authorization = cases[i].header;
                request->peer = cases[i].peer;
                expect_status(send(request), 401, "Unauthorized", "Unauthorized");
        }
        char *log = end_audit_log();
        const char *at = log;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char wanted[256];
                (void)snprintf(wanted, sizeof wanted,
                               "\"responseStatus\":{\"metadata\":{},\"message\":\"Authentication "
                               "failed, attempted: %s\",\"code\":401},\"requestReceived",
                               cases[i].attempts);
                at = strstr(at, wanted);
                assert_non_null(at);
        }
        free(log);
}

/* No handler of documents reads the query. */
static void test_a_malformed_timeout_is_refused(void **state) {
        static const char *const good[] = {"timeout=", "timeout=0", "timeout=3m", "timeout=-1s",
                                           "timeout"};
        /* The messages are Go's, and so is the way in which they quote. */
        static const struct {
                const char *query, *message;
        } odd[] = {
                {"timeout=30", "missing unit in duration \"30\""},
                {"timeout=-1m30", "missing unit in duration \"-1m30\""},
                {"x=1&timeout=soon", "invalid duration \"soon\""},
                {"timeout=1h.s", "invalid duration \"1h.s\""},
                {"timeout=-%2B1s", "invalid duration \"-+1s\""},
                {"timeout=9223372036854775808s", "invalid duration \"9223372036854775808s\""},
                {"timeout=1d", "unknown unit \"d\" in duration \"1d\""},
                {"timeout=1.5s2 minutes",
                 "unknown unit \" minutes\" in duration \"1.5s2 minutes\""},
                {"timeout=%22%5C%C3%A9%0A%7F", "invalid duration \"\\\"\\\\\\xc3\\xa9\\x0a\x7f\""},
        };

        expect_status(send(fake_request_new_admin("DELETE", "/api/v1/namespaces/n", "timeout=-")),
                      400, "BadRequest",
                      "invalid timeout specified in the request URL - time: invalid duration "
                      "\"-\"");
        for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
                char message[160];
                (void)snprintf(message, sizeof message,
                               "invalid timeout specified in the request URL - time: %s",
                               odd[i].message);
                expect_status(send(fake_request_new_admin("GET", "/version", odd[i].query)), 400,
                              "BadRequest", message);
        }
        for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
                expect_text(send(fake_request_new_admin("GET", "/nothing", good[i])), 404,
                            "404 page not found\n", "nosniff");
        struct hfd_http_request *watch =
                send(fake_request_new_admin("GET", "/api/v1/nodes", "watch=1&timeout=soon"));
        assert_int_equal(watch->code, 200);
        fake_request_free(watch);
}

/* GET /nothing with one or two headers; name may be NULL. */
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

/* No part of an impersonation is ever ignored. Otherwise the request would run as another user. */
static void test_every_part_of_an_impersonation_counts(void **state) {
        static const char *const headers[] = {"impersonate-uid", "impersonate-extra-scopes",
                                              "impersonate-extra-"};
        static const char refused[] = "the headers of the impersonation name no user, too many "
                                      "groups or extra values, or a name that is too long";
        static const char joe[] = "forbidden: User \"joe\" cannot get path \"/nothing\"";
        static const char may_not[] = "forbidden: User \"system:anonymous\" cannot "
                                      "impersonate-on:user-info:get path \"/nothing\"";

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
        expect_status(impersonate("impersonate-user", "joe", "impersonate-extra-a%z", true), 403,
                      "Forbidden", joe);
        expect_status(impersonate("impersonate-user", "joe", "impersonate-extra-a%z", false), 403,
                      "Forbidden", may_not);
        expect_status(impersonate("impersonate-user", "joe", "x-impersonate-extra-a", true), 403,
                      "Forbidden", joe);
}

/* As in Kubernetes: without a user, only a group and an extra value are at fault if they are empty.
 */
static void test_an_empty_user_or_uid_impersonates_nobody(void **state) {
        static const struct {
                const char *name;
                int code;
        } headers[] = {{"impersonate-user", 404},
                       {"impersonate-uid", 404},
                       {"impersonate-group", 400},
                       {"impersonate-extra-scopes", 400}};

        for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
                struct hfd_http_request *request =
                        impersonate(headers[i].name, "", "x-other", true);
                assert_int_equal(request->code, headers[i].code);
                fake_request_free(request);
        }
}

/* A request by a user without groups, who may do everything. No FlowSchema matches. */
static struct hfd_http_request *user(const char *method, const char *path, const char *query) {
        struct hfd_http_request *request = fake_request_new_admin(method, path, query);

        request->given[0] = (struct hfd_header){"impersonate-user", "admin"};
        return request;
}

static void test_exempt_requests_have_no_limit(void **state) {
        struct hfd_http_request *requests[20];

        hold = true;
        for (size_t i = 0; i < 20; i++) {
                requests[i] = send(fake_request_new_admin("GET", "/api/v1/configmaps", ""));
                assert_int_equal(requests[i]->code, 0);
        }
        assert_int_equal(n_handled, 20);
        assert_int_equal(hfd_filters_inflight(filters), 20);
        for (size_t i = 0; i < 20; i++)
                response(requests[i]);
        assert_int_equal(hfd_filters_inflight(filters), 0);
}

static struct hfd_http_request *send_to_level(const char *method, const char *query) {
        return send(user(method, "/apis/coordination.k8s.io/v1/namespaces/n/leases/x", query));
}

/* Requests beyond the limit wait, and go on in their order. */
static void test_requests_wait_for_seats(void **state) {
        hold = true;
        struct hfd_http_request *a = send_to_level("GET", ""), *b = send_to_level("PUT", ""),
                                *c = send_to_level("GET", ""), *d = send_to_level("GET", "");
        assert_int_equal(n_handled, 2);
        assert_null(c->continuation);
        response(a);
        assert_non_null(c->continuation);
        assert_null(d->continuation);
        fake_request_run_continuation(c);
        assert_int_equal(n_handled, 3);
        /* The response of b is not sent yet. It counts no longer against the seats, and against its
         * client's account only if the client does not read it. */
        hfd_http_request_reply(b, 200, "text/plain", NULL, 0, NULL);
        const struct hfd_request_context *context = hfd_http_request_context(b);
        b->unsent(b->unsent_ctx, 10, true); /* it waits to be sent */
        fake_request_run_continuation(d);
        assert_int_equal(n_handled, 4);
        assert_null(context->unsent.account);
        b->unsent(b->unsent_ctx, 10, false);
        assert_non_null(context->unsent.account);
        hfd_http_request_unref(b);
        fake_request_free(b);
        response(c);
        response(d);
        assert_int_equal(hfd_filters_inflight(filters), 0);
}

/* A list that has waited is refused if its user has stopped reading meanwhile. The others are
 * served. A list that runs is reserved for. */
static void test_a_list_that_waits_is_admitted_again(void **state) {
        static const char leases[] = "/apis/coordination.k8s.io/v1/namespaces/n/leases";
        const size_t user_bytes = (size_t)64 << 20;
        hold = true;
        struct hfd_http_request *a = send_to_level("GET", ""), *b = send(user("GET", leases, "")),
                                *list = send(user("GET", leases, "")),
                                *c = send_to_level("GET", "");
        const struct hfd_request_context *context = hfd_http_request_context(b);

        assert_int_equal(n_handled, 2);
        assert_true(context->unsent.reserved);
        a->unsent(a->unsent_ctx, user_bytes, false);
        assert_non_null(list->continuation);
        fake_request_run_continuation(list);
        expect_text(list, 429, "Too many requests, please try again later.\n", "retry-after: 1\n");
        assert_int_equal(n_handled, 2);
        assert_non_null(c->continuation); /* the seats of the list are free again */
        fake_request_run_continuation(c);
        assert_int_equal(n_handled, 3);
        b->unsent(b->unsent_ctx, 10, false); /* a reservation becomes a charge */
        assert_false(context->unsent.reserved);
        response(a);
        response(b);
        response(c);
        assert_int_equal(hfd_filters_inflight(filters), 0);
}

/* A request whose client leaves while it waits, or just as it gets a seat, keeps no seat. */
static void test_a_client_that_leaves_gives_its_turn_up(void **state) {
        hold = true;
        struct hfd_http_request *a = send_to_level("GET", ""), *b = send_to_level("GET", ""),
                                *c = send_to_level("GET", ""), *d = send_to_level("GET", ""),
                                *e = send_to_level("GET", "");
        fake_request_leave(c);
        response(a);
        assert_non_null(d->continuation);
        fake_request_leave(d);
        assert_non_null(e->continuation);
        fake_request_run_continuation(e);
        assert_int_equal(n_handled, 3);
        response(b);
        response(e);
        hfd_http_request_unref(c);
        hfd_http_request_unref(d);
        assert_int_equal(hfd_filters_inflight(filters), 0);
}

/* The wait counts from the time of the request, which was received long ago. */
static void test_a_wait_ends_with_a_429(void **state) {
        hf_nsec now = hf_now(hf_clock_system());
        struct hfd_http_request *late =
                user("GET", "/api/v1/namespaces/n/configmaps/x", "timeout=8s");
        hold = true;
        struct hfd_http_request *a = send_to_level("GET", ""), *b = send_to_level("GET", "");
        late->received_at = now - HF_NSEC_PER_SEC;
        assert_int_equal(send(late)->code, 0);
        struct hfd_flow_levels *levels = hfd_flow_control_levels(flow);
        assert_true(hfd_flow_levels_expire(levels, now) == now + HF_NSEC_PER_SEC);
        assert_true(hfd_flow_levels_expire(levels, now + HF_NSEC_PER_SEC) == HF_NSEC_NEVER);
        fake_request_run_continuation(late);
        assert_int_equal(n_handled, 2);
        expect_text(late, 429, "Too many requests, please try again later.\n", "retry-after: 1\n");
        response(a);
        response(b);
}

/* Waiting requests keep their bodies in memory, so there is a limit for these. */
static void test_large_requests_do_not_all_wait(void **state) {
        struct hfd_http_request *waiting[30];
        size_t n = 0;

        hold = true;
        struct hfd_http_request *a = send_to_level("PUT", ""), *b = send_to_level("PUT", ""),
                                *large;
        for (;;) {
                large = user("PUT", "/api/v1/namespaces/n/configmaps/x", "");
                large->n_given_body = 3 << 20;
                if (send(large)->code != 0)
                        break;
                assert_true(n < 30);
                waiting[n++] = large;
        }
        expect_text(large, 429, "Too many requests, please try again later.\n", "retry-after: 1\n");
        assert_int_equal(n, 21); /* each has 3 MiB, and the limit is 64 MiB */
        for (size_t i = 0; i < n; i++) {
                fake_request_leave(waiting[i]);
                hfd_http_request_unref(waiting[i]);
        }
        response(a);
        response(b);
}

/* A watch has seats until its response has begun; a probe needs none. */
static void test_watches_and_probes_occupy_no_seats(void **state) {
        struct hfd_http_request *watches[5];

        hold = true;
        for (size_t i = 0; i < 5; i++) {
                watches[i] = send(user("GET", "/api/v1/configmaps", "watch=1"));
                assert_int_equal(n_handled, i + 1);
                hfd_http_request_reply(watches[i], 200, "text/plain", NULL, 0, NULL);
                watches[i]->unsent(watches[i]->unsent_ctx, 0, false);
        }
        struct hfd_http_request *a = send_to_level("GET", ""), *b = send_to_level("GET", "");
        assert_int_equal(n_handled, 7);
        struct hfd_http_request *scrape = send(user("GET", "/metrics", ""));
        assert_int_equal(n_handled, 8);
        /* A path that only begins like that of a probe needs a seat. */
        struct hfd_http_request *other = send(user("GET", "/livezfoo", ""));
        assert_int_equal(n_handled, 8);
        fake_request_leave(other);
        hfd_http_request_unref(other);
        response(scrape);
        response(a);
        response(b);
        for (size_t i = 0; i < 5; i++) {
                hfd_http_request_unref(watches[i]);
                fake_request_free(watches[i]);
        }
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

/* ---- the log ---- */

static char logged[1024];

static void keep_line(void *ctx, enum hf_log_level level, const char *component,
                      const char *message) {
        if (strcmp(component, "http") == 0)
                (void)snprintf(logged, sizeof logged, "%s", message);
}

static void test_the_log_has_durations_of_handled_requests_only(void **state) {
        struct hfd_http_request *request = fake_request_new_admin("GET", "/api/v1/../x", "a=b");
        int n = 0;

        host.log = (struct hf_log){.write = keep_line, .max_level = HF_LOG_DEBUG};
        request->received_at = 0; /* as the connection leaves it if the head is refused */
        fake_request_free(send(request));
        assert_non_null(strstr(logged, "GET /api/v1/../x?a=b 400 - "));
        fake_request_free(send(fake_request_new_admin("GET", "/api/v1/configmaps", "")));
        const char *rest = strstr(logged, "GET /api/v1/configmaps 200 ");
        assert_non_null(rest);
        assert_int_equal(sscanf(rest, "GET /api/v1/configmaps 200 %*d.%*3d ms %*d bytes%n", &n), 0);
        assert_true(n > 0);
        host.log.max_level = HF_LOG_INFO;
        logged[0] = '\0';
        fake_request_free(send(fake_request_new_admin("GET", "/api/v1/configmaps", "")));
        assert_string_equal(logged, "");
        host.log = (struct hf_log){0};
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_refusals_have_the_messages_of_kubernetes,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_bad_paths_and_methods_are_refused, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_malformed_timeout_is_refused, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_shortage_of_memory_does_not_mean_bad_credentials, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_refusal_says_whether_the_sender_is_known,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_stranger_without_memory_stays_one, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_the_audit_log_has_bad_paths_and_methods,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_the_audit_log_says_how_a_sender_has_tried,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_an_empty_user_or_uid_impersonates_nobody,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_every_part_of_an_impersonation_counts, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_exempt_requests_have_no_limit, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_requests_wait_for_seats, set_up_queue,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_list_that_waits_is_admitted_again,
                                                set_up_queue, tear_down),
                cmocka_unit_test_setup_teardown(test_a_client_that_leaves_gives_its_turn_up,
                                                set_up_queue, tear_down),
                cmocka_unit_test_setup_teardown(test_a_wait_ends_with_a_429, set_up_queue,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_large_requests_do_not_all_wait, set_up_queue,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_watches_and_probes_occupy_no_seats,
                                                set_up_queue, tear_down),
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
                cmocka_unit_test_setup_teardown(test_the_log_has_durations_of_handled_requests_only,
                                                set_up, tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
