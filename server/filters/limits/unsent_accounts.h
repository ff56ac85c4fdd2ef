/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The accounts of users, for unsent_responses.c and unsent_watch.c.
 *
 * Lock: hfd_unsent.mu, which the caller of every function holds.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <holdfast/metrics.h>

#include "base/timer_heap.h"
#include "server/filters/limits/unsent.h"

/* Few users are slow, or have lists that run, at the same time, so the chains are short. */
#define HFD_UNSENT_BUCKETS 256

/*
 * The charges of one user. Clients decide how many accounts and watches there are, so heaps
 * find the account and the watch with the most bytes. The heaps are those of base/timer_heap.h,
 * with -bytes in place of a time: the one with the most bytes comes first.
 */
struct hfd_unsent_account {
        struct hfd_unsent_account *next; /* in its bucket */
        uint64_t hash;
        size_t bytes, n;                          /* of the charged responses */
        size_t n_reserved;                        /* lists with a reservation */
        bool charged;                             /* bytes or watch_bytes is not 0 */
        struct hfd_unsent_entry *oldest, *newest; /* a search for stalled readers reorders them */
        size_t watch_bytes, n_watches;
        /* The list of watches that have just fallen behind, in the order of since; and the order by
         * bytes of those that unsent_watch.c has found to be behind for HFD_UNSENT_STALL. */
        struct hfd_unsent_watch *first_behind, *last_behind;
        struct hf__timer_heap late;
        struct hf__timer by_bytes, by_watch_bytes; /* its places among the accounts */
        char user[];
};

struct hfd_unsent {
        /* immutable */
        const struct hf_host *host; /* borrowed */
        struct hfd_unsent_limits limits;
        /* borrowed; may be NULL */
        struct hf_metric *bytes_metric, *full_metric, *cut_metric, *ended_metric;

        atomic_size_t n; /* charged entries; changed under mu, read without it as a hint */

        /* guarded by mu */
        pthread_mutex_t mu;
        struct hfd_unsent_account *buckets[HFD_UNSENT_BUCKETS]; /* owned */
        size_t bytes, watch_bytes;                              /* the sums over all accounts */
        /* All accounts; those whose `charged` is true; those with charged responses. */
        size_t n_accounts, n_charged, n_with_responses;
        size_t n_reserved;                    /* the sum over all accounts */
        struct hf__timer_heap by_bytes;       /* accounts with responses */
        struct hf__timer_heap by_watch_bytes; /* accounts with watches */
};

/* Finds the account. NULL: nothing is charged to the user or reserved. */
struct hfd_unsent_account *hfd_unsent_find(struct hfd_unsent *unsent, const char *user);
/* Finds or makes the account. NULL: memory has run out. A new account is empty, so the caller
 * charges or reserves something under the same lock: otherwise nobody would drop it. */
struct hfd_unsent_account *hfd_unsent_get(struct hfd_unsent *unsent, const char *user);
/* Frees the account, unless something is charged to it or reserved. */
void hfd_unsent_drop(struct hfd_unsent *unsent, struct hfd_unsent_account *account);
/* Call it after bytes or watch_bytes have changed, of the account and of unsent. Puts the account
 * in its new place, and updates the metric of all bytes. */
void hfd_unsent_changed(struct hfd_unsent *unsent, struct hfd_unsent_account *account);
/* The account with the most bytes of responses, or of watches. NULL: there is none. */
struct hfd_unsent_account *hfd_unsent_largest(struct hfd_unsent *unsent);
struct hfd_unsent_account *hfd_unsent_largest_of_watches(struct hfd_unsent *unsent);
/* Sets the place of an account or a watch in an order by bytes; 0 bytes = no place. */
void hfd_unsent_place(struct hf__timer_heap *order, struct hf__timer *place, size_t bytes);
