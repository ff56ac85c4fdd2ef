/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, selectors, and the other forms of an answer, through the loopback client over the memory
 * store. */
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

#include "api_box.h"

/* Its namespace is ws-<name>, which is a label: a longer one could never become Ready. */
static void test_workspace_names(void **state) {
        struct box *box = *state;
        char body[200];

        for (int n = 59; n <= 62; n++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%.*s\"}}", n,
                               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
                assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, body),
                                 n <= 60 ? 0 : HF_E_INVALID);
        }
        assert_non_null(strstr(last.body, "must be no more than 60 characters"));
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"a.b\"}}"),
                         HF_E_INVALID);
}

static void test_selectors(void **state) {
        static const char *const wrong[] = {"a%3D%3D%3Db",  "a!%3D!b",        "a%3Db+c",
                                            "a%3Db)",       "a+in+(x%3Dy)",   "a%3D-b",
                                            "-a%3Db",       "a/%3Db",         "a//b",
                                            "/a%3Db",       "a%3Ex",          "a%3C",
                                            "a+in+(b,c+d)", "a+notin+(b,-c)", "!a/",
                                            "A/b/c%3Dd"};
        struct box *box = *state;
        char query[80];

        make_workspaces(box, 10);
        assert_int_equal(n_selected(box, NULL), 10);
        assert_string_equal(text_at("kind"), "WorkspaceList");
        assert_int_equal(n_selected(box, "labelSelector=parity%3Dodd"), 5);
        assert_int_equal(n_selected(box, "labelSelector=parity!%3Dodd"), 5);
        assert_int_equal(n_selected(box, "labelSelector=parity+in+(odd,even),a.b/n%3D%3D3"), 1);
        assert_int_equal(n_selected(box, "labelSelector=parity+notin+(odd)"), 5);
        assert_int_equal(n_selected(box, "labelSelector=!parity"), 0);
        assert_int_equal(n_selected(box, "labelSelector=parity"), 10);
        assert_int_equal(n_selected(box, "labelSelector=a.b/n%3E7"), 2);
        assert_int_equal(n_selected(box, "fieldSelector=metadata.name%3Dw03"), 1);
        assert_int_equal(n_selected(box, "fieldSelector=metadata.name!%3Dw03"), 9);
        assert_int_equal(do_call(box, HF_VERB_LIST, workspaces, NULL, NULL, "labelSelector=a+b+c",
                                 NULL),
                         HF_E_INVALID);
        assert_int_equal(n_selected(box, "labelSelector=parity%3D"), 0);
        assert_int_equal(n_selected(box, "labelSelector=parity+in+()"), 0);
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
                (void)snprintf(query, sizeof query, "labelSelector=%s", wrong[i]);
                assert_int_equal(do_call(box, HF_VERB_LIST, workspaces, NULL, NULL, query, NULL),
                                 HF_E_INVALID);
        }
}

static void test_list_pages(void **state) {
        struct box *box = *state;
        char token[600], revision[32], query[700];

        make_workspaces(box, 10);
        assert_int_equal(n_selected(box, "limit=4"), 4);
        (void)snprintf(token, sizeof token, "%s", text_at("metadata.continue"));
        (void)snprintf(revision, sizeof revision, "%s", text_at("metadata.resourceVersion"));
        assert_non_null(strstr(last.body, "\"remainingItemCount\":6"));
        /* What comes in between is not in the list: it is of one revision. */
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"w055\"}}"),
                         0);
        (void)snprintf(query, sizeof query, "limit=4&continue=%s", token);
        assert_int_equal(n_selected(box, query), 4);
        assert_string_equal(text_at("metadata.resourceVersion"), revision);
        assert_null(strstr(last.body, "w055"));
        (void)snprintf(query, sizeof query, "limit=4&continue=%s", text_at("metadata.continue"));
        assert_int_equal(n_selected(box, query), 2);
        assert_string_equal(text_at("metadata.continue"), "");
        (void)snprintf(query, sizeof query, "continue=%s&resourceVersion=3", token);
        assert_int_equal(do_call(box, HF_VERB_LIST, workspaces, NULL, NULL, query, NULL),
                         HF_E_INVALID);
        assert_int_equal(do_call(box, HF_VERB_LIST, workspaces, NULL, NULL, "continue=bm9uc2Vuc2U",
                                 NULL),
                         HF_E_INVALID);
        assert_int_equal(do_call(box, HF_VERB_LIST, workspaces, NULL, NULL,
                                 "resourceVersionMatch=Exact", NULL),
                         HF_E_INVALID);
}

/* ---- other forms of an answer, asked of the core itself ---- */

struct form_call {
        struct hfd_request request;
        struct result result;
};

static void on_form(struct hfd_request *request, const struct hfd_response *response) {
        struct form_call *form = (struct form_call *)request;
        struct hf_response reply = {.error = response->status.error,
                                    .status = response->status,
                                    .body = response->body->data,
                                    .n_body = response->body->n};

        on_reply(&form->result, &reply);
}

static void list_as(struct box *box, enum hfd_format format) {
        struct form_call form = {.request = {.verb = HFD_LIST, .format = format, .done = on_form},
                                 .result = {.mu = PTHREAD_MUTEX_INITIALIZER,
                                            .cond = PTHREAD_COND_INITIALIZER}};

        form.request.resource = hfd_resource_find("tenancy.holdfast.dev", "v1alpha1", "workspaces");
        form.request.deadline = hf_now(hf_clock_system()) + 5 * HF_NSEC_PER_SEC;
        hfd_registry_serve(box->registry, &form.request);
        pthread_mutex_lock(&form.result.mu);
        while (!form.result.done)
                pthread_cond_wait(&form.result.cond, &form.result.mu);
        pthread_mutex_unlock(&form.result.mu);
        free(last.body);
        last = form.result;
}

static void test_table(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        assert_int_equal(do_part(box, workspaces, "w", "status",
                                 "{\"metadata\":{\"name\":\"w\"},\"status\":{\"phase\":\"Ready\"}"
                                 "}"),
                         0);
        list_as(box, HFD_AS_TABLE);
        assert_string_equal(text_at("kind"), "Table");
        assert_int_equal(count_at("columnDefinitions"), 3);
        assert_int_equal(count_at("rows"), 1);
        assert_non_null(strstr(last.body, "\"cells\":[\"w\",\"Ready\",\""));
        assert_non_null(strstr(last.body, "\"object\":{\"kind\":\"PartialObjectMetadata\""));
        list_as(box, HFD_AS_PARTIAL);
        assert_string_equal(text_at("kind"), "PartialObjectMetadataList");
        assert_null(strstr(last.body, "phase"));
}

static void test_discovery(void **state) {
        static const char *const paths[] = {"/api",
                                            "/api/v1",
                                            "/apis",
                                            "/apis/coordination.k8s.io",
                                            "/apis/coordination.k8s.io/v1",
                                            "/openapi/v3",
                                            "/openapi/v3/api/v1",
                                            "/openapi/v3/apis/tenancy.holdfast.dev/v1alpha1"};
        int code;

        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
                struct hf__json *json = NULL;
                struct hf__buf *buf = hfd_discovery(paths[i], &code);
                assert_int_equal(code, 200);
                assert_int_equal(hf__json_parse(buf->data, buf->n, &json, NULL), 0);
                hf__json_free(json);
                hf__buf_unref(buf);
        }
        assert_null(hfd_discovery("/apis/apps", &code));
        assert_int_equal(code, 404);
        assert_null(hfd_discovery("/apis/coordination.k8s.io/v9", &code));
        struct hf__buf *v2 = hfd_openapi_v2();
        assert_memory_equal(v2->data,
                            "\x0a\x03"
                            "2.0\x12",
                            6);
        hf__buf_unref(v2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_workspace_names),
                TEST(test_selectors),
                TEST(test_list_pages),
                TEST(test_table),
                cmocka_unit_test(test_discovery),
        };
        int failed = cmocka_run_group_tests(tests, NULL, NULL);

        free(last.body);
        return failed;
}
