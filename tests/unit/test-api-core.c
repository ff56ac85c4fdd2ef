/* SPDX-License-Identifier: Apache-2.0 */
/* The API's core below HTTP: statuses, fences, watches, selectors, lists, through the loopback client over the memory store. */
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
                       "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"%s\"%s%s%s},\"spec\":{"
                       "\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15,\"acquireTime\":\"2026-11-21T02:36:00.000000Z\"}}",
                       name, revision ? ",\"resourceVersion\":\"" : "", revision ? revision : "", revision ? "\"" : "", holder);
        return body;
}

/* ---- statuses ---- */

static void test_create_get_delete(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL, lease_body("x", "a", NULL)), 0);
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
        assert_int_equal(do_call(box, HF_VERB_GET, leases, "default", "x", NULL, NULL), HF_E_NOT_FOUND);
        expect_status(404, "NotFound", "leases.coordination.k8s.io \"x\" not found");
        assert_string_equal(text_at("details.kind"), "leases");
        assert_int_equal(do_call(box, HF_VERB_DELETE, leases, "default", "x", NULL, NULL), HF_E_NOT_FOUND);
}

static void test_exists(void **state) {
        struct box *box = *state;
        const char *body = "{\"metadata\":{\"name\":\"w\"}}";

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, body), 0);
        assert_string_equal(text_at("apiVersion"), "tenancy.holdfast.dev/v1alpha1");
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, body), HF_E_EXISTS);
        expect_status(409, "AlreadyExists", "workspaces.tenancy.holdfast.dev \"w\" already exists");
}

static void test_missing_namespace(void **state) {
        struct box *box = *state;
        const char *body = "{\"metadata\":{\"name\":\"c\"},\"data\":{\"k\":\"v\"}}";

        assert_int_equal(do_call(box, HF_VERB_CREATE, configmaps, "nowhere", NULL, NULL, body), HF_E_NOT_FOUND);
        expect_status(404, "NotFound", "namespaces \"nowhere\" not found");
        assert_int_equal(do_call(box, HF_VERB_CREATE, namespaces, NULL, NULL, NULL, "{\"metadata\":{\"name\":\"nowhere\"}}"), 0);
        assert_string_equal(text_at("status.phase"), "Active");
        assert_int_equal(do_call(box, HF_VERB_CREATE, configmaps, "nowhere", NULL, NULL, body), 0);
}

static void test_update_conflicts(void **state) {
        struct box *box = *state;
        char revision[32];

        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL, lease_body("x", "a", NULL)), 0);
        (void)snprintf(revision, sizeof revision, "%s", text_at("metadata.resourceVersion"));
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "default", "x", NULL, lease_body("x", "b", revision)), 0);
        assert_int_equal(last.status.http_code, 200);
        assert_string_not_equal(text_at("metadata.resourceVersion"), revision);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "default", "x", NULL, lease_body("x", "c", revision)), HF_E_CONFLICT);
        expect_status(409, "Conflict",
                      "Operation cannot be fulfilled on leases.coordination.k8s.io \"x\": the object has been modified; please apply your "
                      "changes to the latest version and try again");
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "default", "x", NULL, lease_body("x", "c", NULL)), HF_E_INVALID);
        expect_status(422, "Invalid",
                      "leases.coordination.k8s.io \"x\" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an "
                      "update");
        /* A Lease that is not there is created, unless a version was named. */
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "default", "y", NULL, lease_body("y", "c", NULL)), 0);
        assert_int_equal(last.status.http_code, 201);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "default", "z", NULL, lease_body("z", "c", "5")), HF_E_CONFLICT);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "none", NULL, "{\"metadata\":{\"name\":\"none\"}}"),
                         HF_E_NOT_FOUND);
}

static void test_no_op_update_writes_nothing(void **state) {
        struct box *box = *state;
        char revision[32];

        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL, lease_body("x", "a", NULL)), 0);
        (void)snprintf(revision, sizeof revision, "%s", text_at("metadata.resourceVersion"));
        char *body = strdup(last.body);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "default", "x", NULL, body), 0);
        assert_string_equal(text_at("metadata.resourceVersion"), revision);
        free(body);
}

static void test_bad_requests(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL, "{\"metadata\":"), HF_E_INVALID);
        assert_int_equal(last.status.http_code, 400);
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL,
                                 "{\"metadata\":{\"name\":\"x\",\"namespace\":\"other\"}}"),
                         HF_E_INVALID);
        expect_status(400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request");
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "default", "y", NULL, lease_body("x", "a", "1")), HF_E_INVALID);
        expect_status(400, "BadRequest", "the name of the object (x) does not match the name on the URL (y)");
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL, lease_body("x", "a", "7")), HF_E_INVALID);
        expect_status(400, "BadRequest", "resourceVersion should not be set on objects to be created");
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\"}}"),
                         HF_E_INVALID);
        assert_int_equal(last.status.http_code, 400);
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL, "{\"metadata\":{\"name\":7}}"), HF_E_INVALID);
        assert_int_equal(last.status.http_code, 400);
        assert_int_equal(do_call(box, HF_VERB_LIST, leases, "default", NULL, "fieldSelector=spec.x%3D1", NULL), HF_E_INVALID);
        expect_status(400, "BadRequest", "field label not supported: spec.x");
}

/* Upstream's TestValidateLease, TestValidateLeaseSpec and TestValidateLeaseSpecUpdate. */
static void test_lease_validation(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL, "{\"metadata\":{\"name\":\"invalidName++\"}}"),
                         HF_E_INVALID);
        assert_int_equal(last.status.http_code, 422);
        assert_int_equal(count_at("details.causes"), 1);
        assert_string_equal(text_at("details.kind"), "Lease");
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL,
                                 "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"leaseDurationSeconds\":0,\"leaseTransitions\":-1}}"),
                         HF_E_INVALID);
        expect_status(422, "Invalid",
                      "Lease.coordination.k8s.io \"x\" is invalid: [spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0, "
                      "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0]");
        assert_int_equal(count_at("details.causes"), 2);
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL,
                                 "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"leaseDurationSeconds\":-5}}"),
                         HF_E_INVALID);
        expect_status(422, "Invalid",
                      "Lease.coordination.k8s.io \"x\" is invalid: spec.leaseDurationSeconds: Invalid value: -5: must be greater than 0");
}

static void test_micro_time(void **state) {
        static const char *const bad[] = {"\"2026-11-21T02:36:00Z\"", "\"2026-11-21T02:36:00.123Z\"", "\"soon\"", "5"};
        struct box *box = *state;
        char body[300];

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"renewTime\":%s}}", bad[i]);
                assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL, body), HF_E_INVALID);
                assert_int_equal(last.status.http_code, 400);
        }
        (void)snprintf(body, sizeof body,
                       "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"renewTime\":\"2026-11-21T03:36:00.000001+01:00\",\"acquireTime\":null}"
                       "}");
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "default", NULL, NULL, body), 0);
        assert_string_equal(text_at("spec.renewTime"), "2026-11-21T02:36:00.000001Z");
        assert_null(strstr(last.body, "acquireTime"));
}

static void test_immutable(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, "{\"metadata\":{\"name\":\"w\"}}"), 0);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w", NULL,
                                 "{\"metadata\":{\"name\":\"w\",\"creationTimestamp\":\"2020-01-01T00:00:00Z\"}}"),
                         HF_E_INVALID);
        assert_int_equal(last.status.http_code, 422);
        assert_non_null(
                strstr(text_at("message"), "metadata.creationTimestamp: Invalid value: \"2020-01-01T00:00:00Z\": field is immutable"));
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w", NULL, "{\"metadata\":{\"name\":\"w\",\"uid\":\"other\"}}"),
                         HF_E_CONFLICT);
        assert_non_null(strstr(text_at("message"), "Precondition failed: UID in precondition: other, UID in object meta: "));
        assert_int_equal(do_call(box, HF_VERB_DELETE, workspaces, NULL, "w", NULL, "{\"preconditions\":{\"uid\":\"other\"}}"),
                         HF_E_CONFLICT);
        assert_int_equal(do_call(box, HF_VERB_DELETE, workspaces, NULL, "w", NULL, "{\"preconditions\":{\"resourceVersion\":\"1\"}}"),
                         HF_E_CONFLICT);
}

static void test_generate_name(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, "{\"metadata\":{\"generateName\":\"w-\"}}"), 0);
        assert_int_equal(strlen(text_at("metadata.name")), 7);
        assert_memory_equal(text_at("metadata.name"), "w-", 2);
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, "{\"metadata\":{}}"), HF_E_INVALID);
        expect_status(422, "Invalid",
                      "Workspace.tenancy.holdfast.dev \"\" is invalid: metadata.name: Required value: name or generateName is required");
}

static void test_finalizers(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"w\",\"finalizers\":[\"a.b/c\"]}}"),
                         0);
        assert_int_equal(do_call(box, HF_VERB_DELETE, workspaces, NULL, "w", NULL, NULL), 0);
        assert_string_not_equal(text_at("metadata.deletionTimestamp"), "");
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w", NULL,
                                 "{\"metadata\":{\"name\":\"w\",\"finalizers\":[\"a.b/c\",\"d.e/f\"]}}"),
                         HF_E_INVALID);
        assert_int_equal(last.status.http_code, 422);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w", NULL, "{\"metadata\":{\"name\":\"w\"}}"), 0);
        assert_int_equal(do_call(box, HF_VERB_GET, workspaces, NULL, "w", NULL, NULL), HF_E_NOT_FOUND);
}

static void test_dry_run(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, "dryRun=All", "{\"metadata\":{\"name\":\"w\"}}"), 0);
        assert_int_equal(do_call(box, HF_VERB_GET, workspaces, NULL, "w", NULL, NULL), HF_E_NOT_FOUND);
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, "dryRun=Some", "{\"metadata\":{\"name\":\"w\"}}"),
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

        assert_int_equal(box->store->ops->revision(box->store, hf_now(hf_clock_system()) + 5 * HF_NSEC_PER_SEC, on_revision, &wait), 0);
        pthread_mutex_lock(&wait.mu);
        while (!wait.revision)
                pthread_cond_wait(&wait.cond, &wait.mu);
        pthread_mutex_unlock(&wait.mu);
        return wait.revision;
}

static void expect_stale(struct box *box, const struct hf_fence *fence) {
        uint64_t before = store_revision(box);

        assert_int_equal(call_fenced(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, "{\"metadata\":{\"name\":\"stale\"}}", fence),
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

        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "kube-system", NULL, NULL, lease_body("l", "me", NULL)), 0);
        struct hf_fence fence = fence_of("l", "me", text_at("metadata.resourceVersion"));
        (void)snprintf(revision, sizeof revision, "%s", text_at("metadata.resourceVersion"));
        first_term = fence.term;
        assert_int_equal(call_fenced(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, "{\"metadata\":{\"name\":\"a\"}}", &fence), 0);
        assert_true(last.echoed);
        /* Also a fenced write that changes nothing says that it was compared. */
        char *body = strdup(last.body);
        assert_int_equal(call_fenced(box, HF_VERB_UPDATE, workspaces, NULL, "a", NULL, body, &fence), 0);
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
                       "{\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"%s\"},\"spec\":{\"holderIdentity\":\"me\","
                       "\"leaseDurationSeconds\":15,"
                       "\"acquireTime\":\"2026-11-21T02:36:00.000000Z\",\"renewTime\":\"2026-11-21T02:36:02.000000Z\"}}",
                       revision);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "kube-system", "l", NULL, renewed), 0);
        (void)snprintf(revision, sizeof revision, "%s", text_at("metadata.resourceVersion"));
        assert_int_equal(call_fenced(box, HF_VERB_DELETE, workspaces, NULL, "a", NULL, NULL, &fence), 0);
        assert_true(last.echoed);
        /* Somebody overwrites the Lease: the term is over. */
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "kube-system", "l", NULL, lease_body("l", "you", revision)), 0);
        expect_stale(box, &fence);
        /* Deleted and made anew by the same holder with the same times: a greater term, the old one stays dead. */
        assert_int_equal(do_call(box, HF_VERB_DELETE, leases, "kube-system", "l", NULL, NULL), 0);
        expect_stale(box, &fence);
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "kube-system", NULL, NULL, lease_body("l", "me", NULL)), 0);
        struct hf_fence again = fence_of("l", "me", text_at("metadata.resourceVersion"));
        assert_true(again.term > first_term);
        expect_stale(box, &fence);
        assert_int_equal(call_fenced(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, "{\"metadata\":{\"name\":\"b\"}}", &again), 0);
}

/* A leader that holds two Leases at once, as in a migration: the loss of either ends the term. */
static void test_fence_of_two_leases(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "kube-system", NULL, NULL, lease_body("old", "me", NULL)), 0);
        struct hf_fence old = fence_of("old", "me", text_at("metadata.resourceVersion"));
        assert_int_equal(do_call(box, HF_VERB_CREATE, leases, "kube-system", NULL, NULL, lease_body("new", "me", NULL)), 0);
        struct hf_fence both = fence_of("new", "me", text_at("metadata.resourceVersion"));
        memcpy(both.also_ns, old.ns, sizeof old.ns);
        memcpy(both.also_name, old.name, sizeof old.name);
        both.also_term = old.term;
        assert_int_equal(call_fenced(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, "{\"metadata\":{\"name\":\"a\"}}", &both), 0);
        assert_true(last.echoed);
        /* A conflict of the object itself is told from one of the fence. */
        assert_int_equal(call_fenced(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, "{\"metadata\":{\"name\":\"a\"}}", &both),
                         HF_E_EXISTS);
        struct hf_fence wrong = both;
        wrong.also_term++;
        expect_stale(box, &wrong);
        /* Also where nothing is found to be written. */
        static const char *const nothing = "labelSelector=no%3Done";
        assert_int_equal(call_fenced(box, HF_VERB_DELETE_COLLECTION, workspaces, NULL, NULL, nothing, NULL, &wrong), HF_E_STALE_TERM);
        assert_int_equal(call_fenced(box, HF_VERB_DELETE_COLLECTION, workspaces, NULL, NULL, nothing, NULL, &both), 0);
        wrong = both;
        wrong.term++;
        expect_stale(box, &wrong);
        assert_int_equal(do_call(box, HF_VERB_DELETE, leases, "kube-system", "old", NULL, NULL), 0);
        expect_stale(box, &both);
        struct hf_fence alone = both;
        alone.also_term = 0;
        assert_int_equal(call_fenced(box, HF_VERB_DELETE, workspaces, NULL, "a", NULL, NULL, &alone), 0);
}

/* ---- lists and selectors ---- */

static void make_workspaces(struct box *box, int n) {
        for (int i = 0; i < n; i++) {
                char body[200];
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"w%02d\",\"labels\":{\"parity\":\"%s\",\"a.b/n\":\"%d\"}}}", i,
                               i % 2 ? "odd" : "even", i);
                assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, body), 0);
        }
}

static size_t n_selected(struct box *box, const char *query) {
        assert_int_equal(do_call(box, HF_VERB_LIST, workspaces, NULL, NULL, query, NULL), 0);
        return count_at("items");
}

/* Its namespace is ws-<name>, which is a label: a longer one could never become Ready. */
static void test_workspace_names(void **state) {
        struct box *box = *state;
        char body[200];

        for (int n = 59; n <= 62; n++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"%.*s\"}}", n,
                               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
                assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, body), n <= 60 ? 0 : HF_E_INVALID);
        }
        assert_non_null(strstr(last.body, "must be no more than 60 characters"));
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, "{\"metadata\":{\"name\":\"a.b\"}}"), HF_E_INVALID);
}

static void test_selectors(void **state) {
        static const char *const wrong[] = {"a%3D%3D%3Db",  "a!%3D!b",        "a%3Db+c", "a%3Db)",   "a+in+(x%3Dy)", "a%3D-b",
                                            "-a%3Db",       "a/%3Db",         "a//b",    "/a%3Db",   "a%3Ex",        "a%3C",
                                            "a+in+(b,c+d)", "a+notin+(b,-c)", "!a/",     "A/b/c%3Dd"};
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
        assert_int_equal(do_call(box, HF_VERB_LIST, workspaces, NULL, NULL, "labelSelector=a+b+c", NULL), HF_E_INVALID);
        assert_int_equal(n_selected(box, "labelSelector=parity%3D"), 0);
        assert_int_equal(n_selected(box, "labelSelector=parity+in+()"), 0);
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
                (void)snprintf(query, sizeof query, "labelSelector=%s", wrong[i]);
                assert_int_equal(do_call(box, HF_VERB_LIST, workspaces, NULL, NULL, query, NULL), HF_E_INVALID);
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
        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, "{\"metadata\":{\"name\":\"w055\"}}"), 0);
        (void)snprintf(query, sizeof query, "limit=4&continue=%s", token);
        assert_int_equal(n_selected(box, query), 4);
        assert_string_equal(text_at("metadata.resourceVersion"), revision);
        assert_null(strstr(last.body, "w055"));
        (void)snprintf(query, sizeof query, "limit=4&continue=%s", text_at("metadata.continue"));
        assert_int_equal(n_selected(box, query), 2);
        assert_string_equal(text_at("metadata.continue"), "");
        (void)snprintf(query, sizeof query, "continue=%s&resourceVersion=3", token);
        assert_int_equal(do_call(box, HF_VERB_LIST, workspaces, NULL, NULL, query, NULL), HF_E_INVALID);
        assert_int_equal(do_call(box, HF_VERB_LIST, workspaces, NULL, NULL, "continue=bm9uc2Vuc2U", NULL), HF_E_INVALID);
        assert_int_equal(do_call(box, HF_VERB_LIST, workspaces, NULL, NULL, "resourceVersionMatch=Exact", NULL), HF_E_INVALID);
}

/* ---- other forms of an answer, asked of the core itself ---- */

struct form_call {
        struct hfd_call call;
        struct result result;
};

static void on_form(struct hfd_call *call, const struct hfd_answer *answer) {
        struct form_call *form = (struct form_call *)call;
        struct hf_reply reply = {.error = answer->status.error,
                                 .status = answer->status,
                                 .body = answer->body->data,
                                 .n_body = answer->body->n};

        on_reply(&form->result, &reply);
}

static void list_as(struct box *box, enum hfd_format format) {
        struct form_call form = {.call = {.verb = HFD_LIST, .format = format, .done = on_form},
                                 .result = {.mu = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER}};

        form.call.resource = hfd_resource_find("tenancy.holdfast.dev", "v1alpha1", "workspaces");
        form.call.deadline = hf_now(hf_clock_system()) + 5 * HF_NSEC_PER_SEC;
        hfd_api_call(box->api, &form.call);
        pthread_mutex_lock(&form.result.mu);
        while (!form.result.done)
                pthread_cond_wait(&form.result.cond, &form.result.mu);
        pthread_mutex_unlock(&form.result.mu);
        free(last.body);
        last = form.result;
}

static void test_table(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, "{\"metadata\":{\"name\":\"w\"}}"), 0);
        assert_int_equal(do_part(box, workspaces, "w", "status", "{\"metadata\":{\"name\":\"w\"},\"status\":{\"phase\":\"Ready\"}}"), 0);
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

/* ---- watches ---- */

struct seen {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        size_t n;
        struct {
                enum hf_event_type type;
                char name[64], revision[32];
        } events[4096];
        bool ended;
        int error;
};

static void on_event(void *ctx, const struct hf_event *event) {
        struct seen *seen = ctx;
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(event->object, event->n_object, &json, NULL), 0);
        pthread_mutex_lock(&seen->mu);
        const char *name = hf__json_string(json, "metadata.name");
        assert_string_equal(hf__json_string(json, "metadata.resourceVersion"), event->resource_version);
        seen->events[seen->n].type = event->type;
        (void)snprintf(seen->events[seen->n].name, 64, "%s", name ? name : "");
        (void)snprintf(seen->events[seen->n].revision, 32, "%s", event->resource_version);
        seen->n++;
        pthread_cond_broadcast(&seen->cond);
        pthread_mutex_unlock(&seen->mu);
        hf__json_free(json);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct seen *seen = ctx;

        pthread_mutex_lock(&seen->mu);
        seen->ended = true;
        seen->error = error;
        pthread_cond_broadcast(&seen->cond);
        pthread_mutex_unlock(&seen->mu);
}

static struct seen *watch(struct box *box, struct hf_resource resource, const char *query, const char *revision, uint64_t *ret_id) {
        struct seen *seen = calloc(1, sizeof *seen);
        struct hf_watch_spec spec = {.resource = resource, .query = query, .resource_version = revision};

        pthread_mutex_init(&seen->mu, NULL);
        pthread_cond_init(&seen->cond, NULL);
        assert_int_equal(hf_client_watch(box->client, &spec, on_event, on_end, seen, ret_id), 0);
        return seen;
}

static void await(struct seen *seen, size_t n) {
        pthread_mutex_lock(&seen->mu);
        while (seen->n < n && !seen->ended)
                pthread_cond_wait(&seen->cond, &seen->mu);
        assert_true(seen->n >= n);
        pthread_mutex_unlock(&seen->mu);
}

static int await_end(struct seen *seen) {
        pthread_mutex_lock(&seen->mu);
        while (!seen->ended)
                pthread_cond_wait(&seen->cond, &seen->mu);
        int error = seen->error;
        pthread_mutex_unlock(&seen->mu);
        return error;
}

static void expect_event(struct seen *seen, size_t i, enum hf_event_type type, const char *name) {
        await(seen, i + 1);
        assert_int_equal(seen->events[i].type, type);
        assert_string_equal(seen->events[i].name, name);
}

static void test_watch(void **state) {
        struct box *box = *state;
        uint64_t id;
        char revision[32];

        make_workspaces(box, 2);
        assert_int_equal(n_selected(box, NULL), 2); /* the cache has them */
        (void)snprintf(revision, sizeof revision, "%s", text_at("metadata.resourceVersion"));
        struct seen *seen = watch(box, workspaces, NULL, NULL, &id);
        expect_event(seen, 0, HF_EVENT_ADDED, "w00");
        expect_event(seen, 1, HF_EVENT_ADDED, "w01");
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w01", NULL, "{\"metadata\":{\"name\":\"w01\"}}"), 0);
        expect_event(seen, 2, HF_EVENT_MODIFIED, "w01");
        assert_string_equal(seen->events[2].revision, text_at("metadata.resourceVersion"));
        assert_int_equal(do_call(box, HF_VERB_DELETE, workspaces, NULL, "w01", NULL, NULL), 0);
        expect_event(seen, 3, HF_EVENT_DELETED, "w01");
        assert_true(strtoull(seen->events[3].revision, NULL, 10) > strtoull(seen->events[2].revision, NULL, 10));
        /* From a revision: only what came after it. */
        struct seen *later = watch(box, workspaces, NULL, revision, NULL);
        expect_event(later, 0, HF_EVENT_MODIFIED, "w01");
        expect_event(later, 1, HF_EVENT_DELETED, "w01");
        hf_client_watch_cancel(box->client, id);
        assert_int_equal(await_end(seen), HF_E_CANCELED);
        hfd_api_end_watches(box->api);
        assert_int_equal(await_end(later), 0);
        struct seen *refused = watch(box, workspaces, NULL, NULL, NULL);
        assert_int_equal(await_end(refused), HF_E_UNAVAILABLE);
        free(seen), free(later), free(refused);
}

static void test_watch_selectors(void **state) {
        struct box *box = *state;

        make_workspaces(box, 2);
        assert_int_equal(n_selected(box, NULL), 2);
        struct seen *odd = watch(box, workspaces, "labelSelector=parity%3Dodd", NULL, NULL);
        struct seen *one = watch(box, workspaces, "fieldSelector=metadata.name%3Dw00", NULL, NULL);
        expect_event(odd, 0, HF_EVENT_ADDED, "w01");
        expect_event(one, 0, HF_EVENT_ADDED, "w00");
        /* An object that begins to match is added, one that ceases to is deleted. */
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w00", NULL,
                                 "{\"metadata\":{\"name\":\"w00\",\"labels\":{\"parity\":\"odd\"}}}"),
                         0);
        expect_event(odd, 1, HF_EVENT_ADDED, "w00");
        expect_event(one, 1, HF_EVENT_MODIFIED, "w00");
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w01", NULL, "{\"metadata\":{\"name\":\"w01\"}}"), 0);
        expect_event(odd, 2, HF_EVENT_DELETED, "w01");
        assert_string_equal(odd->events[2].revision, text_at("metadata.resourceVersion"));
        assert_int_equal(do_call(box, HF_VERB_DELETE, workspaces, NULL, "w00", NULL, NULL), 0);
        expect_event(odd, 3, HF_EVENT_DELETED, "w00");
        expect_event(one, 2, HF_EVENT_DELETED, "w00");
        hfd_api_end_watches(box->api);
        assert_int_equal(await_end(odd), 0);
        assert_int_equal(await_end(one), 0);
        free(odd), free(one);
}

static void test_watch_too_old(void **state) {
        struct box *box = *state;

        for (int i = 0; i < 4200; i++) { /* more than the history holds */
                char body[120];
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"w\"},\"spec\":{\"n\":%d}}", i);
                assert_int_equal(do_call(box, i ? HF_VERB_UPDATE : HF_VERB_CREATE, workspaces, NULL, i ? "w" : NULL, NULL, body), 0);
        }
        assert_int_equal(n_selected(box, NULL), 1);
        struct seen *seen = watch(box, workspaces, NULL, "1", NULL);
        assert_int_equal(await_end(seen), HF_E_GONE);
        free(seen);
}

/* ---- many at once ---- */

struct hammer {
        struct box *box;
        int index;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int n_won, n_left;
};

static void hammer_reply(void *ctx, const struct hf_reply *reply) {
        struct hammer *h = ctx;

        pthread_mutex_lock(&h->mu);
        h->n_won += !reply->error;
        h->n_left--;
        pthread_cond_signal(&h->cond);
        pthread_mutex_unlock(&h->mu);
}

static void *hammer_thread(void *ctx) {
        struct hammer *h = ctx;
        char body[160];

        for (int i = 0; i < 100; i++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"shared\"},\"spec\":{\"by\":%d,\"n\":%d}}", h->index, i);
                struct hf_call update = {.verb = HF_VERB_UPDATE,
                                         .resource = workspaces,
                                         .name = "shared",
                                         .body = body,
                                         .n_body = strlen(body)};
                struct hf_call get = {.verb = HF_VERB_GET, .resource = workspaces, .name = "shared"};
                struct hf_call list = {.verb = HF_VERB_LIST, .resource = workspaces, .query = "labelSelector=!none"};
                pthread_mutex_lock(&h->mu);
                h->n_left += 3;
                pthread_mutex_unlock(&h->mu);
                assert_int_equal(hf_client_call(h->box->client, &update, hammer_reply, h, NULL), 0);
                assert_int_equal(hf_client_call(h->box->client, &get, hammer_reply, h, NULL), 0);
                assert_int_equal(hf_client_call(h->box->client, &list, hammer_reply, h, NULL), 0);
                pthread_mutex_lock(&h->mu);
                while (h->n_left > 8)
                        pthread_cond_wait(&h->cond, &h->mu);
                pthread_mutex_unlock(&h->mu);
        }
        pthread_mutex_lock(&h->mu);
        while (h->n_left)
                pthread_cond_wait(&h->cond, &h->mu);
        pthread_mutex_unlock(&h->mu);
        return NULL;
}

static void test_hammer(void **state) {
        struct box *box = *state;
        struct hammer hammers[4];
        pthread_t threads[4];
        int n_won = 0;

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL, "{\"metadata\":{\"name\":\"shared\"}}"), 0);
        struct seen *seen = watch(box, workspaces, NULL, text_at("metadata.resourceVersion"), NULL);
        for (int i = 0; i < 4; i++) {
                hammers[i] = (struct hammer){box, i, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
                assert_int_equal(pthread_create(&threads[i], NULL, hammer_thread, &hammers[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
                pthread_join(threads[i], NULL);
                n_won += hammers[i].n_won;
        }
        assert_int_equal(n_won, 1200); /* unconditional updates: the loop settles every conflict */
        await(seen, 400);
        for (size_t i = 1; i < seen->n; i++)
                assert_true(strtoull(seen->events[i].revision, NULL, 10) > strtoull(seen->events[i - 1].revision, NULL, 10));
        hfd_api_end_watches(box->api);
        assert_int_equal(await_end(seen), 0);
        free(seen);
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
                TEST(test_workspace_names),
                TEST(test_selectors),
                TEST(test_list_pages),
                TEST(test_table),
                cmocka_unit_test(test_discovery),
                TEST(test_watch),
                TEST(test_watch_selectors),
                TEST(test_watch_too_old),
                TEST(test_hammer),
        };
        int failed = cmocka_run_group_tests(tests, NULL, NULL);

        free(last.body);
        return failed;
}
