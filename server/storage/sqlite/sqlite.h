/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The state of a SQLite store, shared by its threads. Private to server/storage/sqlite.
 *
 * Threads, each with a connection of its own to the file:
 *  - the writer runs transactions and compactions. Operations that arrive while it writes are then
 *    committed together, with one wait for the disk (writer.c);
 *  - the reader runs gets and reads of the revision, the lister runs lists, so that a large list
 *    delays no small read (reader.c);
 *  - the watcher delivers the events of the watches, and ends operations whose deadline has passed
 *    (watches.c).
 *
 * Lock: mu guards the members that are marked so. Nothing waits for the disk and no callback runs
 * under it. The caller of a function whose name ends in _locked holds mu.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/timer_heap.h"
#include "server/storage/sqlite/commits.h"
#include "server/storage/sqlite/engine/file_lock.h"
#include "server/storage/sqlite/operation.h"
#include "server/storage/store.h"

struct hfd_sqlite_watch;

enum hfd_sqlite_queue_kind {
        HFD_SQLITE_WRITES,
        HFD_SQLITE_READS,
        HFD_SQLITE_LISTS,
        HFD_SQLITE_QUEUES
};

/* The operations that wait for one thread. */
struct hfd_sqlite_queue {
        pthread_cond_t wake; /* with mu: an operation was added, or the store is closing */
        /* The boot time at which the thread began its operation, or last made progress with it; 0 =
         * the thread waits. Set by the thread. */
        _Atomic hf_nsec busy_since;
        /* Guarded by mu. */
        struct hfd_sqlite_op *first, **last;               /* owned */
        struct hfd_sqlite_op *first_urgent, **last_urgent; /* owned; taken before the others */
        size_t n, wakes_at; /* operations; and how many there must be to wake the thread */
};

struct hfd_sqlite {
        struct hfd_store store; /* first member; immutable */
        /* Each is used by its thread only, apart from the start and the end of the store. */
        struct hfd_sqlite_db write_db, read_db, list_db, watch_db;
        pthread_t writer, reader, lister, watcher;
        int wake_fd; /* an eventfd: makes the watcher look for new rows, deadlines and the end */
        /* Used by the writer only, apart from the start and the end of the store; its path is
         * immutable. */
        struct hfd_sqlite_file_lock file_lock;
        /* The watcher has no inotify: the writer wakes it through the eventfd after a commit. */
        atomic_bool without_notices;

        pthread_mutex_t mu;
        /* Guarded by mu. */
        struct hfd_sqlite_queue queues[HFD_SQLITE_QUEUES];
        struct hf__timer_heap deadlines;   /* of all operations that have not responded */
        struct hfd_sqlite_watch *watches;  /* owned */
        struct hfd_sqlite_commits commits; /* for the watcher */
        uint64_t last_watch_id;
        uint64_t iterations;
        bool closing;         /* no operation or watch starts any more */
        bool drained;         /* the other threads have ended: the watcher ends too */
        atomic_bool canceled; /* set with closing; the read of a list looks at it without mu */
};

static inline struct hfd_sqlite *hfd_sqlite_of(struct hfd_store *store) {
        return (struct hfd_sqlite *)store;
}

/* The longest time between two looks of the watcher for new rows and deadlines, also when nobody
 * wakes it. */
#define HFD_SQLITE_LOOK_INTERVAL HF_NSEC_PER_SEC

/* Notes that the thread of a queue works and has made progress (busy), or that it waits. Call it on
 * that thread. */
void hfd_sqlite_set_busy(struct hfd_sqlite *sqlite, int queue, bool busy);
/* Makes the watcher look for new rows, deadlines and the end now. Any thread. */
void hfd_sqlite_wake_watcher(struct hfd_sqlite *sqlite);

/* The functions of the threads. ctx is the store. */
void *hfd_sqlite_writer_main(void *ctx);
void *hfd_sqlite_reader_main(void *ctx);
void *hfd_sqlite_lister_main(void *ctx);
void *hfd_sqlite_watcher_main(void *ctx);
