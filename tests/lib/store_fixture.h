/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs the tests of the storage port's contract over every store there is: memory, and a private
 * etcd. All tests share one store, each below a prefix of its own; a test that needs a store to
 * itself opens another one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_client.h"

struct store_fixture {
        struct hfd_store *store;
        char prefix[64]; /* of the running test: "/case001/" */
};

/* cmocka's state of a test. */
int store_fixture_begin_test(void **state);
#define STORE_TEST(name) cmocka_unit_test_setup(name, store_fixture_begin_test)
/* Runs the tests over every store. Without etcd it says so. Returns how many failed. */
int store_fixture_run(const struct CMUnitTest *tests, size_t n);

/* Another store of the kind that the tests run over; the caller frees it. */
struct hfd_store *store_fixture_open(void);

/* A key below the prefix. Eight may be in use at once, per thread. */
const char *store_fixture_key(const struct store_fixture *f, const char *name);
const char *store_fixture_prefix_end(const struct store_fixture *f);

/* Writes a key if one comparison with it holds. value NULL = delete. On failure reply has the key.
 */
int store_fixture_write_if(struct store_fixture *f, enum hfd_compare_kind kind, uint64_t revision,
                           const void *wanted, size_t n_wanted, const char *name, const char *value,
                           struct store_reply *reply);
/* The same, if the key's last write has this revision (0: if there is no such key). */
int store_fixture_write_at(struct store_fixture *f, const char *name, uint64_t revision,
                           const char *value, struct store_reply *reply);
