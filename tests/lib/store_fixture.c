/* SPDX-License-Identifier: Apache-2.0 */
/* See store_fixture.h. One group of tests per store; the store lives as long as its group. */
#include "store_fixture.h"

#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "etcd_spawn.h"
#include "server/storage/etcd/store.h"
#include "server/storage/keys.h"
#include "server/storage/memory/store.h"
#include "server/storage/sqlite/store.h"

static const struct hf_host host = {.size = sizeof(struct hf_host)};
static struct etcd_spawn etcd;
static enum { MEMORY, SQLITE, ETCD } backend;
static char directory[64]; /* of the SQLite store */
static unsigned n_tests;
static struct store_fixture fixture;

struct hfd_store *store_fixture_open(void) {
        const char *endpoints[] = {etcd.url, NULL};
        const struct hfd_etcd_config config = {.endpoints = endpoints};
        struct hf_status status = {0};
        struct hfd_store *store = NULL;

        if (backend == ETCD) {
                assert_int_equal(hfd_etcd_store_new(&host, &config, &store, &status), 0);
        } else if (backend == SQLITE) {
                char path[96];

                (void)snprintf(path, sizeof path, "%s/store.db", directory);
                if (hfd_sqlite_store_new(&host, path, true, &store, &status) != 0)
                        fail_msg("%s", status.message);
        } else {
                assert_int_equal(hfd_memory_store_new(&host, &store), 0);
        }
        return store;
}

static int begin_group(void **state) {
        n_tests = 0;
        fixture.store = store_fixture_open();
        return 0;
}

static int end_group(void **state) {
        fixture.store->ops->free(fixture.store);
        return 0;
}

int store_fixture_begin_test(void **state) {
        (void)snprintf(fixture.prefix, sizeof fixture.prefix, "/case%03u/", ++n_tests);
        *state = &fixture;
        return 0;
}

static int run_on_sqlite(const struct CMUnitTest *tests, size_t n) {
        const char *const names[] = {"store.db", "store.db-wal", "store.db-shm", "store.db-notify"};
        char path[96];

        (void)snprintf(directory, sizeof directory, "/tmp/hfd-store-XXXXXX");
        if (!mkdtemp(directory))
                return 1;
        backend = SQLITE;
        int n_failed = _cmocka_run_group_tests("sqlite", tests, n, begin_group, end_group);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                (void)snprintf(path, sizeof path, "%s/%s", directory, names[i]);
                (void)unlink(path);
        }
        (void)rmdir(directory);
        return n_failed;
}

int store_fixture_run(const struct CMUnitTest *tests, size_t n) {
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int n_failed = _cmocka_run_group_tests("memory", tests, n, begin_group, end_group);
        n_failed += run_on_sqlite(tests, n);
        if (!etcd_spawn_available()) {
                (void)fprintf(stderr, "SKIPPED over etcd: there is no etcd in PATH\n");
                return n_failed;
        }
        if (!etcd_spawn_start(&etcd, NULL)) {
                etcd_spawn_stop(&etcd);
                return 1;
        }
        backend = ETCD;
        n_failed += _cmocka_run_group_tests("etcd", tests, n, begin_group, end_group);
        etcd_spawn_stop(&etcd);
        curl_global_cleanup();
        return n_failed;
}

int store_fixture_run_with_etcd(struct etcd_spawn *etcd_of_tests, const struct CMUnitTest *tests,
                                size_t n) {
        if (!etcd_spawn_available()) {
                (void)fprintf(stderr, "SKIPPED: there is no etcd in PATH\n");
                return 77;
        }
        signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        if (!etcd_spawn_start(etcd_of_tests, NULL)) {
                etcd_spawn_stop(etcd_of_tests);
                return 1;
        }
        int n_failed = _cmocka_run_group_tests("etcd", tests, n, NULL, NULL);
        etcd_spawn_signal(etcd_of_tests, SIGCONT);
        etcd_spawn_stop(etcd_of_tests);
        curl_global_cleanup();
        return n_failed;
}

const char *store_fixture_key(const struct store_fixture *f, const char *name) {
        static _Thread_local char keys[8][128];
        static _Thread_local unsigned next;
        char *key = keys[next++ % 8];

        (void)snprintf(key, sizeof keys[0], "%s%s", f->prefix, name);
        return key;
}

const char *store_fixture_prefix_end(const struct store_fixture *f) {
        static char end[HFD_KEY_MAX];

        assert_int_equal(hfd_key_prefix_end(end, f->prefix), 0);
        return end;
}

int store_fixture_write_if(struct store_fixture *f, enum hfd_compare_kind kind, uint64_t revision,
                           const void *wanted, size_t n_wanted, const char *name, const char *value,
                           struct store_reply *reply) {
        const char *key = store_fixture_key(f, name), *gets[] = {key};
        const struct hfd_compare compare = {.kind = kind,
                                            .key = key,
                                            .revision = revision,
                                            .value = wanted,
                                            .n_value = n_wanted};
        const struct hfd_op op = {.kind = value ? HFD_PUT : HFD_DELETE,
                                  .key = key,
                                  .value = value ? hf__buf_copy(value, strlen(value)) : NULL};
        const struct hfd_txn txn = {.compares = &compare,
                                    .n_compares = 1,
                                    .ops = &op,
                                    .n_ops = 1,
                                    .get_on_failure = gets,
                                    .n_get_on_failure = 1};
        int r = store_client_txn(f->store, &txn, reply);

        hf__buf_unref(op.value);
        return r;
}

int store_fixture_write_at(struct store_fixture *f, const char *name, uint64_t revision,
                           const char *value, struct store_reply *reply) {
        return store_fixture_write_if(f, HFD_MOD_EQUALS, revision, NULL, 0, name, value, reply);
}
