/* SPDX-License-Identifier: Apache-2.0 */
/* The API's core below HTTP: statuses and fences, through the loopback client over the memory
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

static void test_create_get_delete(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL,
                                 lease_body("x", "a", NULL)),
                         0);
        assert_int_equal(last.status.http_code, 201);
        char uid[64], revision[32];
        (void)snprintf(uid, sizeof uid, "%s", text_at("metadata.uid"));
        (void)snprintf(revision, sizeof revision, "%s", text_at("metadata.resourceVersion"));
        assert_int_equal(strlen(uid), 36);
        assert_string_equal(text_at("metadata.namespace"), "default");
        assert_int_equal(strlen(text_at("metadata.creationTimestamp")), 20);
        assert_int_equal(do_call(box, HF_VERB_GET, leases, "default", "x", NULL, NULL), 0);
        assert_string_equal(text_at("metadata.resourceVersion"), revision);
        assert_string_equal(text_at("spec.holderIdentity"), "a");
        assert_string_equal(text_at("kind"), "Lease");
        assert_int_equal(do_call(box, HF_VERB_DELETE, leases, "default", "x", NULL, NULL), 0);
        assert_string_equal(text_at("status"), "Success");
        assert_string_equal(text_at("details.uid"), uid);
        assert_string_equal(text_at("details.kind"), "leases");
        assert_int_equal(do_call(box, HF_VERB_GET, leases, "default", "x", NULL, NULL),
                         HF_E_NOT_FOUND);
        expect_status(404, "NotFound", "leases.coordination.k8s.io \"x\" not found");
        assert_string_equal(text_at("details.kind"), "leases");
        assert_int_equal(do_call(box, HF_VERB_DELETE, leases, "default", "x", NULL, NULL),
                         HF_E_NOT_FOUND);
}

static void test_exists(void **state) {
        struct box *box = *state;
        const char *body = "{\"metadata\":{\"name\":\"w\"}}";

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, body), 0);
        assert_string_equal(text_at("apiVersion"), "tenancy.holdfast.dev/v1alpha1");
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, body),
                         HF_E_EXISTS);
        expect_status(409, "AlreadyExists", "workspaces.tenancy.holdfast.dev \"w\" already exists");
}

static void test_missing_namespace(void **state) {
        struct box *box = *state;
        const char *body = "{\"metadata\":{\"name\":\"c\"},\"data\":{\"k\":\"v\"}}";

        assert_int_equal(do_call(box, HF_VERB_CREATE, configmaps, "nowhere", NULL, NULL, body),
                         HF_E_NOT_FOUND);
        expect_status(404, "NotFound", "namespaces \"nowhere\" not found");
        assert_int_equal(do_call(box, HF_VERB_CREATE, namespaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"nowhere\"}}"),
                         0);
        assert_string_equal(text_at("status.phase"), "Active");
        assert_int_equal(do_call(box, HF_VERB_CREATE, configmaps, "nowhere", NULL, NULL, body), 0);
}

static void test_update_conflicts(void **state) {
        struct box *box = *state;
        char revision[32];

        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL,
                                 lease_body("x", "a", NULL)),
                         0);
        (void)snprintf(revision, sizeof revision, "%s", text_at("metadata.resourceVersion"));
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "default", "x", NULL,
                                 lease_body("x", "b", revision)),
                         0);
        assert_int_equal(last.status.http_code, 200);
        assert_string_not_equal(text_at("metadata.resourceVersion"), revision);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "default", "x", NULL,
                                 lease_body("x", "c", revision)),
                         HF_E_CONFLICT);
        expect_status(409, "Conflict",
                      "Operation cannot be fulfilled on leases.coordination.k8s.io \"x\": the "
                      "object has been modified; please apply your "
                      "changes to the latest version and try again");
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "default", "x", NULL,
                                 lease_body("x", "c", NULL)),
                         HF_E_INVALID);
        expect_status(422, "Invalid",
                      "leases.coordination.k8s.io \"x\" is invalid: metadata.resourceVersion: "
                      "Invalid value: 0x0: must be specified for an "
                      "update");
        /* A Lease that is not there is created, unless a version was named. */
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "default", "y", NULL,
                                 lease_body("y", "c", NULL)),
                         0);
        assert_int_equal(last.status.http_code, 201);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "default", "z", NULL,
                                 lease_body("z", "c", "5")),
                         HF_E_CONFLICT);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "none", NULL,
                                 "{\"metadata\":{\"name\":\"none\"}}"),
                         HF_E_NOT_FOUND);
}

static void test_no_op_update_writes_nothing(void **state) {
        struct box *box = *state;
        char revision[32];

        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL,
                                 lease_body("x", "a", NULL)),
                         0);
        (void)snprintf(revision, sizeof revision, "%s", text_at("metadata.resourceVersion"));
        char *body = strdup(last.body);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "default", "x", NULL, body), 0);
        assert_string_equal(text_at("metadata.resourceVersion"), revision);
        free(body);
}

static void test_bad_requests(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL,
                                 "{\"metadata\":"),
                         HF_E_INVALID);
        assert_int_equal(last.status.http_code, 400);
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL,
                                 "{\"metadata\":{\"name\":\"x\",\"namespace\":\"other\"}}"),
                         HF_E_INVALID);
        expect_status(400, "BadRequest",
                      "the namespace of the provided object does not match the namespace sent on "
                      "the request");
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "default", "y", NULL,
                                 lease_body("x", "a", "1")),
                         HF_E_INVALID);
        expect_status(400, "BadRequest",
                      "the name of the object (x) does not match the name on the URL (y)");
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL,
                                 lease_body("x", "a", "7")),
                         HF_E_INVALID);
        expect_status(400, "BadRequest",
                      "resourceVersion should not be set on objects to be created");
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL,
                                 "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\"}}"),
                         HF_E_INVALID);
        assert_int_equal(last.status.http_code, 400);
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL,
                                 "{\"metadata\":{\"name\":7}}"),
                         HF_E_INVALID);
        assert_int_equal(last.status.http_code, 400);
        assert_int_equal(do_call(box, HF_VERB_LIST, leases, "default", NULL,
                                 "fieldSelector=spec.x%3D1", NULL),
                         HF_E_INVALID);
        expect_status(400, "BadRequest", "field label not supported: spec.x");
}

/* Upstream's TestValidateLease, TestValidateLeaseSpec and TestValidateLeaseSpecUpdate. */
static void test_lease_validation(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL,
                                 "{\"metadata\":{\"name\":\"invalidName++\"}}"),
                         HF_E_INVALID);
        assert_int_equal(last.status.http_code, 422);
        assert_int_equal(count_at("details.causes"), 1);
        assert_string_equal(text_at("details.kind"), "Lease");
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL,
                                 "{\"metadata\":{\"name\":\"x\"},\"spec\":{"
                                 "\"leaseDurationSeconds\":0,\"leaseTransitions\":-1}}"),
                         HF_E_INVALID);
        expect_status(422, "Invalid",
                      "Lease.coordination.k8s.io \"x\" is invalid: [spec.leaseDurationSeconds: "
                      "Invalid value: 0: must be greater than 0, "
                      "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to "
                      "0]");
        assert_int_equal(count_at("details.causes"), 2);
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL,
                                 "{\"metadata\":{\"name\":\"x\"},\"spec\":{"
                                 "\"leaseDurationSeconds\":-5}}"),
                         HF_E_INVALID);
        expect_status(422, "Invalid",
                      "Lease.coordination.k8s.io \"x\" is invalid: spec.leaseDurationSeconds: "
                      "Invalid value: -5: must be greater than 0");
}

static void test_micro_time(void **state) {
        static const char *const bad[] = {"\"2026-11-21T02:36:00Z\"",
                                          "\"2026-11-21T02:36:00.123Z\"", "\"soon\"", "5"};
        struct box *box = *state;
        char body[300];

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"renewTime\":%s}}",
                               bad[i]);
                assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL, body),
                                 HF_E_INVALID);
                assert_int_equal(last.status.http_code, 400);
        }
        (void)snprintf(body, sizeof body,
                       "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"renewTime\":\"2026-11-21T03:36:"
                       "00.000001+01:00\",\"acquireTime\":null}"
                       "}");
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL, body), 0);
        assert_string_equal(text_at("spec.renewTime"), "2026-11-21T02:36:00.000001Z");
        assert_null(strstr(last.body, "acquireTime"));
}

static void test_immutable(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w", NULL,
                                 "{\"metadata\":{\"name\":\"w\",\"creationTimestamp\":\"2020-01-"
                                 "01T00:00:00Z\"}}"),
                         HF_E_INVALID);
        assert_int_equal(last.status.http_code, 422);
        assert_non_null(strstr(text_at("message"), "metadata.creationTimestamp: Invalid value: "
                                                   "\"2020-01-01T00:00:00Z\": field is immutable"));
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w", NULL,
                                 "{\"metadata\":{\"name\":\"w\",\"uid\":\"other\"}}"),
                         HF_E_CONFLICT);
        assert_non_null(
                strstr(text_at("message"),
                       "Precondition failed: UID in precondition: other, UID in object meta: "));
        assert_int_equal(do_call(box, HF_VERB_DELETE, workspaces, NULL, "w", NULL,
                                 "{\"preconditions\":{\"uid\":\"other\"}}"),
                         HF_E_CONFLICT);
        assert_int_equal(do_call(box, HF_VERB_DELETE, workspaces, NULL, "w", NULL,
                                 "{\"preconditions\":{\"resourceVersion\":\"1\"}}"),
                         HF_E_CONFLICT);
}

static void test_generate_name(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"generateName\":\"w-\"}}"),
                         0);
        assert_int_equal(strlen(text_at("metadata.name")), 7);
        assert_memory_equal(text_at("metadata.name"), "w-", 2);
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{}}"),
                         HF_E_INVALID);
        expect_status(422, "Invalid",
                      "Workspace.tenancy.holdfast.dev \"\" is invalid: metadata.name: Required "
                      "value: name or generateName is required");
}

static void test_finalizers(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"w\",\"finalizers\":[\"a.b/c\"]}}"),
                         0);
        assert_int_equal(do_call(box, HF_VERB_DELETE, workspaces, NULL, "w", NULL, NULL), 0);
        assert_string_not_equal(text_at("metadata.deletionTimestamp"), "");
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w", NULL,
                                 "{\"metadata\":{\"name\":\"w\",\"finalizers\":[\"a.b/c\",\"d.e/"
                                 "f\"]}}"),
                         HF_E_INVALID);
        assert_int_equal(last.status.http_code, 422);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w", NULL,
                                 "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        assert_int_equal(do_call(box, HF_VERB_GET, workspaces, NULL, "w", NULL, NULL),
                         HF_E_NOT_FOUND);
}

static void test_dry_run(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, "dryRun=All",
                                 "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        assert_int_equal(do_call(box, HF_VERB_GET, workspaces, NULL, "w", NULL, NULL),
                         HF_E_NOT_FOUND);
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, "dryRun=Some",
                                 "{\"metadata\":{\"name\":\"w\"}}"),
                         HF_E_INVALID);
}

/* ---- fences ---- */

static struct hf_fence fence_of(const char *name, const char *identity, const char *term) {
        struct hf_fence fence = {.ns = "kube-system", .term = strtoull(term, NULL, 10)};

        (void)snprintf(fence.name, sizeof fence.name, "%s", name);
        (void)snprintf(fence.identity, sizeof fence.identity, "%s", identity);
        return fence;
}

static uint64_t store_revision(struct box *box);

struct revision_wait {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        uint64_t revision;
};

static void on_revision(void *ctx, const struct hfd_store_reply *reply) {
        struct revision_wait *wait = ctx;

        pthread_mutex_lock(&wait->mu);
        wait->revision = reply->error ? 1 : reply->revision;
        pthread_cond_signal(&wait->cond);
        pthread_mutex_unlock(&wait->mu);
}

static uint64_t store_revision(struct box *box) {
        struct revision_wait wait = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

        assert_int_equal(box->store->ops->revision(box->store,
                                                   hf_now(hf_clock_system()) + 5 * HF_NSEC_PER_SEC,
                                                   on_revision, &wait),
                         0);
        pthread_mutex_lock(&wait.mu);
        while (!wait.revision)
                pthread_cond_wait(&wait.cond, &wait.mu);
        pthread_mutex_unlock(&wait.mu);
        return wait.revision;
}

static void expect_stale(struct box *box, const struct hf_fence *fence) {
        uint64_t before = store_revision(box);

        assert_int_equal(call_fenced(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                     "{\"metadata\":{\"name\":\"stale\"}}", fence),
                         HF_E_STALE_TERM);
        assert_int_equal(last.status.http_code, 409);
        assert_string_equal(text_at("reason"), "Conflict");
        assert_non_null(strstr(last.body, "\"reason\":\"StaleLeaderTerm\""));
        assert_true(last.echoed);
        assert_int_equal(store_revision(box), before);
}

static void test_fence(void **state) {
        struct box *box = *state;
        char revision[32];
        uint64_t first_term;

        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "kube-system", NULL, NULL,
                                 lease_body("l", "me", NULL)),
                         0);
        struct hf_fence fence = fence_of("l", "me", text_at("metadata.resourceVersion"));
        (void)snprintf(revision, sizeof revision, "%s", text_at("metadata.resourceVersion"));
        first_term = fence.term;
        assert_int_equal(call_fenced(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                     "{\"metadata\":{\"name\":\"a\"}}", &fence),
                         0);
        assert_true(last.echoed);
        /* Also a fenced write that changes nothing says that it was compared. */
        char *body = strdup(last.body);
        assert_int_equal(call_fenced(box, HF_VERB_UPDATE, workspaces, NULL, "a", NULL, body,
                                     &fence),
                         0);
        assert_true(last.echoed);
        free(body);
        /* Nobody else's name, nor another term. */
        struct hf_fence other = fence;
        (void)snprintf(other.identity, sizeof other.identity, "m");
        expect_stale(box, &other);
        other = fence;
        other.term++;
        expect_stale(box, &other);
        /* A renewal keeps the term. */
        char renewed[600];
        (void)snprintf(renewed, sizeof renewed,
                       "{\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"%s\"},\"spec\":{"
                       "\"holderIdentity\":\"me\","
                       "\"leaseDurationSeconds\":15,"
                       "\"acquireTime\":\"2026-11-21T02:36:00.000000Z\",\"renewTime\":\"2026-11-"
                       "21T02:36:02.000000Z\"}}",
                       revision);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "kube-system", "l", NULL, renewed),
                         0);
        (void)snprintf(revision, sizeof revision, "%s", text_at("metadata.resourceVersion"));
        assert_int_equal(call_fenced(box, HF_VERB_DELETE, workspaces, NULL, "a", NULL, NULL,
                                     &fence),
                         0);
        assert_true(last.echoed);
        /* Somebody overwrites the Lease: the term is over. */
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "kube-system", "l", NULL,
                                 lease_body("l", "you", revision)),
                         0);
        expect_stale(box, &fence);
        /* Deleted and made anew by the same holder with the same times: a greater term, the old one
         * stays dead. */
        assert_int_equal(do_call(box, HF_VERB_DELETE, leases, "kube-system", "l", NULL, NULL), 0);
        expect_stale(box, &fence);
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "kube-system", NULL, NULL,
                                 lease_body("l", "me", NULL)),
                         0);
        struct hf_fence again = fence_of("l", "me", text_at("metadata.resourceVersion"));
        assert_true(again.term > first_term);
        expect_stale(box, &fence);
        assert_int_equal(call_fenced(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                     "{\"metadata\":{\"name\":\"b\"}}", &again),
                         0);
}

/* A leader that holds two Leases at once, as in a migration: the loss of either ends the term. */
static void test_fence_of_two_leases(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "kube-system", NULL, NULL,
                                 lease_body("old", "me", NULL)),
                         0);
        struct hf_fence old = fence_of("old", "me", text_at("metadata.resourceVersion"));
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "kube-system", NULL, NULL,
                                 lease_body("new", "me", NULL)),
                         0);
        struct hf_fence both = fence_of("new", "me", text_at("metadata.resourceVersion"));
        memcpy(both.also_ns, old.ns, sizeof old.ns);
        memcpy(both.also_name, old.name, sizeof old.name);
        both.also_term = old.term;
        assert_int_equal(call_fenced(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                     "{\"metadata\":{\"name\":\"a\"}}", &both),
                         0);
        assert_true(last.echoed);
        /* A conflict of the object itself is told from one of the fence. */
        assert_int_equal(call_fenced(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                     "{\"metadata\":{\"name\":\"a\"}}", &both),
                         HF_E_EXISTS);
        struct hf_fence wrong = both;
        wrong.also_term++;
        expect_stale(box, &wrong);
        /* Also where nothing is found to be written. */
        static const char *const nothing = "labelSelector=no%3Done";
        assert_int_equal(call_fenced(box, HF_VERB_DELETE_COLLECTION, workspaces, NULL, NULL,
                                     nothing, NULL, &wrong),
                         HF_E_STALE_TERM);
        assert_int_equal(call_fenced(box, HF_VERB_DELETE_COLLECTION, workspaces, NULL, NULL,
                                     nothing, NULL, &both),
                         0);
        wrong = both;
        wrong.term++;
        expect_stale(box, &wrong);
        assert_int_equal(do_call(box, HF_VERB_DELETE, leases, "kube-system", "old", NULL, NULL), 0);
        expect_stale(box, &both);
        struct hf_fence alone = both;
        alone.also_term = 0;
        assert_int_equal(call_fenced(box, HF_VERB_DELETE, workspaces, NULL, "a", NULL, NULL,
                                     &alone),
                         0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_create_get_delete),
                TEST(test_exists),
                TEST(test_missing_namespace),
                TEST(test_update_conflicts),
                TEST(test_bad_requests),
                TEST(test_no_op_update_writes_nothing),
                TEST(test_lease_validation),
                TEST(test_micro_time),
                TEST(test_immutable),
                TEST(test_generate_name),
                TEST(test_finalizers),
                TEST(test_dry_run),
                TEST(test_fence),
                TEST(test_fence_of_two_leases),
        };
        int failed = cmocka_run_group_tests(tests, NULL, NULL);

        free(last.body);
        return failed;
}
