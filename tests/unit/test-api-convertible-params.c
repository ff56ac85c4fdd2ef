/* SPDX-License-Identifier: Apache-2.0 */
/* Admission can have the params of a policy converted by the webhook of their kind, whatever the
 * request is. */
#undef NDEBUG
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
#include "server/admission/admission.h"
#include "server/registry/base/registry_state.h"
#include "server/registry/unstored.h"
#include "server/resources/rows/resource_table.h"

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

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_params_can_be_converted_for_all_requests),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
