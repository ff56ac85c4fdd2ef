/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store-burst URL|sqlite:FILE N: how long the store alone takes for N releases of Leases. Each is a
 * transaction like the server's: it compares the revisions of a Lease and of its term record, and
 * writes both. 128 are under way at a time. Creates N Leases first, and prints the seconds that the
 * releases took and this process's CPU for them, as a JSON object.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>

#include "server/storage/etcd/store.h"
#include "server/storage/sqlite/store.h"
#include "server/storage/store.h"
#include "time_units.h"

#define UNDER_WAY 128

static const struct hf_host host = {.size = sizeof(struct hf_host)};

static struct {
        struct hfd_store *store;
        struct hf__buf *lease, *term;
        uint64_t *revisions; /* of each Lease and its term record; 0 = they do not exist */
        size_t n;

        pthread_mutex_t mu;
        pthread_cond_t changed;
        /* guarded by mu */
        size_t next, n_ended, n_failed;
} b = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void write_next(void);

static void on_written(void *ctx, const struct hfd_store_reply *reply) {
        uint64_t *revision = ctx;

        *revision = reply->revision;
        pthread_mutex_lock(&b.mu);
        b.n_ended++;
        b.n_failed += reply->error != 0;
        pthread_cond_signal(&b.changed);
        pthread_mutex_unlock(&b.mu);
        write_next();
}

static void write_one(size_t i) {
        char lease[64], term[64];

        (void)snprintf(lease, sizeof lease, "/registry/leases/default/bench-%zu", i);
        (void)snprintf(term, sizeof term, "/holdfast/terms/default/bench-%zu", i);
        const struct hfd_compare compares[] = {
                {.kind = HFD_MOD_EQUALS, .key = lease, .revision = b.revisions[i]},
                {.kind = HFD_MOD_EQUALS, .key = term, .revision = b.revisions[i]},
        };
        const struct hfd_op ops[] = {{.kind = HFD_PUT, .key = lease, .value = b.lease},
                                     {.kind = HFD_PUT, .key = term, .value = b.term}};
        const struct hfd_txn txn = {.compares = compares,
                                    .n_compares = 2,
                                    .ops = ops,
                                    .n_ops = 2,
                                    .urgent = true};

        if (b.store->ops->txn(b.store, &txn, in_msec(60000), on_written, &b.revisions[i]) != 0)
                exit(1);
}

static void write_next(void) {
        pthread_mutex_lock(&b.mu);
        size_t i = b.next < b.n ? b.next++ : b.n;
        pthread_mutex_unlock(&b.mu);
        if (i < b.n)
                write_one(i);
}

static double seconds_of(clockid_t clock) {
        struct timespec t = {0};

        (void)clock_gettime(clock, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void write_all(void) {
        b.next = b.n_ended = 0;
        for (int i = 0; i < UNDER_WAY; i++)
                write_next();
        pthread_mutex_lock(&b.mu);
        while (b.n_ended < b.n)
                pthread_cond_wait(&b.changed, &b.mu);
        pthread_mutex_unlock(&b.mu);
}

static int open_store(const char *url) {
        const char *endpoints[] = {url, NULL};
        const struct hfd_etcd_config config = {.endpoints = endpoints};
        struct hf_status status;

        if (strncmp(url, "sqlite:", 7) == 0)
                return hfd_sqlite_store_new(&host, url + 7, true, &b.store, &status);
        return hfd_etcd_store_new(&host, &config, &b.store, &status);
}

int main(int argc, char **argv) {
        b.n = argc == 3 ? (size_t)atol(argv[2]) : 0;
        b.revisions = calloc(b.n + 1, sizeof *b.revisions);
        b.lease = hf__buf_new(420);
        b.term = hf__buf_new(60);
        if (b.n < 1 || !b.revisions || !b.lease || !b.term || curl_global_init(CURL_GLOBAL_ALL) ||
            open_store(argv[1]) != 0) {
                fprintf(stderr, "usage: store-burst URL|sqlite:FILE N\n");
                return 2;
        }
        memset(b.lease->data, 'v', b.lease->n);
        memset(b.term->data, 'v', b.term->n);
        write_all();
        double began = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        write_all();
        printf("{\"seconds\":%.3f,\"cpu\":%.6f,\"failed\":%zu}\n",
               seconds_of(CLOCK_MONOTONIC) - began, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu,
               b.n_failed);
        b.store->ops->free(b.store);
        hf__buf_unref(b.lease);
        hf__buf_unref(b.term);
        free(b.revisions);
        return 0;
}
