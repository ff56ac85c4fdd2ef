/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs the tests of the storage interface over each backend: memory, SQLite, and a private etcd.
 * All tests of a backend share one store, and each uses its own key prefix. A test that needs a
 * store for itself opens another one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "etcd_spawn.h"
#include "store_client.h"

struct store_fixture {
        struct hfd_store *store;
        char prefix[64]; /* prefix of the current test: "/case001/" */
};

/* cmocka's set-up and tear-down of a test. */
int store_fixture_begin_test(void **state);
#define STORE_TEST(name) cmocka_unit_test_setup(name, store_fixture_begin_test)
/*
 * Runs the tests over each backend. Without etcd it prints that and skips etcd. Returns the number
 * of failed tests; 1 if etcd cannot be started.
 */
int store_fixture_run(const struct CMUnitTest *tests, size_t n);

/*
 * Runs the tests with a private etcd, which the tests may signal and stop. Returns what main
 * returns: without etcd, 77 (meson's "skipped").
 */
int store_fixture_run_with_etcd(struct etcd_spawn *etcd_of_tests, const struct CMUnitTest *tests,
                                size_t n);

/* Opens another store of the backend under test. The caller frees it. */
struct hfd_store *store_fixture_open(void);

/* A key with the prefix of the test, in one of eight static buffers per thread. */
const char *store_fixture_key(const struct store_fixture *f, const char *name);
const char *store_fixture_prefix_end(const struct store_fixture *f);

/*
 * Writes a key if one comparison with it holds. value NULL = delete. If the comparison fails, reply
 * has the key.
 */
int store_fixture_write_if(struct store_fixture *f, enum hfd_compare_kind kind, uint64_t revision,
                           const void *wanted, size_t n_wanted, const char *name, const char *value,
                           struct store_reply *reply);
/*
 * The same; the comparison is that the last write of the key has this revision (0: there is no such
 * key).
 */
int store_fixture_write_at(struct store_fixture *f, const char *name, uint64_t revision,
                           const char *value, struct store_reply *reply);
