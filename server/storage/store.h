/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The storage port: a revisioned key-value store, narrow and asynchronous. etcd/, sqlite/ and
 * memory/ implement it; tests/unit/test-store-{conformance,replaced}.c run over all three. This
 * header is the whole contract: code that uses a store must not know which one it is.
 *
 * Data. Keys are paths ("/registry/leases/ns/name"), NUL-terminated and shorter than HFD_KEY_MAX
 * (keys.h); values are bytes. Every write of the store gets the next revision. A transaction that
 * writes is one write, however many keys it changes. A key's mod revision is the revision of its
 * last write, its create revision that of the put that created it.
 *
 * Revision order. Operations are linearizable, also a transaction that only compares: an operation
 * sees every write that was completed before it started. A list at a given revision sees the writes
 * up to that revision. A successful reply contains the store's revision at the time of the
 * operation. Until that revision is compacted, a list at it shows the state of that time. Events of
 * one watch are delivered in the order of their revisions. There is no order between replies and
 * events, or between two watches: compare revisions. A watch may also hang: its events come late,
 * or not at all, while operations go on. Its user notices that by the revisions of replies.
 *
 * Compaction. compact(R) removes the versions that no read at R or later can return. Reads below R
 * then end with HF_E_GONE; the current state is never lost. A watch that needs a revision below R
 * ends with HF_E_GONE: list again, and watch from the list's revision + 1. One that needs R itself
 * gets it, or ends in the same way. A watch from an old revision above R gets every event since; a
 * watch from a revision that is not reached yet waits for it.
 *
 * Threads. Any thread may start an operation; starting one does not wait for the store. The store
 * runs the callback of a started operation exactly once, on one of its threads, perhaps before the
 * function that started the operation has returned. A callback must not block and must not free the
 * store; it may start further operations. The store holds no lock during a callback.
 *
 * Ownership. Arguments of an operation are copied or referenced before the function returns.
 * Arguments of a callback are borrowed until it returns; hf__buf_ref keeps a value longer.
 *
 * Deadlines are absolute boot times. A started operation ends at its deadline at the latest, apart
 * from the delay until the store's thread runs. A watch has no deadline: it ends when it is
 * canceled, when it fails, or when the store is stopped.
 *
 * A function that starts an operation returns 0 or an error. After an error, the callback is never
 * called. The errors:
 *
 *      -EINVAL         misuse, for example an empty key, a put without a value, or two operations
 *                      on one key of which one is a put
 *      HF_E_TOO_LARGE  a key, a count, or the whole request exceeds its limit
 *      -ENOMEM         out of memory
 *      HF_E_CLOSED     the store was stopped
 *      -EIO            a store that encrypts gets no random numbers
 *
 * The outcome of an operation, which its callback receives:
 *
 *      0                 success
 *      HF_E_CONFLICT     a compare of the transaction failed; nothing was written
 *      HF_E_UNAVAILABLE  certainly nothing was written: the operation may be repeated (a compaction
 *                        may have happened, which does no harm)
 *      HF_E_TIMEOUT      it is unknown whether a write was done: read before repeating it
 *      HF_E_GONE         the revision is compacted
 *      HF_E_INVALID      the revision is not reached yet, or the store rejects the request
 *      HF_E_TOO_LARGE    the store refuses the size; nothing was written
 *      HF_E_CANCELED     the store was stopped; it is unknown whether a write was done
 *      -EBADMSG          the store is damaged: no repetition helps
 *      -errno            unexpected (-ENOSPC: the store is full); it is unknown whether a write
 *                        was done
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/error.h>
#include <holdfast/host.h>

#include "base/buf.h"

struct hfd_store;

/* A key and its value. Borrowed, with everything in it, until the callback returns. */
struct hfd_kv {
        const char *key; /* NUL-terminated */
        /* NULL in a deletion event, in a list of keys only, and in the event of a put whose value
         * could not be decrypted for lack of memory. */
        struct hf__buf *value;
        uint64_t mod_revision;
        uint64_t create_revision; /* 0 in a deletion event */
        /* Only from a store that encrypts (server/encryption/encrypted_store.h). sealed: why the
         * value could not be decrypted, a static text; value is then as it is stored. NULL: it can
         * be read. stale: a write would now encrypt the value with another key, or not at all. */
        const char *sealed;
        bool stale;
};

struct hfd_store_reply {
        int error; /* the outcome, see above */
        /* The store's revision when it handled the operation; for a transaction that wrote, the
         * revision of that write. 0 with most errors. */
        uint64_t revision;
        /* get: at most one. list: sorted by key. A failed transaction: what get_on_failure found,
         * in its order. */
        const struct hfd_kv *kvs;
        size_t n_kvs;
        bool more; /* list: more keys follow after the limit */
        /* Which history the revisions belong to; it changes when a backup is restored (of etcd:
         * into a new cluster). 0 = unknown (an error, or a store with one history only). */
        uint64_t cluster_id;
        struct hf_status status; /* the error as text */
};
typedef void (*hfd_store_fn)(void *ctx, const struct hfd_store_reply *reply);

enum hfd_compare_kind {
        HFD_MOD_EQUALS,   /* the key's mod revision is `revision`; 0 = the key does not exist */
        HFD_VALUE_EQUALS, /* the key exists, and its value is exactly `value` */
        /* The key exists, and its value begins with `value` and is longer. A fence (term_record.h)
         * compares the holder in a term record this way. */
        HFD_VALUE_BEGINS,
};
struct hfd_compare {
        enum hfd_compare_kind kind;
        const char *key;
        uint64_t revision;
        const void *value;
        size_t n_value;
};
enum hfd_op_kind { HFD_PUT, HFD_DELETE };
struct hfd_op {
        enum hfd_op_kind kind;
        const char *key;
        struct hf__buf *value; /* for a put; borrowed until the function returns */
};

#define HFD_TXN_MAX 16 /* the maximum number of each: compares, ops, get_on_failure */

/* If all compares hold, all ops are done in one revision; otherwise nothing is written, and
 * get_on_failure is read in the same atomic step. Deleting a key that does not exist writes
 * nothing. If no op writes anything, the revision stays as it is. */
struct hfd_txn {
        const struct hfd_compare *compares;
        size_t n_compares;
        const struct hfd_op *ops;
        size_t n_ops;
        const char *const *get_on_failure; /* keys; the reply omits those that do not exist */
        size_t n_get_on_failure;
        bool urgent; /* see get */
        bool copied; /* by `holdfastd store copy`: HFD_TXN_COPIED_BYTES_MAX is the limit */
};

enum hfd_watch_event_type { HFD_WATCH_PUT, HFD_WATCH_DELETE, HFD_WATCH_PROGRESS };
struct hfd_watch_event {
        /* HFD_WATCH_PROGRESS: kv is unused, and every event up to and including `revision` has been
         * delivered. A store need not send any. */
        enum hfd_watch_event_type type;
        struct hfd_kv kv; /* for a deletion: the key, and the deletion's revision */
        /* For a put or a deletion: kv.mod_revision. Every event up to and including revision - 1
         * has been delivered before this one. */
        uint64_t revision;
};
struct hfd_watch_handler {
        /* n >= 1 events. The events of one revision are passed in one call. */
        void (*event)(void *ctx, const struct hfd_watch_event *events, size_t n);
        /* Called once, after the last event. HF_E_GONE: a revision that the watch needs is
         * compacted, so list again. HF_E_UNAVAILABLE: watch again from the last delivered revision
         * + 1. HF_E_CANCELED: watch_cancel, watch_suspect or stop has ended it. */
        void (*end)(void *ctx, int error, const struct hf_status *status);
};

/* The functions that a store implements. Thread: any, except for free. */
struct hfd_store_ops {
        /* urgent: for Leases, whose values are small. A store in which operations wait does urgent
         * ones before the others, or with a thread and connections of their own, so that they wait
         * for little. */
        int (*get)(struct hfd_store *store, const char *key, bool urgent, hf_nsec deadline,
                   hfd_store_fn done, void *ctx);
        /* Lists the keys with the prefix, from start_key (NULL = the first) on, as they were at
         * revision (0 = now). limit 0 = all. keys_only: the values are NULL. */
        int (*list)(struct hfd_store *store, const char *prefix, const char *start_key,
                    uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                    hfd_store_fn done, void *ctx);
        int (*txn)(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                   hfd_store_fn done, void *ctx);
        /* Watches the keys in [begin, end) from revision on, inclusive (0 = from the first write
         * after the store has begun to watch). An empty end = up to the last key. handler is
         * copied. *ret_id is the argument for watch_cancel and watch_suspect; it is set before
         * the first callback. ret_id may be NULL. */
        int (*watch)(struct hfd_store *store, const char *begin, const char *end, uint64_t revision,
                     const struct hfd_watch_handler *handler, void *ctx, uint64_t *ret_id);
        /* Ends the watch soon; events may still be delivered before its end. Does nothing for a
         * watch that has ended. */
        void (*watch_cancel)(struct hfd_store *store, uint64_t id);
        /* Like watch_cancel, for a watch that seems to hang: the next watch uses another member of
         * the store, if it has several. */
        void (*watch_suspect)(struct hfd_store *store, uint64_t id);
        /* HF_E_GONE: an earlier compaction included this revision, so treat it as success. */
        int (*compact)(struct hfd_store *store, uint64_t revision, hf_nsec deadline,
                       hfd_store_fn done, void *ctx);
        /* Reads the store's current revision, linearizable. It is cheap: it returns no keys. */
        int (*revision)(struct hfd_store *store, hf_nsec deadline, hfd_store_fn done, void *ctx);
        /* New operations are refused with HF_E_CLOSED. Running operations and watches end soon,
         * with HF_E_CANCELED unless their outcome is known. Idempotent; does not block. */
        void (*stop)(struct hfd_store *store);
        /* Stops the store, blocks until every callback has returned, and frees it. Must not be
         * called from a callback, nor while another thread uses the store. */
        void (*free)(struct hfd_store *store);
        /* A counter that increases at least every few seconds while the store's threads are alive.
         * While one of them hangs, it keeps its value or is 0. The watchdog checks it. */
        uint64_t (*iterations)(struct hfd_store *store);
};

/* The first member of every store. Immutable. */
struct hfd_store {
        const struct hfd_store_ops *ops;
        const struct hf_host *host; /* borrowed */
};

/* Every store makes these checks before a transaction. 0, -EINVAL or HF_E_TOO_LARGE. Pure. */
int hfd_txn_check(const struct hfd_txn *txn);
/* The bytes of all keys and values that the transaction compares or writes. It has passed
 * hfd_txn_check. Pure. */
size_t hfd_txn_bytes(const struct hfd_txn *txn);
/* The largest transaction that the stores other than etcd accept. It is etcd's default limit for a
 * request, without 4 KiB for what a copy needs beside the value: further keys, and their encoding.
 * So their objects can move to etcd. */
#define HFD_TXN_BYTES_MAX ((1536 - 4) * 1024)
/* The same for a copy: etcd's limit and 4 KiB for the further keys. So objects of etcd can move to
 * the other stores, also those that a client could not write there. */
#define HFD_TXN_COPIED_BYTES_MAX ((1536 + 4) * 1024)
/* Whether the stores other than etcd refuse the transaction (HF_E_TOO_LARGE). Pure. */
bool hfd_txn_is_too_large(const struct hfd_txn *txn);
