/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Waiting until the cache shows at least a certain revision: the store's present one (a consistent
 * read), or one that a client names. The model is at the head of consistent_read.c.
 *
 * Thread: any; never under the cacher's lock, except where a name ends in _locked.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>
#include <holdfast/error.h>

struct hfd_cacher;

/* One read that waits. The caller's memory until ready is called. */
struct hfd_consistent_read {
        struct hfd_consistent_read *next; /* the cacher's while it waits */
        uint64_t revision;                /* the revision that the cache must have reached */
        hf_nsec until;                    /* boot time: when it stops waiting for the cache */
        hf_nsec deadline;                 /* boot time: the request's */
        /* A client named the revision. It may never come: then the cache is not to blame. */
        bool by_client;
        /*
         * Valid in ready. 0: the cache has reached the revision. HF_E_TIMEOUT: it has not in time,
         * ask the store. Other: the store failed, and status says how.
         */
        int outcome;
        struct hf_status status;
        /* Called once, on any thread, perhaps before the function that started the wait returns. */
        void (*ready)(struct hfd_consistent_read *read);
};

/* The state, a part of the cacher. Guarded by its lock. */
struct hfd_consistent_reads {
        struct hfd_consistent_read *probing;  /* those whose probe is under way */
        struct hfd_consistent_read *to_probe; /* those that the next probe is for */
        struct hfd_consistent_read *waiting;  /* those that know their revision */
        bool probe_running;
        unsigned n_late;      /* reads in a row for which the cache was too late */
        hf_nsec direct_until; /* boot time; until then reads go to the store at once */
        bool rewatch;         /* the store's watch may hang: the cacher's timer opens it again */
};

/* Waits for the revision that the store has now. */
void hfd_consistent_read_start(struct hfd_cacher *cacher, struct hfd_consistent_read *read);
/* Waits for a revision that a client names, for at most timeout. */
void hfd_consistent_read_after(struct hfd_cacher *cacher, struct hfd_consistent_read *read,
                               uint64_t revision, hf_nsec timeout);

/*
 * The following take reads out of the waiting lists, linked by next. The caller lets them go with
 * hfd_consistent_reads_go, after it has released the lock.
 */
struct hfd_consistent_read *hfd_consistent_reads_passed_locked(struct hfd_cacher *cacher);
/* Those whose time is over at `now`; *ret_next is lowered to the next such instant. */
struct hfd_consistent_read *hfd_consistent_reads_late_locked(struct hfd_cacher *cacher, hf_nsec now,
                                                             hf_nsec *ret_next);
struct hfd_consistent_read *hfd_consistent_reads_all_locked(struct hfd_cacher *cacher, int outcome);
void hfd_consistent_reads_go(struct hfd_consistent_read *reads);
