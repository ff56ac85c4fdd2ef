/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates, runs and frees the memory store: one history, one mutex, one thread. operation.c
 * implements the operations, watch.c the watches.
 *
 * Invariant: the thread runs one callback at a time, without the mutex. After `closing` is set, no
 * operation or watch can start, and the thread exits when all replies are delivered and all watches
 * have ended. So both lists are empty when the store is freed.
 */
#include "server/storage/memory/store.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "server/storage/memory/memory.h"
#include "server/storage/memory/operation.h"
#include "server/storage/memory/watch.h"

/* The store's thread. Replies are delivered before watch events, although store.h guarantees no
 * order between the two. */
static void *memory_main(void *ctx) {
        struct hfd_memory *memory = ctx;
        const struct hf_clock *clock = hf_host_clock(memory->store.host);

        pthread_mutex_lock(&memory->mu);
        for (;;) {
                memory->iterations++;
                if (hfd_memory_deliver_reply_locked(memory) ||
                    hfd_memory_deliver_watch_locked(memory))
                        continue;
                if (memory->closing)
                        break;
                /* Wake every second at least, so that the watchdog sees `iterations` increase. */
                (void)clock->wait(clock->ctx, &memory->wake, &memory->mu,
                                  hf_now(clock) + HF_NSEC_PER_SEC);
        }
        pthread_mutex_unlock(&memory->mu);
        return NULL;
}

static uint64_t memory_iterations(struct hfd_store *store) {
        struct hfd_memory *memory = hfd_memory_of(store);
        uint64_t iterations;

        pthread_mutex_lock(&memory->mu);
        iterations = memory->iterations;
        pthread_mutex_unlock(&memory->mu);
        return iterations;
}

static void memory_stop(struct hfd_store *store) {
        struct hfd_memory *memory = hfd_memory_of(store);

        pthread_mutex_lock(&memory->mu);
        memory->closing = true;
        pthread_cond_signal(&memory->wake);
        pthread_mutex_unlock(&memory->mu);
}

static void destroy_memory(struct hfd_memory *memory) {
        hfd_history_deinit(&memory->history);
        pthread_cond_destroy(&memory->wake);
        pthread_mutex_destroy(&memory->mu);
        free(memory);
}

HF__CLEANUP_DEFINE(memory_cleanup, struct hfd_memory *, destroy_memory)

static void memory_free(struct hfd_store *store) {
        struct hfd_memory *memory = hfd_memory_of(store);

        memory_stop(store);
        (void)hf__thread_join(memory->thread);
        assert(!memory->first_reply && !memory->watches);
        destroy_memory(memory);
}

static const struct hfd_store_ops memory_ops = {
        .get = hfd_memory_get,
        .list = hfd_memory_list,
        .txn = hfd_memory_txn,
        .watch = hfd_memory_watch,
        .watch_cancel = hfd_memory_watch_cancel,
        .watch_suspect = hfd_memory_watch_cancel, /* the store has one member */
        .compact = hfd_memory_compact,
        .revision = hfd_memory_revision,
        .stop = memory_stop,
        .free = memory_free,
        .iterations = memory_iterations,
};

int hfd_memory_store_new(const struct hf_host *host, struct hfd_store **ret_store) {
        HF__CLEANUP(hf__free_cleanup) struct hfd_memory *fresh = calloc(1, sizeof *fresh);

        if (!fresh)
                return -ENOMEM;
        int r = hf__mutex_cond_init(&fresh->mu, &fresh->wake);
        if (r != 0)
                return r;
        HF__CLEANUP(memory_cleanup) struct hfd_memory *memory = HF__TAKE(fresh);
        memory->store = (struct hfd_store){.ops = &memory_ops, .host = host};
        memory->last_reply = &memory->first_reply;
        hfd_history_init(&memory->history);
        r = hf__thread_start(host, "hfd-memory", memory_main, memory, &memory->thread);
        if (r != 0)
                return r;
        *ret_store = &HF__TAKE(memory)->store;
        return 0;
}
