/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two reading threads of a SQLite store.
 *
 * Invariant: an operation begins its read transaction after it was started. SQLite then shows it
 * each commit that was completed before, by any process, so reads are linearizable.
 *
 * A list reads many pages that later operations seldom need, and most lists are made when an
 * instance starts. So when no other list waits, the pages in SQLite's cache are freed.
 */
#include <assert.h>

#include "base/thread.h"
#include "server/storage/sqlite/sqlite.h"
#include "server/storage/sqlite/versions.h"

/* A list may take long. After this number of rows it notes its progress, so that it does not count
 * as hanging (hfd_sqlite_set_busy). */
#define ROWS_BETWEEN_NOTES 1024

struct reading {
        struct hfd_sqlite *sqlite;
        struct hfd_sqlite_op *op;
        unsigned n_rows;
};

static bool may_continue_reading(void *ctx) {
        struct reading *reading = ctx;

        if (++reading->n_rows % ROWS_BETWEEN_NOTES == 0)
                hfd_sqlite_set_busy(reading->sqlite, HFD_SQLITE_LISTS, true);
        return !atomic_load(&reading->sqlite->canceled) && !atomic_load(&reading->op->responded);
}

static int read_list(struct hfd_sqlite *sqlite, struct hfd_sqlite_db *db, struct hfd_sqlite_op *op,
                     struct hf_status *reterr_status) {
        struct reading reading = {.sqlite = sqlite, .op = op};
        struct hfd_sqlite_range range = {.prefix = op->key,
                                         .start = op->start,
                                         .revision =
                                                 op->revision ? op->revision : op->reply.revision,
                                         .limit = op->limit,
                                         .keys_only = op->keys_only,
                                         .go_on = may_continue_reading,
                                         .ctx = &reading};
        uint64_t compacted;
        int r = hfd_sqlite_db_meta(db, "compacted", &compacted, reterr_status);

        if (r != 0)
                return r;
        if (range.revision < compacted || range.revision > op->reply.revision) {
                bool gone = range.revision < compacted;

                op->reply.error = hf_fail(&op->reply.status, gone ? HF_E_GONE : HF_E_INVALID,
                                          "revision %llu is %s", (unsigned long long)range.revision,
                                          gone ? "compacted" : "not reached yet");
                return 0;
        }
        r = hfd_sqlite_list(db, &range, &op->kvs, &op->reply.more, reterr_status);
        if (r == 0 && atomic_load(&sqlite->canceled))
                r = hf_fail(reterr_status, HF_E_CANCELED, "the store was stopped");
        return r;
}

/* Everything that a reply says belongs to one snapshot of the file. */
static void run_read(struct hfd_sqlite *sqlite, struct hfd_sqlite_db *db,
                     struct hfd_sqlite_op *op) {
        struct hf_status status = {0}, ignored = {0};
        int r = hfd_sqlite_db_run(db, HFD_SQL_BEGIN_READ, &status);

        if (r == 0)
                r = hfd_sqlite_revision(db, &op->reply.revision, &status);
        if (r == 0)
                r = hfd_sqlite_db_meta(db, "history", &op->reply.cluster_id, &status);
        if (r == 0 && op->kind == HFD_SQLITE_GET)
                r = hfd_sqlite_get(db, op->key, &op->kvs, &status);
        else if (r == 0 && op->kind == HFD_SQLITE_LIST)
                r = read_list(sqlite, db, op, &status);
        if (hfd_sqlite.get_autocommit(db->handle) == 0)
                (void)hfd_sqlite_db_run(db, HFD_SQL_COMMIT, &ignored);
        if (r != 0) {
                hfd_sqlite_kvs_deinit(&op->kvs);
                op->reply = (struct hfd_store_reply){.error = r, .status = status};
                op->reply.status.error = r;
        }
        hfd_sqlite_respond(sqlite, op);
}

static void *run_reads(struct hfd_sqlite *sqlite, struct hfd_sqlite_db *db,
                       enum hfd_sqlite_queue_kind queue) {
        const struct hf_clock *clock = hf_host_clock(sqlite->store.host);
        bool has_pages = false;

        pthread_mutex_lock(&sqlite->mu);
        for (;;) {
                struct hfd_sqlite_op *op = hfd_sqlite_take_locked(sqlite, queue, 1, SIZE_MAX);

                if (op) {
                        pthread_mutex_unlock(&sqlite->mu);
                        hfd_sqlite_set_busy(sqlite, queue, true);
                        run_read(sqlite, db, op);
                        has_pages = queue == HFD_SQLITE_LISTS;
                        hfd_sqlite_set_busy(sqlite, queue, false);
                        pthread_mutex_lock(&sqlite->mu);
                } else if (has_pages && !sqlite->closing) {
                        has_pages = false;
                        pthread_mutex_unlock(&sqlite->mu);
                        (void)hfd_sqlite.db_release_memory(db->handle);
                        pthread_mutex_lock(&sqlite->mu);
                } else if (sqlite->closing) {
                        break;
                } else {
                        (void)clock->wait(clock->ctx, &sqlite->queues[queue].wake, &sqlite->mu,
                                          HF_NSEC_NEVER);
                }
        }
        pthread_mutex_unlock(&sqlite->mu);
        return NULL;
}

void *hfd_sqlite_reader_main(void *ctx) {
        struct hfd_sqlite *sqlite = ctx;

        return run_reads(sqlite, &sqlite->read_db, HFD_SQLITE_READS);
}

void *hfd_sqlite_lister_main(void *ctx) {
        struct hfd_sqlite *sqlite = ctx;

        return run_reads(sqlite, &sqlite->list_db, HFD_SQLITE_LISTS);
}
