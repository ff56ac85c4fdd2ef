/* SPDX-License-Identifier: Apache-2.0 */
/* Subresources, finalizers, propagation and the deletion of namespaces, through the loopback
 * client.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "base/json.h"
#include "store_client.h"

static const struct hf_resource events = {"", "v1", "events"};

static int64_t number_at(const struct api_fixture *f, const char *path) {
        struct hf__json *json = NULL;
        int64_t number = -1;

        assert_int_equal(hf__json_parse(f->last.body, strlen(f->last.body), &json, NULL), 0);
        (void)hf__json_i64(json, path, &number);
        hf__json_free(json);
        return number;
}

/* ---- subresources ---- */

static void test_status_and_object_are_updated_separately(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make(f, api_workspaces, NULL,
                         "{\"metadata\":{\"name\":\"w\"},\"spec\":{\"a\":1},\"status\":{\"phase\":"
                         "\"Ready\"}}");
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "");
        /* An update of the status changes only the status. */
        assert_int_equal(
                api_fixture_request_subresource(f, api_workspaces, "w", "status",
                                                "{\"metadata\":{\"name\":\"w\",\"labels\":{"
                                                "\"a\":\"b\"}},\"spec\":{\"a\":2},\"status\":"
                                                "{\"phase\":"
                                                "\"Ready\"}}"),
                0);
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "Ready");
        assert_string_equal(api_fixture_text_at(f, "metadata.labels.a"), "");
        assert_int_equal(number_at(f, "spec.a"), 1);
        assert_int_equal(number_at(f, "metadata.generation"), 1);
        /* An update of the object changes everything but the status. */
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "w", NULL,
                                             "{\"metadata\":{\"name\":\"w\",\"generation\":9},"
                                             "\"spec\":{\"a\":3},\"status\":{\"phase\":\"Lost\"}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "Ready");
        assert_int_equal(number_at(f, "spec.a"), 3);
        assert_int_equal(number_at(f, "metadata.generation"), 2);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "w", NULL,
                                             "{\"metadata\":{\"name\":\"w\","
                                             "\"labels\":{\"a\":\"b\"}},\"spec\":{\"a\":3}}"),
                         0);
        assert_int_equal(number_at(f, "metadata.generation"), 2);
        assert_int_equal(api_fixture_request_subresource(f, api_workspaces, "w", "status", NULL),
                         0);
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "Ready");
}

static void test_an_update_without_a_status_removes_it(void **state) {
        struct api_fixture *f = *state;
        char revision[32];

        api_fixture_make(f, api_workspaces, NULL, "{\"metadata\":{\"name\":\"w\"}}");
        assert_int_equal(api_fixture_request_subresource(f, api_workspaces, "w", "status",
                                                         "{\"metadata\":{\"name\":\"w\"},"
                                                         "\"status\":{\"phase\":\"Ready\"}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "Ready");
        assert_int_equal(api_fixture_request_subresource(f, api_workspaces, "w", "status",
                                                         "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "");
        /* The same update again writes nothing. */
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(api_fixture_request_subresource(f, api_workspaces, "w", "status",
                                                         "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "metadata.resourceVersion"), revision);
        assert_int_equal(api_fixture_request_subresource(f, api_workspaces, "w", "status",
                                                         "{\"metadata\":{\"name\":\"w\","
                                                         "\"resourceVersion\":\"1\"}}"),
                         HF_E_CONFLICT);
        assert_int_equal(api_fixture_request_subresource(f, api_workspaces, "none", "status",
                                                         "{\"metadata\":{\"name\":\"none\"}}"),
                         HF_E_NOT_FOUND);
        api_fixture_expect_failure(f, 404, "NotFound",
                                   "workspaces.tenancy.holdfast.dev \"none\" not found");
}

/* Its bodies are TokenRequests, which only a path of HTTP serves. */
static void test_the_client_in_the_process_serves_no_tokens(void **state) {
        struct api_fixture *f = *state;
        const struct hf_request get_token = {.size = sizeof get_token,
                                             .verb = HF_VERB_GET,
                                             .resource = {"", "v1", "serviceaccounts"},
                                             .ns = "default",
                                             .name = "default",
                                             .subresource = "token"};

        assert_int_equal(api_fixture_send(f, &get_token), HF_E_INVALID);
        api_fixture_expect_failure(f, 405, "MethodNotAllowed",
                                   "the server does not allow this method on the "
                                   "requested resource");
}

static void test_unknown_subresources_are_not_found(void **state) {
        struct api_fixture *f = *state;
        struct hf_request drop_status = {.size = sizeof drop_status,
                                         .verb = HF_VERB_DELETE,
                                         .resource = api_workspaces,
                                         .name = "w",
                                         .subresource = "status"};

        api_fixture_make(f, api_workspaces, NULL, "{\"metadata\":{\"name\":\"w\"}}");
        assert_int_equal(api_fixture_request_subresource(f, api_workspaces, "w", "finalize", NULL),
                         HF_E_NOT_FOUND);
        api_fixture_expect_failure(f, 404, "NotFound",
                                   "the server could not find the requested resource");
        assert_int_equal(api_fixture_request_subresource(f, api_workspaces, "w", "scale", NULL),
                         HF_E_NOT_FOUND);
        assert_int_equal(api_fixture_send(f, &drop_status), HF_E_INVALID);
        api_fixture_expect_failure(f, 405, "MethodNotAllowed",
                                   "the server does not allow this method on the "
                                   "requested resource");
        assert_int_equal(api_fixture_get(f, api_workspaces, NULL, "w"), 0);
}

/* ---- finalizers and propagation ---- */

static void test_removing_the_last_finalizer_deletes_the_object(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make(f, api_workspaces, NULL,
                         "{\"metadata\":{\"name\":\"w\",\"finalizers\":[\"a.b/c\",\"a.b/d\"]}}");
        assert_int_equal(api_fixture_delete(f, api_workspaces, NULL, "w", NULL), 0);
        assert_string_equal(api_fixture_text_at(f, "kind"), "Workspace");
        assert_int_equal(number_at(f, "metadata.deletionGracePeriodSeconds"), 0);
        assert_int_equal(number_at(f, "metadata.generation"), 2);
        char stamp[40], revision[32];
        (void)snprintf(stamp, sizeof stamp, "%s",
                       api_fixture_text_at(f, "metadata.deletionTimestamp"));
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        /* the same request again changes nothing */
        assert_int_equal(api_fixture_delete(f, api_workspaces, NULL, "w", NULL), 0);
        assert_string_equal(api_fixture_text_at(f, "metadata.resourceVersion"), revision);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "w", NULL,
                                             "{\"metadata\":{\"name\":\"w\","
                                             "\"finalizers\":[\"a.b/d\"]}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "metadata.deletionTimestamp"), stamp);
        /* An object without a last finalizer is removed; the response shows it as it was. */
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "w", NULL,
                                             "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "kind"), "Workspace");
        assert_string_equal(api_fixture_text_at(f, "metadata.deletionTimestamp"), stamp);
        assert_int_equal(api_fixture_get(f, api_workspaces, NULL, "w"), HF_E_NOT_FOUND);
}

static void test_orphan_and_foreground_finalizers_exclude_each_other(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"w\",\"finalizers\":["
                                             "\"orphan\",\"foregroundDeletion\"]}}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "Workspace.tenancy.holdfast.dev \"w\" is invalid: "
                                   "metadata.finalizers: Invalid value: [\"orphan\","
                                   "\"foregroundDeletion\",\"tenancy.holdfast.dev/workspace\"]: "
                                   "finalizer "
                                   "orphan and finalizer foregroundDeletion cannot be both set");
}

static void test_a_propagation_policy_becomes_a_finalizer(void **state) {
        static const struct {
                /* left: the finalizers after the delete; NULL = the object is deleted */
                const char *finalizers, *options, *left;
        } cases[] = {
                {"", "{\"propagationPolicy\":\"Background\"}", NULL},
                {"", "{}", NULL},
                {"",
                 "{\"propagationPolicy\":null,\"orphanDependents\":null,"
                 "\"gracePeriodSeconds\":null}",
                 NULL},
                {"", "{\"propagationPolicy\":\"Orphan\"}", "[\"orphan\"]"},
                {"", "{\"propagationPolicy\":\"Foreground\",\"gracePeriodSeconds\":30}",
                 "[\"foregroundDeletion\"]"},
                {"", "{\"orphanDependents\":true}", "[\"orphan\"]"},
                {"", "{\"orphanDependents\":false}", NULL},
                {"\"a.b/c\"", "{\"propagationPolicy\":\"Orphan\"}", "[\"a.b/c\",\"orphan\"]"},
                {"\"orphan\"", "{\"propagationPolicy\":\"Foreground\"}",
                 "[\"foregroundDeletion\"]"},
                {"\"orphan\"", "{\"propagationPolicy\":\"Background\"}", NULL},
                {"\"foregroundDeletion\"", "{}", "[\"foregroundDeletion\"]"},
                {"\"foregroundDeletion\",\"a.b/c\"", "{\"propagationPolicy\":\"Background\"}",
                 "[\"a.b/c\"]"},
        };
        struct api_fixture *f = *state;
        char body[200], wanted[80];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"w%zu\",\"finalizers\":[%s]}}", i,
                               cases[i].finalizers);
                api_fixture_make(f, api_configmaps, "default", body);
                (void)snprintf(body, sizeof body, "w%zu", i);
                assert_int_equal(api_fixture_delete(f, api_configmaps, "default", body,
                                                    cases[i].options),
                                 0);
                if (!cases[i].left) {
                        assert_string_equal(api_fixture_text_at(f, "status"), "Success");
                        assert_int_equal(api_fixture_get(f, api_configmaps, "default", body),
                                         HF_E_NOT_FOUND);
                        continue;
                }
                (void)snprintf(wanted, sizeof wanted, "\"finalizers\":%s", cases[i].left);
                assert_non_null(strstr(f->last.body, wanted));
                assert_string_not_equal(api_fixture_text_at(f, "metadata.deletionTimestamp"), "");
        }
}

static void test_a_propagation_can_be_changed_during_the_deletion(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make(f, api_configmaps, "default", "{\"metadata\":{\"name\":\"w\"}}");
        assert_int_equal(api_fixture_delete(f, api_configmaps, "default", "w",
                                            "{\"propagationPolicy\":\"Orphan\"}"),
                         0);
        assert_int_equal(api_fixture_delete(f, api_configmaps, "default", "w",
                                            "{\"propagationPolicy\":\"Foreground\"}"),
                         0);
        assert_non_null(strstr(f->last.body, "\"finalizers\":[\"foregroundDeletion\"]"));
        assert_int_equal(api_fixture_delete(f, api_configmaps, "default", "w",
                                            "{\"propagationPolicy\":\"Background\"}"),
                         0);
        assert_int_equal(api_fixture_get(f, api_configmaps, "default", "w"), HF_E_NOT_FOUND);
}

static void test_an_event_owns_nothing_that_could_be_orphaned(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make(f, events, "default", "{\"metadata\":{\"name\":\"e\"}}");
        assert_int_equal(api_fixture_delete(f, events, "default", "e",
                                            "{\"propagationPolicy\":\"Orphan\"}"),
                         0);
        assert_int_equal(api_fixture_get(f, events, "default", "e"), HF_E_NOT_FOUND);
}

static void test_a_propagation_comes_as_orphan_dependents_or_in_the_query(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make(f, api_configmaps, "default",
                         "{\"metadata\":{\"name\":\"q\",\"finalizers\":[\"a.b/c\"]}}");
        assert_int_equal(api_fixture_delete(f, api_configmaps, "default", "q",
                                            "{\"orphanDependents\":false}"),
                         0);
        assert_int_equal(f->last.status.http_code, 202);
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE, api_configmaps, "default", "q",
                                             "propagationPolicy=Orphan", NULL),
                         0);
        assert_int_equal(f->last.status.http_code, 200);
        assert_non_null(strstr(f->last.body, "\"finalizers\":[\"a.b/c\",\"orphan\"]"));
}

#define UNSAFE_DELETE "{\"ignoreStoreReadErrorWithClusterBreakingPotential"

static void test_invalid_delete_options_delete_nothing(void **state) {
        static const char *const unreadable[] = {"{\"propagationPolicy\":5}",
                                                 "{\"orphanDependents\":\"yes\"}",
                                                 UNSAFE_DELETE "\":\"yes\"}",
                                                 "{\"gracePeriodSeconds\":\"1\"}",
                                                 "{\"gracePeriodSeconds\":1.5}",
                                                 "{\"dryRun\":\"All\"}",
                                                 "{\"dryRun\":[1]}",
                                                 "{\"preconditions\":[]}",
                                                 "{\"preconditions\":{\"uid\":7}}",
                                                 "[]"};
        struct api_fixture *f = *state;

        api_fixture_make(f, api_configmaps, "default", "{\"metadata\":{\"name\":\"w\"}}");
        for (size_t i = 0; i < sizeof unreadable / sizeof unreadable[0]; i++) {
                assert_int_equal(api_fixture_delete(f, api_configmaps, "default", "w",
                                                    unreadable[i]),
                                 HF_E_INVALID);
                assert_int_equal(f->last.status.http_code, 400);
        }
        assert_int_equal(api_fixture_delete(f, api_configmaps, "default", "w",
                                            "{\"propagationPolicy\":\"Foreground\","
                                            "\"orphanDependents\":true}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: "
                                   "Invalid value: \"Foreground\": orphanDependents and "
                                   "deletionPropagation cannot be both set");
        assert_int_equal(api_fixture_delete(f, api_configmaps, "default", "w",
                                            "{\"propagationPolicy\":\"Sideways\"}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: "
                                   "Unsupported value: \"Sideways\": supported values: "
                                   "\"Foreground\", \"Background\", \"Orphan\", \"nil\"");
        assert_int_equal(api_fixture_delete(f, api_configmaps, "default", "w",
                                            "{\"dryRun\":[\"All\",\"Some\"]}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported "
                                   "value: [\"All\",\"Some\"]: supported values: \"All\"");
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE, api_configmaps, "default", "w",
                                             "propagationPolicy=Sideways", NULL),
                         HF_E_INVALID);
        assert_int_equal(api_fixture_delete(f, api_configmaps, "default", "w",
                                            "{\"dryRun\":[\"All\"],\"propagationPolicy\":"
                                            "\"Orphan\"}"),
                         0);
        assert_int_equal(api_fixture_get(f, api_configmaps, "default", "w"), 0);
        assert_null(strstr(f->last.body, "finalizers"));
}

/* ---- namespaces ---- */

static void test_a_namespace_is_active_until_it_is_deleted(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make(f, api_namespaces, NULL,
                         "{\"metadata\":{\"name\":\"n\"},\"status\":{\"phase\":\"Terminating\"}}");
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "Active");
        assert_non_null(strstr(f->last.body, "\"spec\":{\"finalizers\":[\"kubernetes\"]}"));
        assert_non_null(strstr(f->last.body, "\"kubernetes.io/metadata.name\":\"n\""));
        /* An update of the object leaves spec and status to their subresources. */
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_namespaces, NULL, "n", NULL,
                                             "{\"metadata\":{\"name\":\"n\"},"
                                             "\"spec\":{\"finalizers\":[]}}"),
                         0);
        assert_non_null(strstr(f->last.body, "\"finalizers\":[\"kubernetes\"]"));
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "Active");
        assert_int_equal(api_fixture_delete(f, api_namespaces, NULL, "n",
                                            "{\"propagationPolicy\":\"Background\"}"),
                         0);
        assert_int_equal(f->last.status.http_code, 200);
        assert_string_equal(api_fixture_text_at(f, "kind"), "Namespace");
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "Terminating");
        assert_string_not_equal(api_fixture_text_at(f, "metadata.deletionTimestamp"), "");
}

static void test_a_terminating_namespace_accepts_changes_but_no_new_objects(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make(f, api_namespaces, NULL, "{\"metadata\":{\"name\":\"n\"}}");
        api_fixture_make(f, api_configmaps, "n", "{\"metadata\":{\"name\":\"c\"}}");
        assert_int_equal(api_fixture_delete(f, api_namespaces, NULL, "n", NULL), 0);
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_configmaps, "n", NULL, NULL,
                                             "{\"metadata\":{\"name\":\"d\"}}"),
                         HF_E_FORBIDDEN);
        api_fixture_expect_failure(f, 403, "Forbidden",
                                   "configmaps \"d\" is forbidden: unable to create new content in "
                                   "namespace n because it is being terminated");
        assert_non_null(strstr(f->last.body, "\"causes\":[{\"reason\":\"NamespaceTerminating\","
                                             "\"message\":\"namespace n is being "
                                             "terminated\",\"field\":\"metadata.namespace\"}]"));
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_leases, "n", "l", NULL,
                                             "{\"metadata\":{\"name\":\"l\"}}"),
                         HF_E_FORBIDDEN);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_configmaps, "n", "d", NULL,
                                             "{\"metadata\":{\"name\":\"d\"}}"),
                         HF_E_NOT_FOUND);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_configmaps, "n", "c", NULL,
                                             "{\"metadata\":{\"name\":\"c\"},"
                                             "\"data\":{\"a\":\"b\"}}"),
                         0);
        assert_int_equal(api_fixture_delete(f, api_configmaps, "n", "c", NULL), 0);
}

static void test_a_namespace_is_gone_without_finalizers_and_can_be_made_again(void **state) {
        struct api_fixture *f = *state;
        const char *body = "{\"metadata\":{\"name\":\"c\"}}";

        api_fixture_make(f, api_namespaces, NULL, "{\"metadata\":{\"name\":\"n\"}}");
        assert_int_equal(api_fixture_delete(f, api_namespaces, NULL, "n", NULL), 0);
        assert_int_equal(api_fixture_request_subresource(f, api_namespaces, "n", "status",
                                                         "{\"metadata\":{\"name\":\"n\"},"
                                                         "\"status\":{\"phase\":\"Terminating\","
                                                         "\"conditions\":[]}}"),
                         0);
        assert_string_not_equal(api_fixture_text_at(f, "metadata.deletionTimestamp"), "");
        assert_int_equal(api_fixture_request_subresource(f, api_namespaces, "n", "finalize",
                                                         "{\"metadata\":{\"name\":\"n\"},"
                                                         "\"spec\":{}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "kind"), "Namespace");
        assert_int_equal(api_fixture_get(f, api_namespaces, NULL, "n"), HF_E_NOT_FOUND);
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_configmaps, "n", NULL, NULL,
                                             body),
                         HF_E_NOT_FOUND);
        api_fixture_expect_failure(f, 404, "NotFound", "namespaces \"n\" not found");
        api_fixture_make(f, api_namespaces, NULL, "{\"metadata\":{\"name\":\"n\"}}");
        api_fixture_make(f, api_configmaps, "n", body);
}

static void test_a_namespace_is_held_by_both_kinds_of_finalizers(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make(f, api_namespaces, NULL,
                         "{\"metadata\":{\"name\":\"n\",\"finalizers\":[\"a.b/"
                         "c\"]},\"spec\":{\"finalizers\":[\"x.y/z\"]}}");
        assert_non_null(strstr(f->last.body, "\"finalizers\":[\"x.y/z\",\"kubernetes\"]"));
        assert_int_equal(api_fixture_request_subresource(f, api_namespaces, "n", "finalize",
                                                         "{\"metadata\":{\"name\":\"n\"},\"spec\":{"
                                                         "\"finalizers\":[\"odd\"]}}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "Namespace \"n\" is invalid: spec.finalizers[0]: Invalid value: "
                                   "\"odd\": name is neither a standard finalizer name nor is it "
                                   "fully qualified");
        assert_int_equal(api_fixture_delete(f, api_namespaces, NULL, "n", NULL), 0);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_namespaces, NULL, "n", NULL,
                                             "{\"metadata\":{\"name\":\"n\"}}"),
                         0);
        assert_int_equal(api_fixture_get(f, api_namespaces, NULL, "n"),
                         0); /* spec.finalizers keep it */
        assert_null(strstr(f->last.body, "a.b/c"));
        assert_int_equal(api_fixture_request_subresource(f, api_namespaces, "n", "finalize",
                                                         "{\"metadata\":{\"name\":\"n\"},\"spec\":{"
                                                         "\"finalizers\":[\"x.y/z\"]}}"),
                         0);
        assert_int_equal(api_fixture_get(f, api_namespaces, NULL, "n"), 0);
        assert_int_equal(api_fixture_request_subresource(f, api_namespaces, "n", "finalize",
                                                         "{\"metadata\":{\"name\":\"n\"},\"spec\":{"
                                                         "\"finalizers\":[]}}"),
                         0);
        assert_int_equal(api_fixture_get(f, api_namespaces, NULL, "n"), HF_E_NOT_FOUND);
        /* If a namespace is finalized before it is deleted, nothing keeps it. */
        api_fixture_make(f, api_namespaces, NULL, "{\"metadata\":{\"name\":\"m\"}}");
        assert_int_equal(api_fixture_request_subresource(f, api_namespaces, "m", "finalize",
                                                         "{\"metadata\":{\"name\":\"m\"}}"),
                         0);
        assert_int_equal(api_fixture_get(f, api_namespaces, NULL, "m"), 0);
        assert_int_equal(api_fixture_delete(f, api_namespaces, NULL, "m", NULL), 0);
        assert_int_equal(api_fixture_get(f, api_namespaces, NULL, "m"), HF_E_NOT_FOUND);
}

static void test_system_namespaces_cannot_be_deleted(void **state) {
        static const char *const names[] = {"default", "kube-system", "kube-public",
                                            "kube-node-lease"};
        struct api_fixture *f = *state;
        char message[160];

        for (size_t i = 0; i < 4; i++) {
                assert_int_equal(api_fixture_delete(f, api_namespaces, NULL, names[i], NULL),
                                 HF_E_FORBIDDEN);
                (void)snprintf(message, sizeof message,
                               "namespaces \"%s\" is forbidden: this namespace may not be deleted",
                               names[i]);
                api_fixture_expect_failure(f, 403, "Forbidden", message);
        }
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE_COLLECTION, api_namespaces, NULL,
                                             NULL, NULL, NULL),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 405, "MethodNotAllowed",
                                   "the server does not allow this method on the "
                                   "requested resource");
}

/* ---- concurrent creates in a namespace that is being deleted ---- */

struct storm {
        struct api_fixture *f;
        int index;
        atomic_bool *over;
        int n_made, n_refused;
};

static void *create_until_over(void *ctx) {
        struct storm *s = ctx;
        char body[100];

        for (int i = 0; !atomic_load(s->over); i++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"c-%d-%d\"}}", s->index,
                               i);
                struct hf_request request = {.size = sizeof request,
                                             .verb = HF_VERB_CREATE,
                                             .resource = api_configmaps,
                                             .ns = "n",
                                             .body = body,
                                             .n_body = strlen(body)};
                int r = hf_client_do(s->f->client, &request, hf_cancel_never(), NULL, NULL, NULL);
                assert_true(r == 0 || r == HF_E_FORBIDDEN || r == HF_E_NOT_FOUND);
                s->n_made += r == 0;
                s->n_refused += r != 0;
        }
        return NULL;
}

/* Counts the keys with this prefix in the store itself, without any cache. */
static int n_stored(struct api_fixture *f, const char *prefix) {
        struct store_reply reply;

        assert_int_equal(store_client_list(f->store, prefix, NULL, 0, 0, true, &reply), 0);
        int n = (int)reply.n_kvs;
        store_reply_deinit(&reply);
        return n;
}

static void test_concurrent_creates_leave_nothing_in_a_deleted_namespace(void **state) {
        struct api_fixture *f = *state;
        struct storm storms[4];
        pthread_t threads[4];
        atomic_bool over = false;
        int n_refused = 0, n_made = 0, n_orphans = 0;

        api_fixture_make(f, api_namespaces, NULL, "{\"metadata\":{\"name\":\"n\"}}");
        for (int i = 0; i < 4; i++) {
                storms[i] = (struct storm){.f = f, .index = i, .over = &over};
                assert_int_equal(pthread_create(&threads[i], NULL, create_until_over, &storms[i]),
                                 0);
        }
        for (int round = 0; round < 40; round++) {
                /*
                 * First it creates objects. Then it does what a namespace controller does: it lists
                 * the contents only once after the deletion mark.
                 */
                do
                        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_configmaps, "n",
                                                             NULL, "resourceVersion=0", NULL),
                                         0);
                while (api_fixture_count_at(f, "items") < 3);
                assert_int_equal(api_fixture_delete(f, api_namespaces, NULL, "n", NULL), 0);
                assert_string_equal(api_fixture_text_at(f, "status.phase"), "Terminating");
                assert_int_equal(api_fixture_request(f, HF_VERB_DELETE_COLLECTION, api_configmaps,
                                                     "n", NULL, NULL, NULL),
                                 0);
                assert_string_equal(api_fixture_text_at(f, "kind"), "ConfigMapList");
                assert_int_equal(api_fixture_request_subresource(f, api_namespaces, "n", "finalize",
                                                                 "{\"metadata\":{\"name\":\"n\"}}"),
                                 0);
                n_orphans += n_stored(f, "/registry/configmaps/n/");
                api_fixture_make(f, api_namespaces, NULL, "{\"metadata\":{\"name\":\"n\"}}");
        }
        atomic_store(&over, true);
        for (int i = 0; i < 4; i++) {
                pthread_join(threads[i], NULL);
                n_made += storms[i].n_made;
                n_refused += storms[i].n_refused;
        }
        assert_int_equal(n_orphans, 0);
        assert_true(n_made > 40);
        assert_true(n_refused > 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_status_and_object_are_updated_separately),
                API_TEST(test_an_update_without_a_status_removes_it),
                API_TEST(test_the_client_in_the_process_serves_no_tokens),
                API_TEST(test_unknown_subresources_are_not_found),
                API_TEST(test_removing_the_last_finalizer_deletes_the_object),
                API_TEST(test_orphan_and_foreground_finalizers_exclude_each_other),
                API_TEST(test_a_propagation_policy_becomes_a_finalizer),
                API_TEST(test_a_propagation_can_be_changed_during_the_deletion),
                API_TEST(test_an_event_owns_nothing_that_could_be_orphaned),
                API_TEST(test_a_propagation_comes_as_orphan_dependents_or_in_the_query),
                API_TEST(test_invalid_delete_options_delete_nothing),
                API_TEST(test_a_namespace_is_active_until_it_is_deleted),
                API_TEST(test_a_terminating_namespace_accepts_changes_but_no_new_objects),
                API_TEST(test_a_namespace_is_gone_without_finalizers_and_can_be_made_again),
                API_TEST(test_a_namespace_is_held_by_both_kinds_of_finalizers),
                API_TEST(test_system_namespaces_cannot_be_deleted),
                API_TEST(test_concurrent_creates_leave_nothing_in_a_deleted_namespace),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
