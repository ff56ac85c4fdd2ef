/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trees in which a JSON patch finds the members of large containers: random changes beside a
 * plain array, and documents whose large parts are removed, moved and replaced between operations.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/patch/item_tree.h"
#include "server/patch/json_patch.h"

#define N_ITEMS   3000
#define N_CHANGES 20000

static uint64_t seed = 88172645463325252;

static size_t pick(size_t n) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        return (size_t)(seed % n);
}

static void expect_items(const struct hfd_item_tree *tree, struct hf__json *const *items,
                         size_t n) {
        assert_int_equal(hfd_item_tree_count(tree), n);
        for (size_t i = 0; i < n; i++)
                assert_ptr_equal(hfd_item_tree_at(tree, i), items[i]);
        assert_null(hfd_item_tree_at(tree, n));
}

/* Inserts at the ends and in the middle, removes and replaces, at random. */
static void test_changes_keep_the_order(void **state) {
        struct hf__json *empty = hf__json_array(), *pool = hf__json_array();
        struct hf__json *all[N_ITEMS], *items[N_ITEMS];
        struct hfd_item_tree tree;
        size_t n = 0;

        for (size_t i = 0; i < N_ITEMS; i++)
                assert_int_equal(hf__json_append_string(pool, "x"), 0);
        for (struct hf__json *m = hf__json_first(pool); m; m = hf__json_next(m))
                all[n++] = m;
        n = 0;
        assert_int_equal(hfd_item_tree_init(&tree, empty), 0);
        expect_items(&tree, items, 0);
        for (size_t i = 0; i < N_CHANGES; i++) {
                size_t kind = pick(8), at = n > 0 ? pick(n + 1) : 0;
                struct hf__json *item = all[pick(N_ITEMS)];
                if (kind < 5 && n < N_ITEMS) {
                        at = kind == 0 ? 0 : at;
                        at = kind == 1 ? n : at;
                        assert_int_equal(hfd_item_tree_reserve(&tree), 0);
                        hfd_item_tree_insert(&tree, at, item);
                        memmove(items + at + 1, items + at, (n - at) * sizeof items[0]);
                        items[at] = item;
                        n++;
                } else if (kind < 7 && at < n) {
                        hfd_item_tree_remove(&tree, at);
                        n--;
                        memmove(items + at, items + at + 1, (n - at) * sizeof items[0]);
                } else if (at < n) {
                        hfd_item_tree_replace(&tree, at, item);
                        items[at] = item;
                }
                if (i % 1000 == 0)
                        expect_items(&tree, items, n);
        }
        while (n > 0) {
                hfd_item_tree_remove(&tree, --n);
                assert_int_equal(hfd_item_tree_count(&tree), n);
        }
        hfd_item_tree_done(&tree);
        hf__json_free(empty);
        hf__json_free(pool);
}

static void test_keys_are_found_at_their_places(void **state) {
        struct hf__json *object = hf__json_object();
        struct hfd_item_tree tree;
        char key[32];
        size_t place;

        for (size_t i = 0; i < N_ITEMS; i++) {
                (void)snprintf(key, sizeof key, "k%05zu", i * 7919 % N_ITEMS * 2);
                assert_int_equal(hf__json_add_string(object, key, "v"), 0);
        }
        assert_int_equal(hfd_item_tree_init(&tree, object), 0);
        for (size_t i = 0; i < 2 * N_ITEMS; i++) {
                (void)snprintf(key, sizeof key, "k%05zu", i);
                assert_int_equal(hfd_item_tree_find(&tree, key, &place), i % 2 == 0);
                assert_int_equal(place, (i + 1) / 2);
                if (i % 2 == 0)
                        assert_string_equal(hf__json_key(hfd_item_tree_at(&tree, place)), key);
        }
        hfd_item_tree_done(&tree);
        hf__json_free(object);
}

/* ---- documents ---- */

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

/* {"list": [{"map": {k0..}, "n": 0}, ...], "map": {k0..}}, all of them large enough for a tree. */
static struct hf__json *make_document(void) {
        struct hf__strbuf s = {0}, map = {0};

        for (int i = 0; i < 40; i++)
                hf__strbuf_printf(&map, "%s\"k%d\":%d", i ? "," : "{", i, i);
        hf__strbuf_puts(&map, "}");
        for (int i = 0; i < 40; i++)
                hf__strbuf_printf(&s, "%s{\"map\":%s,\"n\":%d}", i ? "," : "{\"list\":[", map.data,
                                  i);
        hf__strbuf_printf(&s, "],\"map\":%s}", map.data);
        struct hf__json *document = parse(s.data);
        hf__strbuf_done(&s);
        hf__strbuf_done(&map);
        return document;
}

static void expect(struct hf__json *document, const char *path, const char *text) {
        struct hf__strbuf s = {0};

        hf__json_print(hf__json_path(document, path), &s);
        assert_string_equal(s.data, text);
        hf__strbuf_done(&s);
}

/* Every container gets its tree before it is removed, moved, copied or replaced. */
static void test_trees_follow_their_containers(void **state) {
        struct hf__json *document = make_document();
        struct hf__json *patch =
                parse("[{\"op\":\"replace\",\"path\":\"/list/3/map/k1\",\"value\":\"a\"},"
                      "{\"op\":\"replace\",\"path\":\"/list/39/map/k1\",\"value\":\"b\"},"
                      "{\"op\":\"replace\",\"path\":\"/map/k5\",\"value\":\"c\"},"
                      /* moved with its tree, and still found */
                      "{\"op\":\"move\",\"from\":\"/list/3\",\"path\":\"/list/20\"},"
                      "{\"op\":\"test\",\"path\":\"/list/20/map/k1\",\"value\":\"a\"},"
                      "{\"op\":\"move\",\"from\":\"/list/20/map\",\"path\":\"/moved\"},"
                      "{\"op\":\"add\",\"path\":\"/moved/new\",\"value\":{}},"
                      "{\"op\":\"remove\",\"path\":\"/moved/k0\"},"
                      /* removed and replaced with all trees in it */
                      "{\"op\":\"remove\",\"path\":\"/list/39\"},"
                      "{\"op\":\"copy\",\"from\":\"/moved\",\"path\":\"/copied\"},"
                      "{\"op\":\"replace\",\"path\":\"/copied/k1\",\"value\":\"d\"},"
                      "{\"op\":\"replace\",\"path\":\"/moved\",\"value\":{\"k2\":2}},"
                      "{\"op\":\"add\",\"path\":\"/moved/k1\",\"value\":1},"
                      "{\"op\":\"add\",\"path\":\"/list\",\"value\":[1,2]},"
                      "{\"op\":\"add\",\"path\":\"/list/-\",\"value\":3},"
                      "{\"op\":\"test\",\"path\":\"/copied/k1\",\"value\":\"d\"},"
                      "{\"op\":\"copy\",\"from\":\"/map/k5\",\"path\":\"/k5\"},"
                      "{\"op\":\"move\",\"from\":\"/map/k6\",\"path\":\"/map\"}]");
        struct hfd_patch_outcome outcome = {0};

        assert_int_equal(hfd_json_patch_apply(&document, patch, &outcome), 0);
        expect(document, "list", "[1,2,3]");
        expect(document, "moved", "{\"k2\":2,\"k1\":1}");
        expect(document, "copied.k1", "\"d\"");
        expect(document, "copied.new", "{}");
        assert_int_equal(hf__json_count(hf__json_get(document, "copied")), 40);
        expect(document, "k5", "\"c\"");
        expect(document, "map", "6");
        hf__json_free(document);
        hf__json_free(patch);
}

/* A container that shrinks and grows again keeps its tree. */
static void test_a_container_may_shrink_and_grow(void **state) {
        struct hf__json *document = make_document();
        struct hfd_patch_outcome outcome = {0};
        struct hf__strbuf s = {0};

        hf__strbuf_puts(&s, "[{\"op\":\"test\",\"path\":\"/list/39/n\",\"value\":39}");
        for (int i = 0; i < 38; i++)
                hf__strbuf_puts(&s, ",{\"op\":\"remove\",\"path\":\"/list/1\"}");
        for (int i = 0; i < 60; i++)
                hf__strbuf_printf(&s, ",{\"op\":\"add\",\"path\":\"/list/%d\",\"value\":%d}", i, i);
        hf__strbuf_puts(&s, ",{\"op\":\"test\",\"path\":\"/list/61/n\",\"value\":39},"
                            "{\"op\":\"test\",\"path\":\"/list/60/n\",\"value\":0},"
                            "{\"op\":\"test\",\"path\":\"/list/59\",\"value\":59}]");
        struct hf__json *patch = parse(s.data);
        if (hfd_json_patch_apply(&document, patch, &outcome) != 0)
                fail_msg("%s", outcome.why);
        assert_int_equal(hf__json_count(hf__json_get(document, "list")), 62);
        hf__json_free(document);
        hf__json_free(patch);
        hf__strbuf_done(&s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_changes_keep_the_order),
                cmocka_unit_test(test_keys_are_found_at_their_places),
                cmocka_unit_test(test_trees_follow_their_containers),
                cmocka_unit_test(test_a_container_may_shrink_and_grow),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
