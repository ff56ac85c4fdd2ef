/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The versions of the keys in the file of a SQLite store: what the operations of the storage port
 * (server/storage/store.h) read and write, one after the other, inside a transaction that the
 * caller has begun. Private to server/storage/sqlite.
 *
 * Thread: that of the connection. All functions return 0, or an error as hfd_sqlite_db_fail does.
 * -ENOMEM may come without a message.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/storage/sqlite/database.h"
#include "server/storage/store.h"

/* A growing list of keys with their values, owned. */
struct hfd_sqlite_kvs {
        struct hfd_kv *kvs;
        size_t n, space;
};
void hfd_sqlite_kvs_deinit(struct hfd_sqlite_kvs *kvs);
/* Takes ownership of key and value, also on failure. key NULL: the caller had no memory for the
 * key, which makes this fail. value NULL: a deletion, or only keys are listed. 0 or -ENOMEM. */
int hfd_sqlite_kvs_add(struct hfd_sqlite_kvs *kvs, char *key, struct hf__buf *value,
                       uint64_t revision, uint64_t created);

/* The revision of the newest write; 1 = nothing was written yet. */
int hfd_sqlite_revision(struct hfd_sqlite_db *db, uint64_t *ret_revision,
                        struct hf_status *reterr_status);
/* Adds the key's current version, if it has one. */
int hfd_sqlite_get(struct hfd_sqlite_db *db, const char *key, struct hfd_sqlite_kvs *kvs,
                   struct hf_status *reterr_status);

struct hfd_sqlite_range {
        const char *prefix, *start; /* start does not sort before prefix */
        uint64_t revision;          /* the state after this revision */
        size_t limit;               /* 0 = none */
        bool keys_only;
        /* Called for each row; false: nobody wants the result any more, so hfd_sqlite_list stops.
         * It then returns 0 with an incomplete result. */
        bool (*go_on)(void *ctx);
        void *ctx;
};
/* Adds the keys of the range that existed at its revision, in order. *ret_more: further keys follow
 * after the limit. */
int hfd_sqlite_list(struct hfd_sqlite_db *db, const struct hfd_sqlite_range *range,
                    struct hfd_sqlite_kvs *kvs, bool *ret_more, struct hf_status *reterr_status);

/* The newest row of a key, as far as it was read. */
struct hfd_sqlite_current {
        const char *key; /* borrowed; NULL = nothing is known */
        int64_t id;      /* 0 = there is no row */
        uint64_t created;
        bool exists;
};

/* Whether all compares hold. *ret_first: the row that the first compare has read, if that compare
 * is HFD_MOD_EQUALS; most transactions then write the same key, and need not read it again. Its key
 * is borrowed from txn. After another compare *ret_first says that nothing is known. */
int hfd_sqlite_compare(struct hfd_sqlite_db *db, const struct hfd_txn *txn, bool *ret_holds,
                       struct hfd_sqlite_current *ret_first, struct hf_status *reterr_status);
/* Does all ops as revision *revision + 1, and increments *revision if one of them wrote. first:
 * what hfd_sqlite_compare has read; nothing was written since. Adds to db->written what
 * hfd_sqlite_log would read. */
int hfd_sqlite_write(struct hfd_sqlite_db *db, const struct hfd_txn *txn,
                     const struct hfd_sqlite_current *first, uint64_t *revision,
                     struct hf_status *reterr_status);

/*
 * Adds the writes from *position (a revision) on. Stops at the end of the revision in which max of
 * them or 4 MiB of values were reached. *position becomes the first revision that is not included.
 * *ret_more: more were written.
 */
int hfd_sqlite_log(struct hfd_sqlite_db *db, uint64_t *position, size_t max,
                   struct hfd_sqlite_kvs *kvs, bool *ret_more, struct hf_status *reterr_status);

/*
 * Removes some versions that no read at the compacted revision or later can return: it looks at up
 * to max rows, 256 at most, after the meta value "swept", and increases "swept". *ret_done: nothing
 * is left to remove.
 */
int hfd_sqlite_sweep(struct hfd_sqlite_db *db, size_t max, bool *ret_done,
                     struct hf_status *reterr_status);
