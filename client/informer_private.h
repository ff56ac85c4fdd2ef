/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside the list-watch cache. cache.c is its face (waiting, reading, handlers), cache_feed.c its
 * thread (listing, watching, backing off), cache_store.c what it holds, cache_index.c by which
 * values that is found, cache_cut.c what is kept of an object.
 *
 * The thread is the only one that changes the store, and it does so under the lock; hence it reads
 * without. Callbacks of the client only post letters. Handlers run on the thread with no lock held.
 */
#include <pthread.h>
#include <stdint.h>

#include <holdfast/informer.h>

#include "base/buf.h"
#include "client/key_index.h"

struct hf__indexer;
struct hf__reflector_message;
struct hf__indexer_node;
struct hf__reflector_source;

#define HF__REFLECTOR_PAGE 500 /* objects of a list at a time */
#define HF__INFORMER_RV_MAX                                                                        \
        32 /* a resourceVersion is opaque, but every known one is a 64-bit number */

struct hf__informer_entry {
        struct hf__keyed keyed; /* "ns/name", or "name" */
        const char *ns, *name;  /* borrowed from text */
        char resource_version[HF__INFORMER_RV_MAX];
        uint64_t generation;    /* the last list or event that had it */
        struct hf__buf *object; /* owned */
        struct hf__indexer_node *
                *nodes; /* of the indexes, NULL-terminated; the array is owned; NULL = none */
        char text[];
};

struct hf_informer_handler {
        struct hf_informer_handler *next;
        hf_informer_handler_fn fn;
        void *ctx;
        bool replayed; /* it has been told what was there when it came; until then it gets no events
                        */
        bool removed;  /* its remover waits for the thread to leave it */
};

struct hf__informer_waiter {
        struct hf__informer_waiter *next;
        uint64_t revision;
        uint64_t after; /* a consistent list with a higher number serves as well */
};

/* The values of one object, as its index functions say them. */
struct hf_informer_values {
        struct hf__indexer *index; /* whose function is being asked */
        struct wanted *wanted;     /* owned */
        size_t n, space;
        int error; /* sticks */
};

struct hf_informer {
        /* immutable after start */
        const struct hf_host *host; /* borrowed */
        const struct hf_clock *clock;
        struct hf_client *client;    /* borrowed */
        struct hf_resource resource; /* its strings owned, as the two below */
        char *ns, *query;
        bool one_revision, metadata_only;
        hf_nsec resync;              /* 0 = never */
        struct hf__indexer *indexes; /* owned; what is in them is guarded by mu and changed by
                                            the thread only */
        pthread_t thread;
        bool started;
        pthread_mutex_t mu;
        pthread_cond_t wake;    /* to the thread */
        pthread_cond_t changed; /* to waiters and removers */

        /* guarded by mu, the first four changed by the thread only */
        struct hf__key_index store; /* owns its entries */
        uint64_t seen; /* everything up to it is in the store and has been told to the handlers */
        uint64_t consistent; /* the highest number of a consistent list that is in the store, or was
                                behind it */
        bool synced;
        struct hf_informer_handler *handlers; /* owned, in the order of their adding */
        struct hf_informer_handler *running;  /* the one the thread is in */
        struct hf__informer_waiter *waiters;  /* on the stacks of those who wait */
        hf_nsec probe_at;                     /* when waiters may have a list made for them */
        unsigned probe_failures;
        uint64_t n_lists; /* consistent ones begun; their numbers */
        struct hf__reflector_message *messages, **messages_tail;
        size_t n_message_bytes;
        bool sleeps; /* the thread does, and no letter has woken it yet */
        bool stop;

        /* the thread's */
        struct hf__reflector_source *list,
                *watch;   /* under way; owned until their last letter is taken */
        size_t n_sources; /* those and the abandoned ones */
        char resource_version[HF__INFORMER_RV_MAX]; /* where the next watch begins */
        uint64_t floor; /* events of the watch up to it came with a list already */
        uint64_t generation;
        uint64_t n_swaps; /* of entries' values */
        bool need_list;
        bool set_back; /* the server was, to a backup: a revision may be issued anew, and says
                          nothing until a list has ended */
        /* Of the list under way, when it comes in pages. */
        char *more; /* owned; the token of the page that is next; NULL = it has not begun, or has
                       ended */
        char list_version[HF__INFORMER_RV_MAX]; /* of its first page */
        uint64_t list_number;
        bool whole; /* the next list is asked for in one piece: the server forgot the revision
                       between two pages */
        hf_nsec resync_at;
        unsigned list_failures, watch_failures;
        hf_nsec list_at, watch_at; /* not earlier */
        hf_nsec urgent_at;         /* instead of either while somebody waits; of the last failure */
};

/* cache_store.c. Thread: the cache's own. All tell the handlers. 0, -ENOMEM or -EPROTO. */
uint64_t hf__informer_revision(const char *resource_version); /* 0 = not a number */
int hf__informer_take_object(struct hf_informer *informer, enum hf_event_type type,
                             struct hf__buf *object);
/* A list's own words: its resourceVersion, and the token of its next page, malloc'ed, NULL = this
 * is the last. */
int hf__informer_list_head(const char *body, size_t n_body, char *ret_version, char **ret_more);
/* Makes the store equal to a list: begin, each page, end. What breaks off before its end leaves
 * what its pages brought. */
void hf__informer_list_begin(struct hf_informer *informer);
int hf__informer_list_page(struct hf_informer *informer, const char *body, size_t n_body);
void hf__informer_list_end(struct hf_informer *informer);
void hf__informer_store_done(struct hf_informer *informer);

/* cache_cut.c. 0, -ENOMEM or -EPROTO. Thread: any. */
int hf__metadata_transform(const char *object, size_t n, struct hf__buf **ret_cut);
int hf__informer_keep(const struct hf_informer *informer, const char *object, size_t n,
                      struct hf__buf **ret_object); /* cut or whole */

/* cache_index.c. The first asks the index functions; 0 or -ENOMEM, and values_done is due either
 * way. Swap puts the entry under these values instead of those it had; 0, or -ENOMEM and nothing
 * changed. */
int hf__indexer_values_of(struct hf_informer *informer, const struct hf__informer_entry *entry,
                          const char *object, size_t n, struct hf_informer_values *ret_values);
void hf__indexer_values_done(struct hf_informer_values *values);
int hf__indexer_swap_locked(struct hf_informer *informer, struct hf__informer_entry *entry,
                            const struct hf_informer_values *values);
void hf__indexer_leave_locked(struct hf__informer_entry *entry);
void hf__indexers_done(struct hf_informer *informer); /* after the store */

/* cache.c. Tells every handler that has been replayed; ns and name borrowed. */
void hf__informer_tell(struct hf_informer *informer, enum hf_event_type type,
                       const struct hf__informer_entry *entry, const struct hf__buf *object);
/* Called with the lock, returns with it: replays to those that are new. Returns whether there was
 * one. */
bool hf__informer_replay_locked(struct hf_informer *informer);

static inline bool hf__informer_reached_locked(const struct hf_informer *informer,
                                               const struct hf__informer_waiter *waiter) {
        return informer->synced &&
               (informer->seen >= waiter->revision ||
                (!informer->one_revision && informer->consistent > waiter->after));
}
/* Called with the lock, returns with it: tells everything that is there as MODIFIED, when its time
 * has come. */
bool hf__informer_resync_locked(struct hf_informer *informer);
static inline void hf__informer_hand_out(const struct hf__informer_entry *entry,
                                         void (*each)(void *ctx, const char *ns, const char *name,
                                                      const char *object, size_t n),
                                         void *ctx) {
        each(ctx, entry->ns, entry->name, entry->object->data, entry->object->n);
}

/* cache_feed.c: the thread; ends once stop is set and everything under way has ended. */
void *hf__reflector_run(void *informer);
