/* SPDX-License-Identifier: Apache-2.0 */
/* The memo of a connection gives a request the same info as a connection without a memo, and the
 * flow that the request would have without it. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_request.h"
#include "server/filters/request/request_memo.h"
#include "server/filters/request_context.h"
#include "server/flow/flow_control.h"

static const char *const methods[] = {"GET", "PUT", "BREW"};
static const char *const paths[] = {
        "/api/v1/namespaces/default/configmaps/a",
        "/api/v1/namespaces/default/configmaps/b",
        "/api/v1/namespaces/default/configmaps/b/",
        "/api/v1/namespaces/default/configmaps/%62",
        "/api/v1/namespaces/default/configmaps/a%2fb",
        "/api/v1/namespaces/default/configmaps/..",
        "/api/v1/namespaces/default/configmaps/.hidden",
        "/api/v1/namespaces/default/configmaps/",
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/configmaps/a/status",
        "/api/v1/namespaces/default/configmaps/a/status/more",
        "/api/v1/namespaces/default/configmaps//",
        "/api/v1/namespaces/default/secrets/a",
        "/api/v1/namespaces/other/configmaps/a",
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/status",
        "/api/v1/namespaces/default/status",
        "/api/v1/namespaces/default/pods",
        "/api/v1/nodes/a",
        "/api/v1/nodes/namespaces",
        "/apis/apps/v1/namespaces/default/deployments/a",
        "/apis/apps/v1/namespaces/default/deployments/a/scale",
        "/apis/apps/v1",
        "/healthz",
        "/healthz/a",
};
#define N_METHODS (sizeof methods / sizeof methods[0])
#define N_PATHS   (sizeof paths / sizeof paths[0])

/* Creates a request and its context. before: a request on the same connection; NULL = none. */
static struct hfd_http_request *make(size_t i, struct hfd_http_request *before,
                                     struct hfd_request_context **ret_context) {
        struct hfd_http_request *request =
                fake_request_new(methods[i / N_PATHS], paths[i % N_PATHS], "watch=1");

        if (before) {
                request->connection_context = before->connection_context;
                request->connection_context_free = before->connection_context_free;
                before->connection_context = NULL;
        }
        assert_int_equal(hfd_request_context_new(NULL, request, "joe", ret_context), 0);
        return request;
}

static void drop(struct hfd_http_request *request) {
        hfd_http_request_unref(request);
        hfd_http_request_unref(request);
}

static void expect_same(const struct hfd_request_context *a, const struct hfd_request_context *b) {
        const struct hfd_request_info *x = &a->info, *y = &b->info;

        assert_string_equal(x->verb, y->verb);
        assert_int_equal(x->valid_path, y->valid_path);
        assert_int_equal(x->is_resource, y->is_resource);
        assert_int_equal(x->watch, y->watch);
        assert_int_equal(x->mutating, y->mutating);
        assert_string_equal(x->group, y->group);
        assert_string_equal(x->version, y->version);
        assert_string_equal(x->resource, y->resource);
        assert_string_equal(x->subresource, y->subresource);
        assert_string_equal(x->ns, y->ns);
        assert_string_equal(x->name, y->name);
        assert_string_equal(a->user, b->user);
        assert_int_equal(a->labels.verb, b->labels.verb);
        assert_int_equal(a->labels.resource, b->labels.resource);
}

static void test_a_remembered_path_is_parsed_like_a_new_one(void **state) {
        for (size_t j = 0; j < N_METHODS * N_PATHS; j++) {
                struct hfd_request_context *first, *second, *alone;
                struct hfd_http_request *other = make(j, NULL, &alone);

                for (size_t i = 0; i < N_METHODS * N_PATHS; i++) {
                        struct hfd_http_request *before = make(i, NULL, &first),
                                                *after = make(j, before, &second);

                        expect_same(second, alone);
                        drop(before);
                        drop(after);
                }
                drop(other);
        }
}

static void test_the_next_object_of_a_collection_is_remembered(void **state) {
        struct hfd_request_context *first, *second;
        struct hfd_http_request *before = make(0, NULL, &first), *after = make(1, before, &second);
        const char *name = NULL;

        assert_true(hfd_request_memo_find(after, &name) > 0);
        assert_string_equal(name, "b");
        drop(before);
        drop(after);
}

/* Takes the flow from the memo. Returns false if the memo does not have it. */
static bool recalls_flow(struct hfd_http_request *request, struct hfd_flow_control *flow,
                         const struct hfd_user *user) {
        const char *groups[HFD_MAX_GROUPS];
        const struct hfd_subject subject = hfd_user_subject(user, groups);
        struct hfd_flow_index *index = NULL;
        bool recalls = hfd_request_memo_flow(request, flow, &subject, &index) != NULL;

        hfd_flow_index_unref(index);
        return recalls;
}

static void keep_flow(struct hfd_http_request *request, struct hfd_flow_control *flow,
                      const struct hfd_user *user) {
        static const struct hfd_flow_match match;
        struct hfd_flow_index *index = hfd_flow_control_index(flow);

        hfd_request_memo_keep_flow(request, user, index, &match);
        hfd_flow_index_unref(index);
}

/* A schema may match an object and not its subresources or its collection, and the reverse. */
static void test_the_flow_counts_for_the_objects_of_the_path_only(void **state) {
        const struct hf_host host = {.size = sizeof host};
        const struct hfd_user joe = {.name = "joe"}, ann = {.name = "ann"};
        struct hfd_request_context *context;
        struct hfd_flow_control *flow;

        assert_int_equal(hfd_flow_control_new(&host, 600, &flow), 0);
        for (size_t i = 1; i < N_PATHS; i++) {
                struct hfd_http_request *first = make(0, NULL, &context);
                keep_flow(first, flow, &joe);
                struct hfd_http_request *other = make(i, first, &context);
                bool is_same = strcmp(context->info.resource, "configmaps") == 0 &&
                               strcmp(context->info.ns, "default") == 0 &&
                               !context->info.subresource[0] && context->info.name[0];

                if (recalls_flow(other, flow, &joe))
                        assert_true(is_same);
                assert_false(recalls_flow(other, flow, &ann));
                /* The flow that is kept for this object must not count for the next one. */
                keep_flow(other, flow, &ann);
                struct hfd_http_request *next = make(0, other, &context);
                if (recalls_flow(next, flow, &ann))
                        assert_true(is_same);
                drop(first);
                drop(other);
                drop(next);
        }
        struct hfd_http_request *first = make(0, NULL, &context);
        keep_flow(first, flow, &joe);
        struct hfd_http_request *second = make(1, first, &context);
        assert_true(recalls_flow(second, flow, &joe));
        drop(first);
        drop(second);
        hfd_flow_control_free(flow);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_remembered_path_is_parsed_like_a_new_one),
                cmocka_unit_test(test_the_next_object_of_a_collection_is_remembered),
                cmocka_unit_test(test_the_flow_counts_for_the_objects_of_the_path_only),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
