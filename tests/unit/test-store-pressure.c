/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large lists and small writes at the same time, over a real etcd: no reply may be lost. Nothing is
 * timed; the test counts replies.
 */
#undef NDEBUG
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/thread.h"
#include "server/storage/etcd/store.h"
#include "store_client.h"
#include "store_fixture.h"
#include "time_units.h"

enum { N_KEYS = 4000, N_VALUE = 2048, PAGE = 500, N_LISTERS = 4, N_WRITERS = 32, N_WRITES = 4000 };

static const struct hf_host host = {.size = sizeof(struct hf_host)};
static struct etcd_spawn etcd;

static struct hfd_store *open_store(void) {
        const char *endpoints[] = {etcd.url, NULL};
        struct hfd_etcd_config config = {.endpoints = endpoints};
        struct hfd_store *store = NULL;
        struct hf_status status;

        assert_int_equal(hfd_etcd_store_new(&host, &config, &store, &status), 0);
        return store;
}

static void fill(struct hfd_store *store) {
        enum { EACH = HFD_TXN_MAX };
        struct hf__buf *value = hf__buf_new(N_VALUE);
        char keys[EACH][32];
        struct hfd_op ops[EACH];
        const struct hfd_txn txn = {.ops = ops, .n_ops = EACH};

        memset(value->data, 'v', value->n);
        for (int i = 0; i < N_KEYS; i += EACH) {
                struct store_reply reply;

                for (int j = 0; j < EACH; j++) {
                        snprintf(keys[j], sizeof keys[j], "/large/%06d", i + j);
                        ops[j] = (struct hfd_op){.kind = HFD_PUT, .key = keys[j], .value = value};
                }
                assert_int_equal(store_client_txn(store, &txn, &reply), 0);
                store_reply_deinit(&reply);
        }
        hf__buf_unref(value);
}

/* What all threads share. */
struct pressure {
        struct hfd_store *store;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        /* guarded by mu */
        long n_writes_left, n_written, n_pages, n_lost;
        int n_running;
        struct hf_status why; /* of the last one that was lost */
};

static void leave(struct pressure *p) {
        pthread_mutex_lock(&p->mu);
        p->n_running--;
        pthread_cond_signal(&p->cond);
        pthread_mutex_unlock(&p->mu);
}

static void count(struct pressure *p, const struct hfd_store_reply *reply, long *counter) {
        pthread_mutex_lock(&p->mu);
        if (reply->error == 0) {
                ++*counter;
        } else {
                p->n_lost++;
                p->why = reply->status;
        }
        pthread_mutex_unlock(&p->mu);
}

struct writer {
        struct pressure *p;
        char key[32];
        struct hf__buf *value;
};

static void write_next(struct writer *writer);

static void on_written(void *ctx, const struct hfd_store_reply *reply) {
        struct writer *writer = ctx;

        count(writer->p, reply, &writer->p->n_written);
        write_next(writer);
}

static void write_next(struct writer *writer) {
        struct pressure *p = writer->p;
        const struct hfd_op op = {.kind = HFD_PUT, .key = writer->key, .value = writer->value};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1};
        bool more;

        pthread_mutex_lock(&p->mu);
        more = p->n_writes_left > 0;
        p->n_writes_left -= more;
        pthread_mutex_unlock(&p->mu);
        if (!more || p->store->ops->txn(p->store, &txn, in_msec(30000), on_written, writer) != 0)
                leave(p);
}

struct lister {
        struct pressure *p;
        char start[64]; /* "" = from the first key on */
        uint64_t revision;
};

static void list_next(struct lister *lister);

static void on_page(void *ctx, const struct hfd_store_reply *reply) {
        struct lister *lister = ctx;

        count(lister->p, reply, &lister->p->n_pages);
        lister->start[0] = 0;
        if (reply->error == 0 && reply->more && reply->n_kvs > 0) {
                /* the first key after the last one */
                snprintf(lister->start, sizeof lister->start, "%s!",
                         reply->kvs[reply->n_kvs - 1].key);
                if (lister->revision == 0)
                        lister->revision = reply->revision;
        } else {
                lister->revision = 0;
        }
        list_next(lister);
}

static void list_next(struct lister *lister) {
        struct pressure *p = lister->p;
        bool more;

        pthread_mutex_lock(&p->mu);
        more = p->n_writes_left > 0;
        pthread_mutex_unlock(&p->mu);
        if (!more || p->store->ops->list(p->store, "/large/",
                                         lister->start[0] ? lister->start : NULL, lister->revision,
                                         PAGE, false, in_msec(30000), on_page, lister) != 0)
                leave(p);
}

static void test_lists_lose_no_other_reply(void **state) {
        static struct writer writers[N_WRITERS];
        static struct lister listers[N_LISTERS];
        static struct pressure p;
        const struct hf_clock *clock = hf_clock_system();
        const hf_nsec patience = in_msec(PATIENCE_MSEC);
        struct hf__buf *value = hf__buf_copy("a small value", 13);

        p = (struct pressure){.store = open_store(),
                              .n_writes_left = N_WRITES,
                              .n_running = N_WRITERS + N_LISTERS};
        assert_int_equal(hf__mutex_cond_init(&p.mu, &p.cond), 0);
        fill(p.store);
        for (int i = 0; i < N_LISTERS; i++) {
                listers[i] = (struct lister){.p = &p};
                list_next(&listers[i]);
        }
        for (int i = 0; i < N_WRITERS; i++) {
                writers[i] = (struct writer){.p = &p, .value = value};
                snprintf(writers[i].key, sizeof writers[i].key, "/small/%d", i);
                write_next(&writers[i]);
        }
        pthread_mutex_lock(&p.mu);
        while (p.n_running > 0)
                assert_int_equal(clock->wait(clock->ctx, &p.cond, &p.mu, patience), 0);
        pthread_mutex_unlock(&p.mu);
        printf("%ld writes and %ld pages; %ld were lost%s%s\n", p.n_written, p.n_pages, p.n_lost,
               p.n_lost > 0 ? ", the last one: " : "", p.why.message);
        assert_int_equal(p.n_lost, 0);
        assert_int_equal(p.n_written, N_WRITES);
        assert_true(p.n_pages > 0);
        p.store->ops->free(p.store);
        pthread_cond_destroy(&p.cond);
        pthread_mutex_destroy(&p.mu);
        hf__buf_unref(value);
}

/* More than HTTP/2's windows hold: it arrives only if they are opened again. */
static void test_a_list_may_be_larger_than_the_windows(void **state) {
        enum { N_HUGE = 40, N_BYTES = 1 << 20 };
        struct hfd_store *store = open_store();
        struct hf__buf *value = hf__buf_new(N_BYTES);
        struct store_reply reply;
        char key[32];

        memset(value->data, 'h', value->n);
        for (int i = 0; i < N_HUGE; i++) {
                const struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = value};
                const struct hfd_txn txn = {.ops = &op, .n_ops = 1};

                snprintf(key, sizeof key, "/huge/%02d", i);
                assert_int_equal(store_client_txn(store, &txn, &reply), 0);
                store_reply_deinit(&reply);
        }
        assert_int_equal(store_client_list(store, "/huge/", NULL, 0, 0, false, &reply), 0);
        assert_int_equal(reply.n_kvs, N_HUGE);
        for (int i = 0; i < N_HUGE; i++) {
                assert_int_equal(reply.kvs[i].value->n, N_BYTES);
                assert_memory_equal(reply.kvs[i].value->data, value->data, N_BYTES);
        }
        store_reply_deinit(&reply);
        hf__buf_unref(value);
        store->ops->free(store);
}

int main(void) {
        const struct CMUnitTest cases[] = {
                cmocka_unit_test(test_lists_lose_no_other_reply),
                cmocka_unit_test(test_a_list_may_be_larger_than_the_windows),
        };

        return store_fixture_run_with_etcd(&etcd, cases, sizeof cases / sizeof cases[0]);
}
