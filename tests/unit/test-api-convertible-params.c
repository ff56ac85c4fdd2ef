/* SPDX-License-Identifier: Apache-2.0 */
/* Admission can have the params of a policy converted by the webhook of their kind, whatever the
 * request is, and no limit of this server's own lets a request escape a policy. */
#undef NDEBUG
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
#include "base/json.h"
#include "patience.h"
#include "server/admission/admission.h"
#include "server/admission/policy/param_kind.h"
#include "server/admission/policy/policy_plugin.h"
#include "server/outbound/outbound.h"
#include "server/registry/base/registry_state.h"
#include "server/registry/convert/convert.h"
#include "server/registry/unstored.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/objects/object.h"
#include "server/resources/objects/object_key.h"
#include "server/resources/rows/resource_table.h"
#include "store_client.h"

static bool wants_all(void *ctx, const struct hfd_admission_attributes *of) { return true; }

/* ctx: an int, which counts the requests whose params can be converted. */
static void refuse(void *ctx, struct hfd_admission *a) {
        struct hfd_response response = {0};

        *(int *)ctx += a->convert_objects != NULL;
        hfd_response_status(&response, HF_E_FORBIDDEN, 403, "Forbidden", "no", NULL);
        hfd_admission_refuse(a, &response);
}

static void check_refused(struct api_fixture *f, struct api_core_request *request) {
        static const char body[] = "{\"metadata\":{\"name\":\"a\"},\"target\":{\"name\":\"n\"}}";

        request->request.verb = HFD_CREATE;
        request->request.in_process = true;
        request->request.body = body;
        request->request.n_body = sizeof body - 1;
        (void)snprintf(request->request.ns, sizeof request->request.ns, "default");
        (void)api_core_request_run(f->registry, request);
        assert_int_equal(request->response.status.http_code, 403);
        hfd_admission_notes_done(&request->request.notes);
        api_response_deinit(&request->response);
}

static void on_reviewed(struct hfd_request *request, struct hf__json *object,
                        const struct hfd_response *refusal) {
        assert_null(object);
        assert_int_equal(refusal->code, 403);
}

static void test_params_can_be_converted_for_all_requests(void **state) {
        int n = 0;
        const struct hfd_admission_plugin plugin = {.name = "no",
                                                    .wants = wants_all,
                                                    .validate = refuse,
                                                    .ctx = &n};
        struct api_fixture *f = *state;
        struct hfd_admission_chain chain = {.cacher = f->cacher};
        const struct hfd_resource *of = hfd_resource_find("", "v1", "configmaps");
        struct api_core_request whole = {.request = {.resource = of}};
        struct api_core_request part = {
                .request = {.resource = hfd_resource_of_part(HFD_SUB_BINDING),
                            .part_of = of,
                            .subresource = HFD_SUB_BINDING,
                            .name = "a"}};
        struct hfd_request review = {.verb = HFD_CREATE,
                                     .resource = hfd_resource_find("authentication.k8s.io", "v1",
                                                                   "selfsubjectreviews"),
                                     .in_process = true};

        hfd_admission_chain_add(&chain, &plugin);
        f->registry->admission = &chain;
        check_refused(f, &whole);
        assert_int_equal(n, 1);
        check_refused(f, &part);
        assert_int_equal(n, 2);
        hfd_unstored_admit(f->registry, &review, hf__json_object(), on_reviewed);
        hfd_admission_notes_done(&review.notes);
        assert_int_equal(n, 3);
        f->registry->admission = NULL;
}

/* ---- failures of conversions ---- */

/* How each call of the webhook ends. */
static enum hfd_outbound_end call_end;
/* How many calls there were, and where the stack was at the highest and the lowest. */
static int n_calls;
static uintptr_t stack_high, stack_low = UINTPTR_MAX;

#define N_POLICIES 40

/* A call that ends on another thread, as those of the real client do. */
struct late_call {
        struct hfd_outbound_request request;
        pthread_t thread;
};
static struct late_call late_calls[N_POLICIES];
static bool ends_late;

static void end_call(const struct hfd_outbound_request *request) {
        const struct hfd_outbound_result result = {.end = call_end,
                                                   .body = "",
                                                   .text = "it has ended"};

        request->done(request->ctx, &result);
}

static void *end_late(void *ctx) {
        end_call(&((struct late_call *)ctx)->request);
        return NULL;
}

int __wrap_hfd_outbound_post_json(struct hfd_outbound *outbound,
                                  const struct hfd_outbound_request *request, uint64_t *ret_id);
int __wrap_hfd_outbound_post_json(struct hfd_outbound *outbound,
                                  const struct hfd_outbound_request *request, uint64_t *ret_id) {
        const uintptr_t stack = (uintptr_t)__builtin_frame_address(0);

        assert_string_equal(request->url, "https://127.0.0.1:1/a?timeout=30s");
        stack_high = stack > stack_high ? stack : stack_high;
        stack_low = stack < stack_low ? stack : stack_low;
        if (ends_late) {
                assert_true(n_calls < N_POLICIES);
                struct late_call *call = &late_calls[n_calls++];
                call->request = *request;
                assert_int_equal(pthread_create(&call->thread, NULL, end_late, call), 0);
        } else {
                n_calls++;
                end_call(request);
        }
        return 0;
}

/* Version v1 is stored, and v2 is converted by a webhook. */
static const char definition[] =
        "{\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"gadgets.example.com\"},"
        "\"spec\":{\"group\":\"example.com\",\"scope\":\"Namespaced\",\"names\":{\"plural\":"
        "\"gadgets\",\"kind\":\"Gadget\"},\"conversion\":{\"strategy\":\"Webhook\",\"webhook\":{"
        "\"conversionReviewVersions\":[\"v1\"],\"clientConfig\":{\"url\":"
        "\"https://127.0.0.1:1/a/\"}}},\"versions\":["
        "{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{"
        "\"type\":\"object\"}}},"
        "{\"name\":\"v2\",\"served\":true,\"storage\":false,\"schema\":{\"openAPIV3Schema\":{"
        "\"type\":\"object\"}}}]},"
        "\"status\":{\"acceptedNames\":{\"plural\":\"gadgets\",\"kind\":\"Gadget\",\"listKind\":"
        "\"GadgetList\"},\"conditions\":[{\"type\":\"Established\",\"status\":\"True\"}]}}";

/* It is ignored when it fails; otherwise it refuses everything. */
static const char policy[] =
        "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"failurePolicy\":\"Ignore\",\"paramKind\":{"
        "\"apiVersion\":\"example.com/v2\",\"kind\":\"Gadget\"},\"matchConstraints\":{"
        "\"resourceRules\":[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"operations\":["
        "\"CREATE\"],\"resources\":[\"configmaps\"]}]},\"validations\":[{\"expression\":"
        "\"false\"}]}}";
static const char binding[] =
        "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"policyName\":\"%s\",\"validationActions\":["
        "\"Deny\"],\"paramRef\":{\"name\":\"%s\",\"namespace\":\"default\","
        "\"parameterNotFoundAction\":\"Deny\"}}}";

/* Creates an object, and returns the code of the response. message: a part of that of the
 * response. */
static int create(struct api_fixture *f, const char *group, const char *plural, const char *ns,
                  const char *body, const char *message) {
        struct api_core_request request = {
                .request = {.verb = HFD_CREATE,
                            .resource = hfd_resource_find(group, "v1", plural),
                            .in_process = true,
                            .body = body,
                            .n_body = strlen(body)}};

        (void)snprintf(request.request.ns, sizeof request.request.ns, "%s", ns);
        (void)api_core_request_run(f->registry, &request);
        int code = request.response.status.http_code;
        if (!strstr(request.response.status.message, message))
                fail_msg("%s", request.response.status.message);
        hfd_admission_notes_done(&request.request.notes);
        api_response_deinit(&request.response);
        return code;
}

/* The row of the params, which the caller unrefs; NULL = they are not served yet. */
static const struct hfd_resource *params_row(struct api_fixture *f) {
        return hfd_policy_params_kind(f->cacher, "example.com/v2", "Gadget");
}

static bool has_params(struct api_fixture *f, const char *name) {
        const struct hfd_resource *row = params_row(f);
        struct hfd_object *object = NULL;
        char path[HFD_PATH_MAX];

        if (row) {
                hfd_object_path(row, "default", name, path);
                object = hfd_cacher_get(f->cacher, row, path);
        }
        bool has = object && object->bytes;
        hfd_object_unref(object);
        hfd_resource_unref(row);
        return has;
}

static int create_map(struct api_fixture *f, const char *message) {
        return create(f, "", "configmaps", "default", "{\"metadata\":{\"name\":\"a\"}}", message);
}

static void set_up_params(struct api_fixture *f) {
        assert_true(store_client_put(f->store,
                                     "/registry/apiextensions.k8s.io/customresourcedefinitions/"
                                     "gadgets.example.com",
                                     definition) > 0);
        assert_true(store_client_put(f->store, "/registry/namespaces/default",
                                     "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\","
                                     "\"metadata\":{\"name\":\"default\"}}") > 0);
}

static void put_params(struct api_fixture *f, const char *name) {
        char key[100], object[200];

        (void)snprintf(key, sizeof key, "/registry/example.com/gadgets/default/%s", name);
        (void)snprintf(object, sizeof object,
                       "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Gadget\",\"metadata\":{"
                       "\"name\":\"%s\",\"namespace\":\"default\"}}",
                       name);
        assert_true(store_client_put(f->store, key, object) > 0);
}

/* Creates a policy and its binding to the params. */
static void create_policy(struct api_fixture *f, const char *name, const char *params) {
        char body[1000];

        (void)snprintf(body, sizeof body, policy, name);
        assert_int_equal(create(f, HFD_ADMISSION_GROUP, "validatingadmissionpolicies", "", body,
                                ""),
                         201);
        (void)snprintf(body, sizeof body, binding, name, name, params);
        assert_int_equal(create(f, HFD_ADMISSION_GROUP, "validatingadmissionpolicybindings", "",
                                body, ""),
                         201);
}

/* Starts the plug-in. The chain must live as long. */
static struct hfd_policy_plugin *start_policies(struct api_fixture *f,
                                                struct hfd_admission_chain *chain) {
        struct hfd_policy_plugin *policies = NULL;

        assert_int_equal(hfd_policy_plugin_new(&f->host, f->cacher, f->registry->work, false,
                                               &policies),
                         0);
        const struct hfd_admission_plugin plugin = hfd_policy_plugin_of_chain(policies);
        hfd_admission_chain_add(chain, &plugin);
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_workspaces, NULL, NULL, NULL,
                                             NULL),
                         0);
        assert_int_equal(plugin.refresh(plugin.ctx), 0);
        atomic_store(&chain->ready, true);
        f->registry->admission = chain;
        f->registry->outbound = (struct hfd_outbound *)chain; /* nothing reads it */
        return policies;
}

static void stop_policies(struct api_fixture *f, struct hfd_policy_plugin *policies) {
        f->registry->outbound = NULL;
        f->registry->admission = NULL;
        hfd_policy_plugin_free(policies);
}

/* Only a failure of the webhook is one that the failurePolicy decides about. */
static void test_no_conversion_that_this_server_refuses_is_ignored(void **state) {
        struct api_fixture *f = *state;
        struct hfd_admission_chain chain = {.cacher = f->cacher};

        set_up_params(f);
        put_params(f, "g");
        PATIENCE_AWAIT(has_params(f, "g"));
        create_policy(f, "a", "g");
        struct hfd_policy_plugin *policies = start_policies(f, &chain);

        call_end = HFD_OUTBOUND_NO_MEMORY;
        assert_int_equal(create_map(f, "out of memory"), 500);
        call_end = HFD_OUTBOUND_TOO_LARGE;
        assert_int_equal(create_map(f, "failed to convert the params"), 422);
        call_end = HFD_OUTBOUND_UNREACHABLE;
        const struct hfd_resource *row = params_row(f);
        atomic_store(&row->custom->kind->n_conversions, HFD_CONVERT_MAX_OF_KIND);
        assert_int_equal(create_map(f, "too many objects wait for their conversion webhook"), 422);
        atomic_store(&row->custom->kind->n_conversions, 0);
        hfd_resource_unref(row);
        assert_int_equal(create_map(f, ""), 201); /* the webhook cannot be reached */
        stop_policies(f, policies);
}

/* Each conversion ends before the function that begins it returns. The evaluation that starts over
 * then does not begin deeper in the stack, which policies could exhaust otherwise. */
static void test_conversions_that_end_at_once_do_not_nest(void **state) {
        struct api_fixture *f = *state;
        struct hfd_admission_chain chain = {.cacher = f->cacher};
        char name[20];

        set_up_params(f);
        for (int i = 0; i < N_POLICIES; i++) {
                (void)snprintf(name, sizeof name, "g%d", i);
                put_params(f, name);
                create_policy(f, name, name);
        }
        PATIENCE_AWAIT(has_params(f, name));
        struct hfd_policy_plugin *policies = start_policies(f, &chain);

        call_end = HFD_OUTBOUND_UNREACHABLE;
        n_calls = 0;
        stack_high = 0;
        stack_low = UINTPTR_MAX;
        assert_int_equal(create_map(f, ""), 201); /* all policies ignore failures */
        assert_int_equal(n_calls, N_POLICIES);
        /* A nested evaluation takes more than this. */
        assert_true(stack_high - stack_low < 4096);

        /* Conversions that end on other threads, soon or late, have the same outcome. */
        ends_late = true;
        n_calls = 0;
        assert_int_equal(create(f, "", "configmaps", "default", "{\"metadata\":{\"name\":\"b\"}}",
                                ""),
                         201);
        assert_int_equal(n_calls, N_POLICIES);
        for (int i = 0; i < N_POLICIES; i++)
                (void)pthread_join(late_calls[i].thread, NULL);
        ends_late = false;
        stop_policies(f, policies);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_params_can_be_converted_for_all_requests),
                cmocka_unit_test_setup_teardown(
                        test_no_conversion_that_this_server_refuses_is_ignored,
                        api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(test_conversions_that_end_at_once_do_not_nest,
                                                api_fixture_set_up_custom, api_fixture_tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
