/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer of a SQLite store. It takes transactions that wait (a batch), runs them one after the
 * other in one transaction of SQLite, and commits. In this way many writes share one wait for the
 * disk. Their replies are sent after the commit. Between batches it removes compacted versions, in
 * small steps.
 *
 * Invariants:
 *  - a write is answered with success only after its commit has returned;
 *  - a compare that fails, or a compaction at a revision that is compacted or not reached, concerns
 *    its own operation only. If anything else fails before the commit, the batch is rolled back,
 *    and nothing of it is written. The outcome is unknown only if the commit itself fails, or to a
 *    caller whose deadline passes meanwhile (operation.h);
 *  - other processes may write between two batches, so each batch reads the revision anew; the
 *    remembered rows (heads.h) are used only if the revision is still the same.
 */
#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "base/mailbox.h"
#include "base/thread.h"
#include "server/storage/sqlite/engine/wal_file.h"
#include "server/storage/sqlite/sqlite.h"
#include "server/storage/sqlite/versions.h"

#define BATCH_MAX 256
/* A larger batch would delay the next write, of a Lease for example, which has to wait until the
 * batch is on the disk. */
#define BATCH_BYTES (1024 * 1024)
#define SWEEP_ROWS  128 /* in one step */
/* The least pause between two steps: each step waits for the disk. */
#define SWEEP_PAUSE (2 * HF_NSEC_PER_MSEC)
/* The pauses after steps that failed. */
#define FIRST_RETRY (1 * HF_NSEC_PER_SEC)
#define LAST_RETRY  (60 * HF_NSEC_PER_SEC)
/* SQLite keeps the pages of its last writes, up to 1 MiB. They are freed if no batch comes for
 * IDLE_AFTER, but only after IDLE_WRITES writes: a few renewals of Leases need the same pages
 * again. */
#define IDLE_AFTER  (500 * HF_NSEC_PER_MSEC)
#define IDLE_WRITES 64
/* Clients that write all the time send the next write when they have the reply to the last one. If
 * a batch took the first of these writes alone, the others would need a commit of their own. So
 * after a batch with GATHERS_AFTER or more writes the next batch waits for more writes, but at most
 * as long as that batch took, and not longer than GATHER_MAX. */
#define GATHERS_AFTER 16
#define GATHER_MAX    HF_NSEC_PER_MSEC
/* Batches with fewer writes are not worth the memory in which the newest rows are remembered. */
#define SHARED_BATCH 4

/* The writer's state between two batches. Used by its thread only. */
struct writer {
        struct hfd_sqlite *sqlite;
        bool sweeping;      /* compacted versions, or their pages, may be left to remove */
        hf_nsec sweep_at;   /* when the next step may begin */
        hf_nsec pause;      /* after a step; longer after failures */
        size_t n_writes;    /* since the pages were released */
        hf_nsec release_at; /* if no further batch comes */
        size_t gathers;     /* how many writes the next batch waits for */
        hf_nsec gathers_until;
};

/* ---- one operation ---- */

static void fail_op(struct hfd_sqlite_op *op, int error, const struct hf_status *why) {
        hfd_sqlite_kvs_deinit(&op->kvs);
        op->reply = (struct hfd_store_reply){.error = error, .status = *why};
        op->reply.status.error = error;
}

/* A compare failed: fills the reply with the keys that were asked for. */
static int fill_conflict(struct hfd_sqlite_db *db, struct hfd_sqlite_op *op,
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
        struct hfd_sqlite_current first;
        bool holds;

        int r = hfd_sqlite_compare(db, &op->txn, &holds, &first, reterr_status);
        if (r == 0 && holds)
                r = hfd_sqlite_write(db, &op->txn, &first, revision, reterr_status);
        else if (r == 0)
                r = fill_conflict(db, op, reterr_status);
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
        writer->sweeping = true;
        return hfd_sqlite_db_set_meta(db, "compacted", op->revision, reterr_status);
}

/* ---- a batch ---- */

/* Whether several operations share the batch, so that it is worth while to remember its rows. */
static bool is_shared(const struct hfd_sqlite_op *ops) {
        unsigned n = 0;

        for (; ops && n < SHARED_BATCH; ops = ops->next)
                n++;
        return n == SHARED_BATCH;
}

/* The result of a batch: the state of the file if the batch is committed. */
struct outcome {
        uint64_t history, before, revision;
        struct hfd_sqlite_kvs written; /* owned */
        bool wrote;                    /* versions were written; a compaction does not count */
        bool all_noted;                /* `written` has all writes of the batch */
};

static int run_ops(struct writer *writer, struct hfd_sqlite_op *ops, struct outcome *ret_outcome,
                   struct hf_status *reterr_status) {
        struct hfd_sqlite_db *db = &writer->sqlite->write_db;
        uint64_t revision = 0, before, history = 0;
        int r = hfd_sqlite_db_meta(db, "history", &history, reterr_status);

        db->written = &ret_outcome->written;
        if (r == 0)
                r = hfd_sqlite_revision(db, &revision, reterr_status);
        before = revision;
        if (r == 0)
                hfd_heads_begin(&db->heads, history, revision, is_shared(ops));
        for (struct hfd_sqlite_op *op = ops; op && r == 0; op = op->next) {
                op->reply.cluster_id = history;
                r = op->kind == HFD_SQLITE_TXN
                            ? run_txn(db, op, &revision, reterr_status)
                            : run_compact(writer, db, op, revision, reterr_status);
        }
        ret_outcome->history = history;
        ret_outcome->before = before;
        ret_outcome->revision = revision;
        ret_outcome->wrote = r == 0 && revision != before;
        ret_outcome->all_noted = db->written != NULL;
        db->written = NULL;
        return r;
}

/* Hands the committed writes to the watcher. If one was not noted, the watcher reads the file. If
 * there is no watch, nobody needs them. */
static void leave_to_watcher(struct hfd_sqlite *sqlite, struct outcome *outcome) {
        struct hfd_sqlite_commits commits = {.history = outcome->history,
                                             .first = outcome->before + 1,
                                             .next = outcome->revision + 1,
                                             .writes = outcome->written};

        outcome->written = (struct hfd_sqlite_kvs){0};
        pthread_mutex_lock(&sqlite->mu);
        if (sqlite->watches && outcome->all_noted)
                hfd_sqlite_commits_add(&sqlite->commits, &commits);
        pthread_mutex_unlock(&sqlite->mu);
        hfd_sqlite_commits_deinit(&commits);
}

/* Tells the watchers of this and of the other processes that there are new rows. */
static void notify_watchers(struct hfd_sqlite *sqlite) {
        hfd_sqlite_file_lock_notify(&sqlite->file_lock);
        if (atomic_load(&sqlite->without_notices))
                hfd_sqlite_wake_watcher(sqlite);
}

/* Takes the lock of the stores that share the file, and begins a transaction. end_transaction must
 * follow, also after an error. */
static int begin_transaction(struct hfd_sqlite *sqlite, struct hf_status *reterr_status) {
        int r = hfd_sqlite_file_lock_take(&sqlite->file_lock, reterr_status);

        return r == 0 ? hfd_sqlite_db_run(&sqlite->write_db, HFD_SQL_BEGIN_WRITE, reterr_status)
                      : r;
}

/* Rolls back a transaction that was not committed, and releases the lock. */
static void end_transaction(struct hfd_sqlite *sqlite) {
        struct hf_status ignored = {0};

        hfd_sqlite_wal_drop(sqlite->write_db.handle, false);
        if (hfd_sqlite.get_autocommit(sqlite->write_db.handle) == 0)
                (void)hfd_sqlite_db_run(&sqlite->write_db, HFD_SQL_ROLLBACK, &ignored);
        hfd_sqlite_file_lock_release(&sqlite->file_lock);
}

static void run_batch(struct writer *writer, struct hfd_sqlite_op *ops) {
        struct hfd_sqlite_db *db = &writer->sqlite->write_db;
        struct hf_status status = {0};
        struct outcome outcome = {0};
        bool committing = false;
        int r = begin_transaction(writer->sqlite, &status);

        if (r == 0)
                r = run_ops(writer, ops, &outcome, &status);
        if (r == 0) {
                committing = true;
                r = hfd_sqlite_db_run(db, HFD_SQL_COMMIT, &status);
        }
        if (r == 0)
                hfd_heads_commit(&db->heads, outcome.history, outcome.revision);
        else
                hfd_heads_clear(&db->heads);
        end_transaction(writer->sqlite);
        /* A commit that failed may be on the disk all the same, except that a locked file was not
         * changed. A file that is full, or was found damaged before the commit, must not look like
         * a temporary failure. */
        if (r != 0 && r != -ENOSPC && (committing || r != -EBADMSG))
                r = committing && r != HF_E_UNAVAILABLE ? HF_E_TIMEOUT : HF_E_UNAVAILABLE;
        bool has_news = outcome.wrote && r == 0;
        if (has_news)
                leave_to_watcher(writer->sqlite, &outcome);
        hfd_sqlite_kvs_deinit(&outcome.written);
        hf__mailbox_delay_wakes(); /* of the threads that pass the replies on */
        while (ops) {
                struct hfd_sqlite_op *op = ops;

                ops = op->next;
                if (r != 0)
                        fail_op(op, r, &status);
                hfd_sqlite_respond(writer->sqlite, op);
        }
        hf__mailbox_wake_delayed();
        /* After the replies: a notice wakes the watchers of all processes, and the threads that
         * wait for a reply would have to wait for a processor, too. */
        if (has_news)
                notify_watchers(writer->sqlite);
}

/* ---- compaction ---- */

/* After each failure in a row the next step waits twice as long as after the previous one, from
 * FIRST_RETRY up to LAST_RETRY. */
static void put_off_sweep(struct writer *writer, const struct hf_status *why) {
        const struct hf_host *host = writer->sqlite->store.host;

        if (writer->pause == SWEEP_PAUSE)
                hf_log(&host->log, HF_LOG_WARNING, "store",
                       "old versions of objects cannot be removed from the store's file, trying "
                       "again: %s",
                       why->message);
        hf_nsec pause = 2 * writer->pause;
        if (pause < FIRST_RETRY)
                pause = FIRST_RETRY;
        writer->pause = pause < LAST_RETRY ? pause : LAST_RETRY;
        writer->sweep_at = hf_now(hf_host_clock(host)) + writer->pause;
}

static int count_free_pages(struct hfd_sqlite_db *db, int64_t *ret_n,
                            struct hf_status *reterr_status) {
        sqlite3_stmt *statement = hfd_sqlite_db_statement(db, HFD_SQL_FREE_PAGES);

        if (!statement || hfd_sqlite.step(statement) != SQLITE_ROW)
                return hfd_sqlite_db_fail(db, reterr_status);
        *ret_n = hfd_sqlite.column_int64(statement, 0);
        (void)hfd_sqlite.reset(statement);
        return 0;
}

/* Gives some free pages back. *ret_done: the next step would give back no more. */
static int give_back_pages(struct hfd_sqlite_db *db, bool *ret_done,
                           struct hf_status *reterr_status) {
        int64_t before = 0, after = 0;
        int r = count_free_pages(db, &before, reterr_status);

        if (r == 0)
                r = hfd_sqlite_db_run(db, HFD_SQL_VACUUM, reterr_status);
        if (r == 0)
                r = count_free_pages(db, &after, reterr_status);
        *ret_done = after == 0 || after == before;
        return r;
}

/* Removes some compacted versions, in a transaction of its own. A large value has many pages, so
 * the steps go on until their pages are given back, too. */
static void sweep_step(struct writer *writer) {
        struct hfd_sqlite_db *db = &writer->sqlite->write_db;
        struct hf_status status = {0};
        bool swept = false, vacuumed = false;
        int r = begin_transaction(writer->sqlite, &status);

        if (r == 0)
                r = hfd_sqlite_sweep(db, SWEEP_ROWS, &swept, &status);
        if (r == 0)
                r = give_back_pages(db, &vacuumed, &status);
        if (r == 0)
                r = hfd_sqlite_db_run(db, HFD_SQL_COMMIT, &status);
        end_transaction(writer->sqlite);
        if (r != 0) {
                put_off_sweep(writer, &status);
                return;
        }
        writer->sweeping = !swept || !vacuumed;
        writer->pause = SWEEP_PAUSE;
        writer->sweep_at = hf_now(hf_host_clock(writer->sqlite->store.host)) + writer->pause;
}

/* ---- the thread ---- */

static bool is_sweep_due(const struct writer *writer) {
        return writer->sweeping &&
               hf_now(hf_host_clock(writer->sqlite->store.host)) >= writer->sweep_at;
}

static size_t count_ops(const struct hfd_sqlite_op *ops) {
        size_t n = 0;

        for (; ops; ops = ops->next)
                n++;
        return n;
}

/* How many writes the next batch waits for, after a batch of n writes: most of the clients that
 * wrote in that batch, or have sent a write meanwhile, are expected to write again. */
static size_t expected_writes(struct hfd_sqlite *sqlite, size_t n) {
        pthread_mutex_lock(&sqlite->mu);
        n += sqlite->queues[HFD_SQLITE_WRITES].n;
        pthread_mutex_unlock(&sqlite->mu);
        return n * 3 / 4 < BATCH_MAX ? n * 3 / 4 : BATCH_MAX;
}

static void write_batch(struct writer *writer, struct hfd_sqlite_op *ops) {
        const struct hf_clock *clock = hf_host_clock(writer->sqlite->store.host);
        size_t n = count_ops(ops);
        hf_nsec begin = hf_now(clock);

        run_batch(writer, ops);
        hf_nsec end = hf_now(clock), took = end - begin;
        writer->n_writes += n;
        writer->release_at = end + IDLE_AFTER;
        writer->gathers = n < GATHERS_AFTER ? 0 : expected_writes(writer->sqlite, n);
        writer->gathers_until = end + (took < GATHER_MAX ? took : GATHER_MAX);
}

/* Whether to wait for more writes before the next batch begins. */
static bool gathers_locked(const struct writer *writer) {
        const struct hfd_sqlite *sqlite = writer->sqlite;
        size_t n = sqlite->queues[HFD_SQLITE_WRITES].n;

        hf__mutex_assert_held(&writer->sqlite->mu);
        return n > 0 && n < writer->gathers && !sqlite->closing &&
               hf_now(hf_host_clock(sqlite->store.host)) < writer->gathers_until;
}

static void run_work(struct writer *writer, struct hfd_sqlite_op *ops) {
        hfd_sqlite_set_busy(writer->sqlite, HFD_SQLITE_WRITES, true);
        if (ops)
                write_batch(writer, ops);
        if (is_sweep_due(writer))
                sweep_step(writer);
        hfd_sqlite_set_busy(writer->sqlite, HFD_SQLITE_WRITES, false);
}

static bool is_release_due(const struct writer *writer) {
        return writer->n_writes >= IDLE_WRITES &&
               hf_now(hf_host_clock(writer->sqlite->store.host)) >= writer->release_at;
}

/* Frees the state that is kept for the next writes. */
static void release_pages(struct writer *writer) {
        hfd_heads_clear(&writer->sqlite->write_db.heads);
        hfd_sqlite_wal_drop(writer->sqlite->write_db.handle, true);
        (void)hfd_sqlite.db_release_memory(writer->sqlite->write_db.handle);
        writer->n_writes = 0;
}

/* When the writer has something to do if no transaction comes. */
static hf_nsec next_due(const struct writer *writer) {
        hf_nsec sweep = writer->sweeping ? writer->sweep_at : HF_NSEC_NEVER;
        hf_nsec release = writer->n_writes >= IDLE_WRITES ? writer->release_at : HF_NSEC_NEVER;

        return sweep < release ? sweep : release;
}

void *hfd_sqlite_writer_main(void *ctx) {
        struct hfd_sqlite *sqlite = ctx;
        /* A compaction that a previous process has not finished goes on. */
        struct writer writer = {.sqlite = sqlite, .sweeping = true, .pause = SWEEP_PAUSE};
        const struct hf_clock *clock = hf_host_clock(sqlite->store.host);
        struct hfd_sqlite_queue *queue = &sqlite->queues[HFD_SQLITE_WRITES];
        pthread_cond_t *wake = &queue->wake;

        pthread_mutex_lock(&sqlite->mu);
        for (;;) {
                if (gathers_locked(&writer)) {
                        queue->wakes_at = writer.gathers;
                        (void)clock->wait(clock->ctx, wake, &sqlite->mu, writer.gathers_until);
                        queue->wakes_at = 0;
                        continue;
                }
                struct hfd_sqlite_op *ops =
                        hfd_sqlite_take_locked(sqlite, HFD_SQLITE_WRITES, BATCH_MAX, BATCH_BYTES);

                if (!ops && sqlite->closing)
                        break;
                bool releases = !ops && is_release_due(&writer);
                if (!ops && !releases && !is_sweep_due(&writer)) {
                        (void)clock->wait(clock->ctx, wake, &sqlite->mu, next_due(&writer));
                        continue;
                }
                pthread_mutex_unlock(&sqlite->mu);
                if (releases)
                        release_pages(&writer);
                else
                        run_work(&writer, ops);
                pthread_mutex_lock(&sqlite->mu);
        }
        pthread_mutex_unlock(&sqlite->mu);
        return NULL;
}
