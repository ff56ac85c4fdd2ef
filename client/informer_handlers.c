/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls the handlers of an informer.
 *
 * A handler has one of three states: new (not replayed: it has not got the existing objects yet),
 * active (it gets events), removed. The reflector's thread marks a handler as running while it
 * calls it. A thread that removes a handler first marks it removed and waits until it is not
 * running. Only then does that thread unlink the handler and free it.
 *
 * Invariant: a handler is unlinked only under the lock and only while it does not run. Therefore
 * the reflector can continue with the next handler after it has called one and taken the lock
 * again.
 */
#include "client/informer_handlers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/host.h"
#include "base/thread.h"
#include "client/informer_private.h"

/* Releases the lock during the call, so that the handler may read the informer. */
static void call_handler_locked(struct hf_informer *informer, struct hf_informer_handler *handler,
                                enum hf_event_type type, const struct hf__informer_entry *entry,
                                const struct hf__buf *object) {
        hf__mutex_assert_held(&informer->mu);
        assert(hf__reflector_on_thread(&informer->reflector));
        assert(!informer->running);
        assert(!handler->removed);
        informer->running = handler;
        (void)pthread_mutex_unlock(&informer->mu);
        handler->fn(handler->ctx, type, entry->ns, entry->name, object->data, object->n);
        (void)pthread_mutex_lock(&informer->mu);
        informer->running = NULL;
        (void)pthread_cond_broadcast(&informer->changed);
}

void hf__informer_handlers_notify(struct hf_informer *informer, enum hf_event_type type,
                                  const struct hf__informer_entry *entry,
                                  const struct hf__buf *object) {
        (void)pthread_mutex_lock(&informer->mu);
        for (struct hf_informer_handler *h = informer->handlers; h; h = h->next)
                if (h->replayed && !h->removed)
                        call_handler_locked(informer, h, type, entry, object);
        (void)pthread_mutex_unlock(&informer->mu);
}

/* Although the lock is released during each call, the entries stay the same, because only this
 * thread changes them. */
static void call_with_all_locked(struct hf_informer *informer, struct hf_informer_handler *handler,
                                 enum hf_event_type type) {
        const struct hf__informer_entry *entry;
        struct hf__key_iter iter;

        hf__mutex_assert_held(&informer->mu);
        hf__key_iter_init(&iter, &informer->store.entries);
        while (!handler->removed && !informer->stop &&
               (entry = (const struct hf__informer_entry *)hf__key_iter_next(&iter))) {
                call_handler_locked(informer, handler, type, entry, entry->object);
        }
}

void hf__informer_handlers_replay_locked(struct hf_informer *informer) {
        hf__mutex_assert_held(&informer->mu);
        for (struct hf_informer_handler *h = informer->handlers; h; h = h->next) {
                if (h->replayed || h->removed)
                        continue;
                call_with_all_locked(informer, h, HF_EVENT_ADDED);
                h->replayed = true;
        }
}

void hf__informer_handlers_resync_locked(struct hf_informer *informer) {
        hf__mutex_assert_held(&informer->mu);
        if (informer->resync <= 0 || hf_now(informer->clock) < informer->resync_at)
                return;
        for (struct hf_informer_handler *h = informer->handlers; h; h = h->next)
                if (h->replayed)
                        call_with_all_locked(informer, h, HF_EVENT_MODIFIED);
        /* Count the period from now, not from the previous due time: handlers that take longer than
         * the period would otherwise be called without a pause. */
        informer->resync_at = hf__nsec_after(hf_now(informer->clock), informer->resync);
}

/* ---- adding and removing; thread: any except the reflector's ---- */

int hf_informer_add_handler(struct hf_informer *informer, hf_informer_handler_fn fn, void *ctx,
                            struct hf_informer_handler **ret_handler) {
        if (!informer || !fn || !ret_handler)
                return -EINVAL;
        struct hf_informer_handler *handler = calloc(1, sizeof *handler), **place;
        if (!handler)
                return -ENOMEM;
        handler->fn = fn;
        handler->ctx = ctx;
        (void)pthread_mutex_lock(&informer->mu);
        for (place = &informer->handlers; *place; place = &(*place)->next)
                ;
        *place = handler;
        hf__informer_thread_wake(informer);
        (void)pthread_mutex_unlock(&informer->mu);
        *ret_handler = handler;
        return 0;
}

void hf_informer_remove_handler(struct hf_informer *informer, struct hf_informer_handler *handler) {
        struct hf_informer_handler **place;

        if (!handler)
                return;
        (void)pthread_mutex_lock(&informer->mu);
        handler->removed = true;
        /* A handler returns soon, so this wait ends. The reconciler's handlers may wait for memory,
         * but are told to return before they are removed. */
        while (informer->running == handler)
                (void)informer->clock->wait(informer->clock->ctx, &informer->changed, &informer->mu,
                                            HF_NSEC_NEVER);
        for (place = &informer->handlers; *place != handler; place = &(*place)->next)
                ;
        *place = handler->next;
        (void)pthread_mutex_unlock(&informer->mu);
        free(handler);
}

size_t hf_informer_n_handlers(struct hf_informer *informer) {
        size_t n = 0;

        (void)pthread_mutex_lock(&informer->mu);
        for (struct hf_informer_handler *h = informer->handlers; h; h = h->next)
                n++;
        (void)pthread_mutex_unlock(&informer->mu);
        return n;
}

void hf__informer_handlers_done(struct hf_informer *informer) {
        assert(!informer->running);
        while (informer->handlers) {
                struct hf_informer_handler *handler = informer->handlers;
                informer->handlers = handler->next;
                free(handler);
        }
}
