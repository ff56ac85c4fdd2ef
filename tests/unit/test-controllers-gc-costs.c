/* SPDX-License-Identifier: Apache-2.0 */
/* What the garbage collector does for an object with many references, and for an owner with many
 * dependents. The test replaces its informers, its term, its loop and its requests. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "gc_fixture.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/garbage/garbage_collector.h"

/* References to one owner. Only the uid "o" is right. */
#define REFERENCE(uid)                                                                             \
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"o\",\"uid\":\"" uid "\"}"
static const char many[] =
        "{\"metadata\":{\"uid\":\"m\",\"resourceVersion\":\"9\","
        "\"ownerReferences\":[" REFERENCE("o") "," REFERENCE("o") "," REFERENCE("x") "," REFERENCE(
                "z") "," REFERENCE("y") "," REFERENCE("x") "]}}";

/* An owner that waits, and a dependent that blocks it. */
#define META(uid)                                                                                  \
        "\"metadata\":{\"uid\":\"" uid "\",\"resourceVersion\":\"7\",\"deletionTimestamp\":\"t\""
#define WAITING(uid)                                                                               \
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"," META(uid) ",\"finalizers\":["             \
                                                                   "\"foregroundDeletion\"]}}"
#define MARKED "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"," META("o") "}}"
#define BLOCKING                                                                                   \
        "{\"metadata\":{\"uid\":\"d\",\"resourceVersion\":\"5\",\"ownerReferences\":[{"            \
        "\"apiVersion\":"                                                                          \
        "\"v1\",\"kind\":\"ConfigMap\",\"name\":\"waits\",\"uid\":\"o\",\"blockOwnerDeletion\":"   \
        "true}]}}"

static struct {
        const char *key; /* that is reconciled */
        struct hf_cancel *abort;
        int result;                    /* of the reconcile of the owner */
        unsigned n_cached, n_requests; /* look-ups of the owner */
        char updated[100];
        struct hf__strbuf update;      /* the last updated object */
        unsigned n_searches, n_events; /* searches of other namespaces; created Events */
        bool searching;
        unsigned n_dependents, n_parsed;
        hf_nsec again;
        bool maps;             /* an event of the owner is mapped, instead of a key reconciled */
        char enqueued[100];    /* the keys */
        bool fails_dependents; /* they are not enqueued */
        char message[200];     /* of the last Event */
} gc;

struct hf_cancel *__wrap_hf_term_abort(struct hf_term *term);
struct hf_cancel *__wrap_hf_term_abort(struct hf_term *term) {
        return gc.abort ? gc.abort : hf_cancel_never();
}

size_t __wrap_hf_informer_count(struct hf_informer *informer);
size_t __wrap_hf_informer_count(struct hf_informer *informer) { return 2; }

typedef void (*each_fn)(void *ctx, const char *ns, const char *name, const char *object, size_t n);
int __real_hf__json_parse(const char *data, size_t n, struct hf__json **ret_json,
                          size_t *ret_offset);
int __wrap_hf__json_parse(const char *data, size_t n, struct hf__json **ret_json,
                          size_t *ret_offset);
int __wrap_hf__json_parse(const char *data, size_t n, struct hf__json **ret_json,
                          size_t *ret_offset) {
        assert_false(gc.searching); /* the informer's lock is held */
        gc.n_parsed += strcmp(data, BLOCKING) == 0;
        return __real_hf__json_parse(data, n, ret_json, ret_offset);
}

void __wrap_hf_informer_each(struct hf_informer *informer, each_fn each, void *ctx);
void __wrap_hf_informer_each(struct hf_informer *informer, each_fn each, void *ctx) {
        static const char x[] = "{\"metadata\":{\"name\":\"x\",\"uid\":\"x\"}}",
                          z[] = "{\"metadata\":{\"name\":\"x\",\"uid\":\"z\"}}";

        gc.n_searches++;
        gc.searching = true;
        each(ctx, "default", "x", x, sizeof x - 1);
        each(ctx, "other", "x", z, sizeof z - 1);
        gc.searching = false;
}

int __wrap_hfd_object_client_create(struct hf_term *term, const struct hf_resource *resource,
                                    const char *ns, const struct hf__json *object);
int __wrap_hfd_object_client_create(struct hf_term *term, const struct hf_resource *resource,
                                    const char *ns, const struct hf__json *object) {
        gc.n_events++;
        (void)snprintf(gc.message, sizeof gc.message, "%s", hf__json_string(object, "message"));
        return 0;
}

int __wrap_hf_informer_by_index(struct hf_informer *informer, const char *index, const char *value,
                                each_fn each, void *ctx);
int __wrap_hf_informer_by_index(struct hf_informer *informer, const char *index, const char *value,
                                each_fn each, void *ctx) {
        assert_true(gc.maps || strcmp(value, "o") == 0);
        const char *dependent = strcmp(gc.key, "0:default/waits") == 0 ? BLOCKING : GC_DEPENDENT;

        for (unsigned i = 0; informer == gc_custom.informer && i < gc.n_dependents; i++)
                each(ctx, "default", "d", dependent, strlen(dependent));
        return 0;
}

static struct hf__json *get_object(const char *name) {
        if (strcmp(name, "many") == 0)
                return gc_parsed(many);
        if (strcmp(name, "waits") == 0)
                return gc_parsed(WAITING("o"));
        return gc_parsed(strcmp(name, "o") == 0 ? GC_OWNER : GC_DEPENDENT);
}

int __wrap_hfd_object_client_get_cached(struct hf_informer *informer, const char *ns,
                                        const char *name, struct hf__json **ret_object);
int __wrap_hfd_object_client_get_cached(struct hf_informer *informer, const char *ns,
                                        const char *name, struct hf__json **ret_object) {
        gc.n_cached += strcmp(name, "o") == 0;
        *ret_object = get_object(name);
        return 0;
}

int __wrap_hfd_object_client_get(struct hf_term *term, const struct hf_resource *resource,
                                 const char *ns, const char *name, struct hf__json **ret_object);
int __wrap_hfd_object_client_get(struct hf_term *term, const struct hf_resource *resource,
                                 const char *ns, const char *name, struct hf__json **ret_object) {
        gc.n_requests += strcmp(name, "o") == 0;
        *ret_object = get_object(name);
        return 0;
}

int __wrap_hfd_object_client_update(struct hf_term *term, const struct hf_resource *resource,
                                    const char *ns, const char *name, const char *subresource,
                                    const struct hf__json *object);
int __wrap_hfd_object_client_update(struct hf_term *term, const struct hf_resource *resource,
                                    const char *ns, const char *name, const char *subresource,
                                    const struct hf__json *object) {
        strcat(gc.updated, name);
        hf__strbuf_done(&gc.update);
        hf__json_print(object, &gc.update);
        return 0;
}

int __wrap_hf_workqueue_add(struct hf_workqueue *queue, const char *key);
int __wrap_hf_workqueue_add(struct hf_workqueue *queue, const char *key) {
        size_t n = strlen(gc.enqueued);
        (void)snprintf(gc.enqueued + n, sizeof gc.enqueued - n, "%s ", key);
        return gc.fails_dependents && *key == '1' ? -ENOMEM : 0;
}

static void expect_enqueued(hf_reconciler_map_fn map, void *ctx, enum hf_event_type type,
                            const char *object, const char *keys) {
        gc.enqueued[0] = '\0';
        assert_int_equal(map(ctx, NULL, type, "default", "waits", object, strlen(object)), 0);
        assert_string_equal(gc.enqueued, keys);
}

static void map_events(hf_reconciler_map_fn map, void *ctx) {
        static const char own[] = "0:default/waits ", both[] = "0:default/waits 1:default/d ";

        expect_enqueued(map, ctx, HF_EVENT_ADDED, WAITING("o"), both);
        expect_enqueued(map, ctx, HF_EVENT_MODIFIED, WAITING("o"), own);
        /* Another object of the same name, then one that does not wait any more. */
        expect_enqueued(map, ctx, HF_EVENT_MODIFIED, WAITING("p"), both);
        expect_enqueued(map, ctx, HF_EVENT_MODIFIED, WAITING("p"), own);
        expect_enqueued(map, ctx, HF_EVENT_MODIFIED, MARKED, own);
        expect_enqueued(map, ctx, HF_EVENT_MODIFIED, WAITING("o"), both);
        expect_enqueued(map, ctx, HF_EVENT_DELETED, WAITING("o"), "1:default/d ");
        /* If a dependent was not enqueued, the next event enqueues them. */
        gc.fails_dependents = true;
        gc.enqueued[0] = '\0';
        assert_int_equal(map(ctx, NULL, HF_EVENT_ADDED, "default", "waits", WAITING("o"),
                             strlen(WAITING("o"))),
                         -ENOMEM);
        gc.fails_dependents = false;
        expect_enqueued(map, ctx, HF_EVENT_MODIFIED, WAITING("o"), both);
}

int __wrap_hfd_reconcile_loop_run_set(const struct hfd_reconcile_loop *loop, struct hf_term *term,
                                      const struct hfd_kind_set *set, hfd_kind_map_fn map_of,
                                      struct hf_cancel *until);
int __wrap_hfd_reconcile_loop_run_set(const struct hfd_reconcile_loop *loop, struct hf_term *term,
                                      const struct hfd_kind_set *set, hfd_kind_map_fn map_of,
                                      struct hf_cancel *until) {
        gc.again = 0;
        if (gc.maps) {
                map_events(map_of(loop->ctx, &gc_configmaps), loop->ctx);
                return 0;
        }
        gc.result = loop->reconcile(loop->ctx, term, gc.key, &gc.again);
        return 0;
}

/* A client may write thousands of references to one owner, under any uids. */
static void test_an_owner_is_looked_up_once_for_all_references(void **state) {
        static struct hfd_controller_context context;
        struct hf_cancel *fired;

        gc_make_set();
        gc.key = "0:default/many";
        gc.n_cached = gc.n_requests = gc.n_searches = gc.n_events = 0;
        gc.updated[0] = '\0';
        assert_int_equal(hfd_garbage_collector_run(NULL, &context), 0);
        assert_int_equal(gc.result, 0);
        assert_int_equal(gc.n_cached, 1);
        assert_int_equal(gc.n_requests, 1); /* because of the wrong uids */
        assert_string_equal(gc.updated, "many");
        assert_non_null(strstr(gc.update.data, "[" REFERENCE("o") "," REFERENCE("o") "]"));
        /* Other namespaces are searched once for all that are absent. */
        assert_int_equal(gc.n_searches, 1);
        assert_int_equal(gc.n_events, 1);
        assert_non_null(strstr(gc.message, "uid: z]"));
        /* Different owners may be as many, so the end of the term is seen between them. */
        assert_int_equal(hf_cancel_new(hf_cancel_never(), hf_clock_system(), &fired), 0);
        hf_cancel_fire(fired, HF_CANCEL_LOST);
        gc.abort = fired;
        assert_int_equal(hfd_garbage_collector_run(NULL, &context), 0);
        assert_int_equal(gc.result, HF_E_CANCELED);
        assert_int_equal(gc.n_cached, 1);
        gc.abort = NULL;
        hf_cancel_unref(fired);
        hf__strbuf_done(&gc.update);
        gc_free_set();
}

/* While an owner waits it is checked again and again, so one dependent that blocks must do. */
static void test_the_first_blocking_dependent_ends_the_search(void **state) {
        static struct hfd_controller_context context;

        gc_make_set();
        gc.key = "0:default/waits";
        gc.n_dependents = 1000;
        gc.n_parsed = 0;
        assert_int_equal(hfd_garbage_collector_run(NULL, &context), 0);
        assert_int_equal(gc.result, 0);
        assert_true(gc.again > 0);
        assert_int_equal(gc.n_parsed, 1);
        gc_free_set();
}

/* Each write of an owner that waits would otherwise add all its dependents. */
static void test_dependents_are_enqueued_when_the_deletion_of_their_owner_begins(void **state) {
        static struct hfd_kind events;
        static struct hfd_controller_context context = {.events = &events};

        gc_make_set();
        gc.maps = true;
        gc.n_dependents = 1;
        assert_int_equal(hfd_garbage_collector_run(NULL, &context), 0);
        gc.maps = false;
        gc_free_set();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_owner_is_looked_up_once_for_all_references),
                cmocka_unit_test(test_the_first_blocking_dependent_ends_the_search),
                cmocka_unit_test(
                        test_dependents_are_enqueued_when_the_deletion_of_their_owner_begins),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
