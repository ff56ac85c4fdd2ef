/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer of a SQLite store. It takes all transactions that wait, runs them one after the other
 * in one transaction of SQLite, and commits: so many writes share one wait for the disk. Only then
 * are they answered. Between batches it removes compacted versions, in small steps.
 *
 * Invariants:
 *  - a write is answered with success only after its commit has returned;
 *  - if anything but a compare fails, the whole batch is rolled back, and nothing of it was
 * written. Only when the commit itself fails is the outcome unknown;
 *  - other processes may write between two batches, so each batch reads the revision anew.
 */
#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "server/storage/sqlite/sqlite.h"
#include "server/storage/sqlite/versions.h"

#define BATCH_MAX  256
#define SWEEP_ROWS 128 /* in one step */
/* The pause between two steps while nothing else is to be done: each step waits for the disk. */
#define SWEEP_PAUSE (2 * HF_NSEC_PER_MSEC)

/* What the writer remembers between two batches. Used by its thread only. */
struct writer {
        struct hfd_sqlite *sqlite;
        uint64_t compacted; /* sweep up to this revision; 0 = nothing is known to be left */
        bool sweeping;
};

/* ---- one operation ---- */

static void fail_op(struct hfd_sqlite_op *op, int error, const struct hf_status *why) {
        hfd_sqlite_kvs_deinit(&op->kvs);
        op->reply = (struct hfd_store_reply){.error = error, .status = *why};
        op->reply.status.error = error;
}

/* A compare failed: the reply has the keys that were asked for. */
static int answer_conflict(struct hfd_sqlite_db *db, struct hfd_sqlite_op *op,
                           struct hf_status *reterr_status) {
        int r = 0;

        op->reply.error =
                hf_fail(&op->reply.status, HF_E_CONFLICT, "a compare of the transaction failed");
        for (size_t i = 0; i < op->txn.n_get_on_failure && r == 0; i++)
                r = hfd_sqlite_get(db, op->txn.get_on_failure[i], &op->kvs, reterr_status);
        return r;
}

static int run_txn(struct hfd_sqlite_db *db, struct hfd_sqlite_op *op, uint64_t *revision,
                   struct hf_status *reterr_status) {
        bool holds;

        if (op->reply.error != 0) /* too large; known since its start */
                return 0;
        int r = hfd_sqlite_compare(db, &op->txn, &holds, reterr_status);
        if (r == 0 && holds)
                r = hfd_sqlite_write(db, &op->txn, revision, reterr_status);
        else if (r == 0)
                r = answer_conflict(db, op, reterr_status);
        op->reply.revision = *revision;
        return r;
}

static int run_compact(struct writer *writer, struct hfd_sqlite_db *db, struct hfd_sqlite_op *op,
                       uint64_t revision, struct hf_status *reterr_status) {
        uint64_t compacted;
        int r = hfd_sqlite_db_meta(db, "compacted", &compacted, reterr_status);

        op->reply.revision = revision;
        if (r != 0)
                return r;
        if (op->revision <= compacted || op->revision > revision) {
                bool gone = op->revision <= compacted;

                op->reply.error = hf_fail(&op->reply.status, gone ? HF_E_GONE : HF_E_INVALID,
                                          "revision %llu is %s", (unsigned long long)op->revision,
                                          gone ? "compacted" : "not reached yet");
                return 0;
        }
        writer->compacted = op->revision;
        writer->sweeping = true;
        return hfd_sqlite_db_set_meta(db, "compacted", op->revision, reterr_status);
}

/* ---- a batch ---- */

static int run_ops(struct writer *writer, struct hfd_sqlite_op *ops, bool *ret_wrote,
                   struct hf_status *reterr_status) {
        struct hfd_sqlite_db *db = &writer->sqlite->write_db;
        uint64_t revision, before, history = 0;
        int r = hfd_sqlite_db_meta(db, "history", &history, reterr_status);

        if (r == 0)
                r = hfd_sqlite_revision(db, &revision, reterr_status);
        before = r == 0 ? revision : 0;
        for (struct hfd_sqlite_op *op = ops; op && r == 0; op = op->next) {
                op->reply.cluster_id = history;
                r = op->kind == HFD_SQLITE_TXN
                            ? run_txn(db, op, &revision, reterr_status)
                            : run_compact(writer, db, op, revision, reterr_status);
        }
        *ret_wrote = r == 0 && revision != before;
        return r;
}

/* Tells the watchers of this and of the other processes that there are new rows. */
static void notify(struct hfd_sqlite *sqlite) {
        hfd_sqlite_wake_watcher(sqlite);
        if (sqlite->notify_fd >= 0)
                (void)!pwrite(sqlite->notify_fd, "n", 1, 0);
}

static void run_batch(struct writer *writer, struct hfd_sqlite_op *ops) {
        struct hfd_sqlite_db *db = &writer->sqlite->write_db;
        struct hf_status status = {0};
        bool wrote = false, committing = false;
        int r = hfd_sqlite_db_run(db, HFD_SQL_BEGIN_WRITE, &status);

        if (r == 0)
                r = run_ops(writer, ops, &wrote, &status);
        if (r == 0) {
                committing = true;
                r = hfd_sqlite_db_run(db, HFD_SQL_COMMIT, &status);
        }
        if (r != 0 && sqlite3_get_autocommit(db->handle) == 0) {
                struct hf_status ignored = {0};

                (void)hfd_sqlite_db_run(db, HFD_SQL_ROLLBACK, &ignored);
        }
        /* A commit that failed may be on the disk all the same. */
        if (r != 0 && r != -ENOSPC)
                r = committing && r != HF_E_UNAVAILABLE ? HF_E_TIMEOUT : HF_E_UNAVAILABLE;
        if (wrote && r == 0)
                notify(writer->sqlite);
        while (ops) {
                struct hfd_sqlite_op *op = ops;

                ops = op->next;
                if (r != 0)
                        fail_op(op, r, &status);
                hfd_sqlite_answer(writer->sqlite, op);
        }
}

/* ---- compaction ---- */

/* One step: a transaction of its own. When it fails, the next step tries again. */
static void sweep_step(struct writer *writer) {
        struct hfd_sqlite_db *db = &writer->sqlite->write_db;
        struct hf_status status = {0};
        bool done = false;
        int r = hfd_sqlite_db_run(db, HFD_SQL_BEGIN_WRITE, &status);

        if (r == 0)
                r = hfd_sqlite_sweep(db, writer->compacted, SWEEP_ROWS, &done, &status);
        if (r == 0)
                r = hfd_sqlite_db_run(db, HFD_SQL_VACUUM, &status);
        if (r == 0)
                r = hfd_sqlite_db_run(db, HFD_SQL_COMMIT, &status);
        if (r != 0 && sqlite3_get_autocommit(db->handle) == 0)
                (void)hfd_sqlite_db_run(db, HFD_SQL_ROLLBACK, &status);
        if (r == 0 && done)
                writer->sweeping = false;
}

/* A compaction that the previous process has not finished goes on. */
static void resume_sweep(struct writer *writer) {
        struct hf_status status = {0};

        writer->sweeping = hfd_sqlite_db_meta(&writer->sqlite->write_db, "compacted",
                                              &writer->compacted, &status) == 0 &&
                           writer->compacted > 0;
}

void *hfd_sqlite_writer_main(void *ctx) {
        struct hfd_sqlite *sqlite = ctx;
        struct writer writer = {.sqlite = sqlite};
        const struct hf_clock *clock = hf_host_clock(sqlite->store.host);
        pthread_cond_t *wake = &sqlite->queues[HFD_SQLITE_WRITES].wake;

        resume_sweep(&writer);
        pthread_mutex_lock(&sqlite->mu);
        for (;;) {
                struct hfd_sqlite_op *ops =
                        hfd_sqlite_take_locked(sqlite, HFD_SQLITE_WRITES, BATCH_MAX);
                bool closing = sqlite->closing;

                if (!ops && closing)
                        break;
                if (!ops && !writer.sweeping) {
                        (void)clock->wait(clock->ctx, wake, &sqlite->mu, HF_NSEC_NEVER);
                        continue;
                }
                pthread_mutex_unlock(&sqlite->mu);
                if (ops)
                        run_batch(&writer, ops);
                if (writer.sweeping)
                        sweep_step(&writer);
                pthread_mutex_lock(&sqlite->mu);
                if (!ops && writer.sweeping && !sqlite->closing)
                        (void)clock->wait(clock->ctx, wake, &sqlite->mu,
                                          hf_now(clock) + SWEEP_PAUSE);
        }
        pthread_mutex_unlock(&sqlite->mu);
        return NULL;
}
