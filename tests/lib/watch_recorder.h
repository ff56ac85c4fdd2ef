/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A watch of a store that records its events. Waiting aborts after PATIENCE_MSEC.
 *
 * The watch makes callbacks until it has ended, even after a failed test has left its function. So
 * tests make their recorders static; otherwise the failure would be followed by a crash.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/storage/store.h"

struct watch_recorder_event {
        enum hfd_watch_event_type type;
        char *key;
        struct hf__buf *value;
        uint64_t mod_revision, create_revision, revision;
        size_t batch; /* the number of the handler call that delivered it */
};

struct watch_recorder {
        struct hfd_store *store; /* borrowed; a test that frees the store first sets this to NULL */
        uint64_t id;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        struct watch_recorder_event *events; /* without progress events */
        size_t n, n_batches;
        bool ended;
        int error;
};

/* Watches the keys in [begin, end) from this revision on. Returns the error of the call. Call
 * watch_recorder_stop in any case. */
int watch_recorder_start(struct watch_recorder *recorder, struct hfd_store *store,
                         const char *begin, const char *end, uint64_t revision);
/* Cancels the watch if it is still open, waits for its end, and frees the events. */
void watch_recorder_stop(struct watch_recorder *recorder);
void watch_recorder_await(struct watch_recorder *recorder, size_t n); /* n events, or the end */
int watch_recorder_await_end(struct watch_recorder *recorder);        /* returns its error */
