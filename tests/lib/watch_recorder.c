/* SPDX-License-Identifier: Apache-2.0 */
/* See watch_recorder.h. It asserts that no event follows the end of a watch. */
#include "watch_recorder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"

static void on_event(void *ctx, const struct hfd_watch_event *events, size_t n) {
        struct watch_recorder *recorder = ctx;

        pthread_mutex_lock(&recorder->mu);
        assert(!recorder->ended && n > 0);
        recorder->events =
                reallocarray(recorder->events, recorder->n + n, sizeof *recorder->events);
        assert(recorder->events);
        for (size_t i = 0; i < n; i++) {
                if (events[i].type == HFD_WATCH_PROGRESS)
                        continue;
                struct watch_recorder_event *event = &recorder->events[recorder->n++];
                *event = (struct watch_recorder_event){.type = events[i].type,
                                                       .key = strdup(events[i].kv.key),
                                                       .value = hf__buf_ref(events[i].kv.value),
                                                       .mod_revision = events[i].kv.mod_revision,
                                                       .create_revision =
                                                               events[i].kv.create_revision,
                                                       .revision = events[i].revision,
                                                       .batch = recorder->n_batches};
                assert(event->key);
        }
        recorder->n_batches++;
        pthread_cond_broadcast(&recorder->cond);
        pthread_mutex_unlock(&recorder->mu);
}

static void on_end(void *ctx, int error, const struct hf_status *status) {
        struct watch_recorder *recorder = ctx;

        pthread_mutex_lock(&recorder->mu);
        assert(!recorder->ended);
        recorder->ended = true;
        recorder->error = error;
        pthread_cond_broadcast(&recorder->cond);
        pthread_mutex_unlock(&recorder->mu);
}

int watch_recorder_start(struct watch_recorder *recorder, struct hfd_store *store,
                         const char *begin, const char *end, uint64_t revision) {
        static const struct hfd_watch_handler handler = {.event = on_event, .end = on_end};

        *recorder = (struct watch_recorder){.store = store};
        pthread_mutex_init(&recorder->mu, NULL);
        int r = hf_cond_init(&recorder->cond);
        assert(r == 0);
        r = store->ops->watch(store, begin, end, revision, &handler, recorder, &recorder->id);
        if (r != 0)
                recorder->ended = true;
        return r;
}

/* Waits until n events were recorded (SIZE_MAX: no such limit), or the watch has ended. */
static void wait_for(struct watch_recorder *recorder, size_t n) {
        pthread_mutex_lock(&recorder->mu);
        PATIENCE_AWAIT_LOCKED(&recorder->cond, &recorder->mu, recorder->n >= n || recorder->ended);
        pthread_mutex_unlock(&recorder->mu);
}

void watch_recorder_await(struct watch_recorder *recorder, size_t n) { wait_for(recorder, n); }

int watch_recorder_await_end(struct watch_recorder *recorder) {
        wait_for(recorder, SIZE_MAX);
        return recorder->error;
}

void watch_recorder_stop(struct watch_recorder *recorder) {
        if (recorder->store)
                recorder->store->ops->watch_cancel(recorder->store, recorder->id);
        (void)watch_recorder_await_end(recorder);
        for (size_t i = 0; i < recorder->n; i++) {
                free(recorder->events[i].key);
                hf__buf_unref(recorder->events[i].value);
        }
        free(recorder->events);
        pthread_cond_destroy(&recorder->cond);
        pthread_mutex_destroy(&recorder->mu);
}
