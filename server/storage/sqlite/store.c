/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates, stops and frees a SQLite store.
 *
 * Invariants:
 *  - each thread has its own connection, so no connection is shared;
 *  - after `closing` is set, no operation or watch starts. The threads end when their queues are
 *    empty; the watcher ends last, because it ends late operations of the others. So nothing is
 *    left when the store is freed.
 */
#include "server/storage/sqlite/store.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "server/storage/sqlite/engine/header.h"
#include "server/storage/sqlite/sqlite.h"
#include "server/storage/sqlite/watches.h"

/* How long a thread may work without progress before it counts as hanging. */
#define PATIENCE (10 * HF_NSEC_PER_SEC)

void hfd_sqlite_wake_watcher(struct hfd_sqlite *sqlite) {
        uint64_t one = 1;

        (void)!write(sqlite->wake_fd, &one, sizeof one);
}

void hfd_sqlite_set_busy(struct hfd_sqlite *sqlite, int queue, bool busy) {
        assert(queue >= 0 && queue < HFD_SQLITE_QUEUES);
        atomic_store(&sqlite->queues[queue].busy_since,
                     busy ? hf_now(hf_host_clock(sqlite->store.host)) : 0);
}

/* The watcher's count of iterations; 0 if another thread has been busy for too long. */
static uint64_t sqlite_iterations(struct hfd_store *store) {
        struct hfd_sqlite *sqlite = hfd_sqlite_of(store);
        hf_nsec now = hf_now(hf_host_clock(store->host));
        uint64_t iterations;

        for (int i = 0; i < HFD_SQLITE_QUEUES; i++) {
                hf_nsec since = atomic_load(&sqlite->queues[i].busy_since);

                if (since != 0 && since < now - PATIENCE)
                        return 0;
        }
        pthread_mutex_lock(&sqlite->mu);
        iterations = sqlite->iterations;
        pthread_mutex_unlock(&sqlite->mu);
        return iterations;
}

static void sqlite_stop(struct hfd_store *store) {
        struct hfd_sqlite *sqlite = hfd_sqlite_of(store);

        pthread_mutex_lock(&sqlite->mu);
        sqlite->closing = true;
        atomic_store(&sqlite->canceled, true);
        for (int i = 0; i < HFD_SQLITE_QUEUES; i++)
                pthread_cond_signal(&sqlite->queues[i].wake);
        pthread_mutex_unlock(&sqlite->mu);
        hfd_sqlite_wake_watcher(sqlite);
}

/* ---- memory, descriptors and connections ---- */

/* SQLite copies its WAL into the file when the last connection of all processes is closed. Only the
 * holder of the lock may do that (file_lock.h). Without the lock, these connections leave the WAL
 * as it is: the store that holds the lock has connections of its own, or a later store reads the
 * WAL and copies it. */
static void close_connections(struct hfd_sqlite *sqlite) {
        struct hfd_sqlite_db *all[] = {&sqlite->watch_db, &sqlite->list_db, &sqlite->read_db,
                                       &sqlite->write_db};
        struct hf_status ignored = {0};
        bool locked = sqlite->file_lock.fd >= 0 &&
                      hfd_sqlite_file_lock_take(&sqlite->file_lock, &ignored) == 0;

        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
                if (!locked)
                        hfd_sqlite_keep_wal(all[i]->handle);
                hfd_sqlite_db_close(all[i]);
        }
        hfd_sqlite_file_lock_release(&sqlite->file_lock);
}

static void free_store(struct hfd_sqlite *sqlite) {
        close_connections(sqlite);
        hfd_sqlite_file_lock_deinit(&sqlite->file_lock);
        if (sqlite->wake_fd >= 0)
                close(sqlite->wake_fd);
        free(sqlite);
}

/* Opens the file before the notify file, which has the lock (file_lock.h), is made. So no notify
 * file is left beside a file that is not a store. */
static int open_first(struct hfd_sqlite *sqlite, const char *path, bool create,
                      struct hf_status *reterr_status) {
        int r = hfd_sqlite_db_open(&sqlite->write_db, path, create, reterr_status);

        if (r != 0)
                return r;
        /* If the path is a symbolic link, SQLite's name is that of the file behind the link. The
         * WAL is beside that file. All processes that use the file must find the same lock. */
        path = hfd_sqlite.db_filename(sqlite->write_db.handle, "main");
        r = hfd_sqlite_check_place(path, reterr_status);
        if (r == 0)
                r = hfd_sqlite_file_lock_init(&sqlite->file_lock, path, reterr_status);
        if (r == 0)
                r = hfd_sqlite_file_lock_take(&sqlite->file_lock, reterr_status);
        if (r == 0)
                r = hfd_sqlite_db_fill(&sqlite->write_db, path, reterr_status);
        hfd_sqlite_file_lock_release(&sqlite->file_lock);
        return r;
}

static int open_files(struct hfd_sqlite *sqlite, const char *path, bool create,
                      struct hf_status *reterr_status) {
        struct hfd_sqlite_db *readers[] = {&sqlite->read_db, &sqlite->list_db, &sqlite->watch_db};
        int r = open_first(sqlite, path, create, reterr_status);

        for (size_t i = 0; i < sizeof readers / sizeof readers[0] && r == 0; i++)
                r = hfd_sqlite_db_open(readers[i], path, false, reterr_status);
        if (r != 0)
                return r;
        sqlite->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return sqlite->wake_fd >= 0 ? 0 : hf_fail(reterr_status, -errno, "%s", strerror(errno));
}

/* ---- threads ---- */

static int init_locks(struct hfd_sqlite *sqlite) {
        int r = hf__mutex_init(&sqlite->mu), i;

        if (r != 0)
                return r;
        for (i = 0; i < HFD_SQLITE_QUEUES && r == 0; i++) {
                struct hfd_sqlite_queue *queue = &sqlite->queues[i];

                queue->last = &queue->first;
                queue->last_urgent = &queue->first_urgent;
                r = hf_cond_init(&queue->wake);
        }
        if (r == 0)
                return 0;
        for (i--; i > 0;) /* the last one was not made */
                pthread_cond_destroy(&sqlite->queues[--i].wake);
        pthread_mutex_destroy(&sqlite->mu);
        return r;
}

static void destroy_locks(struct hfd_sqlite *sqlite) {
        for (int i = 0; i < HFD_SQLITE_QUEUES; i++)
                pthread_cond_destroy(&sqlite->queues[i].wake);
        pthread_mutex_destroy(&sqlite->mu);
}

struct thread {
        const char *name;
        void *(*main)(void *ctx);
        size_t offset; /* of its pthread_t */
};
/* The watcher comes first: it ends last. */
static const struct thread threads[] = {
        {"hfd-sql-watch", hfd_sqlite_watcher_main, offsetof(struct hfd_sqlite, watcher)},
        {"hfd-sql-write", hfd_sqlite_writer_main, offsetof(struct hfd_sqlite, writer)},
        {"hfd-sql-read", hfd_sqlite_reader_main, offsetof(struct hfd_sqlite, reader)},
        {"hfd-sql-list", hfd_sqlite_lister_main, offsetof(struct hfd_sqlite, lister)},
};
#define N_THREADS (sizeof threads / sizeof threads[0])

static pthread_t *thread_of(struct hfd_sqlite *sqlite, size_t i) {
        return (pthread_t *)((char *)sqlite + threads[i].offset);
}

/* Joins the first n threads, the watcher last. */
static void join_threads(struct hfd_sqlite *sqlite, size_t n) {
        assert(n <= N_THREADS);
        sqlite_stop(&sqlite->store);
        for (size_t i = n; i-- > 1;)
                (void)hf__thread_join(*thread_of(sqlite, i));
        if (n == 0)
                return;
        pthread_mutex_lock(&sqlite->mu);
        sqlite->drained = true;
        pthread_mutex_unlock(&sqlite->mu);
        hfd_sqlite_wake_watcher(sqlite);
        (void)hf__thread_join(sqlite->watcher);
}

static int start_threads(struct hfd_sqlite *sqlite) {
        for (size_t i = 0; i < N_THREADS; i++) {
                int r = hf__thread_start(sqlite->store.host, threads[i].name, threads[i].main,
                                         sqlite, thread_of(sqlite, i));

                if (r != 0) {
                        join_threads(sqlite, i);
                        return r;
                }
        }
        return 0;
}

static void sqlite_free(struct hfd_store *store) {
        struct hfd_sqlite *sqlite = hfd_sqlite_of(store);

        join_threads(sqlite, N_THREADS);
        assert(!sqlite->watches && !sqlite->deadlines.first);
        for (int i = 0; i < HFD_SQLITE_QUEUES; i++)
                assert(!sqlite->queues[i].first && !sqlite->queues[i].first_urgent);
        hfd_sqlite_commits_deinit(&sqlite->commits);
        destroy_locks(sqlite);
        free_store(sqlite);
}

HF__CLEANUP_DEFINE(sqlite_cleanup, struct hfd_sqlite *, free_store)

/* The locks and the threads that use them: all or none. */
static int make_threads(struct hfd_sqlite *sqlite) {
        int r = init_locks(sqlite);

        if (r != 0)
                return r;
        r = start_threads(sqlite);
        if (r != 0)
                destroy_locks(sqlite);
        return r;
}

static const struct hfd_store_ops sqlite_ops = {
        .get = hfd_sqlite_start_get,
        .list = hfd_sqlite_start_list,
        .txn = hfd_sqlite_start_txn,
        .watch = hfd_sqlite_watch_start,
        .watch_cancel = hfd_sqlite_watch_cancel,
        .watch_suspect = hfd_sqlite_watch_cancel, /* the store has one member */
        .compact = hfd_sqlite_start_compact,
        .revision = hfd_sqlite_start_revision,
        .stop = sqlite_stop,
        .free = sqlite_free,
        .iterations = sqlite_iterations,
};

int hfd_sqlite_store_new(const struct hf_host *host, const char *path, bool create,
                         struct hfd_store **ret_store, struct hf_status *reterr_status) {
        HF__CLEANUP(sqlite_cleanup) struct hfd_sqlite *sqlite = calloc(1, sizeof *sqlite);

        if (!sqlite)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        sqlite->store = (struct hfd_store){.ops = &sqlite_ops, .host = host};
        sqlite->wake_fd = sqlite->file_lock.fd = -1;
        int r = open_files(sqlite, path, create, reterr_status);
        if (r != 0)
                return r;
        r = make_threads(sqlite);
        if (r != 0)
                return hf_fail(reterr_status, r, "%s cannot be used: %s", path, hf_strerror(r));
        *ret_store = &HF__TAKE(sqlite)->store;
        return 0;
}
