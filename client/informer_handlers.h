/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The handlers of an informer, and the calls of them. Thread: the reflector's, for every function
 * here except hf__informer_handlers_done. The handlers run without a lock.
 */
#include <stdbool.h>

#include <holdfast/informer.h>

struct hf__buf;
struct hf__informer_entry;

struct hf_informer_handler {
        struct hf_informer_handler *next; /* guarded by the informer's mu */
        hf_informer_handler_fn fn;        /* immutable, as ctx is */
        void *ctx;
        /* guarded by the informer's mu */
        bool replayed; /* the handler got the initial objects; from now on it gets events */
        bool removed;  /* a thread waits until the handler does not run, and then unlinks it */
};

/* Calls every replayed handler. The entry may already have left the store. Called without the
 * lock. */
void hf__informer_handlers_notify(struct hf_informer *informer, enum hf_event_type type,
                                  const struct hf__informer_entry *entry,
                                  const struct hf__buf *object);
/* Calls new handlers with every entry of the store, as ADDED. Called with the lock and returns with
 * it, but releases it during each call of a handler. */
void hf__informer_handlers_replay_locked(struct hf_informer *informer);
/* If a resync is due, calls the replayed handlers with every entry of the store, as MODIFIED.
 * Called with the lock and returns with it, but releases it during each call of a handler. */
void hf__informer_handlers_resync_locked(struct hf_informer *informer);
/* Frees the handlers. Only when the informer was never started, or its own thread was joined, or
 * the thread that it shares with other informers has detached it. */
void hf__informer_handlers_done(struct hf_informer *informer);
