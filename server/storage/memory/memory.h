/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The memory store's state, shared by its operations, its watches and its thread. Private to
 * server/storage/memory.
 *
 * Lock: mu guards the members that are marked so. No callback runs under it: a function that runs a
 * callback releases mu for that time, and its comment says so. The caller of a function whose name
 * ends in _locked holds mu.
 *
 * Threads: any thread may use the history, under mu. Only the store's thread runs callbacks and
 * removes replies and watches from their lists.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/storage/memory/history.h"
#include "server/storage/store.h"

struct hfd_memory_reply;
struct hfd_memory_watch;

struct hfd_memory {
        struct hfd_store store; /* first member; immutable */
        pthread_t thread;       /* used by the thread that creates and frees the store */

        pthread_mutex_t mu;
        /* Signalled when there may be something to deliver, or when closing is set. */
        pthread_cond_t wake;
        /* Guarded by mu. */
        struct hfd_history history;
        struct hfd_memory_reply *first_reply, **last_reply; /* queue, owned */
        struct hfd_memory_watch *watches;                   /* list, owned */
        uint64_t last_watch_id;
        uint64_t iterations;
        bool closing; /* no operation or watch starts any more */
};

/* The memory store that a struct hfd_store is the first member of. */
static inline struct hfd_memory *hfd_memory_of(struct hfd_store *store) {
        return (struct hfd_memory *)store;
}
