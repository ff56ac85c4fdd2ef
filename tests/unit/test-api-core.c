/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry below HTTP, through the loopback client over the memory store: what creates,
 * updates, patches and deletes change, with which statuses they are refused, and which fences they
 * compare.
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

#include "api_fixture.h"
#include "store_client.h"

static const char *lease_body(const char *name, const char *holder, const char *revision) {
        static char body[600];

        (void)snprintf(body, sizeof body,
                       "{\"apiVersion\":\"coordination.k8s.io/"
                       "v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"%s\"%s%s%s},\"spec\":{"
                       "\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15,\"acquireTime\":"
                       "\"2026-11-21T02:36:00.000000Z\"}}",
                       name, revision ? ",\"resourceVersion\":\"" : "", revision ? revision : "",
                       revision ? "\"" : "", holder);
        return body;
}

/* ---- statuses ---- */

static void test_objects_are_created_read_and_deleted(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "default", NULL, NULL,
                                             lease_body("x", "a", NULL)),
                         0);
        assert_int_equal(f->last.status.http_code, 201);
        char uid[64], revision[32];
        (void)snprintf(uid, sizeof uid, "%s", api_fixture_text_at(f, "metadata.uid"));
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(strlen(uid), 36);
        assert_string_equal(api_fixture_text_at(f, "metadata.namespace"), "default");
        assert_int_equal(strlen(api_fixture_text_at(f, "metadata.creationTimestamp")), 20);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_leases, "default", "x", NULL,
                                             NULL),
                         0);
        assert_string_equal(api_fixture_text_at(f, "metadata.resourceVersion"), revision);
        assert_string_equal(api_fixture_text_at(f, "spec.holderIdentity"), "a");
        assert_string_equal(api_fixture_text_at(f, "kind"), "Lease");
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE, api_leases, "default", "x", NULL,
                                             NULL),
                         0);
        assert_string_equal(api_fixture_text_at(f, "status"), "Success");
        assert_string_equal(api_fixture_text_at(f, "details.uid"), uid);
        assert_string_equal(api_fixture_text_at(f, "details.kind"), "leases");
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_leases, "default", "x", NULL,
                                             NULL),
                         HF_E_NOT_FOUND);
        api_fixture_expect_failure(f, 404, "NotFound",
                                   "leases.coordination.k8s.io \"x\" not found");
        assert_string_equal(api_fixture_text_at(f, "details.kind"), "leases");
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE, api_leases, "default", "x", NULL,
                                             NULL),
                         HF_E_NOT_FOUND);
}

static void test_the_loopback_client_patches(void **state) {
        struct api_fixture *f = *state;
        const char *merge = "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}",
                   *list = "[{\"op\":\"add\",\"path\":\"/metadata/labels/c\",\"value\":\"d\"}]";
        struct hf_request request = {.size = sizeof request,
                                     .verb = HF_VERB_PATCH,
                                     .resource = api_workspaces,
                                     .name = "w",
                                     .body = merge,
                                     .n_body = strlen(merge)};
        char *object = NULL;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        assert_int_equal(hf_client_do(f->client, &request, hf_cancel_never(), NULL, NULL, NULL), 0);
        request.patch = HF_PATCH_JSON;
        request.body = list;
        request.n_body = strlen(list);
        assert_int_equal(hf_client_do(f->client, &request, hf_cancel_never(), &object, NULL, NULL),
                         0);
        assert_non_null(strstr(object, "\"a\":\"b\""));
        assert_non_null(strstr(object, "\"c\":\"d\""));
        free(object);
        request.patch = HF_PATCH_APPLY;
        assert_int_equal(hf_client_do(f->client, &request, hf_cancel_never(), NULL, NULL, NULL),
                         HF_E_INVALID);
}

static void test_creating_an_existing_object_fails(void **state) {
        struct api_fixture *f = *state;
        const char *body = "{\"metadata\":{\"name\":\"w\"}}";

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             body),
                         0);
        assert_string_equal(api_fixture_text_at(f, "apiVersion"), "tenancy.holdfast.dev/v1alpha1");
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             body),
                         HF_E_EXISTS);
        api_fixture_expect_failure(f, 409, "AlreadyExists",
                                   "workspaces.tenancy.holdfast.dev \"w\" already exists");
}

static void test_a_create_needs_an_existing_namespace(void **state) {
        struct api_fixture *f = *state;
        const char *body = "{\"metadata\":{\"name\":\"c\"},\"data\":{\"k\":\"v\"}}";

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_configmaps, "nowhere", NULL,
                                             NULL, body),
                         HF_E_NOT_FOUND);
        api_fixture_expect_failure(f, 404, "NotFound", "namespaces \"nowhere\" not found");
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_namespaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"nowhere\"}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "Active");
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_configmaps, "nowhere", NULL,
                                             NULL, body),
                         0);
}

static void test_an_update_of_an_old_version_conflicts(void **state) {
        struct api_fixture *f = *state;
        char revision[32];

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "default", NULL, NULL,
                                             lease_body("x", "a", NULL)),
                         0);
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_leases, "default", "x", NULL,
                                             lease_body("x", "b", revision)),
                         0);
        assert_int_equal(f->last.status.http_code, 200);
        assert_string_not_equal(api_fixture_text_at(f, "metadata.resourceVersion"), revision);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_leases, "default", "x", NULL,
                                             lease_body("x", "c", revision)),
                         HF_E_CONFLICT);
        api_fixture_expect_failure(f, 409, "Conflict",
                                   "Operation cannot be fulfilled on leases.coordination.k8s.io "
                                   "\"x\": the object has been modified; please apply your "
                                   "changes to the latest version and try again");
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_leases, "default", "x", NULL,
                                             lease_body("x", "c", NULL)),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "leases.coordination.k8s.io \"x\" is invalid: "
                                   "metadata.resourceVersion: Invalid value: 0: must be specified "
                                   "for an update");
        /* An update creates a Lease that does not exist, unless it names a resourceVersion. */
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_leases, "default", "y", NULL,
                                             lease_body("y", "c", NULL)),
                         0);
        assert_int_equal(f->last.status.http_code, 201);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_leases, "default", "z", NULL,
                                             lease_body("z", "c", "5")),
                         HF_E_CONFLICT);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "none", NULL,
                                             "{\"metadata\":{\"name\":\"none\"}}"),
                         HF_E_NOT_FOUND);
}

static void test_an_update_without_changes_writes_nothing(void **state) {
        struct api_fixture *f = *state;
        char revision[32];

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "default", NULL, NULL,
                                             lease_body("x", "a", NULL)),
                         0);
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        char *body = strdup(f->last.body);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_leases, "default", "x", NULL,
                                             body),
                         0);
        assert_string_equal(api_fixture_text_at(f, "metadata.resourceVersion"), revision);
        free(body);
}

static void test_bad_requests_are_refused(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "default", NULL, NULL,
                                             "{\"metadata\":"),
                         HF_E_INVALID);
        assert_int_equal(f->last.status.http_code, 400);
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "default", NULL, NULL,
                                             "{\"metadata\":{\"name\":\"x\","
                                             "\"namespace\":\"other\"}}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "the namespace of the provided object does not match the "
                                   "namespace sent on the request");
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_leases, "default", "y", NULL,
                                             lease_body("x", "a", "1")),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "the name of the object (x) does not match the name on "
                                   "the URL (y)");
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "default", NULL, NULL,
                                             lease_body("x", "a", "7")),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "resourceVersion should not be set on objects to be created");
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "default", NULL, NULL,
                                             "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\"}}"),
                         HF_E_INVALID);
        assert_int_equal(f->last.status.http_code, 400);
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "default", NULL, NULL,
                                             "{\"metadata\":{\"name\":7}}"),
                         HF_E_INVALID);
        assert_int_equal(f->last.status.http_code, 400);
        /* A number that fits no type: the message is kube-apiserver's. */
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "default", NULL, NULL,
                                             "{\"metadata\":{\"name\":\"x\"},\"other\":1e999}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "Lease in version \"v1\" cannot be handled as a Lease: json: "
                                   "cannot unmarshal number 1e999 into Go value of type float64");
        assert_int_equal(api_fixture_request(f, HF_VERB_LIST, api_leases, "default", NULL,
                                             "fieldSelector=spec.x%3D1", NULL),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "\"spec.x\" is not a known field selector: only "
                                   "\"metadata.name\", \"metadata.namespace\"");
}

/*
 * The cases of Kubernetes' TestValidateLease, TestValidateLeaseSpec and
 * TestValidateLeaseSpecUpdate.
 */
static void test_leases_are_validated_as_in_kubernetes(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "default", NULL, NULL,
                                             "{\"metadata\":{\"name\":\"invalidName++\"}}"),
                         HF_E_INVALID);
        assert_int_equal(f->last.status.http_code, 422);
        assert_int_equal(api_fixture_count_at(f, "details.causes"), 1);
        assert_string_equal(api_fixture_text_at(f, "details.kind"), "Lease");
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "default", NULL, NULL,
                                             "{\"metadata\":{\"name\":\"x\"},"
                                             "\"spec\":{\"leaseDurationSeconds\":0,"
                                             "\"leaseTransitions\":-1}}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(
                f, 422, "Invalid",
                "Lease.coordination.k8s.io \"x\" is invalid: [spec.leaseDurationSeconds: Invalid "
                "value: 0: must be greater than 0, "
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0]");
        assert_int_equal(api_fixture_count_at(f, "details.causes"), 2);
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "default", NULL, NULL,
                                             "{\"metadata\":{\"name\":\"x\"},\"spec\":{"
                                             "\"leaseDurationSeconds\":-5}}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "Lease.coordination.k8s.io \"x\" is invalid: "
                                   "spec.leaseDurationSeconds: Invalid value: -5: must be "
                                   "greater than 0");
}

static void test_lease_times_need_microseconds(void **state) {
        static const char *const bad[] = {"\"2026-11-21T02:36:00Z\"",
                                          "\"2026-11-21T02:36:00.123Z\"", "\"soon\"", "5"};
        struct api_fixture *f = *state;
        char body[300];

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"renewTime\":%s}}",
                               bad[i]);
                assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "default", NULL,
                                                     NULL, body),
                                 HF_E_INVALID);
                assert_int_equal(f->last.status.http_code, 400);
        }
        (void)snprintf(body, sizeof body,
                       "{\"metadata\":{\"name\":\"x\"},"
                       "\"spec\":{\"renewTime\":\"2026-11-21T03:36:00.000001+01:00\","
                       "\"acquireTime\":null}}");
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "default", NULL, NULL,
                                             body),
                         0);
        assert_string_equal(api_fixture_text_at(f, "spec.renewTime"),
                            "2026-11-21T02:36:00.000001Z");
        assert_null(strstr(f->last.body, "acquireTime"));
}

static void test_immutable_metadata_cannot_be_changed(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        /* As in Kubernetes, another creationTimestamp is ignored. */
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "w", NULL,
                                             "{\"metadata\":{\"name\":\"w\",\"creationTimestamp\":"
                                             "\"2020-01-01T00:00:00Z\"}}"),
                         0);
        assert_string_not_equal(api_fixture_text_at(f, "metadata.creationTimestamp"),
                                "2020-01-01T00:00:00Z");
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "w", NULL,
                                             "{\"metadata\":{\"name\":\"w\",\"deletionTimestamp\":"
                                             "\"2020-01-01T00:00:00Z\"}}"),
                         HF_E_INVALID);
        assert_int_equal(f->last.status.http_code, 422);
        assert_non_null(strstr(api_fixture_text_at(f, "message"),
                               "metadata.deletionTimestamp: Invalid value: "
                               "\"2020-01-01T00:00:00Z\": field is immutable"));
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "w", NULL,
                                             "{\"metadata\":{\"name\":\"w\",\"uid\":\"other\"}}"),
                         HF_E_CONFLICT);
        assert_non_null(
                strstr(api_fixture_text_at(f, "message"),
                       "Precondition failed: UID in precondition: other, UID in object meta: "));
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE, api_workspaces, NULL, "w", NULL,
                                             "{\"preconditions\":{\"uid\":\"other\"}}"),
                         HF_E_CONFLICT);
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE, api_workspaces, NULL, "w", NULL,
                                             "{\"preconditions\":{\"resourceVersion\":\"1\"}}"),
                         HF_E_CONFLICT);
}

static void test_a_name_is_generated_on_request(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"generateName\":\"w-\"}}"),
                         0);
        assert_int_equal(strlen(api_fixture_text_at(f, "metadata.name")), 7);
        assert_memory_equal(api_fixture_text_at(f, "metadata.name"), "w-", 2);
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{}}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "Workspace.tenancy.holdfast.dev \"\" is invalid: metadata.name: "
                                   "Required value: name or generateName is required");
}

static void test_a_finalizer_delays_the_deletion(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"w\","
                                             "\"finalizers\":[\"a.b/c\"]}}"),
                         0);
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE, api_workspaces, NULL, "w", NULL,
                                             NULL),
                         0);
        assert_string_not_equal(api_fixture_text_at(f, "metadata.deletionTimestamp"), "");
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "w", NULL,
                                             "{\"metadata\":{\"name\":\"w\",\"finalizers\":[\"a.b/"
                                             "c\",\"d.e/f\"]}}"),
                         HF_E_INVALID);
        assert_int_equal(f->last.status.http_code, 422);
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_workspaces, NULL, "w", NULL,
                                             "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_workspaces, NULL, "w", NULL, NULL),
                         HF_E_NOT_FOUND);
}

static void test_a_dry_run_stores_nothing(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL,
                                             "dryRun=All", "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "metadata.name"), "w");
        assert_null(
                strstr(f->last.body, "resourceVersion")); /* nothing is stored, so it has none */
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_workspaces, NULL, "w", NULL, NULL),
                         HF_E_NOT_FOUND);
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL,
                                             "dryRun=Some", "{\"metadata\":{\"name\":\"w\"}}"),
                         HF_E_INVALID);
}

/* ---- fences ---- */

static struct hf_fence fence_of(const char *name, const char *identity, const char *term) {
        struct hf_fence fence = {.ns = "kube-system", .term = strtoull(term, NULL, 10)};

        (void)snprintf(fence.name, sizeof fence.name, "%s", name);
        (void)snprintf(fence.identity, sizeof fence.identity, "%s", identity);
        return fence;
}

static void expect_stale(struct api_fixture *f, const struct hf_fence *fence) {
        uint64_t before = store_client_revision(f->store);

        assert_true(before > 0);
        assert_int_equal(api_fixture_request_fenced(f, HF_VERB_CREATE, api_workspaces, NULL, NULL,
                                                    NULL, "{\"metadata\":{\"name\":\"stale\"}}",
                                                    fence),
                         HF_E_STALE_TERM);
        assert_int_equal(f->last.status.http_code, 409);
        assert_string_equal(api_fixture_text_at(f, "reason"), "Conflict");
        assert_non_null(strstr(f->last.body, "\"reason\":\"StaleLeaderTerm\""));
        assert_true(f->last.fence_echoed);
        assert_int_equal(store_client_revision(f->store), before);
}

/* Creates the Lease l, held by "me". Returns the fence of its term. */
static struct hf_fence begin_term(struct api_fixture *f) {
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "kube-system", NULL,
                                             NULL, lease_body("l", "me", NULL)),
                         0);
        return fence_of("l", "me", api_fixture_text_at(f, "metadata.resourceVersion"));
}

static void expect_current(struct api_fixture *f, const char *name, const struct hf_fence *fence) {
        char body[80];

        (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"}}", name);
        assert_int_equal(api_fixture_request_fenced(f, HF_VERB_CREATE, api_workspaces, NULL, NULL,
                                                    NULL, body, fence),
                         0);
        assert_true(f->last.fence_echoed);
}

static void test_a_fenced_write_needs_the_current_term(void **state) {
        struct api_fixture *f = *state;
        struct hf_fence fence = begin_term(f);

        expect_current(f, "a", &fence);
        /* The fence of a write without a change is compared too, and the response says so. */
        char *body = strdup(f->last.body);
        assert_int_equal(api_fixture_request_fenced(f, HF_VERB_UPDATE, api_workspaces, NULL, "a",
                                                    NULL, body, &fence),
                         0);
        assert_true(f->last.fence_echoed);
        free(body);
        /* Another identity or another term is rejected. */
        struct hf_fence other = fence;
        (void)snprintf(other.identity, sizeof other.identity, "m");
        expect_stale(f, &other);
        other = fence;
        other.term++;
        expect_stale(f, &other);
}

static void test_a_renewal_keeps_the_term(void **state) {
        struct api_fixture *f = *state;
        const struct hf_fence fence = begin_term(f);
        char renewed[600];

        (void)snprintf(renewed, sizeof renewed,
                       "{\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"%s\"},\"spec\":{"
                       "\"holderIdentity\":\"me\","
                       "\"leaseDurationSeconds\":15,"
                       "\"acquireTime\":\"2026-11-21T02:36:00.000000Z\",\"renewTime\":\"2026-11-"
                       "21T02:36:02.000000Z\"}}",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_leases, "kube-system", "l",
                                             NULL, renewed),
                         0);
        expect_current(f, "a", &fence);
        assert_int_equal(api_fixture_request_fenced(f, HF_VERB_DELETE, api_workspaces, NULL, "a",
                                                    NULL, NULL, &fence),
                         0);
        assert_true(f->last.fence_echoed);
}

static void test_another_holder_or_another_lease_ends_the_term(void **state) {
        struct api_fixture *f = *state;
        const struct hf_fence fence = begin_term(f);
        char revision[32];

        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        /* Another process overwrites the Lease, so the term has ended. */
        assert_int_equal(api_fixture_request(f, HF_VERB_UPDATE, api_leases, "kube-system", "l",
                                             NULL, lease_body("l", "you", revision)),
                         0);
        expect_stale(f, &fence);
        /*
         * The Lease is deleted and recreated by the same holder with the same times: it gets a
         * greater term, and the old one stays invalid.
         */
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE, api_leases, "kube-system", "l",
                                             NULL, NULL),
                         0);
        expect_stale(f, &fence);
        const struct hf_fence again = begin_term(f);
        assert_true(again.term > fence.term);
        expect_stale(f, &fence);
        expect_current(f, "b", &again);
}

/* A leader of two Leases, as during a migration: losing either one ends the term. */
static void test_a_fence_of_two_leases_needs_both_terms(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "kube-system", NULL,
                                             NULL, lease_body("old", "me", NULL)),
                         0);
        struct hf_fence old =
                fence_of("old", "me", api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "kube-system", NULL,
                                             NULL, lease_body("new", "me", NULL)),
                         0);
        struct hf_fence both =
                fence_of("new", "me", api_fixture_text_at(f, "metadata.resourceVersion"));
        memcpy(both.also_ns, old.ns, sizeof old.ns);
        memcpy(both.also_name, old.name, sizeof old.name);
        both.also_term = old.term;
        assert_int_equal(api_fixture_request_fenced(f, HF_VERB_CREATE, api_workspaces, NULL, NULL,
                                                    NULL, "{\"metadata\":{\"name\":\"a\"}}", &both),
                         0);
        assert_true(f->last.fence_echoed);
        /* A conflict of the object is distinguished from a stale fence. */
        assert_int_equal(api_fixture_request_fenced(f, HF_VERB_CREATE, api_workspaces, NULL, NULL,
                                                    NULL, "{\"metadata\":{\"name\":\"a\"}}", &both),
                         HF_E_EXISTS);
        struct hf_fence wrong = both;
        wrong.also_term++;
        expect_stale(f, &wrong);
        /* The fence is compared even if there is nothing to write. */
        static const char *const nothing = "labelSelector=no%3Done";
        assert_int_equal(api_fixture_request_fenced(f, HF_VERB_DELETE_COLLECTION, api_workspaces,
                                                    NULL, NULL, nothing, NULL, &wrong),
                         HF_E_STALE_TERM);
        assert_int_equal(api_fixture_request_fenced(f, HF_VERB_DELETE_COLLECTION, api_workspaces,
                                                    NULL, NULL, nothing, NULL, &both),
                         0);
        wrong = both;
        wrong.term++;
        expect_stale(f, &wrong);
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE, api_leases, "kube-system", "old",
                                             NULL, NULL),
                         0);
        expect_stale(f, &both);
        struct hf_fence alone = both;
        alone.also_term = 0;
        assert_int_equal(api_fixture_request_fenced(f, HF_VERB_DELETE, api_workspaces, NULL, "a",
                                                    NULL, NULL, &alone),
                         0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_objects_are_created_read_and_deleted),
                API_TEST(test_the_loopback_client_patches),
                API_TEST(test_creating_an_existing_object_fails),
                API_TEST(test_a_create_needs_an_existing_namespace),
                API_TEST(test_an_update_of_an_old_version_conflicts),
                API_TEST(test_bad_requests_are_refused),
                API_TEST(test_an_update_without_changes_writes_nothing),
                API_TEST(test_leases_are_validated_as_in_kubernetes),
                API_TEST(test_lease_times_need_microseconds),
                API_TEST(test_immutable_metadata_cannot_be_changed),
                API_TEST(test_a_name_is_generated_on_request),
                API_TEST(test_a_finalizer_delays_the_deletion),
                API_TEST(test_a_dry_run_stores_nothing),
                API_TEST(test_a_fenced_write_needs_the_current_term),
                API_TEST(test_a_renewal_keeps_the_term),
                API_TEST(test_another_holder_or_another_lease_ends_the_term),
                API_TEST(test_a_fence_of_two_leases_needs_both_terms),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
