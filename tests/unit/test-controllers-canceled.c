/* SPDX-License-Identifier: Apache-2.0 */
/* What controllers do when a deletion of a collection is canceled. If the term was aborted, that is
 * the end of the step. Otherwise the server canceled the request itself, which is a failure like
 * others: a condition says so, and what is left to do is done. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/definitions/definition_cleanup.h"
#include "server/controllers/definitions/definition_status.h"
#include "server/controllers/namespace_lifecycle.h"

#define NAMESPACE                                                                                  \
        "{\"metadata\":{\"name\":\"gone\",\"uid\":\"u\",\"resourceVersion\":\"5\","                \
        "\"deletionTimestamp\":\"2020-01-01T00:00:00Z\"},\"spec\":{\"finalizers\":["               \
        "\"kubernetes\"]},\"status\":{\"phase\":\"Terminating\"}}"
#define DEFINITION                                                                                 \
        "{\"metadata\":{\"name\":\"as.example.com\",\"resourceVersion\":\"5\","                    \
        "\"deletionTimestamp\":\"2020-01-01T00:00:00Z\",\"finalizers\":["                          \
        "\"customresourcecleanup.apiextensions.k8s.io\"]},\"spec\":{\"group\":\"example.com\","    \
        "\"names\":{\"plural\":\"as\",\"kind\":\"A\"},\"scope\":\"Namespaced\",\"versions\":[{"    \
        "\"name\":\"v1\",\"served\":true,\"storage\":true}]},\"status\":{\"acceptedNames\":{"      \
        "\"plural\":\"as\",\"kind\":\"A\"},\"storedVersions\":[\"v1\"],\"conditions\":[{"          \
        "\"type\":\"Established\",\"status\":\"True\"},{\"type\":\"Terminating\","                 \
        "\"status\":\"True\",\"reason\":\"InstanceDeletionInProgress\"}]}}"

static const struct hf_host host = {.size = sizeof host};
static struct hfd_kind configmaps = {.row = {{"", "v1", "configmaps"}, "ConfigMap", true}},
                       secrets = {.row = {{"", "v1", "secrets"}, "Secret", true}, .id = 1};
static struct hfd_kind_set *set;
static struct hf_cancel *abort_token;
static const char *object;     /* what the controller is asked about */
static unsigned n_collections; /* deletions of collections that were tried */
static char written[2000];     /* the status that was written; "" = none */
static int result;             /* of the reconcile */

static struct hf__json *parsed(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

/* ---- the linker redirects these functions ---- */

const struct hf_host *__wrap_hf_term_host(struct hf_term *term);
const struct hf_host *__wrap_hf_term_host(struct hf_term *term) { return &host; }

struct hf_client *__wrap_hf_term_client(struct hf_term *term);
struct hf_client *__wrap_hf_term_client(struct hf_term *term) {
        return NULL;
}

struct hf_cancel *__wrap_hf_term_abort(struct hf_term *term);
struct hf_cancel *__wrap_hf_term_abort(struct hf_term *term) {
        return abort_token;
}

/* Lists find one object; deletions are canceled. */
int __wrap_hf_client_do(struct hf_client *client, const struct hf_request *request,
                        struct hf_cancel *token, char **ret_body, size_t *ret_n,
                        struct hf_status *reterr_status);
int __wrap_hf_client_do(struct hf_client *client, const struct hf_request *request,
                        struct hf_cancel *token, char **ret_body, size_t *ret_n,
                        struct hf_status *reterr_status) {
        static const char list[] = "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[{"
                                   "\"metadata\":{\"name\":\"a\",\"namespace\":\"gone\"}}]}";

        if (request->verb == HF_VERB_DELETE_COLLECTION) {
                n_collections++;
                return HF_E_CANCELED;
        }
        assert_int_equal(request->verb, HF_VERB_LIST);
        *ret_body = strdup(list);
        assert_non_null(*ret_body);
        *ret_n = sizeof list - 1;
        return 0;
}

int __wrap_hfd_object_client_get_cached(struct hf_informer *informer, const char *ns,
                                        const char *name, struct hf__json **ret_object);
int __wrap_hfd_object_client_get_cached(struct hf_informer *informer, const char *ns,
                                        const char *name, struct hf__json **ret_object) {
        *ret_object = parsed(object);
        return 0;
}

int __wrap_hfd_object_client_get(struct hf_term *term, const struct hf_resource *resource,
                                 const char *ns, const char *name, struct hf__json **ret_object);
int __wrap_hfd_object_client_get(struct hf_term *term, const struct hf_resource *resource,
                                 const char *ns, const char *name, struct hf__json **ret_object) {
        *ret_object = parsed(object);
        return 0;
}

static void note_status(const struct hf__json *json) {
        struct hf__strbuf text = {0};

        hf__json_print(hf__json_get(json, "status"), &text);
        assert_int_equal(text.error, 0);
        (void)snprintf(written, sizeof written, "%s", text.data);
        hf__strbuf_done(&text);
}

int __wrap_hfd_object_client_update(struct hf_term *term, const struct hf_resource *resource,
                                    const char *ns, const char *name, const char *subresource,
                                    const struct hf__json *json);
int __wrap_hfd_object_client_update(struct hf_term *term, const struct hf_resource *resource,
                                    const char *ns, const char *name, const char *subresource,
                                    const struct hf__json *json) {
        assert_string_equal(subresource, "status"); /* it is not finalized */
        note_status(json);
        return 0;
}

int __wrap_hfd_definition_write_status(struct hf_term *term, const struct hf__json *definition,
                                       char ret_revision[HFD_DEFINITION_REVISION_MAX]);
int __wrap_hfd_definition_write_status(struct hf_term *term, const struct hf__json *definition,
                                       char ret_revision[HFD_DEFINITION_REVISION_MAX]) {
        assert_int_equal(hf__json_count(hf__json_path(definition, "metadata.finalizers")), 1);
        note_status(definition);
        return 0;
}

int __wrap_hf_informer_by_index(struct hf_informer *informer, const char *index, const char *value,
                                void (*each)(void *ctx, const char *ns, const char *name,
                                             const char *text, size_t n),
                                void *ctx);
int __wrap_hf_informer_by_index(struct hf_informer *informer, const char *index, const char *value,
                                void (*each)(void *ctx, const char *ns, const char *name,
                                             const char *text, size_t n),
                                void *ctx) {
        return 0;
}

int __wrap_hfd_kinds_run(struct hfd_kinds *kinds, struct hf_term *term, hfd_kinds_run_fn run,
                         void *ctx);
int __wrap_hfd_kinds_run(struct hfd_kinds *kinds, struct hf_term *term, hfd_kinds_run_fn run,
                         void *ctx) {
        return run(ctx, term, set, NULL);
}

/* In place of the loop, one reconcile. */
int __wrap_hfd_reconcile_loop_run_set(const struct hfd_reconcile_loop *loop, struct hf_term *term,
                                      const struct hfd_kind_set *kinds, hfd_kind_map_fn map_of,
                                      struct hf_cancel *until);
int __wrap_hfd_reconcile_loop_run_set(const struct hfd_reconcile_loop *loop, struct hf_term *term,
                                      const struct hfd_kind_set *kinds, hfd_kind_map_fn map_of,
                                      struct hf_cancel *until) {
        hf_nsec again = 0;

        result = loop->reconcile(loop->ctx, term, "gone", &again);
        return 0;
}

/* ---- tests ---- */

static int set_up(void **state) {
        struct hfd_kind *all[] = {&configmaps, &secrets};

        assert_int_equal(hfd_kind_set_new(hf_clock_system(), all, 2, &set), 0);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &abort_token), 0);
        n_collections = 0;
        *written = 0;
        return 0;
}

static int tear_down(void **state) {
        hf_cancel_unref(abort_token);
        hfd_kind_set_unref(set);
        return 0;
}

static void reconcile_namespace(bool aborted) {
        struct hfd_controller_context context = {.namespaces = &configmaps};

        object = NAMESPACE;
        if (aborted)
                hf_cancel_fire(abort_token, HF_CANCEL_STOPPING);
        assert_int_equal(hfd_namespace_lifecycle_run(NULL, &context), 0);
}

static void test_a_canceled_deletion_is_a_failure_of_its_kind(void **state) {
        reconcile_namespace(false);
        assert_int_equal(result, HF_E_UNAVAILABLE);
        assert_int_equal(n_collections, 2);
        assert_non_null(strstr(written, "configmaps: "));
        assert_non_null(strstr(written, "secrets: "));
}

static void test_the_end_of_the_term_is_no_failure_of_a_kind(void **state) {
        reconcile_namespace(true);
        assert_int_equal(result, HF_E_CANCELED);
        assert_int_equal(n_collections, 1);
        assert_string_equal(written, "");
}

static void reconcile_definition(bool aborted) {
        struct hfd_controller_context context = {.definitions = &configmaps};

        object = DEFINITION;
        if (aborted)
                hf_cancel_fire(abort_token, HF_CANCEL_STOPPING);
        assert_int_equal(hfd_definition_cleanup_run(NULL, &context), 0);
        assert_int_equal(n_collections, 1);
}

static void test_a_canceled_deletion_is_a_failure_of_the_definition(void **state) {
        reconcile_definition(false);
        assert_int_equal(result, 0);
        assert_non_null(strstr(written, "could not issue all deletes: "));
}

static void test_the_end_of_the_term_is_no_failure_of_the_definition(void **state) {
        reconcile_definition(true);
        assert_int_equal(result, HF_E_CANCELED);
        assert_string_equal(written, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_canceled_deletion_is_a_failure_of_its_kind),
                TEST(test_the_end_of_the_term_is_no_failure_of_a_kind),
                TEST(test_a_canceled_deletion_is_a_failure_of_the_definition),
                TEST(test_the_end_of_the_term_is_no_failure_of_the_definition),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
