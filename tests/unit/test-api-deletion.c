/* SPDX-License-Identifier: Apache-2.0 */
/* Subresources, finalizers, propagation, the deletion of namespaces and of collections, through the
 * loopback client. */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api_box.h"

static const struct hf_resource events = {"", "v1", "events"};

static void make(struct box *box, struct hf_resource resource, const char *ns, const char *body) {
        assert_int_equal(do_call(box, HF_VERB_CREATE, resource, ns, NULL, NULL, body), 0);
        assert_int_equal(last.status.http_code, 201);
}

static int drop(struct box *box, struct hf_resource resource, const char *ns, const char *name,
                const char *options) {
        return do_call(box, HF_VERB_DELETE, resource, ns, name, NULL, options);
}

static int get(struct box *box, struct hf_resource resource, const char *ns, const char *name) {
        return do_call(box, HF_VERB_GET, resource, ns, name, NULL, NULL);
}

static int64_t number_at(const char *path) {
        struct hf__json *json = NULL;
        int64_t number = -1;

        assert_int_equal(hf__json_parse(last.body, strlen(last.body), &json, NULL), 0);
        (void)hf__json_i64(json, path, &number);
        hf__json_free(json);
        return number;
}

/* ---- subresources ---- */

static void test_status_and_object_keep_apart(void **state) {
        struct box *box = *state;

        make(box, workspaces, NULL,
             "{\"metadata\":{\"name\":\"w\"},\"spec\":{\"a\":1},\"status\":{\"phase\":\"Ready\"}}");
        assert_string_equal(text_at("status.phase"), "");
        /* Of an update of the status only the status counts. */
        assert_int_equal(do_part(box, workspaces, "w", "status",
                                 "{\"metadata\":{\"name\":\"w\",\"labels\":{\"a\":\"b\"}},\"spec\":"
                                 "{\"a\":2},\"status\":{\"phase\":"
                                 "\"Ready\"}}"),
                         0);
        assert_string_equal(text_at("status.phase"), "Ready");
        assert_string_equal(text_at("metadata.labels.a"), "");
        assert_int_equal(number_at("spec.a"), 1);
        assert_int_equal(number_at("metadata.generation"), 1);
        /* And of an update of the object everything but. */
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w", NULL,
                                 "{\"metadata\":{\"name\":\"w\",\"generation\":9},\"spec\":{\"a\":"
                                 "3},\"status\":{\"phase\":\"Lost\"}}"),
                         0);
        assert_string_equal(text_at("status.phase"), "Ready");
        assert_int_equal(number_at("spec.a"), 3);
        assert_int_equal(number_at("metadata.generation"), 2);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w", NULL,
                                 "{\"metadata\":{\"name\":\"w\",\"labels\":{\"a\":\"b\"}},\"spec\":"
                                 "{\"a\":3}}"),
                         0);
        assert_int_equal(number_at("metadata.generation"), 2);
        assert_int_equal(do_part(box, workspaces, "w", "status", NULL), 0);
        assert_string_equal(text_at("status.phase"), "Ready");
        /* No status in it takes the status away; the same again writes nothing. */
        assert_int_equal(do_part(box, workspaces, "w", "status", "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        assert_string_equal(text_at("status.phase"), "");
        char revision[32];
        (void)snprintf(revision, sizeof revision, "%s", text_at("metadata.resourceVersion"));
        assert_int_equal(do_part(box, workspaces, "w", "status", "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        assert_string_equal(text_at("metadata.resourceVersion"), revision);
        assert_int_equal(do_part(box, workspaces, "w", "status",
                                 "{\"metadata\":{\"name\":\"w\",\"resourceVersion\":\"1\"}}"),
                         HF_E_CONFLICT);
        assert_int_equal(do_part(box, workspaces, "none", "status",
                                 "{\"metadata\":{\"name\":\"none\"}}"),
                         HF_E_NOT_FOUND);
        expect_status(404, "NotFound", "workspaces.tenancy.holdfast.dev \"none\" not found");
}

static void test_no_such_subresource(void **state) {
        struct box *box = *state;
        struct hf_request drop_status = {.verb = HF_VERB_DELETE,
                                         .resource = workspaces,
                                         .name = "w",
                                         .subresource = "status"};

        make(box, workspaces, NULL, "{\"metadata\":{\"name\":\"w\"}}");
        assert_int_equal(do_part(box, workspaces, "w", "finalize", NULL), HF_E_NOT_FOUND);
        expect_status(404, "NotFound", "the server could not find the requested resource");
        assert_int_equal(do_part(box, workspaces, "w", "scale", NULL), HF_E_NOT_FOUND);
        assert_int_equal(run(box, &drop_status), HF_E_INVALID);
        expect_status(405, "MethodNotAllowed",
                      "the server does not allow this method on the requested resource");
        assert_int_equal(get(box, workspaces, NULL, "w"), 0);
}

/* ---- finalizers and propagation ---- */

static void test_last_finalizer(void **state) {
        struct box *box = *state;

        make(box, workspaces, NULL,
             "{\"metadata\":{\"name\":\"w\",\"finalizers\":[\"a.b/c\",\"a.b/d\"]}}");
        assert_int_equal(drop(box, workspaces, NULL, "w", NULL), 0);
        assert_string_equal(text_at("kind"), "Workspace");
        assert_int_equal(number_at("metadata.deletionGracePeriodSeconds"), 0);
        assert_int_equal(number_at("metadata.generation"), 2);
        char stamp[40], revision[32];
        (void)snprintf(stamp, sizeof stamp, "%s", text_at("metadata.deletionTimestamp"));
        (void)snprintf(revision, sizeof revision, "%s", text_at("metadata.resourceVersion"));
        assert_int_equal(drop(box, workspaces, NULL, "w", NULL), 0); /* again: nothing new */
        assert_string_equal(text_at("metadata.resourceVersion"), revision);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w", NULL,
                                 "{\"metadata\":{\"name\":\"w\",\"finalizers\":[\"a.b/d\"]}}"),
                         0);
        assert_string_equal(text_at("metadata.deletionTimestamp"), stamp);
        /* Without its last finalizer it goes; the answer is what it was. */
        assert_int_equal(do_call(box, HF_VERB_UPDATE, workspaces, NULL, "w", NULL,
                                 "{\"metadata\":{\"name\":\"w\"}}"),
                         0);
        assert_string_equal(text_at("kind"), "Workspace");
        assert_string_equal(text_at("metadata.deletionTimestamp"), stamp);
        assert_int_equal(get(box, workspaces, NULL, "w"), HF_E_NOT_FOUND);
}

static void test_both_policies_as_finalizers(void **state) {
        struct box *box = *state;

        assert_int_equal(do_call(box, HF_VERB_CREATE, workspaces, NULL, NULL, NULL,
                                 "{\"metadata\":{\"name\":\"w\",\"finalizers\":[\"orphan\","
                                 "\"foregroundDeletion\"]}}"),
                         HF_E_INVALID);
        expect_status(422, "Invalid",
                      "Workspace.tenancy.holdfast.dev \"w\" is invalid: metadata.finalizers: "
                      "Invalid value: []string{\"orphan\", "
                      "\"foregroundDeletion\"}: finalizer orphan and finalizer foregroundDeletion "
                      "cannot be both set");
}

static void test_propagation(void **state) {
        static const struct {
                const char *finalizers, *options,
                        *left; /* left: the finalizers after it; NULL = it is gone */
        } cases[] = {
                {"", "{\"propagationPolicy\":\"Background\"}", NULL},
                {"", "{}", NULL},
                {"",
                 "{\"propagationPolicy\":null,\"orphanDependents\":null,\"gracePeriodSeconds\":"
                 "null}",
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
        struct box *box = *state;
        char body[200], wanted[80];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"w%zu\",\"finalizers\":[%s]}}", i,
                               cases[i].finalizers);
                make(box, configmaps, "default", body);
                (void)snprintf(body, sizeof body, "w%zu", i);
                assert_int_equal(drop(box, configmaps, "default", body, cases[i].options), 0);
                if (!cases[i].left) {
                        assert_string_equal(text_at("status"), "Success");
                        assert_int_equal(get(box, configmaps, "default", body), HF_E_NOT_FOUND);
                        continue;
                }
                (void)snprintf(wanted, sizeof wanted, "\"finalizers\":%s", cases[i].left);
                assert_non_null(strstr(last.body, wanted));
                assert_string_not_equal(text_at("metadata.deletionTimestamp"), "");
        }
        /* What is marked may be deleted in another way after all. */
        assert_int_equal(drop(box, configmaps, "default", "w3",
                              "{\"propagationPolicy\":\"Foreground\"}"),
                         0);
        assert_non_null(strstr(last.body, "\"finalizers\":[\"foregroundDeletion\"]"));
        assert_int_equal(drop(box, configmaps, "default", "w3",
                              "{\"propagationPolicy\":\"Background\"}"),
                         0);
        assert_int_equal(get(box, configmaps, "default", "w3"), HF_E_NOT_FOUND);
        /* Nobody is owned by an Event. */
        make(box, events, "default", "{\"metadata\":{\"name\":\"e\"}}");
        assert_int_equal(drop(box, events, "default", "e", "{\"propagationPolicy\":\"Orphan\"}"),
                         0);
        assert_int_equal(get(box, events, "default", "e"), HF_E_NOT_FOUND);
        /* The older words, and the query of a delete without a body. */
        make(box, configmaps, "default",
             "{\"metadata\":{\"name\":\"q\",\"finalizers\":[\"a.b/c\"]}}");
        assert_int_equal(drop(box, configmaps, "default", "q", "{\"orphanDependents\":false}"), 0);
        assert_int_equal(last.status.http_code, 202);
        assert_int_equal(do_call(box, HF_VERB_DELETE, configmaps, "default", "q",
                                 "propagationPolicy=Orphan", NULL),
                         0);
        assert_int_equal(last.status.http_code, 200);
        assert_non_null(strstr(last.body, "\"finalizers\":[\"a.b/c\",\"orphan\"]"));
}

static void test_bad_delete_options(void **state) {
        static const char *const unreadable[] = {"{\"propagationPolicy\":5}",
                                                 "{\"orphanDependents\":\"yes\"}",
                                                 "{\"gracePeriodSeconds\":\"1\"}",
                                                 "{\"gracePeriodSeconds\":1.5}",
                                                 "{\"dryRun\":\"All\"}",
                                                 "{\"dryRun\":[1]}",
                                                 "{\"preconditions\":[]}",
                                                 "{\"preconditions\":{\"uid\":7}}",
                                                 "[]"};
        struct box *box = *state;

        make(box, configmaps, "default", "{\"metadata\":{\"name\":\"w\"}}");
        for (size_t i = 0; i < sizeof unreadable / sizeof unreadable[0]; i++) {
                assert_int_equal(drop(box, configmaps, "default", "w", unreadable[i]),
                                 HF_E_INVALID);
                assert_int_equal(last.status.http_code, 400);
        }
        assert_int_equal(drop(box, configmaps, "default", "w",
                              "{\"propagationPolicy\":\"Foreground\",\"orphanDependents\":true}"),
                         HF_E_INVALID);
        expect_status(422, "Invalid",
                      "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid "
                      "value: \"Foreground\": orphanDependents and "
                      "deletionPropagation cannot be both set");
        assert_int_equal(drop(box, configmaps, "default", "w",
                              "{\"propagationPolicy\":\"Sideways\"}"),
                         HF_E_INVALID);
        expect_status(422, "Invalid",
                      "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported "
                      "value: \"Sideways\": supported values: "
                      "\"Foreground\", \"Background\", \"Orphan\", \"nil\"");
        assert_int_equal(drop(box, configmaps, "default", "w", "{\"dryRun\":[\"All\",\"Some\"]}"),
                         HF_E_INVALID);
        expect_status(422, "Invalid",
                      "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: "
                      "[]string{\"All\", \"Some\"}: supported "
                      "values: "
                      "\"All\"");
        assert_int_equal(do_call(box, HF_VERB_DELETE, configmaps, "default", "w",
                                 "propagationPolicy=Sideways", NULL),
                         HF_E_INVALID);
        assert_int_equal(drop(box, configmaps, "default", "w",
                              "{\"dryRun\":[\"All\"],\"propagationPolicy\":\"Orphan\"}"),
                         0);
        assert_int_equal(get(box, configmaps, "default", "w"), 0);
        assert_null(strstr(last.body, "finalizers"));
}

/* ---- namespaces ---- */

static void test_namespace_life(void **state) {
        struct box *box = *state;
        const char *body = "{\"metadata\":{\"name\":\"c\"}}";

        make(box, namespaces, NULL,
             "{\"metadata\":{\"name\":\"n\"},\"status\":{\"phase\":\"Terminating\"}}");
        assert_string_equal(text_at("status.phase"), "Active");
        assert_non_null(strstr(last.body, "\"spec\":{\"finalizers\":[\"kubernetes\"]}"));
        assert_non_null(strstr(last.body, "\"kubernetes.io/metadata.name\":\"n\""));
        /* An update of the object leaves both to their subresources. */
        assert_int_equal(do_call(box, HF_VERB_UPDATE, namespaces, NULL, "n", NULL,
                                 "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"finalizers\":[]}}"),
                         0);
        assert_non_null(strstr(last.body, "\"finalizers\":[\"kubernetes\"]"));
        assert_string_equal(text_at("status.phase"), "Active");
        make(box, configmaps, "n", body);

        assert_int_equal(drop(box, namespaces, NULL, "n", "{\"propagationPolicy\":\"Background\"}"),
                         0);
        assert_int_equal(last.status.http_code, 200);
        assert_string_equal(text_at("kind"), "Namespace");
        assert_string_equal(text_at("status.phase"), "Terminating");
        assert_string_not_equal(text_at("metadata.deletionTimestamp"), "");
        /* Nothing is created in it any more; what is there may still change and go. */
        assert_int_equal(do_call(box, HF_VERB_CREATE, configmaps, "n", NULL, NULL,
                                 "{\"metadata\":{\"name\":\"d\"}}"),
                         HF_E_FORBIDDEN);
        expect_status(403, "Forbidden",
                      "configmaps \"d\" is forbidden: unable to create new content in namespace n "
                      "because it is being terminated");
        assert_non_null(strstr(last.body, "\"causes\":[{\"reason\":\"NamespaceTerminating\","
                                          "\"message\":\"namespace n is being "
                                          "terminated\",\"field\":\"metadata.namespace\"}]"));
        assert_int_equal(do_call(box, HF_VERB_UPDATE, leases, "n", "l", NULL,
                                 "{\"metadata\":{\"name\":\"l\"}}"),
                         HF_E_FORBIDDEN);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, configmaps, "n", "d", NULL,
                                 "{\"metadata\":{\"name\":\"d\"}}"),
                         HF_E_NOT_FOUND);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, configmaps, "n", "c", NULL,
                                 "{\"metadata\":{\"name\":\"c\"},\"data\":{\"a\":\"b\"}}"),
                         0);
        assert_int_equal(drop(box, configmaps, "n", "c", NULL), 0);

        assert_int_equal(do_part(box, namespaces, "n", "status",
                                 "{\"metadata\":{\"name\":\"n\"},\"status\":{\"phase\":"
                                 "\"Terminating\",\"conditions\":[]}}"),
                         0);
        assert_string_not_equal(text_at("metadata.deletionTimestamp"), "");
        assert_int_equal(do_part(box, namespaces, "n", "finalize",
                                 "{\"metadata\":{\"name\":\"n\"},\"spec\":{}}"),
                         0);
        assert_string_equal(text_at("kind"), "Namespace");
        assert_int_equal(get(box, namespaces, NULL, "n"), HF_E_NOT_FOUND);
        assert_int_equal(do_call(box, HF_VERB_CREATE, configmaps, "n", NULL, NULL, body),
                         HF_E_NOT_FOUND);
        expect_status(404, "NotFound", "namespaces \"n\" not found");
        make(box, namespaces, NULL, "{\"metadata\":{\"name\":\"n\"}}");
        make(box, configmaps, "n", body);
}

static void test_namespace_finalizers_of_both_kinds(void **state) {
        struct box *box = *state;

        make(box, namespaces, NULL,
             "{\"metadata\":{\"name\":\"n\",\"finalizers\":[\"a.b/"
             "c\"]},\"spec\":{\"finalizers\":[\"x.y/z\"]}}");
        assert_non_null(strstr(last.body, "\"finalizers\":[\"x.y/z\",\"kubernetes\"]"));
        assert_int_equal(do_part(box, namespaces, "n", "finalize",
                                 "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"finalizers\":[\"odd\"]"
                                 "}}"),
                         HF_E_INVALID);
        expect_status(422, "Invalid",
                      "Namespace \"n\" is invalid: spec.finalizers[0]: Invalid value: \"odd\": "
                      "name is neither a standard finalizer name "
                      "nor "
                      "is it fully qualified");
        assert_int_equal(drop(box, namespaces, NULL, "n", NULL), 0);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, namespaces, NULL, "n", NULL,
                                 "{\"metadata\":{\"name\":\"n\"}}"),
                         0);
        assert_int_equal(get(box, namespaces, NULL, "n"), 0); /* spec.finalizers hold it */
        assert_null(strstr(last.body, "a.b/c"));
        assert_int_equal(do_part(box, namespaces, "n", "finalize",
                                 "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"finalizers\":[\"x.y/"
                                 "z\"]}}"),
                         0);
        assert_int_equal(get(box, namespaces, NULL, "n"), 0);
        assert_int_equal(do_part(box, namespaces, "n", "finalize",
                                 "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"finalizers\":[]}}"),
                         0);
        assert_int_equal(get(box, namespaces, NULL, "n"), HF_E_NOT_FOUND);
        /* Finalized before it is deleted: nothing holds it then. */
        make(box, namespaces, NULL, "{\"metadata\":{\"name\":\"m\"}}");
        assert_int_equal(do_part(box, namespaces, "m", "finalize",
                                 "{\"metadata\":{\"name\":\"m\"}}"),
                         0);
        assert_int_equal(get(box, namespaces, NULL, "m"), 0);
        assert_int_equal(drop(box, namespaces, NULL, "m", NULL), 0);
        assert_int_equal(get(box, namespaces, NULL, "m"), HF_E_NOT_FOUND);
}

static void test_system_namespaces_stay(void **state) {
        static const char *const names[] = {"default", "kube-system", "kube-public",
                                            "kube-node-lease"};
        struct box *box = *state;
        char message[160];

        for (size_t i = 0; i < 4; i++) {
                assert_int_equal(drop(box, namespaces, NULL, names[i], NULL), HF_E_FORBIDDEN);
                (void)snprintf(message, sizeof message,
                               "namespaces \"%s\" is forbidden: this namespace may not be deleted",
                               names[i]);
                expect_status(403, "Forbidden", message);
        }
        assert_int_equal(do_call(box, HF_VERB_DELETE_COLLECTION, namespaces, NULL, NULL, NULL,
                                 NULL),
                         HF_E_INVALID);
        expect_status(405, "MethodNotAllowed",
                      "the server does not allow this method on the requested resource");
}

/* ---- a storm: nothing is left behind in a namespace that is emptied once and gone ---- */

struct storm {
        struct box *box;
        int index;
        atomic_bool *over;
        int n_made, n_refused;
};

static int wait_call(struct box *box, const struct hf_request *request) {
        struct hf_cancel *token;
        struct hf_status status;

        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        int r = hf_client_do(box->client, request, token, NULL, NULL, &status);
        hf_cancel_unref(token);
        return r;
}

static void *create_until_over(void *ctx) {
        struct storm *s = ctx;
        char body[100];

        for (int i = 0; !atomic_load(s->over); i++) {
                (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"c-%d-%d\"}}", s->index,
                               i);
                struct hf_request request = {.verb = HF_VERB_CREATE,
                                             .resource = configmaps,
                                             .ns = "n",
                                             .body = body,
                                             .n_body = strlen(body)};
                int r = wait_call(s->box, &request);
                assert_true(r == 0 || r == HF_E_FORBIDDEN || r == HF_E_NOT_FOUND);
                s->n_made += r == 0;
                s->n_refused += r != 0;
        }
        return NULL;
}

/* Keys below the prefix in the store itself, past every cache. */
static void on_keys(void *ctx, const struct hfd_store_reply *reply) {
        struct result *r = ctx;

        pthread_mutex_lock(&r->mu);
        r->error = (int)reply->n_kvs;
        r->done = true;
        pthread_cond_signal(&r->cond);
        pthread_mutex_unlock(&r->mu);
}

static int n_stored(struct box *box, const char *prefix) {
        struct result r = {.mu = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

        assert_int_equal(box->store->ops->list(box->store, prefix, NULL, 0, 0, true,
                                               hf_now(hf_clock_system()) + 5 * HF_NSEC_PER_SEC,
                                               on_keys, &r),
                         0);
        pthread_mutex_lock(&r.mu);
        while (!r.done)
                pthread_cond_wait(&r.cond, &r.mu);
        pthread_mutex_unlock(&r.mu);
        return r.error;
}

static void test_storm_leaves_no_orphan(void **state) {
        struct box *box = *state;
        struct storm storms[4];
        pthread_t threads[4];
        atomic_bool over = false;
        int n_refused = 0, n_made = 0, n_orphans = 0;

        make(box, namespaces, NULL, "{\"metadata\":{\"name\":\"n\"}}");
        for (int i = 0; i < 4; i++) {
                storms[i] = (struct storm){.box = box, .index = i, .over = &over};
                assert_int_equal(pthread_create(&threads[i], NULL, create_until_over, &storms[i]),
                                 0);
        }
        for (int round = 0; round < 40; round++) {
                /* Some content first, then what a namespace controller does: one look after the
                 * mark, no second one. */
                do
                        assert_int_equal(do_call(box, HF_VERB_LIST, configmaps, "n", NULL,
                                                 "resourceVersion=0", NULL),
                                         0);
                while (count_at("items") < 3);
                assert_int_equal(drop(box, namespaces, NULL, "n", NULL), 0);
                assert_string_equal(text_at("status.phase"), "Terminating");
                assert_int_equal(do_call(box, HF_VERB_DELETE_COLLECTION, configmaps, "n", NULL,
                                         NULL, NULL),
                                 0);
                assert_string_equal(text_at("kind"), "ConfigMapList");
                assert_int_equal(do_part(box, namespaces, "n", "finalize",
                                         "{\"metadata\":{\"name\":\"n\"}}"),
                                 0);
                n_orphans += n_stored(box, "/registry/configmaps/n/");
                make(box, namespaces, NULL, "{\"metadata\":{\"name\":\"n\"}}");
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

/* ---- collections ---- */

static void make_many(struct box *box, int n) {
        char body[160];

        for (int i = 0; i < n; i++) {
                (void)snprintf(body, sizeof body,
                               "{\"metadata\":{\"name\":\"w%03d\",\"labels\":{\"parity\":\"%s\"}%s}"
                               "}",
                               i, i % 2 ? "odd" : "even",
                               i == 7 ? ",\"finalizers\":[\"a.b/c\"]" : "");
                make(box, configmaps, "default", body);
        }
}

static int sweep(struct box *box, const char *query, const char *options) {
        return do_call(box, HF_VERB_DELETE_COLLECTION, configmaps, "default", NULL, query, options);
}

static size_t n_left(struct box *box) {
        assert_int_equal(do_call(box, HF_VERB_LIST, configmaps, "default", NULL, NULL, NULL), 0);
        return count_at("items");
}

static void test_collection(void **state) {
        struct box *box = *state;

        make_many(box, 100);
        assert_int_equal(sweep(box, "labelSelector=parity%3Deven", NULL), 0);
        assert_int_equal(last.status.http_code, 200);
        assert_string_equal(text_at("kind"), "ConfigMapList");
        assert_string_not_equal(text_at("metadata.resourceVersion"), "");
        assert_int_equal(count_at("items"), 50);
        assert_int_equal(n_left(box), 50);
        assert_int_equal(sweep(box, "dryRun=All", NULL), 0);
        assert_int_equal(sweep(box, NULL, "{\"dryRun\":[\"All\"]}"), 0);
        assert_int_equal(n_left(box), 50);
        assert_int_equal(sweep(box, "fieldSelector=metadata.name%3Dw001", NULL), 0);
        assert_int_equal(sweep(box, "limit=9", NULL), 0);
        assert_int_equal(count_at("items"), 9);
        assert_int_equal(n_left(box), 41); /* with w007, which a finalizer holds */
        assert_int_equal(sweep(box, NULL, "{\"propagationPolicy\":\"Orphan\"}"), 0);
        assert_int_equal(n_left(box), 41);
        assert_int_equal(sweep(box, NULL, "{\"propagationPolicy\":\"Background\"}"), 0);
        assert_int_equal(n_left(box), 1);
        assert_non_null(strstr(last.body, "w007"));
        assert_int_equal(sweep(box, "labelSelector=parity%3Deven", NULL),
                         0); /* nothing is selected: nothing is wrong */
        assert_int_equal(count_at("items"), 0);
        /* Each is deleted under the options, so a precondition meets each. */
        assert_int_equal(sweep(box, NULL, "{\"preconditions\":{\"uid\":\"other\"}}"),
                         HF_E_CONFLICT);
        assert_int_equal(last.status.http_code, 409);
        assert_int_equal(sweep(box, NULL, "{\"propagationPolicy\":\"Sideways\"}"), HF_E_INVALID);
        assert_int_equal(sweep(box, "labelSelector=a+b+c", NULL), HF_E_INVALID);
        assert_int_equal(sweep(box, "continue=bm9uc2Vuc2U", NULL), HF_E_INVALID);
        assert_int_equal(do_call(box, HF_VERB_DELETE_COLLECTION, configmaps, NULL, NULL, NULL,
                                 NULL),
                         HF_E_INVALID);
        assert_int_equal(last.status.http_code, 405);
}

/* What was made anew since the list, under a name that is on it, is not what was selected. */
static void test_collection_of_another_time(void **state) {
        struct box *box = *state;
        char at[64];

        make(box, configmaps, "default", "{\"metadata\":{\"name\":\"a\"}}");
        make(box, configmaps, "default", "{\"metadata\":{\"name\":\"b\"}}");
        assert_int_equal(n_left(box), 2);
        (void)snprintf(at, sizeof at, "resourceVersionMatch=Exact&resourceVersion=%s",
                       text_at("metadata.resourceVersion"));
        assert_int_equal(drop(box, configmaps, "default", "a", NULL), 0);
        make(box, configmaps, "default", "{\"metadata\":{\"name\":\"a\"}}");
        make(box, configmaps, "default", "{\"metadata\":{\"name\":\"c\"}}");
        assert_int_equal(sweep(box, at, NULL), 0);
        assert_int_equal(count_at("items"), 1);
        assert_int_equal(get(box, configmaps, "default", "a"), 0);
        assert_int_equal(get(box, configmaps, "default", "b"), HF_E_NOT_FOUND);
        assert_int_equal(get(box, configmaps, "default", "c"), 0);
}

static void make_mebibytes(struct box *box, int from, int to) {
        enum { MEBIBYTE = 1 << 20 };
        char *body = malloc(MEBIBYTE + 1);

        assert_non_null(body);
        for (int i = from; i < to; i++) {
                int head = snprintf(body, MEBIBYTE,
                                    "{\"metadata\":{\"name\":\"m%d\"},\"data\":{\"a\":\"", i);
                memset(body + head, 'x', (size_t)(MEBIBYTE - head));
                strcpy(body + MEBIBYTE - 3, "\"}}");
                make(box, configmaps, "default", body);
        }
        free(body);
}

/* The answer lists as much as it may hold, and of more nothing. */
static void test_big_collection(void **state) {
        struct box *box = *state;

        make_mebibytes(box, 0, 7);
        assert_int_equal(sweep(box, "dryRun=All", NULL), 0);
        assert_string_equal(text_at("kind"), "ConfigMapList");
        assert_int_equal(count_at("items"), 7);
        make_mebibytes(box, 7, 9);
        assert_int_equal(sweep(box, "dryRun=All", NULL), 0);
        assert_string_equal(text_at("kind"), "Status");
        assert_int_equal(n_left(box), 9);
        assert_int_equal(sweep(box, "fieldSelector=metadata.name%3Dm3", NULL), 0);
        assert_string_equal(text_at("kind"), "ConfigMapList");
        assert_int_equal(sweep(box, NULL, "{\"preconditions\":{\"uid\":\"other\"}}"),
                         HF_E_CONFLICT);
        assert_int_equal(n_left(box), 8);
        assert_int_equal(sweep(box, NULL, NULL), 0);
        assert_int_equal(last.status.http_code, 200);
        assert_string_equal(last.body, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                                       "\"status\":\"Success\","
                                       "\"details\":{\"kind\":\"configmaps\"}}\n");
        assert_int_equal(n_left(box), 0);
}

static void test_collection_of_one_namespace(void **state) {
        struct box *box = *state;

        make(box, namespaces, NULL, "{\"metadata\":{\"name\":\"n\"}}");
        make(box, namespaces, NULL, "{\"metadata\":{\"name\":\"n2\"}}");
        make(box, configmaps, "n", "{\"metadata\":{\"name\":\"a\"}}");
        make(box, configmaps, "n2", "{\"metadata\":{\"name\":\"a\"}}");
        assert_int_equal(do_call(box, HF_VERB_DELETE_COLLECTION, configmaps, "n", NULL, NULL, NULL),
                         0);
        assert_int_equal(count_at("items"), 1);
        assert_int_equal(get(box, configmaps, "n", "a"), HF_E_NOT_FOUND);
        assert_int_equal(get(box, configmaps, "n2", "a"), 0);
}

static void test_collection_is_fenced(void **state) {
        struct box *box = *state;
        struct hf_fence fence = {.ns = "kube-system", .name = "l", .identity = "me"};

        make(box, leases, "kube-system",
             "{\"metadata\":{\"name\":\"l\"},\"spec\":{\"holderIdentity\":\"me\"}}");
        fence.term = strtoull(text_at("metadata.resourceVersion"), NULL, 10);
        make_many(box, 20);
        struct hf_fence stale = fence;
        stale.term++;
        assert_int_equal(call_fenced(box, HF_VERB_DELETE_COLLECTION, configmaps, "default", NULL,
                                     NULL, NULL, &stale),
                         HF_E_STALE_TERM);
        assert_true(last.echoed);
        assert_int_equal(n_left(box), 20);
        assert_int_equal(call_fenced(box, HF_VERB_DELETE_COLLECTION, configmaps, "default", NULL,
                                     "labelSelector=parity%3Deven", NULL, &fence),
                         0);
        assert_true(last.echoed);
        assert_int_equal(n_left(box), 10);
        /* Also where nothing is to be deleted the fence is compared, and the answer says so. */
        assert_int_equal(call_fenced(box, HF_VERB_DELETE_COLLECTION, configmaps, "default", NULL,
                                     "labelSelector=parity%3Deven", NULL, &fence),
                         0);
        assert_true(last.echoed);
        assert_int_equal(call_fenced(box, HF_VERB_DELETE_COLLECTION, configmaps, "default", NULL,
                                     "labelSelector=parity%3Deven", NULL, &stale),
                         HF_E_STALE_TERM);
        assert_true(last.echoed);
}

static void *sweep_thread(void *ctx) {
        struct box *box = ctx;
        struct hf_request request = {.verb = HF_VERB_DELETE_COLLECTION,
                                     .resource = configmaps,
                                     .ns = "default"};

        assert_int_equal(wait_call(box, &request), 0);
        return NULL;
}

static void test_collections_at_once(void **state) {
        struct box *box = *state;
        pthread_t threads[4];

        make_many(box, 200);
        assert_int_equal(do_call(box, HF_VERB_UPDATE, configmaps, "default", "w007", NULL,
                                 "{\"metadata\":{\"name\":\"w007\"}}"),
                         0);
        for (int i = 0; i < 4; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, sweep_thread, box), 0);
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        assert_int_equal(n_left(box), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_status_and_object_keep_apart),
                TEST(test_no_such_subresource),
                TEST(test_last_finalizer),
                TEST(test_both_policies_as_finalizers),
                TEST(test_propagation),
                TEST(test_bad_delete_options),
                TEST(test_namespace_life),
                TEST(test_namespace_finalizers_of_both_kinds),
                TEST(test_system_namespaces_stay),
                TEST(test_storm_leaves_no_orphan),
                TEST(test_collection),
                TEST(test_collection_of_another_time),
                TEST(test_big_collection),
                TEST(test_collection_of_one_namespace),
                TEST(test_collection_is_fenced),
                TEST(test_collections_at_once),
        };
        int failed = cmocka_run_group_tests(tests, NULL, NULL);

        free(last.body);
        return failed;
}
