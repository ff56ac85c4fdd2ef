/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The storage port for tests: calls that block until their answer is there, and a recorder of watch
 * events. A wait that lasts a minute, or memory that runs out, ends the test process with a
 * message.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/storage/store.h"

struct call_kv {
        char *key;
        struct hf__buf *value;
        uint64_t mod_revision, create_revision;
};

/* A reply that outlives its callback. */
struct call_answer {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool done;
        int error;
        uint64_t revision, cluster_id;
        bool more;
        size_t n_kvs;
        struct call_kv *kvs;
        struct hf_status status;
};

hf_nsec call_deadline(unsigned ms); /* from now */

void call_answer_init(
        struct call_answer *response); /* then hand call_store_answer and it to an operation */
void call_store_answer(void *ctx, const struct hfd_store_reply *reply);
int call_wait(struct call_answer *response); /* returns answer->error */
void call_answer_done(struct call_answer *response);

/* The value of kvs[i] as a string. */
const char *call_value(const struct call_answer *response, size_t i);

/* Blocking; with a deadline of 20 s; answer may be NULL. They return the error of starting or of
 * the answer. */
int call_get(struct hfd_store *store, const char *key, struct call_answer *response);
int call_list(struct hfd_store *store, const char *prefix, const char *start, uint64_t revision,
              size_t limit, bool keys_only, struct call_answer *response);
int call_txn(struct hfd_store *store, const struct hfd_txn *txn, struct call_answer *response);
int call_compact(struct hfd_store *store, uint64_t revision);
uint64_t call_revision(struct hfd_store *store);
/* Unconditional; return the revision of the write, 0 = failed. */
uint64_t call_put(struct hfd_store *store, const char *key, const char *value);
uint64_t call_delete(struct hfd_store *store, const char *key);

struct recorded {
        enum hfd_watch_event_type type;
        char *key;
        struct hf__buf *value;
        uint64_t mod_revision, create_revision, revision;
        size_t batch; /* which call of the handler brought it */
};
/*
 * The watch calls back until it has ended. A test that fails leaves its frame before that, so a
 * recorder is static there: then the failure is what one gets to see, and not the crash behind it.
 */
struct recorder {
        struct hfd_store *store;
        uint64_t id;
        pthread_mutex_t mu;
        pthread_cond_t cond;
        struct recorded *events; /* progress is left out */
        size_t n, batches;
        bool ended;
        int error;
};

/* Starts a watch of [begin, end) that records; returns the error of starting. */
int recorder_start(struct recorder *recorder, struct hfd_store *store, const char *begin,
                   const char *end, uint64_t revision);
void recorder_wait(struct recorder *recorder,
                   size_t n); /* until n events were recorded or it ended */
int recorder_wait_end(struct recorder *recorder);
/* Cancels the watch unless it has ended, waits for the end, frees. With store freed already, set
 * store to NULL first. */
void recorder_done(struct recorder *recorder);
