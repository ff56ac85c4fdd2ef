/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of the storage interface: a history that is replaced. Each backend writes a history,
 * makes a backup, writes more, and gets the backup back with a new epoch. Memory keeps nothing, so
 * there the history is replaced by an empty one. The store of etcd stays open meanwhile, as in a
 * running server.
 */
#undef NDEBUG
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <curl/curl.h>

#include "etcd_spawn.h"
#include "server/storage/etcd/store.h"
#include "server/storage/keys.h"
#include "server/storage/memory/store.h"
#include "server/storage/sqlite/files/backup.h"
#include "server/storage/sqlite/store.h"
#include "server/storage/term_record.h"
#include "server/store/snapshot_stamp.h"
#include "sqlite_fixture.h"
#include "store_client.h"
#include "watch_recorder.h"

#define PREFIX "/registry"
#define KEPT   PREFIX "/configmaps/default/kept"
#define LOST   PREFIX "/configmaps/default/lost"
#define EPOCH  PREFIX ".holdfast/epoch"
#define TERM   PREFIX ".holdfast/terms/default/lease"
#define END    "/registry0" /* everything of the prefix lies before it */
/* Writes between the backup and the loss, so that the new history does not reach the lost one. */
#define N_LOST 20

struct backend {
        const char *name;
        void (*open)(void);
        /* Makes a backup whose restore has another epoch. Leaves f.store open. */
        void (*back_up)(void);
        /* Puts the backup in the place of what is there. Leaves f.store open. */
        void (*replace)(void);
        bool has_backups;
        int watch_end;      /* of a watch that is open meanwhile */
        int lost_list;      /* of a list at a revision of the lost history */
        bool watch_is_gone; /* that of a watch from such a revision; false = it waits */
};

static const struct hf_host host = {.size = sizeof(struct hf_host)};
static struct etcd_spawn etcd;
static char snapshot[96]; /* with a new epoch */

static struct {
        const struct backend *backend;
        struct hfd_store *store;
        uint64_t kept, kept_term;      /* revisions that the backup has */
        uint64_t lost, lost_term;      /* that it does not have */
        uint64_t last;                 /* the last one of the lost history */
        uint64_t cluster, new_cluster; /* the cluster_id before and after */
        int watch_error;
} f;

static void ok(int r, const struct hf_status *status) {
        if (r != 0)
                fail_msg("%d: %s", r, status->message);
}

/* ---- memory ---- */

static void memory_open(void) { assert_int_equal(hfd_memory_store_new(&host, &f.store), 0); }

static void memory_back_up(void) {}

static void memory_replace(void) {
        f.store->ops->free(f.store);
        memory_open();
}

/* ---- SQLite ---- */

static void sqlite_open(void) {
        struct hf_status status = {0};

        ok(hfd_sqlite_store_new(&host, sqlite_fixture_path("store.db"), true, &f.store, &status),
           &status);
}

static void sqlite_back_up(void) {
        struct hf_status status = {0};

        ok(hfd_sqlite_backup(sqlite_fixture_path("store.db"), sqlite_fixture_path("backup.db"),
                             &status),
           &status);
}

static void sqlite_replace(void) {
        static const char *const names[] = {"store.db", "store.db-wal", "store.db-shm",
                                            "store.db-notify"};
        struct hf_status status = {0};

        f.store->ops->free(f.store);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                assert_true(unlink(sqlite_fixture_path(names[i])) == 0 || errno == ENOENT);
        ok(hfd_sqlite_restore(sqlite_fixture_path("backup.db"), sqlite_fixture_path("store.db"),
                              PREFIX, &status),
           &status);
        sqlite_open();
}

/* ---- etcd ---- */

static void etcd_open(void) {
        const char *endpoints[] = {etcd.url, NULL};
        const struct hfd_etcd_config config = {.endpoints = endpoints};
        struct hf_status status = {0};

        ok(hfd_etcd_store_new(&host, &config, &f.store, &status), &status);
}

static void run(const char *command) {
        if (system(command) != 0)
                fail_msg("%s failed", command);
}

/* Without threads of a store, because the stamp starts processes and changes the environment. */
static void etcd_back_up(void) {
        char plain[96], command[512];
        struct hf_status status = {0};

        f.store->ops->free(f.store);
        (void)snprintf(plain, sizeof plain, "%s/plain.db", etcd.dir);
        (void)snprintf(snapshot, sizeof snapshot, "%s/stamped.db", etcd.dir);
        (void)snprintf(command, sizeof command,
                       "etcdctl --endpoints=%s snapshot save %s >%s/backup.log 2>&1", etcd.url,
                       plain, etcd.dir);
        run(command);
        ok(hfd_snapshot_stamp(plain, snapshot, PREFIX, &status), &status);
        etcd_open();
}

/* The token makes it another cluster. Without one the cluster_id of the same members is the same,
 * and only the epoch and the revisions show the other history. */
static void etcd_replace(void) {
        char command[1024];

        etcd_spawn_signal(&etcd, SIGKILL);
        (void)snprintf(command, sizeof command,
                       "rm -r %s/data && $(command -v etcdutl || echo etcdctl) snapshot restore %s "
                       "--data-dir=%s/data --name=default --initial-cluster=default=http://"
                       "127.0.0.1:%d --initial-advertise-peer-urls=http://127.0.0.1:%d "
                       "--initial-cluster-token=restored "
                       ">%s/restore.log 2>&1",
                       etcd.dir, snapshot, etcd.dir, etcd.peer_port, etcd.peer_port, etcd.dir);
        run(command);
        assert_true(etcd_spawn_restart(&etcd, NULL));
}

static const struct backend memory = {.name = "memory",
                                      .open = memory_open,
                                      .back_up = memory_back_up,
                                      .replace = memory_replace,
                                      .watch_end = HF_E_CANCELED,
                                      .lost_list = HF_E_INVALID},
                            sqlite = {.name = "sqlite",
                                      .open = sqlite_open,
                                      .back_up = sqlite_back_up,
                                      .replace = sqlite_replace,
                                      .has_backups = true,
                                      .watch_end = HF_E_CANCELED,
                                      .lost_list = HF_E_GONE,
                                      .watch_is_gone = true},
                            in_etcd = {.name = "etcd",
                                       .open = etcd_open,
                                       .back_up = etcd_back_up,
                                       .replace = etcd_replace,
                                       .has_backups = true,
                                       .watch_end = HF_E_UNAVAILABLE,
                                       .lost_list = HF_E_INVALID};

/* ---- the two histories ---- */

static uint64_t put_term(const char *holder) {
        struct hf__buf *value = hfd_term_record_value(holder, "2026-11-21T02:36:00.000000Z");
        uint64_t revision = store_client_put(f.store, TERM, value->data);

        hf__buf_unref(value);
        return revision;
}

static uint64_t cluster_of(struct hfd_store *store) {
        struct store_reply reply;

        assert_int_equal(store_client_get(store, KEPT, &reply), 0);
        uint64_t id = reply.cluster_id;
        store_reply_deinit(&reply);
        return id;
}

static int live_through(const struct backend *backend) {
        static struct watch_recorder recorder;

        memset(&f, 0, sizeof f);
        f.backend = backend;
        backend->open();
        assert_true(store_client_put(f.store, EPOCH, "before") > 0);
        f.kept = store_client_put(f.store, KEPT, "1");
        f.kept_term = put_term("a_1");
        backend->back_up();
        f.cluster = cluster_of(f.store);
        for (int i = 0; i < N_LOST; i++)
                f.lost = store_client_put(f.store, LOST, "x");
        assert_true(store_client_put(f.store, KEPT, "2") > f.lost);
        f.lost_term = put_term("b_1");
        f.last = store_client_revision(f.store);
        assert_int_equal(watch_recorder_start(&recorder, f.store, PREFIX ".", END, f.last), 0);
        watch_recorder_await(&recorder, 1); /* it is open */
        backend->replace();
        f.watch_error = watch_recorder_await_end(&recorder);
        recorder.store = NULL; /* it has ended, and its store may be gone */
        watch_recorder_stop(&recorder);
        f.new_cluster = cluster_of(f.store);
        return 0;
}

static int on_memory(void **state) { return live_through(&memory); }

static int on_sqlite(void **state) {
        assert_int_equal(sqlite_fixture_setup(state), 0);
        return live_through(&sqlite);
}

static int on_etcd(void **state) {
        if (!etcd_spawn_start(&etcd, NULL))
                fail_msg("etcd does not start");
        return live_through(&in_etcd);
}

static int end(void **state) {
        f.store->ops->free(f.store);
        if (f.backend == &sqlite)
                return sqlite_fixture_teardown(state);
        if (f.backend == &in_etcd)
                etcd_spawn_stop(&etcd);
        return 0;
}

/* ---- the tests ---- */

static void test_replies_name_the_history(void **state) {
        struct hf__buf *value = hf__buf_copy("x", 1);
        const char *key = PREFIX "/configmaps/default/named", *gets[] = {key};
        const struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = value};
        const struct hfd_compare missing = {.kind = HFD_MOD_EQUALS, .key = key};
        const struct hfd_txn txn = {.compares = &missing,
                                    .n_compares = 1,
                                    .ops = &op,
                                    .n_ops = 1,
                                    .get_on_failure = gets,
                                    .n_get_on_failure = 1};
        struct store_reply reply;

        /* Memory has one history only. */
        assert_int_equal(f.cluster == 0, f.backend == &memory);
        assert_int_equal(f.new_cluster == 0, f.backend == &memory);
        if (f.backend->has_backups)
                assert_int_not_equal(f.new_cluster, f.cluster);
        assert_int_equal(store_client_list(f.store, PREFIX "/", NULL, 0, 0, true, &reply), 0);
        assert_int_equal(reply.cluster_id, f.new_cluster);
        store_reply_deinit(&reply);
        assert_int_equal(store_client_txn(f.store, &txn, &reply), 0);
        assert_int_equal(reply.cluster_id, f.new_cluster);
        store_reply_deinit(&reply);
        assert_int_equal(store_client_txn(f.store, &txn, &reply), HF_E_CONFLICT);
        assert_int_equal(reply.cluster_id, f.new_cluster);
        store_reply_deinit(&reply);
        assert_true(store_client_delete(f.store, key) > 0);
        hf__buf_unref(value);
}

static void test_the_backup_is_there_and_nothing_later(void **state) {
        struct store_reply reply;

        assert_int_equal(store_client_get(f.store, LOST, &reply), 0);
        assert_int_equal(reply.n_kvs, 0);
        store_reply_deinit(&reply);
        assert_int_equal(store_client_get(f.store, KEPT, &reply), 0);
        assert_int_equal(reply.n_kvs, f.backend->has_backups ? 1 : 0);
        if (f.backend->has_backups) {
                assert_string_equal(store_reply_value(&reply, 0), "1");
                assert_int_equal(reply.kvs[0].mod_revision, f.kept);
        }
        store_reply_deinit(&reply);
}

/* By it a writer of the lost history is refused, even if its term is in the backup. */
static void test_a_write_that_expects_the_old_epoch_is_refused(void **state) {
        struct hf__buf *value = hf__buf_copy("x", 1);
        const char *key = PREFIX "/configmaps/default/late", *gets[] = {EPOCH};
        const struct hfd_compare same = {.kind = HFD_VALUE_EQUALS,
                                         .key = EPOCH,
                                         .value = "before",
                                         .n_value = strlen("before")};
        const struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = value};
        const struct hfd_txn txn = {.compares = &same,
                                    .n_compares = 1,
                                    .ops = &op,
                                    .n_ops = 1,
                                    .get_on_failure = gets,
                                    .n_get_on_failure = 1};
        struct store_reply reply;

        assert_int_equal(store_client_txn(f.store, &txn, &reply), HF_E_CONFLICT);
        assert_int_equal(reply.n_kvs, f.backend->has_backups ? 1 : 0);
        if (f.backend->has_backups)
                assert_true(strlen(store_reply_value(&reply, 0)) > strlen("before"));
        store_reply_deinit(&reply);
        assert_int_equal(store_client_mod_revision(f.store, key), 0);
        hf__buf_unref(value);
}

static int write_fenced(const char *identity, uint64_t term) {
        struct hf_fence fence = {.ns = "default", .name = "lease", .term = term};
        struct hf__buf *value = hf__buf_copy("x", 1);
        const struct hfd_op op = {.kind = HFD_PUT,
                                  .key = PREFIX "/configmaps/default/fenced",
                                  .value = value};
        struct hfd_fence_compares compares;

        (void)snprintf(fence.identity, sizeof fence.identity, "%s", identity);
        assert_int_equal(hfd_fence_compares(&compares, PREFIX, &fence), 0);
        const struct hfd_txn txn = {.compares = compares.compares,
                                    .n_compares = 2,
                                    .ops = &op,
                                    .n_ops = 1};
        int r = store_client_txn(f.store, &txn, NULL);
        hf__buf_unref(value);
        return r;
}

static void test_a_term_of_the_lost_history_writes_nothing(void **state) {
        assert_int_equal(write_fenced("b_1", f.lost_term), HF_E_CONFLICT);
        /* The backup has this one. Only the epoch tells its holder that the history is another. */
        assert_int_equal(write_fenced("a_1", f.kept_term),
                         f.backend->has_backups ? 0 : HF_E_CONFLICT);
        uint64_t next = f.backend->has_backups ? put_term("c_1") : 0;
        if (f.backend == &sqlite)
                assert_true(next > f.last); /* no term is given twice */
}

static void test_no_read_shows_the_lost_history(void **state) {
        assert_true(f.lost > store_client_revision(f.store) || f.backend == &sqlite);
        assert_int_equal(store_client_list(f.store, PREFIX "/", NULL, f.lost, 0, false, NULL),
                         f.backend->lost_list);
        assert_int_equal(store_client_list(f.store, PREFIX "/", NULL, f.last, 0, false, NULL),
                         f.backend->lost_list);
}

static void test_an_open_watch_ends(void **state) {
        assert_int_equal(f.watch_error, f.backend->watch_end);
}

/* Such a watch is told to list again, or it waits and gets the events of the new history. */
static void test_a_watch_from_the_lost_history_shows_none_of_it(void **state) {
        static struct watch_recorder recorder;
        const char *key = PREFIX "/configmaps/default/new";
        uint64_t from = f.last + 1, written = 0;

        assert_int_equal(watch_recorder_start(&recorder, f.store, PREFIX ".", END, from), 0);
        if (f.backend->watch_is_gone) {
                assert_int_equal(watch_recorder_await_end(&recorder), HF_E_GONE);
                assert_int_equal(recorder.n, 0);
        } else {
                while (written < from)
                        written = store_client_put(f.store, key, "x");
                watch_recorder_await(&recorder, 1);
                assert_string_equal(recorder.events[0].key, key);
                assert_int_equal(recorder.events[0].revision, from);
        }
        watch_recorder_stop(&recorder);
}

/* Last, because it compacts: the new history is one like any other. */
static void test_the_new_history_goes_on(void **state) {
        static struct watch_recorder recorder;
        const char *key = PREFIX "/configmaps/default/next";
        uint64_t first = store_client_put(f.store, key, "1"),
                 second = store_client_put(f.store, key, "2");
        struct store_reply list;

        assert_int_equal(second, first + 1);
        assert_int_equal(store_client_list(f.store, key, NULL, first, 0, false, &list), 0);
        assert_string_equal(store_reply_value(&list, 0), "1");
        store_reply_deinit(&list);
        assert_int_equal(watch_recorder_start(&recorder, f.store, PREFIX ".", END, first), 0);
        watch_recorder_await(&recorder, 2);
        assert_int_equal(recorder.events[0].revision, first);
        assert_int_equal(recorder.events[1].revision, second);
        watch_recorder_stop(&recorder);
        assert_int_equal(store_client_compact(f.store, second), 0);
        assert_int_equal(store_client_list(f.store, key, NULL, first, 0, false, NULL), HF_E_GONE);
        assert_int_equal(store_client_compact(f.store, second + 100), HF_E_INVALID);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_replies_name_the_history),
                cmocka_unit_test(test_the_backup_is_there_and_nothing_later),
                cmocka_unit_test(test_a_write_that_expects_the_old_epoch_is_refused),
                cmocka_unit_test(test_a_term_of_the_lost_history_writes_nothing),
                cmocka_unit_test(test_no_read_shows_the_lost_history),
                cmocka_unit_test(test_an_open_watch_ends),
                cmocka_unit_test(test_a_watch_from_the_lost_history_shows_none_of_it),
                cmocka_unit_test(test_the_new_history_goes_on),
        };
        const size_t n = sizeof tests / sizeof tests[0];

        signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        (void)setenv("ETCDCTL_API", "3", 1);
        int n_failed = _cmocka_run_group_tests(memory.name, tests, n, on_memory, end);
        n_failed += _cmocka_run_group_tests(sqlite.name, tests, n, on_sqlite, end);
        if (etcd_spawn_available())
                n_failed += _cmocka_run_group_tests(in_etcd.name, tests, n, on_etcd, end);
        else
                (void)fprintf(stderr, "SKIPPED over etcd: there is no etcd in PATH\n");
        curl_global_cleanup();
        return n_failed;
}
