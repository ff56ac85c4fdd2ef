/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows a connection of the SQLite store remembers (heads.h), and when it forgets them. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/storage/heads.h"

static struct hfd_heads heads;

static int set_up(void **state) {
        memset(&heads, 0, sizeof heads);
        hfd_heads_begin(&heads, 7, 100, true);
        hfd_heads_commit(&heads, 7, 100);
        return 0;
}

static int tear_down(void **state) {
        hfd_heads_clear(&heads);
        return 0;
}

static void set(const char *key, int64_t id) {
        const struct hfd_head head = {.id = id, .created = (uint64_t)id + 1};

        hfd_heads_set(&heads, key, &head);
}

/* 0 = not remembered */
static int64_t find(const char *key) {
        struct hfd_head head = {0};

        if (!hfd_heads_find(&heads, key, &head))
                return 0;
        assert_int_equal(head.created, head.id + 1);
        return head.id;
}

static void test_a_row_is_found_by_its_whole_key(void **state) {
        assert_int_equal(find("/a"), 0);
        set("/a", 1);
        assert_int_equal(find("/a"), 1);
        assert_int_equal(find("/aa"), 0);
        assert_int_equal(find("/"), 0);
        set("/a", 2);
        assert_int_equal(find("/a"), 2);
}

static void test_a_deletion_is_forgotten(void **state) {
        set("/a", 1);
        hfd_heads_set(&heads, "/b", NULL);
        assert_int_equal(find("/a"), 1);
        hfd_heads_set(&heads, "/a", NULL);
        assert_int_equal(find("/a"), 0);
}

/* Keys that have the same place replace each other, so each that is found is right. A deletion
 * forgets no other key. */
static void test_many_keys_share_the_places(void **state) {
        enum { N = 1000 };
        char key[16];
        int n_found = 0;

        for (int i = 1; i <= N; i++) {
                (void)snprintf(key, sizeof key, "/k/%d", i);
                set(key, i);
        }
        for (int i = 1; i <= N; i++) {
                (void)snprintf(key, sizeof key, "/k/%d", i);
                int64_t id = find(key);
                assert_true(id == 0 || id == i);
                n_found += id != 0;
        }
        assert_true(n_found > 200 && n_found <= 256);
        for (int i = 1; i <= N; i++) {
                (void)snprintf(key, sizeof key, "/n/%d", i);
                hfd_heads_set(&heads, key, NULL);
        }
        for (int i = 1; i <= N; i++) {
                (void)snprintf(key, sizeof key, "/k/%d", i);
                n_found -= find(key) != 0;
        }
        assert_int_equal(n_found, 0);
}

static void test_a_long_key_is_not_remembered(void **state) {
        char key[200];

        memset(key, 'k', sizeof key);
        key[111] = '\0';
        set(key, 1);
        assert_int_equal(find(key), 1);
        key[111] = 'k';
        key[112] = '\0';
        set(key, 2);
        assert_int_equal(find(key), 0);
        key[112] = 'k';
        key[199] = '\0';
        set(key, 3);
        assert_int_equal(find(key), 0);
}

/* Another process has written, or the file is another one. */
static void test_rows_are_forgotten_when_the_file_has_changed(void **state) {
        static const struct {
                uint64_t history, revision;
                bool wanted;
                int64_t id;
        } cases[] = {{7, 101, true, 1}, {7, 101, false, 1}, {7, 102, true, 0}, {8, 101, true, 0},
                     {8, 102, true, 0}, {7, 102, false, 0}, {7, 100, true, 0}};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                hfd_heads_clear(&heads);
                hfd_heads_begin(&heads, 7, 100, true);
                set("/a", 1);
                hfd_heads_commit(&heads, 7, 101);
                hfd_heads_begin(&heads, cases[i].history, cases[i].revision, cases[i].wanted);
                assert_int_equal(find("/a"), cases[i].id);
                assert_true((heads.slots != NULL) == (cases[i].wanted || cases[i].id != 0));
        }
}

static void test_nothing_is_remembered_unless_it_is_wanted(void **state) {
        hfd_heads_clear(&heads);
        assert_null(heads.slots);
        set("/a", 1);
        assert_int_equal(find("/a"), 0);
        hfd_heads_begin(&heads, 7, 100, false);
        assert_null(heads.slots);
        set("/a", 1);
        assert_int_equal(find("/a"), 0);
        hfd_heads_begin(&heads, 7, 100, true);
        set("/a", 1);
        assert_int_equal(find("/a"), 1);
        hfd_heads_clear(&heads);
        assert_int_equal(find("/a"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_row_is_found_by_its_whole_key),
                TEST(test_a_deletion_is_forgotten),
                TEST(test_many_keys_share_the_places),
                TEST(test_a_long_key_is_not_remembered),
                TEST(test_rows_are_forgotten_when_the_file_has_changed),
                TEST(test_nothing_is_remembered_unless_it_is_wanted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
