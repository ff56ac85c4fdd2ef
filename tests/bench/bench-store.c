/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-store [SECONDS]: gets and transactions per second of the SQLite store and of the etcd store
 * over a private etcd, one at a time and 64 in flight, with the CPU time that this process spends
 * on each and the 99th percentile of their durations; for SQLite also while old versions are
 * removed. Its file is made in the current directory, so that it is on a disk.
 */
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "etcd_spawn.h"
#include "server/storage/etcd/store.h"
#include "server/storage/sqlite/store.h"
#include "server/storage/store.h"
#include "time_units.h"

#define MAX_IN_FLIGHT 64

static const struct hf_host host = {.size = sizeof(struct hf_host)};

#define MAX_TIMES 2000000

struct run {
        const char *name; /* of the store */
        struct hfd_store *store;
        bool writes;
        struct hf__buf *value;
        hf_nsec until;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int active;
        unsigned long done, failed;
        uint32_t *times; /* in us, of the first MAX_TIMES operations */
};

struct lane {
        struct run *run;
        hf_nsec begun;
        char key[32];
};

static void next(struct lane *lane);

static void on_reply(void *ctx, const struct hfd_store_reply *reply) {
        struct lane *lane = ctx;
        struct run *run = lane->run;

        hf_nsec took = hf_now(hf_clock_system()) - lane->begun;

        pthread_mutex_lock(&run->mu);
        if (run->done < MAX_TIMES)
                run->times[run->done] = (uint32_t)(took / 1000);
        run->done++;
        run->failed += reply->error != 0;
        pthread_mutex_unlock(&run->mu);
        next(lane);
}

static void next(struct lane *lane) {
        struct run *run = lane->run;
        struct hfd_op op = {.kind = HFD_PUT, .key = lane->key, .value = run->value};
        struct hfd_txn txn = {.ops = &op, .n_ops = 1};
        int r = HF_E_CLOSED;

        lane->begun = hf_now(hf_clock_system());
        if (lane->begun < run->until)
                r = run->writes
                            ? run->store->ops->txn(run->store, &txn, in_msec(10000), on_reply, lane)
                            : run->store->ops->get(run->store, lane->key, false, in_msec(10000),
                                                   on_reply, lane);
        if (r == 0)
                return;
        pthread_mutex_lock(&run->mu);
        run->active--;
        pthread_cond_signal(&run->cond);
        pthread_mutex_unlock(&run->mu);
}

static double cpu_seconds(void) {
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int compare_times(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

static double p99_usec(const struct run *run) {
        size_t n = run->done < MAX_TIMES ? run->done : MAX_TIMES;

        qsort(run->times, n, sizeof *run->times, compare_times);
        return n > 0 ? run->times[n * 99 / 100] : 0;
}

static void run_lanes(struct run *run, int in_flight, hf_nsec start, double seconds) {
        const struct hf_clock *clock = hf_clock_system();
        struct lane lanes[MAX_IN_FLIGHT];

        pthread_mutex_init(&run->mu, NULL);
        (void)hf_cond_init(&run->cond);
        run->until = start + (hf_nsec)(seconds * 1e9);
        run->active = in_flight;
        for (int i = 0; i < in_flight; i++) {
                lanes[i].run = run;
                snprintf(lanes[i].key, sizeof lanes[i].key, "/bench/%d", i);
                next(&lanes[i]);
        }
        pthread_mutex_lock(&run->mu);
        while (run->active)
                clock->wait(clock->ctx, &run->cond, &run->mu, run->until + 20 * HF_NSEC_PER_SEC);
        pthread_mutex_unlock(&run->mu);
        pthread_cond_destroy(&run->cond);
        pthread_mutex_destroy(&run->mu);
}

/* Returns the 99th percentile in us. */
static double measure(const char *name, struct hfd_store *store, bool writes, int in_flight,
                      double seconds) {
        struct run run = {.name = name,
                          .store = store,
                          .writes = writes,
                          .value = hf__buf_new(400),
                          .times = malloc(MAX_TIMES * sizeof *run.times)};
        hf_nsec start = hf_now(hf_clock_system());
        double cpu = cpu_seconds(), p99 = 0;

        if (run.value && run.times) {
                memset(run.value->data, 'v', run.value->n);
                run_lanes(&run, in_flight, start, seconds);
                double took = (double)(hf_now(hf_clock_system()) - start) / 1e9;
                cpu = cpu_seconds() - cpu;
                p99 = p99_usec(&run);
                printf("%-6s %-4s %2d in flight: %8.0f/s, %5.1f us of CPU each, p99 %6.0f us, %lu "
                       "failed\n",
                       name, writes ? "txn" : "get", in_flight, (double)run.done / took,
                       cpu * 1e6 / (double)(run.done ? run.done : 1), p99, run.failed);
        }
        hf__buf_unref(run.value);
        free(run.times);
        return p99;
}

static void measure_all(const char *name, struct hfd_store *store, double seconds) {
        static const int in_flight[] = {1, MAX_IN_FLIGHT};

        for (int writes = 1; writes >= 0; writes--)
                for (size_t i = 0; i < sizeof in_flight / sizeof in_flight[0]; i++)
                        (void)measure(name, store, writes != 0, in_flight[i], seconds);
}

struct waiter {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        uint64_t revision; /* 0 = no reply yet */
};

static void on_revision(void *ctx, const struct hfd_store_reply *reply) {
        struct waiter *waiter = ctx;

        pthread_mutex_lock(&waiter->mu);
        waiter->revision = reply->error == 0 ? reply->revision : 1;
        pthread_cond_signal(&waiter->cond);
        pthread_mutex_unlock(&waiter->mu);
}

/* Compacts everything that was written so far. The store removes it in the background. */
static void compact(struct hfd_store *store) {
        const struct hf_clock *clock = hf_clock_system();
        struct waiter waiter = {.mu = PTHREAD_MUTEX_INITIALIZER};

        (void)hf_cond_init(&waiter.cond);
        for (int i = 0; i < 2; i++) {
                uint64_t revision = waiter.revision;

                waiter.revision = 0;
                int r = i == 0 ? store->ops->revision(store, in_msec(10000), on_revision, &waiter)
                               : store->ops->compact(store, revision, in_msec(10000), on_revision,
                                                     &waiter);
                pthread_mutex_lock(&waiter.mu);
                while (r == 0 && waiter.revision == 0)
                        (void)clock->wait(clock->ctx, &waiter.cond, &waiter.mu, in_msec(20000));
                pthread_mutex_unlock(&waiter.mu);
        }
        pthread_cond_destroy(&waiter.cond);
}

/* The runs take turns, so that a change of the disk's speed concerns both. */
static void measure_compaction(struct hfd_store *store, double seconds) {
        double with[3], without[3];

        for (int i = 0; i < 3; i++) {
                without[i] = measure("SQLite", store, true, 8, seconds);
                compact(store);
                with[i] = measure("SQLite", store, true, 8, seconds);
        }
        printf("p99 of a txn while old versions are removed, beside the run before: %.2f %.2f "
               "%.2f times\n",
               with[0] / without[0], with[1] / without[1], with[2] / without[2]);
}

/* ---- how soon another store on the same file sees a commit ---- */

#define N_NOTICES 500

struct notices {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        hf_nsec committed_at, seen_at; /* 0 = not yet */
        bool ended;
};

static void on_commit(void *ctx, const struct hfd_store_reply *reply) {
        struct notices *notices = ctx;

        pthread_mutex_lock(&notices->mu);
        notices->committed_at = hf_now(hf_clock_system());
        pthread_cond_signal(&notices->cond);
        pthread_mutex_unlock(&notices->mu);
}

static void on_event(void *ctx, const struct hfd_watch_event *events, size_t n) {
        struct notices *notices = ctx;

        pthread_mutex_lock(&notices->mu);
        notices->seen_at = hf_now(hf_clock_system());
        pthread_cond_signal(&notices->cond);
        pthread_mutex_unlock(&notices->mu);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct notices *notices = ctx;

        pthread_mutex_lock(&notices->mu);
        notices->ended = true;
        pthread_cond_signal(&notices->cond);
        pthread_mutex_unlock(&notices->mu);
}

/* The time in us from the reply to a put until a watch of the other store has the event. 0: the
 * event came first. */
static uint32_t one_notice(struct hfd_store *store, struct notices *notices,
                           struct hf__buf *value) {
        const struct hf_clock *clock = hf_clock_system();
        const struct hfd_op op = {.kind = HFD_PUT, .key = "/notice", .value = value};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1};

        notices->committed_at = notices->seen_at = 0;
        if (store->ops->txn(store, &txn, in_msec(10000), on_commit, notices) != 0)
                return UINT32_MAX;
        pthread_mutex_lock(&notices->mu);
        while (!notices->ended && (notices->committed_at == 0 || notices->seen_at == 0))
                (void)clock->wait(clock->ctx, &notices->cond, &notices->mu, in_msec(10000));
        hf_nsec late = notices->seen_at - notices->committed_at;
        pthread_mutex_unlock(&notices->mu);
        return late > 0 ? (uint32_t)(late / 1000) : 0;
}

static void measure_notices(const char *path, struct hfd_store *store) {
        const struct hfd_watch_handler handler = {.event = on_event, .end = on_end};
        struct notices notices = {.mu = PTHREAD_MUTEX_INITIALIZER};
        const struct hf_clock *clock = hf_clock_system();
        struct hf__buf *value = hf__buf_new(400);
        struct hf_status status = {0};
        struct hfd_store *other;
        uint32_t times[N_NOTICES];
        uint64_t id;

        (void)hf_cond_init(&notices.cond);
        if (!value || hfd_sqlite_store_new(&host, path, false, &other, &status) != 0)
                return;
        memset(value->data, 'v', value->n);
        if (other->ops->watch(other, "/notice", "/notice0", 0, &handler, &notices, &id) == 0) {
                (void)one_notice(store, &notices, value); /* the watch has begun */
                for (size_t i = 0; i < N_NOTICES; i++)
                        times[i] = one_notice(store, &notices, value);
                qsort(times, N_NOTICES, sizeof times[0], compare_times);
                printf("SQLite a commit is seen by a watch of another store: p50 %u us, p99 %u us, "
                       "max %u us after its reply\n",
                       times[N_NOTICES / 2], times[N_NOTICES * 99 / 100], times[N_NOTICES - 1]);
                other->ops->watch_cancel(other, id);
                pthread_mutex_lock(&notices.mu);
                while (!notices.ended)
                        (void)clock->wait(clock->ctx, &notices.cond, &notices.mu, in_msec(10000));
                pthread_mutex_unlock(&notices.mu);
        }
        other->ops->free(other);
        hf__buf_unref(value);
        pthread_cond_destroy(&notices.cond);
}

static void measure_sqlite(double seconds) {
        static const char *const ends[] = {"", "-wal", "-shm", "-notify"};
        char path[64], with_end[80];
        struct hfd_store *store;
        struct hf_status status = {0};

        (void)snprintf(path, sizeof path, "bench-store-%d.db", (int)getpid());
        if (hfd_sqlite_store_new(&host, path, true, &store, &status) == 0) {
                measure_all("SQLite", store, seconds);
                measure_compaction(store, seconds);
                measure_notices(path, store);
                store->ops->free(store);
        } else {
                fprintf(stderr, "bench-store: %s\n", status.message);
        }
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
                (void)snprintf(with_end, sizeof with_end, "%s%s", path, ends[i]);
                (void)unlink(with_end);
        }
}

int main(int argc, char **argv) {
        double seconds = argc > 1 ? atof(argv[1]) : 2;
        struct etcd_spawn etcd;
        struct hfd_store *store;
        struct hf_status status;

        curl_global_init(CURL_GLOBAL_DEFAULT);
        measure_sqlite(seconds);
        if (!etcd_spawn_available())
                return 77;
        if (etcd_spawn_start(&etcd, NULL)) {
                const char *endpoints[] = {etcd.url, NULL};

                if (!hfd_etcd_store_new(&host, &(struct hfd_etcd_config){.endpoints = endpoints},
                                        &store, &status)) {
                        measure_all("etcd", store, seconds);
                        store->ops->free(store);
                }
        }
        etcd_spawn_stop(&etcd);
        curl_global_cleanup();
        return 0;
}
