/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A memory store with faults that the test sets: its watch ends or loses events, its replies are
 * lost, delayed or false, or a hook of the test runs while it serves a request.
 *
 * It has only the operations that the API core uses, and one watch at a time. mu guards the members
 * marked so. The test sets the others while no request is under way.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/storage/store.h"

struct faulty_store {
        struct hfd_store base; /* first */
        struct hfd_store *inner;
        /* The result that is reported for transactions that were applied; 0 = the true one. */
        int txn_error;
        uint64_t reported_revision; /* reported as the current revision; 0 = the true one */
        bool hold; /* the next revision request gets no reply; the test calls `held` for it */
        hfd_store_fn held;
        void *held_ctx;
        pthread_mutex_t mu;
        /* guarded by mu */
        bool drops_events;   /* the watch gets no events, until it is suspected of hanging */
        bool drops_for_good; /* nor afterwards, as from a store whose members all hang */
        int n_suspected;     /* how often the watch was suspected of hanging */
        void (*on_next_list)(void *ctx);  /* called during the next list; then NULL */
        void (*on_next_watch)(void *ctx); /* called when the next watch has begun; then NULL */
        void *hook_ctx;                   /* for both hooks */
        int n_gets, n_lists, n_revisions; /* counts of requests; gets of objects only */
        int end_error;                    /* the error that the watch ends with; 0 = the true one */
        uint64_t watch_id;
        uint64_t ended_id; /* the watch that faulty_store_end_watch has ended last */
        /* of the watch; set before the watch can call back, and read without the lock */
        const struct hfd_watch_handler *handler;
        void *ctx;
};

void faulty_store_init(struct faulty_store *store, const struct hf_host *host);
void faulty_store_deinit(struct faulty_store *store);
void faulty_store_drop_events(struct faulty_store *store, bool drops_events);
/* Waits until a watch has begun since the last faulty_store_end_watch, and its hook has run. The
 * cache may be full before that. Aborts after PATIENCE_MSEC. */
void faulty_store_await_watch(struct faulty_store *store);
/* Waits in the same way, and ends the watch with this error. */
void faulty_store_end_watch(struct faulty_store *store, int error);
/* From now on the watch gets no events, also after it was suspected of hanging. */
void faulty_store_drop_events_for_good(struct faulty_store *store);
int faulty_store_n_suspected(struct faulty_store *store);
int faulty_store_n_lists(struct faulty_store *store);
