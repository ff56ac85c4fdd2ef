/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A store without contents: each request waits until the test replies to it, and the test delivers
 * the events of the watch. So a test decides the order of everything that a user of a store sees.
 *
 * There is one watch at a time. A cancel ends it at once, with HF_E_CANCELED. Compactions are not
 * supported. Asserts instead of handling errors; waiting aborts after PATIENCE_MSEC.
 *
 * Thread: the test's calls are for one thread, which runs the callbacks of replies and events.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/storage/keys.h"
#include "server/storage/store.h"

enum scripted_kind { SCRIPTED_GET, SCRIPTED_LIST, SCRIPTED_TXN, SCRIPTED_REVISION };
#define SCRIPTED_N_KINDS 4

struct scripted_request {
        enum scripted_kind kind;
        char key[HFD_KEY_MAX];   /* of a get, or of a transaction's first operation; a list's prefix
                                  */
        char start[HFD_KEY_MAX]; /* of a list; "" = the first key */
        uint64_t revision;       /* of a list, or of a transaction's first compare */
        size_t limit;
        bool keys_only, urgent;
        hf_nsec deadline;
        hfd_store_fn done;
        void *ctx;
};

#define SCRIPTED_WAITING_MAX 16

struct scripted_store {
        struct hfd_store base; /* first */
        pthread_mutex_t mu;
        pthread_cond_t cond; /* broadcast for each request and watch */
        /* guarded by mu */
        struct scripted_request waiting[SCRIPTED_WAITING_MAX];
        size_t n_waiting;
        /* What the functions return, by kind; 0 = they start the request. */
        int refusals[SCRIPTED_N_KINDS], watch_refusal;
        bool is_watched;
        unsigned n_watches, n_canceled, n_suspected; /* counts */
        uint64_t suspected;                          /* the ID that was suspected last */
        char begin[HFD_KEY_MAX], end[HFD_KEY_MAX];   /* the range of the last watch */
        uint64_t from;                               /* its first revision */
        struct hfd_watch_handler handler;
        void *ctx;
        /* Called when a watch has begun, before the caller of watch knows of it; NULL = not. Set
         * before the store is used, and called without mu. */
        void (*on_watch)(struct scripted_store *store);
};

void scripted_store_init(struct scripted_store *store, const struct hf_host *host);
void scripted_store_deinit(struct scripted_store *store);

/* Waits for the next request, which must be of this kind. The test replies to it exactly once. */
struct scripted_request scripted_store_next(struct scripted_store *store, enum scripted_kind kind);
size_t scripted_store_n_waiting(struct scripted_store *store);
void scripted_store_refuse(struct scripted_store *store, enum scripted_kind kind, int error);

void scripted_reply(const struct scripted_request *request, const struct hfd_store_reply *reply);
void scripted_reply_error(const struct scripted_request *request, int error);
/* Replies with a revision and no keys. */
void scripted_reply_revision(const struct scripted_request *request, uint64_t revision);
/* Replies with one key. value NULL = the key comes without its value. */
void scripted_reply_key(const struct scripted_request *request, uint64_t revision, const char *key,
                        const char *value, uint64_t mod_revision);

/* Waits until this many watches have begun in all, and the last one is open. */
void scripted_store_await_watch(struct scripted_store *store, unsigned n);
unsigned scripted_store_n_watches(struct scripted_store *store);
bool scripted_store_is_watched(struct scripted_store *store);
void scripted_store_refuse_watch(struct scripted_store *store, int error);
/* Delivers one event: value NULL = the key was deleted; key NULL = progress. */
void scripted_store_event(struct scripted_store *store, const char *key, const char *value,
                          uint64_t revision);
void scripted_store_events(struct scripted_store *store, const struct hfd_watch_event *events,
                           size_t n);
/* Ends the watch with this error. message NULL = there is no message. */
void scripted_store_end_watch(struct scripted_store *store, int error, const char *message);
