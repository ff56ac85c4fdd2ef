/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The handlers of an informer: who gets an event, and when. Thread: the reflector's, for every
 * function here but hf__informer_handlers_done. The handlers run without a lock.
 */
#include <stdbool.h>

#include <holdfast/informer.h>

struct hf__buf;
struct hf__informer_entry;

struct hf_informer_handler {
        struct hf_informer_handler *next;
        hf_informer_handler_fn fn;
        void *ctx;
        /* guarded by the informer's mu */
        bool replayed; /* it got what was there when it was added; events come only after that */
        bool removed;  /* the thread that removes it waits until it does not run */
};

/* Calls every handler that is replayed. The entry may have left the store already. Called without
 * the lock. */
void hf__informer_handlers_notify(struct hf_informer *informer, enum hf_event_type type,
                                  const struct hf__informer_entry *entry,
                                  const struct hf__buf *object);
/* Gives new handlers every entry of the store, as ADDED. Called with the lock and returns with it,
 * but releases it for each call of a handler. True: there was a new handler. */
bool hf__informer_handlers_replay_locked(struct hf_informer *informer);
/* Gives all handlers every entry of the store, as MODIFIED, when the resync is due. The lock is as
 * above. True: it was due. */
bool hf__informer_handlers_resync_locked(struct hf_informer *informer);
/* Frees the handlers. After the reflector's thread was joined. */
void hf__informer_handlers_done(struct hf_informer *informer);
