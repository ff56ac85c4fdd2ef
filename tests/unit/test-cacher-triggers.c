/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches that the cacher finds by the value of a field, the trigger of their kind: those of the
 * pods of a node. Work is counted in watches, never in time.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "scripted_cacher.h"
#include "scripted_watch.h"
#include "server/cacher/watch/watcher_private.h"
#include "server/cacher/watch/watchers.h"
#include "server/resources/rows/resource_table.h"

/* The linker redirects this function here. */
static size_t n_visited; /* the watches that the last change was queued for */
size_t __real_hfd_watchers_queue_change_locked(struct hfd_cacher *cacher,
                                               const struct hfd_change *change,
                                               struct hfd_watcher **dirty);
size_t __wrap_hfd_watchers_queue_change_locked(struct hfd_cacher *cacher,
                                               const struct hfd_change *change,
                                               struct hfd_watcher **dirty);
size_t __wrap_hfd_watchers_queue_change_locked(struct hfd_cacher *cacher,
                                               const struct hfd_change *change,
                                               struct hfd_watcher **dirty) {
        n_visited = __real_hfd_watchers_queue_change_locked(cacher, change, dirty);
        return n_visited;
}

#define POD_A "/registry/pods/ns/a"

/* The pod is on this node; "" = on none. Valid until the next call. */
static const char *pod_on(const char *node) {
        static char text[200];

        (void)snprintf(text, sizeof text,
                       "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},"
                       "\"spec\":{%s%s%s}}",
                       *node ? "\"nodeName\":\"" : "", node, *node ? "\"" : "");
        return text;
}

static void put_pod(const char *node, uint64_t revision) {
        scripted_store_event(&scripted.store, POD_A, pod_on(node), revision);
}

static void test_watches_of_a_node_get_its_pods(void **state) {
        static const struct {
                const char *ns, *fields, *text;
        } cases[] = {{"", "spec.nodeName=n1", "+a@12 ~a@13 -a@14 "},
                     {"", "spec.nodeName==n2", "+a@14 -a@15 "},
                     {"", "spec.nodeName=", "+a@11 -a@12 "},
                     {"", "spec.nodeName=n", ""},
                     {"ns", "spec.nodeName=n1", "+a@12 ~a@13 -a@14 "},
                     {"n", "spec.nodeName=n1", ""},
                     {"", "metadata.namespace=n,spec.nodeName=n1", ""},
                     {"", "metadata.name=a,spec.nodeName=n1", "+a@12 ~a@13 -a@14 "},
                     {"", "metadata.name=b,spec.nodeName=n1", ""},
                     {"", "spec.nodeName=n1,spec.nodeName=n2", ""},
                     {"", "spec.nodeName!=n1", "+a@11 -a@12 +a@14 -a@15 "},
                     {"", "", "+a@11 ~a@12 ~a@13 ~a@14 -a@15 "}};
        enum { N = sizeof cases / sizeof cases[0] };
        struct scripted_watch watches[N];

        scripted_cacher_fill();
        for (size_t i = 0; i < N; i++)
                scripted_watch_begin(&watches[i],
                                     (struct scripted_watch_spec){.plural = "pods",
                                                                  .ns = cases[i].ns,
                                                                  .fields = cases[i].fields,
                                                                  .from_now = true});
        put_pod("", 11);
        put_pod("n1", 12);
        put_pod("n1", 13);
        put_pod("n2", 14);
        scripted_store_event(&scripted.store, POD_A, NULL, 15);
        for (size_t i = 0; i < N; i++) {
                scripted_watch_expect(&watches[i], cases[i].text);
                scripted_watch_done(&watches[i]);
        }
}

static bool is_pod_parsed(void) {
        struct hfd_object *pod =
                hfd_cacher_get(scripted.cacher, hfd_resource_find("", "v1", "pods"), "ns/a");

        assert_non_null(pod);
        bool parsed = hfd_object_selectable_made(pod) != NULL;
        hfd_object_unref(pod);
        return parsed;
}

/* Each kubelet watches the pods of its node. A change of a pod does not visit all of them. */
static void test_a_pod_visits_the_watches_of_its_nodes_only(void **state) {
        enum { N = 50 };
        static struct scripted_watch watches[N];
        struct hfd_watch_event events[2] = {{.kv.key = POD_A}, {.kv.key = POD_A}};
        char fields[32];

        scripted_cacher_fill();
        put_pod("n1", 11);
        assert_false(is_pod_parsed()); /* nobody needs it, so it takes no memory */
        for (size_t i = 0; i < N; i++) {
                (void)snprintf(fields, sizeof fields, "spec.nodeName=n%zu", i);
                scripted_watch_begin(&watches[i], (struct scripted_watch_spec){.plural = "pods",
                                                                               .fields = fields,
                                                                               .from_now = true});
        }
        put_pod("n1", 12);
        assert_int_equal(n_visited, 1);
        put_pod("n2", 13);
        assert_int_equal(n_visited, 2);
        for (size_t i = 0; i < 2; i++) {
                const char *text = pod_on(i == 0 ? "n3" : "n4");
                events[i].type = HFD_WATCH_PUT;
                events[i].kv.value = hf__buf_copy(text, strlen(text));
                events[i].kv.mod_revision = events[i].revision = 14 + i;
        }
        scripted_store_events(&scripted.store, events, 2);
        assert_int_equal(n_visited, 2); /* by the change of revision 15 */
        put_pod("elsewhere", 16);
        assert_int_equal(n_visited, 1);
        scripted_store_event(&scripted.store, POD_A, NULL, 17);
        assert_int_equal(n_visited, 0);
        scripted_watch_expect(&watches[1], "~a@12 -a@13 ");
        scripted_watch_expect(&watches[2], "+a@13 -a@14 ");
        scripted_watch_expect(&watches[3], "+a@14 -a@15 ");
        scripted_watch_expect(&watches[4], "+a@15 -a@16 ");
        for (size_t i = 0; i < 2; i++)
                hf__buf_unref(events[i].kv.value);
        for (size_t i = 0; i < N; i++)
                scripted_watch_done(&watches[i]);
        put_pod("n1", 18);
        assert_false(is_pod_parsed());
}

/* A pod that was not parsed before the lock is taken may concern any of them. */
static void test_a_pod_of_an_unknown_node_visits_all_watches(void **state) {
        static const char *const nodes[] = {"spec.nodeName=n1", "spec.nodeName=n2"};
        struct hfd_watcher *dirty = NULL;
        struct scripted_watch watches[2];
        const char *text = pod_on("n1");
        struct hf__buf *bytes = hf__buf_copy(text, strlen(text));

        scripted_cacher_fill();
        for (size_t i = 0; i < 2; i++)
                scripted_watch_begin(&watches[i], (struct scripted_watch_spec){.plural = "pods",
                                                                               .fields = nodes[i],
                                                                               .from_now = true});
        struct hfd_change change = {.type = HF_EVENT_ADDED,
                                    .object = hfd_object_new(hfd_resource_find("", "v1", "pods"),
                                                             "ns/a", 11, bytes)};
        assert_non_null(change.object);
        pthread_mutex_lock(&scripted.cacher->mu);
        size_t n = hfd_watchers_queue_change_locked(scripted.cacher, &change, &dirty);
        pthread_mutex_unlock(&scripted.cacher->mu);
        assert_int_equal(n, 2);
        hfd_watchers_deliver(dirty);
        scripted_watch_expect(&watches[0], "+a@11 ");
        scripted_watch_expect(&watches[1], "");
        hfd_object_unref(change.object);
        hf__buf_unref(bytes);
        for (size_t i = 0; i < 2; i++)
                scripted_watch_done(&watches[i]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                SCRIPTED_TEST(test_watches_of_a_node_get_its_pods),
                SCRIPTED_TEST(test_a_pod_visits_the_watches_of_its_nodes_only),
                SCRIPTED_TEST(test_a_pod_of_an_unknown_node_visits_all_watches),
        };

        hfd_resources_add_workloads(); /* pods */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
