/* SPDX-License-Identifier: Apache-2.0 */
/* The decisions of the garbage collector, and the deletion of an owner whose dependents stay. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "gc_fixture.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/base/string_list.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/garbage/garbage_collector.h"
#include "server/controllers/garbage/gc_core.h"
#include "server/controllers/garbage/gc_graph.h"
#include "server/controllers/kinds/gc_filter.h"

static void expect_text(struct hf__json *json, const char *text) {
        struct hf__strbuf out = {0};
        hf__json_print(json, &out);
        assert_string_equal(out.data, text);
        hf__strbuf_done(&out);
        hf__json_free(json);
}

static void expect(struct hfd_gc_view view, enum hfd_gc_verdict verdict) {
        assert_int_equal(hfd_gc_decide(&view), verdict);
}

/*
 * Every combination: nothing is deleted while an owner exists, and nothing is changed while all its
 * owners exist.
 */
static void test_an_existing_owner_keeps_its_dependents(void **state) {
        (void)state;
        for (unsigned bits = 0; bits < 256; bits++) {
                struct hfd_gc_view view = {.n_solid = bits & 1,
                                           .n_waiting = bits >> 1 & 1,
                                           .n_absent = bits >> 2 & 1,
                                           .orphan = bits >> 3 & 1,
                                           .foreground = bits >> 4 & 1,
                                           .has_dependents = bits >> 5 & 1,
                                           .dependent_waits = bits >> 6 & 1,
                                           .blocks = bits >> 7 & 1};
                enum hfd_gc_verdict verdict = hfd_gc_decide(&view);
                if (view.n_solid)
                        assert_int_equal(verdict, view.n_waiting + view.n_absent
                                                          ? HFD_GC_DROP_OWNERS
                                                          : HFD_GC_KEEP);
                else
                        assert_int_equal(hfd_gc_policy(verdict) == NULL &&
                                                 verdict != HFD_GC_UNBLOCK,
                                         view.n_waiting + view.n_absent == 0);
        }
}

static void test_the_deletion_policy_follows_owners_and_finalizers(void **state) {
        (void)state;
        expect((struct hfd_gc_view){.n_absent = 1}, HFD_GC_DELETE_BACKGROUND);
        expect((struct hfd_gc_view){.n_absent = 1, .has_dependents = true},
               HFD_GC_DELETE_BACKGROUND);
        expect((struct hfd_gc_view){.n_absent = 2, .foreground = true}, HFD_GC_DELETE_FOREGROUND);
        expect((struct hfd_gc_view){.n_absent = 2, .orphan = true, .foreground = true},
               HFD_GC_DELETE_ORPHAN);
        expect((struct hfd_gc_view){.n_waiting = 1}, HFD_GC_DELETE_BACKGROUND);
        expect((struct hfd_gc_view){.n_waiting = 1, .n_absent = 1, .has_dependents = true},
               HFD_GC_DELETE_FOREGROUND);
        expect((struct hfd_gc_view){.n_waiting = 1,
                                    .has_dependents = true,
                                    .dependent_waits = true,
                                    .blocks = true},
               HFD_GC_UNBLOCK);
        expect((struct hfd_gc_view){.n_waiting = 1,
                                    .has_dependents = true,
                                    .dependent_waits = true},
               HFD_GC_DELETE_FOREGROUND);
}

static void test_owner_references_are_removed(void **state) {
        (void)state;
        struct hf__json *object = gc_parsed("{\"metadata\":{\"name\":\"n\",\"ownerReferences\":[{"
                                            "\"uid\":\"x\",\"blockOwnerDeletion\":true},"
                                            "{\"uid\":\"y\"}]}}");
        struct hf__json *uids = gc_parsed("{\"uids\":[\"w\",\"x\"]}");
        assert_true(hfd_gc_blocks(object));
        assert_int_equal(hfd_gc_unblock(object), 0);
        assert_false(hfd_gc_blocks(object));
        assert_int_equal(hfd_gc_drop_owners(object, uids), 0);
        expect_text(object, "{\"metadata\":{\"name\":\"n\",\"ownerReferences\":[{\"uid\":\"y\","
                            "\"blockOwnerDeletion\":false}]}}");
        object = gc_parsed("{\"metadata\":{\"name\":\"n\",\"ownerReferences\":[{\"uid\":\"x\"}]}}");
        assert_int_equal(hfd_gc_drop_owners(object, uids), 0);
        expect_text(object, "{\"metadata\":{\"name\":\"n\"}}");
        hf__json_free(uids);
}

static void test_objects_deleted_in_the_foreground_wait_for_dependents(void **state) {
        static const char *const no[] =
                {"{}", "{\"metadata\":{\"finalizers\":[\"foregroundDeletion\"]}}",
                 "{\"metadata\":{\"deletionTimestamp\":\"t\",\"finalizers\":[\"orphan\",7]}}"};
        (void)state;
        for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
                struct hf__json *object = gc_parsed(no[i]);
                assert_false(hfd_gc_waits(object));
                hf__json_free(object);
        }
        struct hf__json *object = gc_parsed("{\"metadata\":{\"deletionTimestamp\":\"t\","
                                            "\"finalizers\":[\"a\",\"foregroundDeletion\"]}}");
        assert_true(hfd_gc_waits(object));
        hf__json_free(object);
}

static void test_objects_with_owners_or_deletion_marks_are_collected(void **state) {
        static const char owned[] = "{\"metadata\":{\"ownerReferences\":[]}}",
                          marked[] = "{\"metadata\":{\"deletionTimestamp\":\"t\"}}",
                          plain[] = "{\"metadata\":{\"name\":\"ownerReferences\"}}";
        (void)state;
        assert_true(hfd_gc_filter_may_concern(owned, sizeof owned - 1));
        assert_true(hfd_gc_filter_may_concern(marked, sizeof marked - 1));
        assert_false(hfd_gc_filter_may_concern(marked, 20));
        /* A name that contains these letters only costs a useless check. */
        assert_true(hfd_gc_filter_may_concern(plain, sizeof plain - 1));
}

static void test_string_lists_have_no_duplicates(void **state) {
        (void)state;
        struct hf__json *object = gc_parsed("{}");
        assert_int_equal(hf__json_add_element(object, "metadata.finalizers", "a/b"), 0);
        assert_int_equal(hf__json_add_element(object, "metadata.finalizers", "a/b"), 0);
        assert_int_equal(hf__json_add_element(object, "metadata.finalizers", "c"), 0);
        assert_true(hfd_string_list_has(object, "metadata.finalizers", "c"));
        assert_int_equal(hfd_string_list_remove(object, "metadata.finalizers", "a/b"), 0);
        assert_int_equal(hfd_string_list_remove(object, "metadata.finalizers", "absent"), 0);
        assert_int_equal(hf__json_count(hf__json_path(object, "metadata.finalizers")), 1);
        assert_int_equal(hfd_string_list_remove(object, "metadata.finalizers", "c"), 0);
        expect_text(object, "{\"metadata\":{}}");
}

/* ---- the controller: the test and gc_fixture.c replace all that it uses ---- */

/* Objects of the custom kind, one with an owner that stays and one that waits for its dependents,
 * and one with only the latter. */
#define REFERENCE(uid)                                                                             \
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"" uid "\",\"uid\":\"" uid "\"}"
#define OWNED(uid, references)                                                                     \
        "{\"metadata\":{\"uid\":\"" uid                                                            \
        "\",\"resourceVersion\":\"5\",\"ownerReferences\":[" references "]}}"

static const struct {
        const char *name, *text;
} objects[] = {
        {"o", GC_OWNER},
        {"d", GC_DEPENDENT},
        {"m", OWNED("m", REFERENCE("s") "," REFERENCE("w"))},
        {"x", OWNED("x", REFERENCE("w"))},
        {"s", "{\"metadata\":{\"uid\":\"s\",\"resourceVersion\":\"3\"}}"},
        {"w", "{\"metadata\":{\"uid\":\"w\",\"resourceVersion\":\"4\",\"deletionTimestamp\":\"t\","
              "\"finalizers\":[\"foregroundDeletion\"]}}"},
};

static struct {
        bool serves;     /* the version of the custom kind in the set */
        const char *key; /* of the object to be reconciled */
        int result;      /* of its reconcile */
        char written[100];
} gc;

struct hf_cancel *__wrap_hf_term_abort(struct hf_term *term);
struct hf_cancel *__wrap_hf_term_abort(struct hf_term *term) {
        return hf_cancel_never();
}

typedef void (*each_fn)(void *ctx, const char *ns, const char *name, const char *object, size_t n);
int __wrap_hf_informer_by_index(struct hf_informer *informer, const char *index, const char *value,
                                each_fn each, void *ctx);
int __wrap_hf_informer_by_index(struct hf_informer *informer, const char *index, const char *value,
                                each_fn each, void *ctx) {
        if (informer == gc_custom.informer && strcmp(value, "o") == 0)
                each(ctx, "default", "d", GC_DEPENDENT, strlen(GC_DEPENDENT));
        return 0;
}

int __wrap_hfd_object_client_get_cached(struct hf_informer *informer, const char *ns,
                                        const char *name, struct hf__json **ret_object);
int __wrap_hfd_object_client_get_cached(struct hf_informer *informer, const char *ns,
                                        const char *name, struct hf__json **ret_object) {
        for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++)
                if (strcmp(objects[i].name, name) == 0) {
                        *ret_object = gc_parsed(objects[i].text);
                        return 0;
                }
        return HF_E_NOT_FOUND;
}

int __wrap_hfd_object_client_get(struct hf_term *term, const struct hf_resource *resource,
                                 const char *ns, const char *name, struct hf__json **ret_object);
int __wrap_hfd_object_client_get(struct hf_term *term, const struct hf_resource *resource,
                                 const char *ns, const char *name, struct hf__json **ret_object) {
        if (*resource->group && !gc.serves)
                return HF_E_NOT_FOUND;
        return __wrap_hfd_object_client_get_cached(NULL, ns, name, ret_object);
}

int __wrap_hfd_object_client_update(struct hf_term *term, const struct hf_resource *resource,
                                    const char *ns, const char *name, const char *subresource,
                                    const struct hf__json *object);
int __wrap_hfd_object_client_update(struct hf_term *term, const struct hf_resource *resource,
                                    const char *ns, const char *name, const char *subresource,
                                    const struct hf__json *object) {
        strcat(gc.written, name);
        return 0;
}

int __wrap_hfd_object_client_delete(struct hf_term *term, const struct hf_resource *resource,
                                    const char *ns, const char *name,
                                    const struct hfd_object_client_delete_options *options);
int __wrap_hfd_object_client_delete(struct hf_term *term, const struct hf_resource *resource,
                                    const char *ns, const char *name,
                                    const struct hfd_object_client_delete_options *options) {
        if (*resource->group && !gc.serves)
                return HF_E_NOT_FOUND;
        strcat(gc.written, "-");
        strcat(gc.written, name);
        return 0;
}

int __wrap_hfd_reconcile_loop_run_set(const struct hfd_reconcile_loop *loop, struct hf_term *term,
                                      const struct hfd_kind_set *set, hfd_kind_map_fn map_of,
                                      struct hf_cancel *until);
int __wrap_hfd_reconcile_loop_run_set(const struct hfd_reconcile_loop *loop, struct hf_term *term,
                                      const struct hfd_kind_set *set, hfd_kind_map_fn map_of,
                                      struct hf_cancel *until) {
        hf_nsec again = 0;

        gc.result = loop->reconcile(loop->ctx, term, gc.key, &again);
        return 0;
}

static struct hfd_controller_context context;

static void reconcile(const char *key, bool serves, int result, const char *written) {
        gc.key = key;
        gc.serves = serves;
        gc.written[0] = '\0';
        assert_int_equal(hfd_garbage_collector_run(NULL, &context), 0);
        assert_int_equal(gc.result, result);
        assert_string_equal(gc.written, written);
}

/* A definition may change while the collector writes. If an object that is not found then were
 * taken for gone, a dependent that should stay would be deleted later, and one that has lost its
 * owners would stay until its next event. */
static void test_objects_that_are_not_served_are_tried_again(void **state) {
        gc_make_set();
        reconcile("0:default/o", false, HF_E_CONFLICT, "");
        reconcile("0:default/o", true, 0, "do"); /* first the dependent, then the owner */
        reconcile("1:default/m", false, HF_E_CONFLICT, "");
        reconcile("1:default/m", true, 0, "m");
        reconcile("1:default/x", false, HF_E_CONFLICT, "");
        reconcile("1:default/x", true, 0, "-x");
        gc_free_set();
}

/* An object that is not in the graph is never collected, so no deleted dependent may bring it to a
 * worker. */
static void test_an_owner_outside_the_graph_is_not_enqueued(void **state) {
        struct hf__json *dependent =
                gc_parsed("{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
                          "\"ConfigMap\",\"name\":\"c\",\"uid\":\"u\"},{\"apiVersion\":"
                          "\"example.com/v1\",\"kind\":\"A\",\"name\":\"a\",\"uid\":\"v\"}]}}");
        struct hf_host host = {.size = sizeof host};
        struct hf_workqueue *queue;
        struct hf_cancel *token;
        struct hfd_gc_graph graph;
        const char *key;

        (void)state;
        gc_make_set();
        assert_int_equal(hfd_gc_graph_init(&graph, gc_set, &gc_configmaps), 0);
        assert_int_equal(hf_workqueue_new(&host, "q", &queue), 0);
        assert_int_equal(hfd_gc_graph_enqueue_owners(&graph, dependent, "default", queue), 0);
        assert_int_equal(hf_cancel_new(NULL, hf_clock_system(), &token), 0);
        assert_int_equal(hf_workqueue_take(queue, token, &key), 0);
        assert_string_equal(key, "1:default/a");
        hf_workqueue_done(queue, key);
        hf_workqueue_free(queue);
        hf_cancel_unref(token);
        hfd_gc_graph_done(&graph);
        gc_free_set();
        hf__json_free(dependent);
}

/* Events are in the set, but not in the graph. */
static void test_an_event_is_never_collected(void **state) {
        gc_make_set();
        context.events = &gc_custom;
        reconcile("1:default/x", true, HF_E_INVALID, "");
        context.events = NULL;
        gc_free_set();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_existing_owner_keeps_its_dependents),
                cmocka_unit_test(test_the_deletion_policy_follows_owners_and_finalizers),
                cmocka_unit_test(test_owner_references_are_removed),
                cmocka_unit_test(test_objects_deleted_in_the_foreground_wait_for_dependents),
                cmocka_unit_test(test_objects_with_owners_or_deletion_marks_are_collected),
                cmocka_unit_test(test_string_lists_have_no_duplicates),
                cmocka_unit_test(test_objects_that_are_not_served_are_tried_again),
                cmocka_unit_test(test_an_owner_outside_the_graph_is_not_enqueued),
                cmocka_unit_test(test_an_event_is_never_collected),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
