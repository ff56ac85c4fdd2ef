/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The contract of the storage port, case by case, is run over every store there is: memory, and
 * etcd (a private one). Each case works below a prefix of its own, so that all share one store;
 * cases that need their own make one. To be included after cmocka.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "etcd-calls.h"
#include "etcd-spawn.h"
#include "server/storage/etcd/store.h"
#include "server/storage/keys.h"
#include "server/storage/memory/store.h"

static const struct hf_host host = {.size = sizeof(struct hf_host)};
static struct etcd_spawn etcd;
static bool on_etcd;
static struct hfd_store *store;
static unsigned n_cases;
static char prefix[64];

static inline struct hfd_store *open_store(void) {
        struct hfd_store *opened = NULL;

        if (on_etcd) {
                const char *endpoints[] = {etcd.url, NULL};
                struct hfd_etcd_config config = {.endpoints = endpoints};
                struct hf_status status = {0};

                assert_int_equal(hfd_etcd_store_new(&host, &config, &opened, &status), 0);
        } else {
                assert_int_equal(hfd_memory_store_new(&host, &opened), 0);
        }
        return opened;
}

static inline int begin_case(void **state) {
        snprintf(prefix, sizeof prefix, "/case%03u/", ++n_cases);
        return 0;
}

/* A key below the case's prefix; eight may be in use at once. */
static const char *key(const char *name) {
        static _Thread_local char keys[8][128];
        static _Thread_local unsigned next;
        char *out = keys[next++ % 8];

        snprintf(out, 128, "%s%s", prefix, name);
        return out;
}

static const char *prefix_end(void) {
        static char end[HFD_KEY_MAX];

        assert_int_equal(hfd_key_prefix_end(end, prefix), 0);
        return end;
}

/* One compare, one op. value NULL = delete. */
static inline int write_if(enum hfd_compare_kind kind, uint64_t revision, const void *wanted,
                           size_t n_wanted, const char *name, const char *value,
                           struct call_answer *response) {
        const char *k = key(name), *gets[] = {k};
        struct hfd_compare compare = {.kind = kind,
                                      .key = k,
                                      .revision = revision,
                                      .value = wanted,
                                      .n_value = n_wanted};
        struct hfd_op op = {.kind = value ? HFD_PUT : HFD_DELETE,
                            .key = k,
                            .value = value ? hf__buf_copy(value, strlen(value)) : NULL};
        struct hfd_txn txn = {.compares = &compare,
                              .n_compares = 1,
                              .ops = &op,
                              .n_ops = 1,
                              .get_on_failure = gets,
                              .n_get_on_failure = 1};
        int r = call_txn(store, &txn, response);

        hf__buf_unref(op.value);
        return r;
}

static inline int write_at(const char *name, uint64_t revision, const char *value,
                           struct call_answer *response) {
        return write_if(HFD_MOD_EQUALS, revision, NULL, 0, name, value, response);
}

static inline int begin_store(void **state) {
        n_cases = 0;
        store = open_store();
        return 0;
}

static inline int end_store(void **state) {
        store->ops->free(store);
        return 0;
}

#define CASE(name) cmocka_unit_test_setup(name, begin_case)

/* How many cases of how many stores failed. */
static inline int run_over_every_store(const struct CMUnitTest *cases, size_t n) {
        int failed;

        curl_global_init(CURL_GLOBAL_DEFAULT);
        failed = _cmocka_run_group_tests("memory", cases, n, begin_store, end_store);
        if (!etcd_spawn_available()) {
                fprintf(stderr, "SKIPPED over etcd: there is no etcd in PATH\n");
                return failed;
        }
        if (!etcd_spawn_start(&etcd, NULL)) {
                etcd_spawn_stop(&etcd);
                return 1;
        }
        on_etcd = true;
        failed += _cmocka_run_group_tests("etcd", cases, n, begin_store, end_store);
        etcd_spawn_stop(&etcd);
        curl_global_cleanup();
        return failed;
}
