/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The operations of a SQLite store, from the call that starts one to its reply. The contract is
 * that of struct hfd_store_ops (store.h). Private to server/storage/sqlite.
 *
 *      queued    in the queue of a thread, which owns the operation once it has taken it
 *      running   its thread works on it
 *      responded its callback was called, or is being called: nobody calls it again
 *
 * The watcher thread (sqlite.h) responds to an operation whose deadline has passed, in either of
 * the first two states. The thread that owns the operation then frees it without calling the
 * callback. A write that was running may still be committed.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "base/timer_heap.h"
#include "server/storage/sqlite/versions.h"
#include "server/storage/store.h"

struct hfd_sqlite;

enum hfd_sqlite_op_kind {
        HFD_SQLITE_GET,
        HFD_SQLITE_LIST,
        HFD_SQLITE_TXN,
        HFD_SQLITE_COMPACT,
        HFD_SQLITE_REVISION
};

struct hfd_sqlite_op {
        enum hfd_sqlite_op_kind kind;
        hfd_store_fn done;
        void *ctx;
        struct hfd_sqlite_op *next;
        /* Guarded by the store's mu. */
        struct hf__timer deadline; /* in the store's heap until it has responded */
        bool running;
        atomic_bool responded; /* set under mu; the read of a list looks at it without mu */
        /* The arguments; immutable. The pointers refer to copies in the operation's own block of
         * memory, except for the values of txn's ops, which are references. */
        const char *key, *start; /* get: key; list: the prefix, and where to begin */
        uint64_t revision;       /* of a list or a compaction */
        size_t limit;
        bool keys_only;
        bool urgent;        /* it is taken before those that are not */
        struct hfd_txn txn; /* references its values */
        size_t n_bytes;     /* of a transaction, as hfd_txn_bytes counts them */
        /* The reply, built by its thread. */
        struct hfd_store_reply reply;
        struct hfd_sqlite_kvs kvs; /* owned */
};

int hfd_sqlite_start_get(struct hfd_store *store, const char *key, bool urgent, hf_nsec deadline,
                         hfd_store_fn done, void *ctx);
int hfd_sqlite_start_list(struct hfd_store *store, const char *prefix, const char *start_key,
                          uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                          hfd_store_fn done, void *ctx);
int hfd_sqlite_start_txn(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                         hfd_store_fn done, void *ctx);
int hfd_sqlite_start_compact(struct hfd_store *store, uint64_t revision, hf_nsec deadline,
                             hfd_store_fn done, void *ctx);
int hfd_sqlite_start_revision(struct hfd_store *store, hf_nsec deadline, hfd_store_fn done,
                              void *ctx);

/*
 * Takes up to max operations from a queue, the urgent ones first, and marks them as running. Takes
 * no more when those taken have max_bytes. Operations that have responded meanwhile are freed
 * instead. NULL: none. The list is linked by next.
 */
struct hfd_sqlite_op *hfd_sqlite_take_locked(struct hfd_sqlite *sqlite, int queue, size_t max,
                                             size_t max_bytes);
/* Calls the callback unless the operation has responded, and frees the operation. Thread: the one
 * that took it, without mu. */
void hfd_sqlite_respond(struct hfd_sqlite *sqlite, struct hfd_sqlite_op *op);
/* Responds to the operations whose deadline has passed. Releases mu during each callback. Returns
 * the boot time of the next deadline; HF_NSEC_NEVER = there is none. Thread: the watcher. */
hf_nsec hfd_sqlite_expire_locked(struct hfd_sqlite *sqlite);
