/* SPDX-License-Identifier: Apache-2.0 */
/*
 * renewals [N [EVERY]]: how large the file of a SQLite store becomes by N renewals of one Lease (a
 * million), 64 under way at a time, with a compaction after each EVERY of them (100,000). Prints
 * the size of the file with its WAL: at most, and when the last compaction has been carried out.
 * The file is made in the current directory, so that it is on a disk.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/storage/sqlite/store.h"
#include "server/storage/store.h"
#include "time_units.h"

#define UNDER_WAY 64
#define WAIT      (120 * HF_NSEC_PER_SEC) /* for the removal after the last compaction */

static const struct hf_host host = {.size = sizeof(struct hf_host)};

static struct {
        struct hfd_store *store;
        char path[64];
        struct hf__buf *lease;
        unsigned long n, every;
        sqlite3_stmt *is_removing; /* whether versions are left that a compaction is to remove */
        atomic_bool removing;

        pthread_mutex_t mu;
        pthread_cond_t changed;
        /* guarded by mu */
        unsigned long begun, ended, failed;
        int running; /* operations under way */
        struct times {
                uint32_t *usec; /* n */
                unsigned long n;
        } with, without; /* of the renewals that began while versions were removed, and others */
} b = {.mu = PTHREAD_MUTEX_INITIALIZER};

static long long bytes_of(const char *end) {
        char path[80];
        struct stat info;

        (void)snprintf(path, sizeof path, "%s%s", b.path, end);
        return stat(path, &info) == 0 ? (long long)info.st_size : 0;
}

static long long bytes(void) { return bytes_of("") + bytes_of("-wal"); }

static void renew(void);

static void end_one(bool failed) {
        pthread_mutex_lock(&b.mu);
        b.failed += failed;
        b.running--;
        pthread_cond_signal(&b.changed);
        pthread_mutex_unlock(&b.mu);
}

static void on_compacted(void *ctx, const struct hfd_store_reply *reply) {
        end_one(reply->error != 0 && reply->error != HF_E_GONE);
}

static void compact(uint64_t revision) {
        pthread_mutex_lock(&b.mu);
        b.running++;
        pthread_mutex_unlock(&b.mu);
        if (b.store->ops->compact(b.store, revision, in_msec(60000), on_compacted, NULL) != 0)
                end_one(true);
}

struct renewal {
        hf_nsec begun;
        bool removing;
};

static void on_renewed(void *ctx, const struct hfd_store_reply *reply) {
        struct renewal *renewal = ctx;
        hf_nsec took = in_msec(0) - renewal->begun;

        pthread_mutex_lock(&b.mu);
        struct times *times = renewal->removing ? &b.with : &b.without;
        times->usec[times->n++] = (uint32_t)(took / 1000);
        bool due = ++b.ended % b.every == 0;
        pthread_mutex_unlock(&b.mu);
        free(renewal);
        if (due)
                compact(reply->revision);
        renew();
        end_one(reply->error != 0);
}

/* Begins the next renewal, unless all have begun. */
static void renew(void) {
        static const char key[] = "/registry/leases/kube-system/bench";
        const struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = b.lease};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1, .urgent = true};

        pthread_mutex_lock(&b.mu);
        bool begin = b.begun < b.n;
        b.begun += begin;
        b.running += begin;
        pthread_mutex_unlock(&b.mu);
        if (!begin)
                return;
        struct renewal *renewal = malloc(sizeof *renewal);
        if (!renewal)
                exit(1);
        *renewal = (struct renewal){.begun = in_msec(0), .removing = atomic_load(&b.removing)};
        if (b.store->ops->txn(b.store, &txn, in_msec(60000), on_renewed, renewal) != 0)
                exit(1);
}

static int compare_times(const void *x, const void *y) {
        uint32_t a = *(const uint32_t *)x, c = *(const uint32_t *)y;

        return (a > c) - (a < c);
}

static double p99_msec(struct times *times) {
        qsort(times->usec, times->n, sizeof *times->usec, compare_times);
        return times->n > 0 ? times->usec[times->n * 99 / 100] / 1000.0 : 0;
}

/* Reads the file as another process would. The numbers are those of sqlite/versions.h. */
static bool prepare(void) {
        static const char text[] =
                "SELECT coalesce((SELECT value FROM meta WHERE name = 'compacted'), 0) - 1 > "
                "coalesce((SELECT value FROM meta WHERE name = 'swept'), 0) / 16";
        sqlite3 *db;

        b.with.usec = calloc(b.n, sizeof *b.with.usec);
        b.without.usec = calloc(b.n, sizeof *b.without.usec);
        return b.with.usec && b.without.usec &&
               sqlite3_open_v2(b.path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
               sqlite3_prepare_v2(db, text, -1, &b.is_removing, NULL) == SQLITE_OK;
}

static void look(void) {
        if (sqlite3_step(b.is_removing) == SQLITE_ROW)
                atomic_store(&b.removing, sqlite3_column_int(b.is_removing, 0) != 0);
        (void)sqlite3_reset(b.is_removing);
}

/* Looks at the files until nothing is under way. Returns the largest size. */
static long long await_end(void) {
        const struct hf_clock *clock = hf_clock_system();
        long long most = 0;

        pthread_mutex_lock(&b.mu);
        while (b.running > 0) {
                (void)clock->wait(clock->ctx, &b.changed, &b.mu, in_msec(20));
                pthread_mutex_unlock(&b.mu);
                look();
                most = bytes() > most ? bytes() : most;
                pthread_mutex_lock(&b.mu);
        }
        pthread_mutex_unlock(&b.mu);
        return most;
}

/* The store removes old versions in the background: the size is final when it no longer changes. */
static long long final_size(void) {
        hf_nsec until = in_msec(0) + WAIT;
        long long last = -1;

        while (last != bytes() && in_msec(0) < until) {
                last = bytes();
                (void)usleep(3000000);
        }
        return bytes();
}

int main(int argc, char **argv) {
        static const char *const ends[] = {"", "-wal", "-shm", "-notify"};
        struct hf_status status = {0};
        char path[80];

        b.n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
        b.every = argc > 2 ? strtoul(argv[2], NULL, 10) : 100000;
        b.lease = hf__buf_new(420);
        (void)snprintf(b.path, sizeof b.path, "renewals-%d.db", (int)getpid());
        if (b.n < 1 || b.every < 1 || !b.lease || hf_cond_init(&b.changed) != 0 ||
            hfd_sqlite_store_new(&host, b.path, true, &b.store, &status) != 0 || !prepare()) {
                fprintf(stderr, "usage: renewals [N [EVERY]] %s\n", status.message);
                return 2;
        }
        memset(b.lease->data, 'v', b.lease->n);
        hf_nsec began = in_msec(0);
        for (int i = 0; i < UNDER_WAY; i++)
                renew();
        long long most = await_end();
        double seconds = (double)(in_msec(0) - began) / 1e9;
        long long left = final_size();
        printf("%lu renewals in %.0f s, %lu failed, a compaction after each %lu: file and WAL %.1f "
               "MiB at most, %.1f MiB in the end (WAL %.1f)\n",
               b.n, seconds, b.failed, b.every, (double)most / 1048576, (double)left / 1048576,
               (double)bytes_of("-wal") / 1048576);
        printf("p99 of a renewal: %.1f ms while versions are removed (%lu), %.1f ms else\n",
               p99_msec(&b.with), b.with.n, p99_msec(&b.without));
        b.store->ops->free(b.store);
        (void)sqlite3_close_v2(sqlite3_db_handle(b.is_removing));
        (void)sqlite3_finalize(b.is_removing);
        free(b.with.usec);
        free(b.without.usec);
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
                (void)snprintf(path, sizeof path, "%s%s", b.path, ends[i]);
                (void)unlink(path);
        }
        hf__buf_unref(b.lease);
        return b.failed > 0;
}
