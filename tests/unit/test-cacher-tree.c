/* SPDX-License-Identifier: Apache-2.0 */
/* The persistent tree of objects: contents, order, snapshots, and the work of each operation. */
#undef NDEBUG
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "counted_object_tree.h"
#include "server/cacher/history/object_tree.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"

#define N_NAMES 3000

static struct hfd_object *make(const char *path, uint64_t revision) {
        const struct hfd_resource *resource = hfd_resource_find("", "v1", "configmaps");
        struct hfd_object *object = hfd_object_unreadable(resource, path, revision);

        assert_non_null(object);
        return object;
}

static void put(struct hfd_object_tree *tree, const char *path, uint64_t revision) {
        struct hfd_object *old;

        assert_int_equal(hfd_object_tree_put(tree, make(path, revision), &old), 0);
        hfd_object_unref(old);
}

static void take(struct hfd_object_tree *tree, const char *path) {
        struct hfd_object *old;

        assert_int_equal(hfd_object_tree_remove(tree, path, &old), 0);
        hfd_object_unref(old);
}

static void name(char path[32], unsigned i) { (void)snprintf(path, 32, "ns%u/n%06u", i % 3, i); }

/* Walks the whole tree, and compares it with the revisions that each path must have (0 = none). */
static void check_contents(const struct hfd_object_tree *tree, const uint64_t *revisions) {
        static const struct hfd_scope scopes[] = {{"ns0/", false},
                                                  {"ns1/", false},
                                                  {"ns2/", false}};
        size_t n_expected = 0, n = 0;

        for (unsigned i = 0; i < N_NAMES; i++)
                n_expected += revisions[i] != 0;
        for (size_t p = 0; p < 3; p++) {
                struct hfd_object_iter iter;
                struct hfd_object *object;
                char last[32] = "";
                size_t n_here = 0;

                hfd_object_iter_init(&iter, tree, &scopes[p], "");
                while ((object = hfd_object_iter_next(&iter))) {
                        unsigned i = (unsigned)atoi(strchr(object->path, '/') + 2);
                        assert_true(strcmp(last, object->path) < 0);
                        assert_int_equal(object->revision, revisions[i]);
                        (void)snprintf(last, sizeof last, "%s", object->path);
                        n_here++;
                        if (n_here % 97 == 1) /* the rank agrees with the walk */
                                assert_int_equal(hfd_object_tree_count(tree, scopes[p].prefix, "") -
                                                         hfd_object_tree_count(tree,
                                                                               scopes[p].prefix,
                                                                               object->path),
                                                 n_here);
                }
                assert_null(hfd_object_iter_next(&iter));
                assert_int_equal(hfd_object_tree_count(tree, scopes[p].prefix, ""), n_here);
                n += n_here;
        }
        assert_int_equal(n, n_expected);
        assert_int_equal(hfd_object_tree_size(tree), n_expected);
        assert_int_equal(hfd_object_tree_count(tree, "", ""), n_expected);
}

#define N_SNAPSHOTS 8

/* Random changes; meanwhile snapshots are taken, which must keep the state of that time. */
static void test_a_snapshot_keeps_its_state(void **state) {
        static uint64_t now[N_NAMES], then[N_SNAPSHOTS][N_NAMES];
        struct hfd_object_tree tree = {0}, snapshots[N_SNAPSHOTS] = {{0}};
        unsigned random = 1;
        char path[32];

        for (uint64_t step = 1; step <= 40000; step++) {
                random = random * 1664525u + 1013904223u;
                unsigned i = (random >> 8) % N_NAMES;
                name(path, i);
                if (random % 3 == 0) {
                        take(&tree, path);
                        now[i] = 0;
                } else {
                        put(&tree, path, step);
                        now[i] = step;
                }
                if (step % 1000 == 0) {
                        size_t s = step / 1000 % N_SNAPSHOTS;
                        check_contents(&snapshots[s], then[s]);
                        hfd_object_tree_clear(&snapshots[s]);
                        snapshots[s] = hfd_object_tree_snapshot(&tree);
                        memcpy(then[s], now, sizeof now);
                }
        }
        check_contents(&tree, now);
        hfd_object_tree_clear(&tree);
        for (size_t s = 0; s < N_SNAPSHOTS; s++) {
                check_contents(&snapshots[s], then[s]);
                hfd_object_tree_clear(&snapshots[s]);
        }
}

static void test_append_takes_any_order(void **state) {
        static const char *const paths[] = {"b", "c", "a", "c", "d"};
        struct hfd_object_tree tree = {0};
        struct hfd_object *old;

        for (size_t i = 0; i < 5; i++) {
                assert_int_equal(hfd_object_tree_append(&tree, make(paths[i], i + 1), &old), 0);
                assert_int_equal(old != NULL, i == 3);
                hfd_object_unref(old);
        }
        assert_int_equal(hfd_object_tree_size(&tree), 4);
        assert_int_equal(hfd_object_tree_find(&tree, "c")->revision, 4);
        struct hfd_object_tree snapshot = hfd_object_tree_snapshot(&tree);
        assert_int_equal(hfd_object_tree_append(&tree, make("e", 6), &old), 0);
        assert_null(hfd_object_tree_find(&snapshot, "e"));
        hfd_object_tree_clear(&tree);
        assert_int_equal(hfd_object_tree_size(&snapshot), 4);
        hfd_object_tree_clear(&snapshot);
}

/* Comparisons for a page of 100 in the middle, its count included. */
static uint64_t page_work(const struct hfd_object_tree *tree, const char *after) {
        static const struct hfd_scope all = {"", false};
        uint64_t before = counted_object_tree_comparisons();
        struct hfd_object_iter iter;

        hfd_object_iter_init(&iter, tree, &all, after);
        for (int i = 0; i < 100; i++)
                assert_non_null(hfd_object_iter_next(&iter));
        assert_true(hfd_object_tree_count(tree, "", after) > 100);
        return counted_object_tree_comparisons() - before;
}

/* Filling costs one comparison for each object; a page costs the same at each size. */
static void test_work_grows_with_what_is_asked_for(void **state) {
        for (unsigned n = 4000; n <= 64000; n *= 4) {
                struct hfd_object_tree tree = {0};
                struct hfd_object *old;
                char path[32];
                uint64_t before = counted_object_tree_comparisons();

                for (unsigned i = 0; i < n; i++) {
                        (void)snprintf(path, sizeof path, "ns/n%08u", i);
                        assert_int_equal(hfd_object_tree_append(&tree, make(path, i + 1), &old), 0);
                }
                assert_true(counted_object_tree_comparisons() - before <= n);
                (void)snprintf(path, sizeof path, "ns/n%08u", n / 2);
                assert_true(page_work(&tree, path) < 400);
                before = counted_object_tree_comparisons();
                put(&tree, path, n + 1);
                take(&tree, path);
                assert_true(counted_object_tree_comparisons() - before < 600);
                hfd_object_tree_clear(&tree);
        }
}

/* ---- memory ---- */

static struct hfd_object *make_large(unsigned i, struct hf__buf **ret_stored) {
        const struct hfd_resource *resource = hfd_resource_find("", "v1", "configmaps");
        char text[1400], path[32];

        (void)snprintf(path, sizeof path, "default/object-%08u", i);
        (void)snprintf(text, sizeof text,
                       "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                       "\"object-%08u\"},\"data\":{\"text\":\"%01200u\"}}",
                       i, i);
        *ret_stored = hf__buf_copy(text, strlen(text));
        return hfd_object_new(resource, path, i + 1, *ret_stored);
}

/* By malloc's own count, which is 0 in sanitizer builds. */
static void test_an_object_costs_little_beside_its_bytes(void **state) {
        enum { N = 10000 };
        struct hfd_object_tree tree = {0};
        size_t before = mallinfo2().uordblks, n_own = 0;

        for (unsigned i = 0; i < N; i++) {
                struct hf__buf *stored;
                struct hfd_object *object = make_large(i, &stored), *old;
                assert_non_null(object);
                n_own += stored->n;
                hf__buf_unref(stored);
                assert_int_equal(hfd_object_tree_append(&tree, object, &old), 0);
        }
        size_t used = mallinfo2().uordblks - before;
        if (used > 0)
                assert_true(used <= n_own + N * (size_t)300);
        hfd_object_tree_clear(&tree);
}

/* Frames are as large as the object, so it keeps them only while an event is delivered. */
static void test_frames_are_kept_only_while_they_are_shared(void **state) {
        struct hf__buf *stored, *first, *second;
        struct hfd_object *object = make_large(1, &stored);

        assert_non_null(object);
        hf__buf_unref(stored);
        first = hfd_object_frame(object, HF_EVENT_ADDED);
        second = hfd_object_frame(object, HF_EVENT_ADDED);
        assert_ptr_not_equal(first, second);
        assert_int_equal(first->n, second->n);
        hf__buf_unref(first);
        hf__buf_unref(second);
        hfd_object_share_frames(object);
        first = hfd_object_frame(object, HF_EVENT_MODIFIED);
        second = hfd_object_frame(object, HF_EVENT_MODIFIED);
        assert_ptr_equal(first, second);
        hfd_object_unshare_frames(object);
        assert_null(object->frames);
        hf__buf_unref(first);
        hf__buf_unref(second);
        hfd_object_unref(object);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_snapshot_keeps_its_state),
                cmocka_unit_test(test_append_takes_any_order),
                cmocka_unit_test(test_work_grows_with_what_is_asked_for),
                cmocka_unit_test(test_an_object_costs_little_beside_its_bytes),
                cmocka_unit_test(test_frames_are_kept_only_while_they_are_shared),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
