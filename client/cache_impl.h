/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside the list-watch cache. cache.c is its face (waiting, reading, handlers), cache_feed.c its thread (listing,
 * watching, backing off), cache_store.c what it holds.
 *
 * The thread is the only one that changes the store, and it does so under the lock; hence it reads without. Callbacks of
 * the client only post letters. Handlers run on the thread with no lock held.
 */
#include <pthread.h>
#include <stdint.h>

#include <holdfast/cache.h>

#include "client/key_index.h"

struct hf__buf;
struct hf__cache_letter;
struct hf__cache_source;

#define HF__CACHE_RV_MAX 32 /* a resourceVersion is opaque, but every known one is a 64-bit number */

struct hf__cache_entry {
        struct hf__keyed keyed; /* "ns/name", or "name" */
        const char *ns, *name;  /* borrowed from text */
        char resource_version[HF__CACHE_RV_MAX];
        uint64_t generation;    /* the last list or event that had it */
        struct hf__buf *object; /* owned */
        char text[];
};

struct hf_cache_handler {
        struct hf_cache_handler *next;
        hf_cache_handler_fn fn;
        void *ctx;
        bool replayed; /* it has been told what was there when it came; until then it gets no events */
        bool removed;  /* its remover waits for the thread to leave it */
};

struct hf__cache_waiter {
        struct hf__cache_waiter *next;
        uint64_t revision;
};

struct hf_cache {
        /* immutable after start */
        const struct hf_host *host; /* borrowed */
        const struct hf_clock *clock;
        struct hf_client *client;    /* borrowed */
        struct hf_resource resource; /* its strings owned, as the two below */
        char *ns, *query;
        bool one_revision;
        pthread_t thread;
        bool started;
        pthread_mutex_t mu;
        pthread_cond_t wake;    /* to the thread */
        pthread_cond_t changed; /* to waiters and removers */

        /* guarded by mu, the first three changed by the thread only */
        struct hf__key_index store; /* owns its entries */
        uint64_t seen;              /* everything up to it is in the store and has been told to the handlers */
        bool synced;
        struct hf_cache_handler *handlers; /* owned, in the order of their adding */
        struct hf_cache_handler *running;  /* the one the thread is in */
        struct hf__cache_waiter *waiters;  /* on the stacks of those who wait */
        hf_nsec probe_at;                  /* when waiters may have a list made for them */
        unsigned probe_failures;
        struct hf__cache_letter *letters, **letters_tail;
        size_t n_letter_bytes;
        bool stop;

        /* the thread's */
        struct hf__cache_source *list, *watch;   /* under way; owned until their last letter is taken */
        size_t n_sources;                        /* those and the abandoned ones */
        char resource_version[HF__CACHE_RV_MAX]; /* where the next watch begins */
        uint64_t floor;                          /* events of the watch up to it came with a list already */
        uint64_t generation;
        bool need_list;
        unsigned list_failures, watch_failures;
        hf_nsec list_at, watch_at; /* not earlier */
        hf_nsec urgent_at;         /* instead of either while somebody waits; of the last failure */
};

/* cache_store.c. Thread: the cache's own. All tell the handlers. 0, -ENOMEM or -EPROTO. */
uint64_t hf__cache_revision(const char *resource_version); /* 0 = not a number */
int hf__cache_take_object(struct hf_cache *cache, enum hf_event_type type, struct hf__buf *object);
/* Makes the store equal to the list. */
int hf__cache_take_list(struct hf_cache *cache, const char *body, size_t n_body);
/* The list's own resourceVersion. */
int hf__cache_list_version(const char *body, size_t n_body, char *ret_version);
void hf__cache_store_done(struct hf_cache *cache);

/* cache.c. Tells every handler that has been replayed; ns and name borrowed. */
void hf__cache_tell(struct hf_cache *cache, enum hf_event_type type, const struct hf__cache_entry *entry, const struct hf__buf *object);
/* Called with the lock, returns with it: replays to those that are new. Returns whether there was one. */
bool hf__cache_replay_locked(struct hf_cache *cache);

/* cache_feed.c: the thread; ends once stop is set and everything under way has ended. */
void *hf__cache_run(void *cache);
