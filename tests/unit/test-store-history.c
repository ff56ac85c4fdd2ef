/* SPDX-License-Identifier: Apache-2.0 */
/* The revisioned data of the memory store (server/storage/memory/history.h), without the store. */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "server/storage/memory/history.h"

static struct hfd_history history;

static int setup(void **state) {
        hfd_history_init(&history);
        assert_int_equal(history.revision, 1);
        return 0;
}
static int teardown(void **state) {
        hfd_history_deinit(&history);
        assert_int_equal(history.n_keys, 0);
        assert_int_equal(history.n_log, 0);
        hfd_history_deinit(&history); /* nothing is left to be freed */
        return 0;
}

/* value NULL deletes the key. Returns the revision of the write. */
static uint64_t write_key(const char *key, const char *value) {
        struct hfd_op op = {.kind = value ? HFD_PUT : HFD_DELETE, .key = key};

        if (value)
                op.value = hf__buf_copy(value, strlen(value));
        assert_int_equal(hfd_history_write(&history, &op, 1), 0);
        hf__buf_unref(op.value);
        return history.revision;
}

static const char *read_key(const char *key, uint64_t revision) {
        const struct hfd_version *version = hfd_history_get(&history, key, revision);

        return version ? version->value->data : "(none)";
}

static size_t n_versions(const char *key) {
        size_t i = hfd_history_find(&history, key);

        return i < history.n_keys && strcmp(history.keys[i].name, key) == 0 ? history.keys[i].n : 0;
}

static void test_a_key_is_read_at_each_revision(void **state) {
        uint64_t first = write_key("/b", "1");
        uint64_t other = write_key("/a", "x");
        uint64_t second = write_key("/b", "2");
        uint64_t deleted = write_key("/b", NULL);
        uint64_t again = write_key("/b", "3");

        assert_string_equal(read_key("/b", first - 1), "(none)");
        assert_string_equal(read_key("/b", first), "1");
        assert_string_equal(read_key("/b", other), "1");
        assert_string_equal(read_key("/b", second), "2");
        assert_string_equal(read_key("/b", deleted), "(none)");
        assert_string_equal(read_key("/b", again), "3");
        assert_string_equal(read_key("/", again), "(none)");
        assert_string_equal(read_key("/c", again), "(none)");
        assert_int_equal(hfd_history_get(&history, "/b", second)->create, first);
        assert_int_equal(hfd_history_get(&history, "/b", again)->create, again);
        assert_int_equal(hfd_history_get(&history, "/b", again)->mod, again);
}

static void test_values_are_compared_by_their_bytes(void **state) {
        static const struct {
                const char *value;
                bool equals, begins;
        } cases[] = {{"ab", true, false}, {"ax", false, false}, {"a", false, true},
                     {"b", false, false}, {"", false, true},    {"abc", false, false}};

        write_key("/a", "ab");
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hfd_compare compare = {.kind = HFD_VALUE_EQUALS,
                                              .key = "/a",
                                              .value = cases[i].value,
                                              .n_value = strlen(cases[i].value)};
                assert_int_equal(hfd_history_compare(&history, &compare), cases[i].equals);
                compare.kind = HFD_VALUE_BEGINS;
                assert_int_equal(hfd_history_compare(&history, &compare), cases[i].begins);
                compare.key = "/b"; /* there is no such key */
                assert_false(hfd_history_compare(&history, &compare));
                compare.kind = (enum hfd_compare_kind)9;
                assert_false(hfd_history_compare(&history, &compare));
        }
        write_key("/empty", "");
        struct hfd_compare compare = {.kind = HFD_VALUE_EQUALS, .key = "/empty"};
        assert_true(hfd_history_compare(&history, &compare));
        compare.kind = HFD_VALUE_BEGINS;
        assert_false(hfd_history_compare(&history, &compare)); /* nothing follows the prefix */
}

static void test_a_key_can_be_deleted_twice_in_one_write(void **state) {
        const struct hfd_op ops[] = {{.kind = HFD_DELETE, .key = "/a"},
                                     {.kind = HFD_DELETE, .key = "/b"},
                                     {.kind = HFD_DELETE, .key = "/a"}};
        uint64_t before = write_key("/a", "1");

        assert_int_equal(hfd_history_write(&history, ops, 3), 0);
        assert_int_equal(history.revision, before + 1);
        assert_int_equal(n_versions("/a"), 2);
        assert_int_equal(history.n_log, 2);
        assert_int_equal(hfd_history_write(&history, ops, 3), 0);
        assert_int_equal(history.revision, before + 1); /* nothing was there */
        assert_int_equal(history.n_log, 2);
}

/* The version that a read at the compaction's revision sees stays, unless it is a deletion. */
static void test_a_compaction_removes_what_no_read_can_return(void **state) {
        write_key("/a", "1");
        uint64_t second = write_key("/a", "2");
        write_key("/b", "1");
        write_key("/b", NULL);
        write_key("/c", "1");
        uint64_t at = write_key("/c", NULL);
        write_key("/a", "3");
        uint64_t back = write_key("/c", "2");
        uint64_t last = write_key("/d", "1");

        hfd_history_compact(&history, second, second);
        assert_int_equal(history.compacted, second);
        assert_int_equal(n_versions("/a"), 2);
        assert_string_equal(read_key("/a", second), "2");
        assert_int_equal(n_versions("/b"), 2);
        assert_int_equal(history.n_keys, 4);
        assert_int_equal(history.log[0]->mod, second);
        hfd_history_compact(&history, at, second + 1);
        assert_int_equal(n_versions("/a"), 2); /* that of `second` is still seen */
        assert_int_equal(n_versions("/b"), 0);
        assert_int_equal(n_versions("/c"), 1);
        assert_string_equal(read_key("/c", back), "2");
        assert_int_equal(history.n_keys, 3);
        assert_int_equal(history.log[0]->mod, second + 1);
        hfd_history_compact(&history, last, second + 1); /* a watch still needs the log */
        assert_int_equal(n_versions("/a"), 1);
        assert_string_equal(read_key("/a", last), "3");
        assert_string_equal(read_key("/d", last), "1");
        assert_int_equal(history.log[0]->mod, second + 1);
        assert_int_equal(hfd_history_log_find(&history, last), history.n_log - 1);
        assert_int_equal(hfd_history_log_find(&history, last + 1), history.n_log);
        assert_int_equal(hfd_history_log_find(&history, 0), 0);
}

static void test_arrays_double(void **state) {
        static const size_t spaces[] = {1, 2, 4, 4, 8, 8, 8, 8, 16};
        struct hfd_op ops[3];

        for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
                char key[] = {'/', (char)('a' + i), '\0'};
                write_key(key, "1");
                assert_int_equal(history.space_log, spaces[i]);
                assert_int_equal(history.space_keys, spaces[i]);
        }
        /* A write may need more room than twice the old size. */
        hfd_history_deinit(&history);
        hfd_history_init(&history);
        write_key("/a", "1");
        for (size_t i = 0; i < 3; i++)
                ops[i] = (struct hfd_op){.kind = HFD_DELETE, .key = "/a"};
        assert_int_equal(hfd_history_write(&history, ops, 3), 0);
        assert_int_equal(history.space_log, 4);
}

/* One write while the n-th allocation fails: it is done completely or not at all. */
static void write_life(int n) {
        struct hf__buf *value = hf__buf_copy("2", 1);
        const struct hfd_op ops[] = {{.kind = HFD_PUT, .key = "/new", .value = value},
                                     {.kind = HFD_PUT, .key = "/a", .value = value},
                                     {.kind = HFD_DELETE, .key = "/b"}};

        hfd_history_init(&history);
        write_key("/a", "1");
        uint64_t before = write_key("/b", "1");
        failing_memory_arm(n);
        int r = hfd_history_write(&history, ops, 3);
        failing_memory_disarm();
        bool failed = failing_memory_hit();
        assert_int_equal(r, failed ? -ENOMEM : 0);
        assert_int_equal(history.revision, failed ? before : before + 1);
        assert_int_equal(history.n_log, failed ? 2 : 5);
        assert_string_equal(read_key("/new", before + 1), failed ? "(none)" : "2");
        assert_string_equal(read_key("/a", before + 1), failed ? "1" : "2");
        assert_string_equal(read_key("/b", before + 1), failed ? "1" : "(none)");
        hfd_history_deinit(&history);
        hf__buf_unref(value);
}

static void test_a_write_without_memory_writes_nothing(void **state) {
        failing_memory_try_all(write_life, 8);
}

/* The entry that a failed write has added goes with the next compaction. */
static void test_a_compaction_removes_the_keys_of_failed_writes(void **state) {
        struct hf__buf *value = hf__buf_copy("2", 1);
        const struct hfd_op op = {.kind = HFD_PUT, .key = "/new", .value = value};

        write_key("/a", "1");
        write_key("/y", "1");
        uint64_t at = write_key("/z", "1");
        failing_memory_arm(2); /* after the version and the name: the array of versions */
        assert_int_equal(hfd_history_write(&history, &op, 1), -ENOMEM);
        failing_memory_disarm();
        assert_int_equal(history.n_keys, 4);
        hfd_history_compact(&history, at, at);
        assert_int_equal(history.n_keys, 3);
        assert_string_equal(read_key("/a", at), "1");
        assert_string_equal(read_key("/z", at), "1");
        hf__buf_unref(value);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest cases[] = {
                CASE(test_a_key_is_read_at_each_revision),
                CASE(test_values_are_compared_by_their_bytes),
                CASE(test_a_key_can_be_deleted_twice_in_one_write),
                CASE(test_a_compaction_removes_what_no_read_can_return),
                CASE(test_arrays_double),
                CASE(test_a_write_without_memory_writes_nothing),
                CASE(test_a_compaction_removes_the_keys_of_failed_writes),
        };

        return cmocka_run_group_tests(cases, NULL, NULL);
}
