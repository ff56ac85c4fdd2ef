/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Asynchronous waits until the cache has reached a revision: either the store's current revision (a
 * consistent read), or a revision that a client names. The head of consistent_read.c describes the
 * model.
 *
 * A function starts a wait and returns; ready reports its end. Thread: any; never under the
 * cacher's lock, except where a name ends in _locked. Only hfd_consistent_reads_await_end blocks.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>
#include <holdfast/error.h>

struct hfd_cacher;

/* One waiting read. The caller owns the memory and keeps it until ready is called. It zeroes the
 * struct, and sets deadline, ready, and perhaps pass and thread; the cacher sets the rest. */
struct hfd_consistent_read {
        struct hfd_consistent_read *next; /* for the cacher's lists, while the read waits */
        uint64_t revision;                /* the revision that the cache must have reached */
        hf_nsec until;                    /* boot time at which the wait for the cache ends */
        hf_nsec deadline;                 /* boot time of the request's deadline */
        /*
         * A client named the revision, which the store may reach much later or never. So if this
         * read times out, that is not a sign of a slow cache.
         */
        bool by_client;
        /*
         * Valid in ready. 0: the cache has reached the revision. HF_E_TIMEOUT: the cache did not
         * reach the revision in time, or cannot be used at present, so the caller reads from the
         * store or refuses the request. HF_E_CANCELED: the store is stopping, or the cacher is
         * being freed. Any other error: the request for the store's revision failed. status has the
         * store's message; it is empty if the request could not be sent.
         */
        int outcome;
        struct hf_status status;
        /* Called once, on any thread, perhaps before the function that started the wait returns. */
        void (*ready)(struct hfd_consistent_read *read);
        /*
         * Passes reads, linked by next, that have the same `thread` to that thread, which calls
         * hfd_consistent_reads_call_ready_here. False: that thread cannot take the first read, or
         * is the calling thread. Then the cacher calls ready of the first read on the calling
         * thread, and tries to pass the others. NULL: ready may be called anywhere.
         */
        bool (*pass)(struct hfd_consistent_read *reads);
        const void *thread; /* identifies a thread, and is only compared */
};

/* The cacher's state for waiting reads, for consistent_read.c and tests only. Guarded by the
 * cacher's lock. */
struct hfd_consistent_reads {
        struct hfd_consistent_read *probing;  /* their probe has been sent */
        struct hfd_consistent_read *to_probe; /* they share the next probe */
        struct hfd_consistent_read *waiting;  /* for the cache to reach their revision */
        bool probe_running;
        unsigned n_delaying;  /* threads that send a probe when they have handled what they read */
        unsigned n_late;      /* times that reads were late, since a waiting one was served */
        hf_nsec direct_until; /* boot time; until then consistent reads go to the store at once */
};

/* NULL: out of memory. */
struct hfd_consistent_reads *hfd_consistent_reads_new(void);
/* Requires that no read waits. Accepts NULL; returns NULL. */
struct hfd_consistent_reads *hfd_consistent_reads_free(struct hfd_consistent_reads *reads);

/* Blocks until no thread sends a delayed probe any more. The cacher is stopping, so no thread
 * begins to delay one. The wait is short: a thread delays a probe only while it handles what it has
 * read. */
void hfd_consistent_reads_await_end(struct hfd_cacher *cacher);

/* Begins to wait until the cache has reached the store's current revision. */
void hfd_consistent_read_start(struct hfd_cacher *cacher, struct hfd_consistent_read *read);
/* Begins to wait, for at most timeout, until the cache has reached a revision that a client
 * names. */
void hfd_consistent_read_after(struct hfd_cacher *cacher, struct hfd_consistent_read *read,
                               uint64_t revision, hf_nsec timeout);

/*
 * Each of the following three functions removes reads from their lists and returns them, linked by
 * next. After the caller has released the lock, it passes them to hfd_consistent_reads_call_ready.
 */
/* Removes the reads whose revision the cache has reached. */
struct hfd_consistent_read *hfd_consistent_reads_remove_reached_locked(struct hfd_cacher *cacher);
/*
 * Removes the reads whose wait has timed out at `now`. Lowers *ret_next to the next timeout (boot
 * time).
 */
struct hfd_consistent_read *hfd_consistent_reads_remove_late_locked(struct hfd_cacher *cacher,
                                                                    hf_nsec now, hf_nsec *ret_next);
/* Removes all reads except those whose probe has been sent. The removed ones get the outcome. */
struct hfd_consistent_read *hfd_consistent_reads_remove_all_locked(struct hfd_cacher *cacher,
                                                                   int outcome);
/* Calls ready of each read in the list, or passes it to its thread. The caller must not hold the
 * lock. */
void hfd_consistent_reads_call_ready(struct hfd_consistent_read *reads);
/* Calls ready of each read in the list on the calling thread: for the thread to which they were
 * passed. */
void hfd_consistent_reads_call_ready_here(struct hfd_consistent_read *reads);
