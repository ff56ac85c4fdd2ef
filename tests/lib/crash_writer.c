/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash-writer FILE PLAN: opens a SQLite store, does what the plan says (crash_plan.h: its number),
 * and writes struct crash_record to descriptor 3. The shim ends it somewhere, or fills its disk.
 *
 * With CRASH_SHIM_ROOM it makes room after PATIENT_FAILURES phases with a write that failed; from
 * then on each write must succeed. With CRASH_SHIM_WHEN=fail one phase may fail, or the opening of
 * the file. Its status is 0, or 1 after a line on stderr.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "crash_plan.h"
#include "server/storage/sqlite/store.h"
#include "store_client.h"
#include "store_reply.h"
#include "time_units.h"

enum { RECORDS_FD = 3, PHASE_MAX = 8, PATIENT_FAILURES = 3 };

static const struct hf_host host = {.size = sizeof(struct hf_host)};
static enum crash_plan_kind plan;

#define ENOUGH_ROOM ((off_t)1 << 40)

__attribute__((format(printf, 1, 2))) _Noreturn static void fail(const char *format, ...) {
        va_list list;

        va_start(list, format);
        (void)vfprintf(stderr, format, list);
        va_end(list);
        (void)fputc('\n', stderr);
        exit(1);
}

static void record(enum crash_record_kind kind, int error, uint64_t index, uint64_t revision) {
        struct crash_record it = {kind, error, index, revision};

        if (write(RECORDS_FD, &it, sizeof it) != (ssize_t)sizeof it)
                abort();
}

static void on_event(void *ctx, const struct hfd_watch_event *events, size_t n) {
        (void)ctx;
        for (size_t i = 0; i < n; i++) {
                size_t index = crash_plan_find(plan, events[i].kv.key, events[i].kv.value);

                /* A deletion in a write that also puts: the event of the put has the number. */
                if (index != SIZE_MAX)
                        record(CRASH_SEEN, 0, index, events[i].revision);
        }
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        (void)ctx;
        (void)error;
        (void)status;
}

/* ---- a write ---- */

struct running {
        size_t index;
        struct store_reply reply;
};

/* Writes the record first, because the phase ends when the reply is filled. */
static void on_reply(void *ctx, const struct hfd_store_reply *reply) {
        struct running *running = ctx;

        record(reply->error == 0 ? CRASH_ACKED : CRASH_FAILED, reply->error, running->index,
               reply->revision);
        store_reply_fill(&running->reply, reply);
}

static void begin(struct hfd_store *store, struct running *running, size_t index,
                  const struct crash_plan_write *write) {
        struct hfd_op ops[CRASH_PLAN_OPS];
        struct hfd_txn txn = {.ops = ops, .n_ops = write->n_ops};

        running->index = index;
        store_reply_init(&running->reply);
        for (size_t i = 0; i < write->n_ops; i++) {
                const struct crash_plan_op *op = &write->ops[i];

                ops[i] = (struct hfd_op){.kind = op->kind, .key = op->key};
                if (op->kind == HFD_PUT)
                        ops[i].value = crash_plan_value(index, i, op->n_value);
                assert(op->kind == HFD_DELETE || ops[i].value);
        }
        int r = store->ops->txn(store, &txn, in_msec(PATIENCE_MSEC), on_reply, running);
        assert(r == 0);
        for (size_t i = 0; i < write->n_ops; i++)
                hf__buf_unref(ops[i].value);
}

static void begin_compaction(struct hfd_store *store, struct running *running, size_t index) {
        uint64_t revision = store_client_revision(store);

        running->index = index;
        store_reply_init(&running->reply);
        record(CRASH_COMPACTING, 0, index, revision);
        int r = store->ops->compact(store, revision, in_msec(PATIENCE_MSEC), on_reply, running);
        assert(r == 0);
}

/* Runs one phase, which begins with write *index. Returns its first error. */
static int run_phase(struct hfd_store *store, size_t *index) {
        static struct running running[PHASE_MAX];
        struct crash_plan_write write;
        size_t n = 0, phase = 0;
        int error = 0;

        while (crash_plan_write(plan, *index, &write) && (n == 0 || write.phase == phase)) {
                assert(n < PHASE_MAX);
                phase = write.phase;
                if (write.n_ops == 0)
                        begin_compaction(store, &running[n++], (*index)++);
                else
                        begin(store, &running[n++], (*index)++, &write);
        }
        for (size_t i = 0; i < n; i++) {
                int r = store_reply_wait(&running[i].reply);

                error = error ? error : r;
                store_reply_deinit(&running[i].reply);
        }
        return error;
}

/* ---- the whole ---- */

/* The failures that are still allowed. After the last one the program makes room. */
static struct {
        const char *room;
        int left;
} trouble;

static void begin_trouble(void) {
        const char *when = getenv("CRASH_SHIM_WHEN");

        trouble.room = getenv("CRASH_SHIM_ROOM");
        if (trouble.room)
                trouble.left = PATIENT_FAILURES;
        else
                trouble.left = when && strcmp(when, "fail") == 0;
}

static void end_trouble(void) {
        trouble.left = 0;
        if (trouble.room && truncate(trouble.room, ENOUGH_ROOM) != 0)
                fail("%s: %s", trouble.room, strerror(errno));
}

/* Opens the store. After the failures this must succeed, whatever state the file has. */
static struct hfd_store *open_store(const char *path) {
        struct hf_status status = {0};
        struct hfd_store *store = NULL;
        int r = hfd_sqlite_store_new(&host, path, true, &store, &status);

        if (r != 0 && trouble.left > 0) {
                end_trouble();
                r = hfd_sqlite_store_new(&host, path, true, &store, &status);
        }
        if (r != 0)
                fail("the store cannot be opened (%d): %s", r, status.message);
        return store;
}

static void check_failure(struct hfd_store *store, size_t index, int error) {
        bool expected =
                error == HF_E_UNAVAILABLE || error == (trouble.room ? -ENOSPC : HF_E_TIMEOUT);

        if (trouble.left == 0 || !expected)
                fail("write %zu or the next ones: %d", index, error);
        if (store_client_revision(store) == 0)
                fail("after the failure of write %zu, a read fails", index);
        if (--trouble.left == 0)
                end_trouble();
}

int main(int argc, char **argv) {
        static const struct hfd_watch_handler handler = {.event = on_event, .end = on_end};
        struct crash_plan_write write;
        size_t index = 0;

        if (argc != 3)
                fail("usage: crash-writer FILE PLAN");
        plan = (enum crash_plan_kind)atoi(argv[2]);
        begin_trouble();
        struct hfd_store *store = open_store(argv[1]);
        int r = store->ops->watch(store, "/", "", 2, &handler, NULL, NULL);
        assert(r == 0);
        while (crash_plan_write(plan, index, &write)) {
                size_t first = index;

                r = run_phase(store, &index);
                if (r != 0)
                        check_failure(store, first, r);
        }
        store->ops->free(store);
        return 0;
}
