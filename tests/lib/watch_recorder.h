/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A watch of a store that records its events. Waiting aborts when it takes too long.
 *
 * The watch calls back until it has ended. A test that fails leaves its frame before that, so tests
 * make their recorders static: the failure is reported then, and not a crash that follows from it.
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
        size_t batch; /* which call of the handler brought it */
};

struct watch_recorder {
        struct hfd_store *store; /* borrowed; a test that frees it first sets this to NULL */
        uint64_t id;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        struct watch_recorder_event *events; /* without progress */
        size_t n, n_batches;
        bool ended;
        int error;
};

/* Watches [begin, end) from this revision on. Returns the error of starting. */
int watch_recorder_start(struct watch_recorder *recorder, struct hfd_store *store,
                         const char *begin, const char *end, uint64_t revision);
/* Cancels the watch unless it has ended, waits for its end, and frees the events. */
void watch_recorder_stop(struct watch_recorder *recorder);
void watch_recorder_await(struct watch_recorder *recorder, size_t n); /* n events, or the end */
int watch_recorder_await_end(struct watch_recorder *recorder);        /* returns its error */
