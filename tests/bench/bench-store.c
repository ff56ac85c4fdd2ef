/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-store [SECONDS]: gets and transactions per second of the etcd store over a private etcd,
 * one at a time and 64 in flight, with the CPU time that this process spends on each.
 */
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "etcd_spawn.h"
#include "server/storage/etcd/store.h"
#include "server/storage/store.h"
#include "time_units.h"

#define MAX_IN_FLIGHT 64

static const struct hf_host host = {.size = sizeof(struct hf_host)};

struct run {
        struct hfd_store *store;
        bool writes;
        struct hf__buf *value;
        hf_nsec until;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        int active;
        unsigned long done, failed;
};

struct lane {
        struct run *run;
        char key[32];
};

static void next(struct lane *lane);

static void on_reply(void *ctx, const struct hfd_store_reply *reply) {
        struct lane *lane = ctx;
        struct run *run = lane->run;

        pthread_mutex_lock(&run->mu);
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

        if (hf_now(hf_clock_system()) < run->until)
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

static void measure(struct hfd_store *store, bool writes, int in_flight, double seconds) {
        const struct hf_clock *clock = hf_clock_system();
        struct lane lanes[MAX_IN_FLIGHT];
        struct run run = {.store = store,
                          .writes = writes,
                          .value = hf__buf_new(400),
                          .active = in_flight};
        hf_nsec start = hf_now(clock);
        double cpu = cpu_seconds(), took;

        if (!run.value)
                return;
        memset(run.value->data, 'v', run.value->n);
        pthread_mutex_init(&run.mu, NULL);
        (void)hf_cond_init(&run.cond);
        run.until = start + (hf_nsec)(seconds * 1e9);
        for (int i = 0; i < in_flight; i++) {
                lanes[i].run = &run;
                snprintf(lanes[i].key, sizeof lanes[i].key, "/bench/%d", i);
                next(&lanes[i]);
        }
        pthread_mutex_lock(&run.mu);
        while (run.active)
                clock->wait(clock->ctx, &run.cond, &run.mu, run.until + 20 * HF_NSEC_PER_SEC);
        pthread_mutex_unlock(&run.mu);
        took = (double)(hf_now(clock) - start) / 1e9;
        printf("%-4s %2d in flight: %8.0f/s, %5.1f us of CPU each, %lu failed\n",
               writes ? "txn" : "get", in_flight, (double)run.done / took,
               (cpu_seconds() - cpu) * 1e6 / (double)(run.done ? run.done : 1), run.failed);
        pthread_cond_destroy(&run.cond);
        pthread_mutex_destroy(&run.mu);
        hf__buf_unref(run.value);
}

int main(int argc, char **argv) {
        double seconds = argc > 1 ? atof(argv[1]) : 2;
        struct etcd_spawn etcd;
        struct hfd_store *store;
        struct hf_status status;

        curl_global_init(CURL_GLOBAL_DEFAULT);
        if (!etcd_spawn_available())
                return 77;
        if (etcd_spawn_start(&etcd, NULL)) {
                const char *endpoints[] = {etcd.url, NULL};

                if (!hfd_etcd_store_new(&host, &(struct hfd_etcd_config){.endpoints = endpoints},
                                        &store, &status)) {
                        measure(store, true, 1, seconds);
                        measure(store, true, 64, seconds);
                        measure(store, false, 1, seconds);
                        measure(store, false, 64, seconds);
                        store->ops->free(store);
                }
        }
        etcd_spawn_stop(&etcd);
        curl_global_cleanup();
        return 0;
}
