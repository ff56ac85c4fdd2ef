/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One listing of all objects in the store, and how far the listings have come. It reads page after
 * page, all at the revision of the first page, and builds trees from them. The reflector publishes
 * the trees after the last page. The head of listing.c describes the two threads that do this.
 */
#include <stdbool.h>

#include <holdfast/clock.h>
#include <holdfast/error.h>

#include "server/cacher/history/event_history.h"
#include "server/cacher/history/object_tree.h"
#include "server/storage/keys.h"

struct hfd_cacher;
struct hfd_listing_page;

struct hfd_listing {
        /* immutable */
        struct hfd_cacher *cacher; /* borrowed */
        unsigned long generation;  /* of the store (store_identity.h), at the start */
        void (*done)(struct hfd_listing *listing, int error, const struct hf_status *status);

        /* the timer thread only */
        struct hfd_object_tree trees[HFD_SLOTS_MAX];
        /* Empty until the listing is published: then gets the cacher's `newer`, to be freed. */
        struct hfd_object_tree newer[HFD_SLOTS_MAX];
        struct hfd_event_histories histories; /* likewise, those of the cacher */
        struct hfd_object_tree unreadable;    /* placeholders, by key; see cacher_state.h */

        /* of the thread that requests a page, or runs the callback of the request */
        uint64_t revision;           /* of the first page; 0 = no page has arrived */
        size_t n_keys, n_bytes;      /* on the pages so far; n_bytes: of their values */
        unsigned n_retries;          /* requests that were repeated: each halves the pages */
        char start[HFD_KEY_MAX];     /* the next page starts at this key; "" = the first page */
        char directory[HFD_KEY_MAX]; /* the next page has only keys below it; "" = all keys */

        /* guarded by the cacher's lock */
        struct hfd_listing_page *first; /* owned; waits to be built, as does its `next` */
        bool requesting;                /* a request is running or about to start */
        bool waiting;                   /* the next page is requested when `first` is built */
        bool requested_all;             /* no request follows */
        int error;                      /* the reason for the failure; 0 = none so far */
        struct hf_status status;
};

/* The cacher's state for listings, for listing.c and tests only. Guarded by the cacher's lock. */
struct hfd_listings {
        struct hfd_listing *running; /* owned; NULL = none */
        size_t n;                    /* keys that the running listing has so far; 0 = none */
        size_t n_max;                /* the most that any listing has had */
        hf_nsec progress_at;         /* boot time of the last increase of n_max; 0 = none yet */
};

/* NULL: out of memory. */
struct hfd_listings *hfd_listings_new(void);
/* Requires that no listing runs. Accepts NULL; returns NULL. */
struct hfd_listings *hfd_listings_free(struct hfd_listings *listings);
bool hfd_listings_running_locked(const struct hfd_cacher *cacher);
/* How many keys the running listing has received, and when a listing last came further than any
 * before (boot time; 0 = no key has arrived yet). */
size_t hfd_listings_progress_locked(const struct hfd_cacher *cacher, hf_nsec *ret_at);
/* Sets the number of received keys to 0: the listing was published, or its pages are dropped. */
void hfd_listings_reset_locked(struct hfd_cacher *cacher);

/*
 * Starts a listing; only one may run. When it has ended, done is called once, on the timer thread,
 * and frees the listing. `error` of done is 0 or the reason for the failure; status may be NULL.
 * Returns 0; or, if the listing was not started and done is not called, -ENOMEM or HF_E_CANCELED
 * (the cacher is being freed). Thread: any; never blocks.
 */
int hfd_listing_start(struct hfd_cacher *cacher, unsigned long generation,
                      void (*done)(struct hfd_listing *listing, int error,
                                   const struct hf_status *status));
/* Whether the timer thread must call hfd_listing_step now. */
bool hfd_listing_step_due_locked(struct hfd_cacher *cacher);
/* Builds some objects, or ends the listing. Thread: the timer's. */
void hfd_listing_step(struct hfd_cacher *cacher);
/* Frees the listing, which has ended, and the trees that it has: its own or, after it was
 * published, those that it has replaced. Accepts NULL; returns NULL. Not under the lock. */
struct hfd_listing *hfd_listing_free(struct hfd_listing *listing);
