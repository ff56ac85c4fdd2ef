/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trees of versions that were written last: an update gets the tree of exactly its version,
 * once, and only a bounded number is kept.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "server/registry/parsed.h"
#include "server/resources/object.h"

static struct hfd_parsed *parsed;

static int set_up(void **state) { return hfd_parsed_new(&parsed); }

static int tear_down(void **state) {
        parsed = hfd_parsed_free(parsed);
        return 0;
}

static struct hfd_object *lease(const char *name, uint64_t revision, const char *holder) {
        char path[80], text[300];

        (void)snprintf(path, sizeof path, "default/%s", name);
        int n = snprintf(text, sizeof text,
                         "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\","
                         "\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\"},"
                         "\"spec\":{\"holderIdentity\":\"%s\"}}",
                         name, holder);
        struct hf__buf *bytes = hf__buf_copy(text, (size_t)n);
        assert_non_null(bytes);
        struct hfd_object *object =
                hfd_object_new(hfd_resource_find("coordination.k8s.io", "v1", "leases"), path,
                               revision, bytes);
        hf__buf_unref(bytes);
        assert_non_null(object);
        return object;
}

static void keep(struct hfd_object *object) {
        hfd_parsed_keep(parsed, object, hfd_object_parse(object));
}

/* Whether the tree of the object is taken. */
static bool take(const struct hfd_object *object) {
        struct hf__json *json = hfd_parsed_take(parsed, object);
        struct hf__json *expected = json ? hfd_object_parse(object) : NULL;
        bool found = json != NULL;

        assert_true(hf__json_equal(json, expected));
        hf__json_free(json);
        hf__json_free(expected);
        return found;
}

static void test_a_tree_is_taken_once(void **state) {
        struct hfd_object *object = lease("a", 5, "x");

        assert_false(take(object));
        keep(object);
        assert_true(take(object));
        assert_false(take(object));
        hfd_object_unref(object);
}

/* The cacher makes another object of the same version. */
static void test_the_bytes_of_a_version_count(void **state) {
        struct hfd_object *object = lease("a", 5, "x"), *same = lease("a", 5, "x"),
                          *other = lease("a", 5, "y"), *later = lease("a", 6, "x");

        keep(object);
        assert_false(take(other)); /* as after a backup was restored */
        assert_false(take(later));
        assert_true(take(same));
        hfd_object_unref(object);
        hfd_object_unref(same);
        hfd_object_unref(other);
        hfd_object_unref(later);
}

static void test_a_newer_version_replaces_an_older_one(void **state) {
        struct hfd_object *older = lease("a", 5, "x"), *newer = lease("a", 6, "y");

        keep(newer);
        keep(older); /* its reply came late */
        assert_false(take(older));
        assert_true(take(newer));
        keep(older);
        keep(newer);
        assert_false(take(older));
        assert_true(take(newer));
        hfd_object_unref(older);
        hfd_object_unref(newer);
}

static void test_the_oldest_ones_give_way(void **state) {
        enum { N = 2000 };
        char name[20];
        int n_found = 0;

        for (int i = 0; i < N; i++) {
                (void)snprintf(name, sizeof name, "lease-%d", i);
                struct hfd_object *object = lease(name, (uint64_t)i + 1, "x");
                keep(object);
                hfd_object_unref(object);
        }
        for (int i = 0; i < N; i++) {
                (void)snprintf(name, sizeof name, "lease-%d", i);
                struct hfd_object *object = lease(name, (uint64_t)i + 1, "x");
                bool found = take(object);
                assert_true(found || i < N - 4);
                n_found += found;
                hfd_object_unref(object);
        }
        assert_in_range(n_found, 4, 256);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_tree_is_taken_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_the_bytes_of_a_version_count, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_newer_version_replaces_an_older_one, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_the_oldest_ones_give_way, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
