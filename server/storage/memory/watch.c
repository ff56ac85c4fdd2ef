/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watches of the memory store. A watch is a position in the history's log. The store's thread
 * delivers the changes from that position on.
 *
 * Invariants: A watch receives whole revisions only, because a transaction enters the log under the
 * mutex and a delivery never stops inside a revision. A watch exists until the store's thread has
 * called its end callback: only that thread removes it from the list, and a cancel only marks it.
 */
#include "server/storage/memory/watch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/thread.h"

#define EVENTS_MAX 256 /* in one callback; exceeded only to complete the last revision */

struct hfd_memory_watch {
        struct hfd_memory_watch *next;
        /* Immutable. */
        uint64_t id;
        struct hfd_watch_handler handler;
        void *ctx;
        char *begin, *end; /* owned */
        /* Guarded by mu. */
        uint64_t position; /* the next revision to deliver */
        int error;         /* not 0: the store's thread must end the watch with this error */
};

static void free_watch(struct hfd_memory_watch *watch) {
        free(watch->begin);
        free(watch->end);
        free(watch);
}

HF__CLEANUP_DEFINE(watch_cleanup, struct hfd_memory_watch *, free_watch)

int hfd_memory_watch(struct hfd_store *store, const char *begin, const char *end, uint64_t revision,
                     const struct hfd_watch_handler *handler, void *ctx, uint64_t *ret_id) {
        struct hfd_memory *memory = hfd_memory_of(store);
        HF__CLEANUP(watch_cleanup) struct hfd_memory_watch *watch = calloc(1, sizeof *watch);
        int r = 0;

        assert(handler->event && handler->end);
        if (!watch)
                return -ENOMEM;
        watch->handler = *handler;
        watch->ctx = ctx;
        watch->begin = strdup(begin);
        watch->end = strdup(end);
        if (!watch->begin || !watch->end)
                return -ENOMEM;
        pthread_mutex_lock(&memory->mu);
        if (memory->closing) {
                r = HF_E_CLOSED;
        } else {
                watch->position = revision ? revision : memory->history.revision + 1;
                watch->error = watch->position < memory->history.compacted ? HF_E_GONE : 0;
                watch->id = ++memory->last_watch_id;
                if (ret_id)
                        *ret_id = watch->id;
                watch->next = memory->watches;
                memory->watches = HF__TAKE(watch);
                pthread_cond_signal(&memory->wake);
        }
        pthread_mutex_unlock(&memory->mu);
        return r;
}

void hfd_memory_watch_cancel(struct hfd_store *store, uint64_t id) {
        struct hfd_memory *memory = hfd_memory_of(store);

        pthread_mutex_lock(&memory->mu);
        for (struct hfd_memory_watch *watch = memory->watches; watch; watch = watch->next)
                if (watch->id == id && !watch->error)
                        watch->error = HF_E_CANCELED;
        pthread_cond_signal(&memory->wake);
        pthread_mutex_unlock(&memory->mu);
}

/* Removes the watch from the list and calls its end callback with mu released. */
static void end_watch_locked(struct hfd_memory *memory, struct hfd_memory_watch **link) {
        struct hfd_memory_watch *watch = *link;
        struct hf_status status = {0};

        hf__mutex_assert_held(&memory->mu);
        assert(watch->error != 0);
        *link = watch->next;
        pthread_mutex_unlock(&memory->mu);
        (void)hf_fail(&status, watch->error,
                      watch->error == HF_E_GONE ? "the watch's start revision is compacted"
                                                : "the watch was canceled");
        watch->handler.end(watch->ctx, watch->error, &status);
        free_watch(watch);
        pthread_mutex_lock(&memory->mu);
}

static struct hfd_watch_event event_of(const struct hfd_version *version) {
        bool put = version->value != NULL;

        return (struct hfd_watch_event){.type = put ? HFD_WATCH_PUT : HFD_WATCH_DELETE,
                                        .kv = {.key = version->key,
                                               .value = version->value,
                                               .mod_revision = version->mod,
                                               .create_revision = put ? version->create : 0},
                                        .revision = version->mod};
}

/* Delivers whole revisions from the watch's position on. Releases mu during the callback;
 * references keep the versions alive for that time. Returns false, without releasing mu, if there
 * was nothing to deliver. */
static bool deliver_events_locked(struct hfd_memory *memory, struct hfd_memory_watch *watch) {
        const struct hfd_history *history = &memory->history;
        struct hfd_watch_event events[EVENTS_MAX + HFD_TXN_MAX];
        struct hfd_version *versions[EVENTS_MAX + HFD_TXN_MAX];
        uint64_t position = watch->position;
        size_t n = 0;

        hf__mutex_assert_held(&memory->mu);
        for (size_t i = hfd_history_log_find(history, position); i < history->n_log; i++) {
                struct hfd_version *version = history->log[i];

                if (n >= EVENTS_MAX && version->mod >= position)
                        break;
                position = version->mod + 1;
                if (strcmp(version->key, watch->begin) < 0 ||
                    (*watch->end && strcmp(version->key, watch->end) >= 0))
                        continue;
                assert(n < sizeof events / sizeof events[0]);
                versions[n] = hfd_version_ref(version);
                events[n++] = event_of(version);
        }
        watch->position = position;
        if (n == 0)
                return false;
        pthread_mutex_unlock(&memory->mu);
        watch->handler.event(watch->ctx, events, n);
        pthread_mutex_lock(&memory->mu);
        for (size_t i = 0; i < n; i++)
                hfd_version_unref(versions[i]);
        return true;
}

uint64_t hfd_memory_oldest_position_locked(const struct hfd_memory *memory) {
        uint64_t oldest = UINT64_MAX;

        hf__mutex_assert_held(&memory->mu);
        for (const struct hfd_memory_watch *w = memory->watches; w; w = w->next)
                if (w->position < oldest)
                        oldest = w->position;
        return oldest;
}

/* Delivers to one watch only: the list may change during the callback, so the next call begins at
 * its start again. */
bool hfd_memory_deliver_watch_locked(struct hfd_memory *memory) {
        hf__mutex_assert_held(&memory->mu);
        for (struct hfd_memory_watch **link = &memory->watches; *link; link = &(*link)->next) {
                if (memory->closing && (*link)->error == 0)
                        (*link)->error = HF_E_CANCELED;
                if ((*link)->error != 0) {
                        end_watch_locked(memory, link);
                        return true;
                }
                if (deliver_events_locked(memory, *link))
                        return true;
        }
        return false;
}
