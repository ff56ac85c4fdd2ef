/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of a change of the object tree fails once: the change is done whole or not at
 * all, and the snapshot that shares the tree's nodes stays as it was. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "counted_object_tree.h"
#include "failing_memory.h"
#include "server/cacher/history/object_tree.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"

#define N_OBJECTS 60

static struct hfd_object *make(const char *path, uint64_t revision) {
        struct hfd_object *object =
                hfd_object_unreadable(hfd_resource_find("", "v1", "configmaps"), path, revision);

        assert_non_null(object);
        return object;
}

static void name(char path[16], unsigned i) { (void)snprintf(path, 16, "ns/n%03u", i); }

/* Asserts that the tree has the objects 0 to N_OBJECTS - 1 with revision 1, except `changed`, which
 * has this revision (0 = it does not exist). */
static void check_contents(const struct hfd_object_tree *tree, unsigned changed,
                           uint64_t revision) {
        struct hfd_object_iter iter;
        struct hfd_object *object;
        size_t n = 0;
        char path[16];

        hfd_object_iter_init(&iter, tree, &(struct hfd_scope){.prefix = "ns/"}, "");
        for (unsigned i = 0; i <= N_OBJECTS; i++) {
                uint64_t expected = i < N_OBJECTS;
                if (i == changed)
                        expected = revision;
                if (expected == 0)
                        continue;
                name(path, i);
                object = hfd_object_iter_next(&iter);
                assert_non_null(object);
                assert_string_equal(object->path, path);
                assert_int_equal(object->revision, expected);
                n++;
        }
        assert_null(hfd_object_iter_next(&iter));
        assert_int_equal(hfd_object_tree_size(tree), n);
        assert_int_equal(hfd_object_tree_count(tree, "ns/", ""), n);
}

/* A tree all of whose nodes the snapshot shares. */
static void fill(struct hfd_object_tree *tree, struct hfd_object_tree *ret_snapshot) {
        struct hfd_object *old;
        char path[16];

        *tree = (struct hfd_object_tree){0};
        for (unsigned i = 0; i < N_OBJECTS; i++) {
                name(path, i * 7 % N_OBJECTS);
                assert_int_equal(hfd_object_tree_put(tree, make(path, 1), &old), 0);
                assert_null(old);
        }
        *ret_snapshot = hfd_object_tree_snapshot(tree);
}

/* Checks a change of object i from revision `before` to `revision` (0 = none), which returned r. */
static void finish(struct hfd_object_tree *tree, struct hfd_object_tree *snapshot, int r,
                   struct hfd_object *old, unsigned i, uint64_t before, uint64_t revision) {
        failing_memory_disarm();
        assert_int_equal(r, failing_memory_hit() ? -ENOMEM : 0);
        assert_int_equal(old != NULL, r == 0 && before != 0);
        hfd_object_unref(old);
        check_contents(tree, i, r == 0 ? revision : before);
        hfd_object_tree_clear(tree);
        check_contents(snapshot, N_OBJECTS, 0);
        hfd_object_tree_clear(snapshot);
}

static void put_life(int n, unsigned i, uint64_t before,
                     int (*put)(struct hfd_object_tree *tree, struct hfd_object *object,
                                struct hfd_object **ret_old)) {
        struct hfd_object_tree tree, snapshot;
        struct hfd_object *old = NULL;
        char path[16];

        fill(&tree, &snapshot);
        name(path, i);
        struct hfd_object *object = make(path, 2);
        failing_memory_arm(n);
        int r = put(&tree, object, &old);
        finish(&tree, &snapshot, r, old, i, before, 2);
}

static void removal_life(int n, unsigned i) {
        struct hfd_object_tree tree, snapshot;
        struct hfd_object *old = NULL;
        char path[16];

        fill(&tree, &snapshot);
        name(path, i);
        failing_memory_arm(n);
        int r = hfd_object_tree_remove(&tree, path, &old);
        finish(&tree, &snapshot, r, old, i, 1, 0);
}

/* How many nodes a change copies differs, because priorities are random. */
#define N_ALLOCATIONS 40

static void test_an_object_is_added_or_not(void **state) {
        for (int n = 0; n < N_ALLOCATIONS; n++) {
                put_life(n, N_OBJECTS, 0, hfd_object_tree_put);
                put_life(n, N_OBJECTS, 0, hfd_object_tree_append);
        }
}
static void test_an_object_is_replaced_or_not(void **state) {
        for (int n = 0; n < N_ALLOCATIONS; n++) {
                put_life(n, 30, 1, hfd_object_tree_put);
                put_life(n, 30, 1, hfd_object_tree_append);
        }
}
static void test_an_object_is_removed_or_not(void **state) {
        for (int n = 0; n < N_ALLOCATIONS; n++)
                for (unsigned i = 0; i < N_OBJECTS; i += 5)
                        removal_life(n, i);
}

/* In a tree that shares nothing, only the new node is allocated. */
static void test_an_object_without_a_node_is_not_added(void **state) {
        struct hfd_object_tree tree, snapshot;
        struct hfd_object *old;
        char path[16];

        fill(&tree, &snapshot);
        hfd_object_tree_clear(&snapshot);
        name(path, N_OBJECTS);
        for (int i = 0; i < 2; i++) {
                struct hfd_object *object = make(path, 2);
                failing_memory_arm(0);
                int r = i == 0 ? hfd_object_tree_put(&tree, object, &old)
                               : hfd_object_tree_append(&tree, object, &old);
                failing_memory_disarm();
                assert_int_equal(r, -ENOMEM);
                assert_null(old);
                check_contents(&tree, N_OBJECTS, 0);
        }
        hfd_object_tree_clear(&tree);
}

static void test_a_range_has_the_path_that_is_its_prefix(void **state) {
        struct hfd_object_tree tree, snapshot;
        struct hfd_object_iter iter;

        fill(&tree, &snapshot);
        assert_int_equal(hfd_object_tree_count(&tree, "ns/n030", ""), 1);
        assert_int_equal(hfd_object_tree_count(&tree, "ns/n03", "ns/n030"), 9);
        assert_int_equal(hfd_object_tree_count(&tree, "ns/n030", "ns/n030"), 0);
        assert_int_equal(hfd_object_tree_count(&tree, "ns/n03", "ns/n050"), 0);
        hfd_object_iter_init(&iter, &tree, &(struct hfd_scope){.prefix = "ns/n030"}, "");
        uint64_t before = counted_object_tree_comparisons();
        assert_ptr_equal(hfd_object_iter_next(&iter), hfd_object_tree_find(&tree, "ns/n030"));
        assert_true(counted_object_tree_comparisons() > before);
        assert_null(hfd_object_iter_next(&iter));
        assert_null(hfd_object_iter_next(&iter));
        hfd_object_tree_clear(&tree);
        hfd_object_tree_clear(&snapshot);
}

static size_t n_live;
static int setup(void **state) {
        n_live = failing_memory_n_live();
        return 0;
}
static int teardown(void **state) {
        assert_int_equal(failing_memory_n_live(), n_live);
        return 0;
}

/* Nodes that are not shared are changed in place. */
static void test_only_shared_nodes_are_copied(void **state) {
        struct hfd_object_tree tree, snapshot;
        struct hfd_object *old;
        char path[16];

        fill(&tree, &snapshot);
        assert_int_equal(tree.n_copied, 0);
        name(path, 30);
        assert_int_equal(hfd_object_tree_put(&tree, make(path, 2), &old), 0);
        hfd_object_unref(old);
        uint64_t n_copied = tree.n_copied;
        assert_in_range(n_copied, 1, 40);
        assert_int_equal(hfd_object_tree_put(&tree, make(path, 3), &old), 0);
        assert_int_equal(old->revision, 2);
        hfd_object_unref(old);
        assert_int_equal(tree.n_copied, n_copied);
        hfd_object_tree_clear(&snapshot);
        check_contents(&tree, 30, 3);
        for (unsigned i = 0; i < N_OBJECTS; i++) {
                name(path, i);
                assert_int_equal(hfd_object_tree_remove(&tree, path, &old), 0);
                assert_non_null(old);
                hfd_object_unref(old);
                assert_int_equal(hfd_object_tree_remove(&tree, path, &old), 0);
                assert_null(old);
        }
        assert_int_equal(tree.n_copied, n_copied);
        assert_int_equal(hfd_object_tree_size(&tree), 0);
        hfd_object_tree_clear(&tree);
        assert_null(tree.root);
        assert_int_equal(tree.n_copied, 0);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                CASE(test_an_object_is_added_or_not),
                CASE(test_an_object_is_replaced_or_not),
                CASE(test_an_object_is_removed_or_not),
                CASE(test_an_object_without_a_node_is_not_added),
                CASE(test_a_range_has_the_path_that_is_its_prefix),
                CASE(test_only_shared_nodes_are_copied),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
