/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts and queues operations, and responds to them.
 *
 * Invariants:
 *  - an operation is in the heap of deadlines from its start until it has responded;
 *  - `responded` is set under mu by the thread that then calls the callback, so it is called once;
 *  - the thread that took the operation from its queue frees it: after the callback, if that thread
 *    is the one that responds. The watcher, which responds to late operations, copies what it needs
 *    under mu, because the operation may be freed during the callback.
 */
#include "server/storage/sqlite/operation.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/storage/keys.h"
#include "server/storage/sqlite/sqlite.h"

static void free_op(struct hfd_sqlite_op *op) {
        for (size_t i = 0; i < op->txn.n_ops; i++)
                hf__buf_unref(op->txn.ops[i].value);
        hfd_sqlite_kvs_deinit(&op->kvs);
        free(op);
}

/* ---- starting ---- */

/* Makes an operation, followed by n zeroed bytes for what it copies: one block, so that an
 * operation costs one allocation. */
static struct hfd_sqlite_op *new_op(enum hfd_sqlite_op_kind kind, size_t n, hfd_store_fn done,
                                    void *ctx) {
        struct hfd_sqlite_op *op = calloc(1, sizeof *op + n);

        assert(done);
        if (op) {
                op->kind = kind;
                op->done = done;
                op->ctx = ctx;
        }
        return op;
}

/* Queues an operation, or frees it if the store is closing. `wakes_at` lets a writer that waits for
 * more writes (writer.c) sleep until enough have come. */
static int start_op(struct hfd_store *store, struct hfd_sqlite_op *op,
                    enum hfd_sqlite_queue_kind which, hf_nsec deadline) {
        struct hfd_sqlite *sqlite = hfd_sqlite_of(store);
        struct hfd_sqlite_queue *queue = &sqlite->queues[which];
        bool wake = false;
        int r = 0;

        pthread_mutex_lock(&sqlite->mu);
        if (sqlite->closing) {
                r = HF_E_CLOSED;
        } else {
                hf__timer_heap_add(&sqlite->deadlines, &op->deadline, deadline);
                /* A later deadline needs no wake-up: the watcher looks at each interval anyway. */
                wake = sqlite->deadlines.first == &op->deadline &&
                       deadline < hf_now(hf_host_clock(store->host)) + HFD_SQLITE_LOOK_INTERVAL;
                struct hfd_sqlite_op ***last = op->urgent ? &queue->last_urgent : &queue->last;
                **last = op;
                *last = &op->next;
                if (++queue->n >= queue->wakes_at)
                        pthread_cond_signal(&queue->wake);
        }
        pthread_mutex_unlock(&sqlite->mu);
        if (r != 0)
                free_op(op);
        else if (wake)
                hfd_sqlite_wake_watcher(sqlite);
        return r;
}

int hfd_sqlite_start_get(struct hfd_store *store, const char *key, bool urgent, hf_nsec deadline,
                         hfd_store_fn done, void *ctx) {
        size_t n = key ? strlen(key) + 1 : 0;

        if (n <= 1) /* the key is missing or empty */
                return -EINVAL;
        struct hfd_sqlite_op *op = new_op(HFD_SQLITE_GET, n, done, ctx);
        if (!op)
                return -ENOMEM;
        op->key = memcpy(op + 1, key, n);
        op->urgent = urgent;
        return start_op(store, op, HFD_SQLITE_READS, deadline);
}

int hfd_sqlite_start_list(struct hfd_store *store, const char *prefix, const char *start_key,
                          uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                          hfd_store_fn done, void *ctx) {
        /* A start key that sorts before the prefix selects the whole prefix. */
        const char *from = start_key && strcmp(start_key, prefix) > 0 ? start_key : prefix;
        size_t n_prefix = strlen(prefix) + 1, n_from = strlen(from) + 1;
        struct hfd_sqlite_op *op = new_op(HFD_SQLITE_LIST, n_prefix + n_from, done, ctx);

        if (!op)
                return -ENOMEM;
        op->key = memcpy(op + 1, prefix, n_prefix);
        op->start = memcpy((char *)(op + 1) + n_prefix, from, n_from);
        op->revision = revision;
        op->limit = limit;
        op->keys_only = keys_only;
        return start_op(store, op, HFD_SQLITE_LISTS, deadline);
}

/* The writer runs it: it sets a number in the file. The versions themselves are removed later, a
 * few at a time, so that no write waits long for a compaction. */
int hfd_sqlite_start_compact(struct hfd_store *store, uint64_t revision, hf_nsec deadline,
                             hfd_store_fn done, void *ctx) {
        struct hfd_sqlite_op *op = new_op(HFD_SQLITE_COMPACT, 0, done, ctx);

        if (!op)
                return -ENOMEM;
        op->revision = revision;
        return start_op(store, op, HFD_SQLITE_WRITES, deadline);
}

int hfd_sqlite_start_revision(struct hfd_store *store, hf_nsec deadline, hfd_store_fn done,
                              void *ctx) {
        struct hfd_sqlite_op *op = new_op(HFD_SQLITE_REVISION, 0, done, ctx);

        return op ? start_op(store, op, HFD_SQLITE_READS, deadline) : -ENOMEM;
}

/* ---- transactions ---- */

/* The bytes that copy_txn copies after the arrays. */
static size_t text_bytes(const struct hfd_txn *txn) {
        size_t n = 0;

        for (size_t i = 0; i < txn->n_compares; i++)
                n += strlen(txn->compares[i].key) + 1 + txn->compares[i].n_value;
        for (size_t i = 0; i < txn->n_ops; i++)
                n += strlen(txn->ops[i].key) + 1;
        for (size_t i = 0; i < txn->n_get_on_failure; i++)
                n += strlen(txn->get_on_failure[i]) + 1;
        return n;
}

static void *put_bytes(char **at, const void *data, size_t n) {
        void *copy = *at;

        if (n > 0)
                memcpy(copy, data, n);
        *at += n;
        return copy;
}

static char *put_text(char **at, const char *text) { return put_bytes(at, text, strlen(text) + 1); }

/* Copies txn into the n bytes after the operation: the arrays first, because they need alignment,
 * then the text. Values of puts may have a megabyte and are referenced instead. */
static void copy_txn(struct hfd_sqlite_op *op, const struct hfd_txn *txn, size_t n) {
        struct hfd_compare *compares = (struct hfd_compare *)(op + 1);
        struct hfd_op *ops = (struct hfd_op *)(compares + txn->n_compares);
        const char **gets = (const char **)(ops + txn->n_ops);
        char *at = (char *)(gets + txn->n_get_on_failure);

        op->txn = *txn;
        op->urgent = txn->urgent;
        for (size_t i = 0; i < txn->n_compares; i++) {
                compares[i] = txn->compares[i];
                compares[i].key = put_text(&at, txn->compares[i].key);
                compares[i].value =
                        put_bytes(&at, txn->compares[i].value, txn->compares[i].n_value);
        }
        for (size_t i = 0; i < txn->n_ops; i++) {
                ops[i] = txn->ops[i];
                ops[i].key = put_text(&at, txn->ops[i].key);
                ops[i].value = ops[i].kind == HFD_PUT ? hf__buf_ref(ops[i].value) : NULL;
        }
        for (size_t i = 0; i < txn->n_get_on_failure; i++)
                gets[i] = put_text(&at, txn->get_on_failure[i]);
        assert(at == (char *)(op + 1) + n);
        op->txn.compares = compares;
        op->txn.ops = ops;
        op->txn.get_on_failure = gets;
}

int hfd_sqlite_start_txn(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                         hfd_store_fn done, void *ctx) {
        int r = hfd_txn_check(txn);

        if (r != 0)
                return r;
        if (hfd_txn_is_too_large(txn))
                return HF_E_TOO_LARGE;
        size_t n = txn->n_compares * sizeof *txn->compares + txn->n_ops * sizeof *txn->ops +
                   txn->n_get_on_failure * sizeof *txn->get_on_failure + text_bytes(txn);
        struct hfd_sqlite_op *op = new_op(HFD_SQLITE_TXN, n, done, ctx);
        if (!op)
                return -ENOMEM;
        copy_txn(op, txn, n);
        op->n_bytes = hfd_txn_bytes(txn);
        return start_op(store, op, HFD_SQLITE_WRITES, deadline);
}

/* ---- taking and responding ---- */

/* When the queue becomes empty, *last must refer to its beginning again, where the next operation
 * is added. */
static struct hfd_sqlite_op *take_first(struct hfd_sqlite_op **first,
                                        struct hfd_sqlite_op ***last) {
        struct hfd_sqlite_op *op = *first;

        if (!op)
                return NULL;
        *first = op->next;
        if (!*first)
                *last = first;
        op->next = NULL;
        return op;
}

struct hfd_sqlite_op *hfd_sqlite_take_locked(struct hfd_sqlite *sqlite, int which, size_t max,
                                             size_t max_bytes) {
        struct hfd_sqlite_queue *queue = &sqlite->queues[which];
        struct hfd_sqlite_op *taken = NULL, **last = &taken;
        size_t n_bytes = 0;

        hf__mutex_assert_held(&sqlite->mu);
        while (max > 0 && n_bytes < max_bytes) {
                struct hfd_sqlite_op *op = take_first(&queue->first_urgent, &queue->last_urgent);

                if (!op)
                        op = take_first(&queue->first, &queue->last);
                if (!op)
                        break;
                assert(queue->n > 0);
                queue->n--;
                if (atomic_load(&op->responded)) {
                        free_op(op);
                        continue;
                }
                op->running = true;
                *last = op;
                last = &op->next;
                n_bytes += op->n_bytes;
                max--;
        }
        return taken;
}

void hfd_sqlite_respond(struct hfd_sqlite *sqlite, struct hfd_sqlite_op *op) {
        pthread_mutex_lock(&sqlite->mu);
        bool mine = !atomic_exchange(&op->responded, true);

        if (mine)
                hf__timer_heap_remove(&sqlite->deadlines, &op->deadline);
        pthread_mutex_unlock(&sqlite->mu);
        /* Otherwise the watcher calls back. It has copied what it needs. */
        if (mine) {
                op->reply.kvs = op->kvs.kvs;
                op->reply.n_kvs = op->kvs.n;
                op->done(op->ctx, &op->reply);
        }
        free_op(op);
}

/* The reply to an operation whose deadline has passed. A write that was not begun has no effect. */
static void fail_late(struct hfd_store_reply *reply, bool is_write, bool running) {
        *reply = (struct hfd_store_reply){0};
        if (is_write && running)
                reply->error = hf_fail(&reply->status, HF_E_TIMEOUT,
                                       "the disk has not confirmed the write in time");
        else
                reply->error = hf_fail(&reply->status, HF_E_UNAVAILABLE,
                                       running ? "the operation did not end in time"
                                               : "the operation did not begin in time");
}

hf_nsec hfd_sqlite_expire_locked(struct hfd_sqlite *sqlite) {
        const struct hf_clock *clock = hf_host_clock(sqlite->store.host);

        hf__mutex_assert_held(&sqlite->mu);
        for (;;) {
                struct hf__timer *timer = sqlite->deadlines.first;

                if (!timer)
                        return HF_NSEC_NEVER;
                if (timer->at > hf_now(clock))
                        return timer->at;
                struct hfd_sqlite_op *op =
                        (struct hfd_sqlite_op *)((char *)timer -
                                                 offsetof(struct hfd_sqlite_op, deadline));
                struct hfd_store_reply reply;
                hfd_store_fn done = op->done;
                void *ctx = op->ctx;

                hf__timer_heap_remove(&sqlite->deadlines, timer);
                fail_late(&reply, op->kind == HFD_SQLITE_TXN || op->kind == HFD_SQLITE_COMPACT,
                          op->running);
                /* As soon as mu is released, the operation's thread may free it. */
                atomic_store(&op->responded, true);
                pthread_mutex_unlock(&sqlite->mu);
                done(ctx, &reply);
                pthread_mutex_lock(&sqlite->mu);
        }
}
