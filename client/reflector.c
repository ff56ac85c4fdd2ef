/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reflector lists the collection and then watches it from the list's version on. It lists again
 * when the server no longer has that version, and waits after failures.
 *
 * The informer's thread calls hf__reflector_step (informer_thread.c). A step first calls new
 * handlers with all objects, and then does a resync if one is due. Then it does the first of these
 * actions that is due:
 *
 *      a message                      apply the event, or the end of a source
 *      the watch has lost an event    abandon the watch and list
 *      need_list, no list             at list_at, start a list
 *      no need_list, no watch         at watch_at, start a watch after last_sync_version
 *      watch, no list, threads wait   at probe_at, start a list in parallel to the watch: a probe
 *      nothing                        rest until one of these times or a resync, or until woken
 *
 * While a thread waits at the barrier (informer_barrier.h), urgent_at replaces a later list_at or
 * watch_at.
 *
 * Invariants: the reflector follows at most one list and one watch. It ignores messages of an
 * abandoned watch. If an event cannot be applied, the reflector lists again, so that no change is
 * lost.
 *
 * If the server sends a lower revision than before, or reports that it has not reached the revision
 * at which a watch shall begin, then the server may have been restored from a backup. The reflector
 * lists again and compares the contents of all objects, even of those whose version is unchanged,
 * because the server may have issued that version a second time.
 *
 * An event, or a watch that lived for STABLE_WATCH, resets the number of watch failures; a list
 * that succeeds resets the number of list failures.
 */
#include "client/reflector.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/thread.h"
#include "client/informer_barrier.h"
#include "client/informer_handlers.h"
#include "client/informer_private.h"
#include "client/reflector_backoff.h"
#include "client/reflector_list.h"

#define STABLE_WATCH HF_NSEC_PER_SEC

/* ---- the watch ---- */

/* Whether the server reports that it has not reached the revision of a watch. Kubernetes has no
 * separate reason for this error, and hf_status has no causes, so the message must identify it. */
static bool is_server_behind(int error, const struct hf_status *status) {
        return error == HF_E_TIMEOUT && status &&
               strstr(status->message, "Too large resource version");
}

static void watch_failed(struct hf_informer *informer, int error, const struct hf_status *status) {
        struct hf__reflector *reflector = &informer->reflector;
        unsigned failures = reflector->watch_failures++;
        hf_nsec at = hf__reflector_retry_at(informer, failures, status ? status->retry_after_s : 0);

        if (error != 0 && error != HF_E_GONE)
                hf__reflector_log_failure(informer, "watch", failures == 0, error, status);
        if (error == HF_E_GONE && failures == 0)
                at = hf_now(informer->clock); /* no delay: servers do compact their history */
        if (is_server_behind(error, status))
                informer->store.versions_reused = true;
        if (error == HF_E_GONE || is_server_behind(error, status))
                hf__reflector_need_list(informer, at);
        reflector->watch_at = at;
}

static void start_watch(struct hf_informer *informer) {
        struct hf__reflector *reflector = &informer->reflector;

        assert(!reflector->watch);
        int r = hf__reflector_source_watch(informer, &reflector->watch);
        if (r != 0) {
                watch_failed(informer, r, NULL);
                return;
        }
        reflector->watch_floor = 0; /* the watch begins after every list so far */
}

/* Applies a watch event to the store. A revision below the last one seen is taken as a sign that
 * the server was restored from a backup. */
static void handle_event(struct hf_informer *informer,
                         const struct hf__reflector_message *message) {
        struct hf__reflector *reflector = &informer->reflector;
        uint64_t revision = hf__resource_version_number(message->resource_version);
        int r = 0;

        reflector->watch->n_events++;
        reflector->watch_failures = 0;
        if (revision != 0 && revision <= reflector->watch_floor)
                return; /* a probe has already stored this change */
        if (revision != 0 && revision < informer->seen_revision) {
                informer->store.versions_reused = true;
                hf__reflector_relist(informer);
                return;
        }
        if (message->type != HF_EVENT_BOOKMARK)
                r = hf__informer_store_apply(informer, message->type, message->object);
        if (r == 0) {
                hf__reflector_set_last_sync(informer, message->resource_version);
                return;
        }
        hf__reflector_log_failure(informer, "watch", true, r, NULL);
        hf__reflector_abandon_watch(informer);
        hf__reflector_need_list(informer, hf__reflector_retry_at(informer, 0, 0));
}

/* A watch that ends at once without an event counts as a failure, even without an error. Otherwise
 * a broken server would make the reflector watch in a busy loop. */
static void watch_ended(struct hf_informer *informer, const struct hf__reflector_source *source) {
        struct hf__reflector *reflector = &informer->reflector;
        hf_nsec now = hf_now(informer->clock);
        bool stable = source->n_events > 0 || now - source->started_at >= STABLE_WATCH;

        assert(source == reflector->watch);
        reflector->watch = NULL;
        if (stable)
                reflector->watch_failures = 0;
        if (source->error == 0 && stable)
                /* watch_at may be in the future, if this watch was started at urgent_at. */
                reflector->watch_at = now;
        else
                watch_failed(informer, source->error, &source->status);
}

/* ---- a step ---- */

static void handle_message(struct hf_informer *informer, struct hf__reflector_message *message) {
        const struct hf__reflector *reflector = &informer->reflector;
        const struct hf__reflector_source *source = message->source;

        if (message->is_last && source == reflector->list)
                hf__reflector_list_ended(informer, source);
        else if (message->is_last && source == reflector->watch)
                watch_ended(informer, source);
        else if (source == reflector->watch)
                handle_event(informer, message);
        hf__reflector_message_free(informer, message);
}

/* Shortens a long backoff while a thread waits at the barrier. */
static hf_nsec shorten_backoff_locked(const struct hf_informer *informer, hf_nsec at) {
        hf_nsec urgent_at = informer->reflector.urgent_at;

        hf__mutex_assert_held(&informer->mu);
        return informer->waiters && urgent_at < at ? urgent_at : at;
}

/* An action of the table at the top of this file. Called without the lock. */
typedef void action_fn(struct hf_informer *informer);

/* Returns the action that is due now. NULL: nothing is due before *ret_until, unless a message
 * arrives or the informer is woken. */
static action_fn *next_action_locked(const struct hf_informer *informer, hf_nsec *ret_until) {
        hf__mutex_assert_held(&informer->mu);
        const struct hf__reflector *reflector = &informer->reflector;
        hf_nsec now = hf_now(informer->clock), at = HF_NSEC_NEVER;
        action_fn *action = NULL;

        if (reflector->watch && reflector->watch->lost)
                return hf__reflector_relist;
        if (reflector->need_list) {
                action = hf__reflector_list_start;
                if (!reflector->list)
                        at = shorten_backoff_locked(informer, reflector->list_at);
        } else if (!reflector->watch) {
                action = start_watch;
                at = shorten_backoff_locked(informer, reflector->watch_at);
        } else if (!reflector->list && hf__informer_barrier_pending_locked(informer)) {
                action = hf__reflector_list_start;
                at = informer->probe_at;
        }
        *ret_until = informer->resync > 0 && informer->resync_at < at ? informer->resync_at : at;
        return at <= now ? action : NULL;
}

static enum hf__reflector_next step_locked(struct hf_informer *informer, hf_nsec *ret_until) {
        hf__mutex_assert_held(&informer->mu);
        action_fn *action = NULL;

        hf__informer_handlers_replay_locked(informer);
        /* However short the period is, a message or an action that is due follows each resync. */
        hf__informer_handlers_resync_locked(informer);
        if (informer->stop) /* it was set while a handler ran, without the lock */
                return HF__REFLECTOR_AGAIN;
        struct hf__reflector_message *message = hf__reflector_queue_pop_locked(informer);
        if (!message) {
                action = next_action_locked(informer, ret_until);
                if (!action)
                        return HF__REFLECTOR_LATER;
        }
        (void)pthread_mutex_unlock(&informer->mu);
        if (message)
                handle_message(informer, message);
        else
                action(informer);
        (void)pthread_mutex_lock(&informer->mu);
        return HF__REFLECTOR_AGAIN;
}

static void cancel_all_sources(struct hf_informer *informer) {
        struct hf__reflector *reflector = &informer->reflector;

        if (reflector->list)
                hf_client_cancel(informer->client, reflector->list->id);
        reflector->list = NULL;
        hf__reflector_abandon_watch(informer);
}

/* Cancels the list and the watch, and discards messages until every source has ended. This does not
 * take long, because the client soon ends a canceled request. */
static enum hf__reflector_next end_step_locked(struct hf_informer *informer, hf_nsec *ret_until) {
        struct hf__reflector *reflector = &informer->reflector;
        struct hf__reflector_message *message;

        hf__mutex_assert_held(&informer->mu);
        if (reflector->list || reflector->watch) {
                (void)pthread_mutex_unlock(&informer->mu);
                cancel_all_sources(informer);
                (void)pthread_mutex_lock(&informer->mu);
        }
        while ((message = hf__reflector_queue_pop_locked(informer)))
                hf__reflector_message_free(informer, message);
        if (reflector->n_sources > 0) {
                *ret_until = HF_NSEC_NEVER;
                return HF__REFLECTOR_LATER;
        }
        hf__reflector_forget_pages(informer);
        return HF__REFLECTOR_ENDED;
}

enum hf__reflector_next hf__reflector_step(struct hf_informer *informer, hf_nsec *ret_until) {
        informer->reflector.thread = pthread_self();
        (void)pthread_mutex_lock(&informer->mu);
        informer->rests = false;
        enum hf__reflector_next next = informer->stop ? end_step_locked(informer, ret_until)
                                                      : step_locked(informer, ret_until);
        informer->rests = next == HF__REFLECTOR_LATER;
        (void)pthread_mutex_unlock(&informer->mu);
        return next;
}
