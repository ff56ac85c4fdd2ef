/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size-load STORE write FIRST N NAMESPACES: writes ConfigMaps number FIRST to FIRST + N - 1 with
 * 1 KiB of data each straight into the store (a URL of etcd, or sqlite:FILE), as holdfastd stores
 * them, 16 in a transaction.
 *
 * size-load STORE read PAGE: reads everything below /registry/ in pages of PAGE keys, one after
 * the other, with the same client as holdfastd, and does nothing with it: the bound for filling the
 * cache. Both print JSON.
 */
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/storage/keys.h"
#include "server/storage/store.h"
#include "store_open.h"
#include "time_units.h"

#define IN_FLIGHT 32
#define DATA_SIZE 1024

static const struct hf_host host = {.size = sizeof(struct hf_host)};

struct load {
        struct hfd_store *store;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        unsigned n_running;
        unsigned long n_failed;
        /* of a read */
        size_t page, n_keys, n_bytes;
        uint64_t revision;
        char start[HFD_KEY_MAX];
        bool done;
};

static void on_written(void *ctx, const struct hfd_store_reply *reply) {
        struct load *load = ctx;

        pthread_mutex_lock(&load->mu);
        load->n_running--;
        load->n_failed += reply->error != 0;
        pthread_cond_signal(&load->cond);
        pthread_mutex_unlock(&load->mu);
}

static struct hf__buf *make_value(unsigned long i, unsigned long ns) {
        char text[DATA_SIZE + 512], data[DATA_SIZE + 1];

        for (size_t k = 0; k < DATA_SIZE; k++)
                data[k] = (char)('a' + (i * 31 + k * 7) % 26);
        data[DATA_SIZE] = 0;
        int n = snprintf(text, sizeof text,
                         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{"
                         "\"name\":\"object-%08lu\",\"namespace\":\"size-%lu\","
                         "\"uid\":\"00000000-0000-4000-8000-%012lu\","
                         "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
                         "\"data\":{\"text\":\"%s\"}}",
                         i, ns, i, data);
        return hf__buf_copy(text, (size_t)n);
}

/* One transaction writes HFD_TXN_MAX objects. */
static void write_some(struct load *load, unsigned long first, unsigned long n,
                       unsigned long n_namespaces) {
        static char keys[HFD_TXN_MAX][HFD_KEY_MAX];
        struct hfd_op ops[HFD_TXN_MAX];

        for (unsigned long i = 0; i < n; i++) {
                unsigned long ns = (first + i) % n_namespaces;
                (void)snprintf(keys[i], sizeof keys[i],
                               "/registry/configmaps/size-%lu/object-%08lu", ns, first + i);
                ops[i] = (struct hfd_op){HFD_PUT, keys[i], make_value(first + i, ns)};
        }
        const struct hfd_txn txn = {.ops = ops, .n_ops = n};
        pthread_mutex_lock(&load->mu);
        while (load->n_running == IN_FLIGHT)
                pthread_cond_wait(&load->cond, &load->mu);
        load->n_running++;
        pthread_mutex_unlock(&load->mu);
        const struct hfd_store_reply failed = {.error = -EIO};
        if (load->store->ops->txn(load->store, &txn, in_msec(60000), on_written, load) != 0)
                on_written(load, &failed);
        for (unsigned long i = 0; i < n; i++)
                hf__buf_unref(ops[i].value);
}

static void request_page(struct load *load);

static void on_page(void *ctx, const struct hfd_store_reply *reply) {
        struct load *load = ctx;

        load->n_failed += reply->error != 0;
        load->n_keys += reply->n_kvs;
        for (size_t i = 0; i < reply->n_kvs; i++)
                load->n_bytes += reply->kvs[i].value->n;
        if (load->revision == 0)
                load->revision = reply->revision;
        if (reply->error == 0 && reply->more && reply->n_kvs > 0) {
                hfd_key_after(load->start, reply->kvs[reply->n_kvs - 1].key);
                request_page(load);
                return;
        }
        pthread_mutex_lock(&load->mu);
        load->done = true;
        pthread_cond_signal(&load->cond);
        pthread_mutex_unlock(&load->mu);
}

static void request_page(struct load *load) {
        const struct hfd_store_reply failed = {.error = -EIO};

        if (load->store->ops->list(load->store, "/registry/", *load->start ? load->start : NULL,
                                   load->revision, load->page, false, in_msec(60000), on_page,
                                   load) != 0)
                on_page(load, &failed);
}

static int run(struct load *load, int argc, char **argv) {
        hf_nsec started = hf_now(hf_clock_system());

        if (argc == 6 && strcmp(argv[2], "write") == 0) {
                unsigned long first = strtoul(argv[3], NULL, 10), n = strtoul(argv[4], NULL, 10);
                for (unsigned long i = 0; i < n; i += HFD_TXN_MAX)
                        write_some(load, first + i, n - i < HFD_TXN_MAX ? n - i : HFD_TXN_MAX,
                                   strtoul(argv[5], NULL, 10));
                load->n_keys = n;
        } else if (argc == 4 && strcmp(argv[2], "read") == 0) {
                load->page = strtoul(argv[3], NULL, 10);
                request_page(load);
        } else {
                (void)fprintf(stderr, "usage: size-load STORE write FIRST N NAMESPACES\n"
                                      "       size-load STORE read PAGE\n");
                return 2;
        }
        pthread_mutex_lock(&load->mu);
        while (load->page ? !load->done : load->n_running > 0)
                pthread_cond_wait(&load->cond, &load->mu);
        pthread_mutex_unlock(&load->mu);
        printf("{\"keys\": %zu, \"bytes\": %zu, \"failed\": %lu, \"seconds\": %.3f}\n",
               load->n_keys, load->n_bytes, load->n_failed,
               (double)(hf_now(hf_clock_system()) - started) / (double)HF_NSEC_PER_SEC);
        return load->n_failed ? 1 : 0;
}

int main(int argc, char **argv) {
        struct load load = {.mu = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
        struct hf_status status = {0};

        curl_global_init(CURL_GLOBAL_DEFAULT);
        if (store_open(&host, argc > 1 ? argv[1] : "", &load.store, &status) != 0) {
                (void)fprintf(stderr, "size-load: %s\n", status.message);
                return 1;
        }
        int r = run(&load, argc, argv);
        load.store->ops->free(load.store);
        curl_global_cleanup();
        return r;
}
