/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds, makes and orders the accounts of users, to which unread responses and watches are charged.
 *
 * Accounts are found by the hash of the user's name. There are no more of them than requests: one
 * exists while a response or a watch is charged to it, or a list has a reservation (unsent.h).
 *
 * Invariants: everything here runs under the mutex `mu` of struct hfd_unsent, except new and free.
 * No user has two accounts.
 */
#include "server/filters/limits/unsent_accounts.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

#define ACCOUNT_OF(place, member)                                                                  \
        ((struct hfd_unsent_account *)(void *)((char *)(place)-offsetof(struct hfd_unsent_account, \
                                                                        member)))

int hfd_unsent_new(const struct hf_host *host, const struct hfd_unsent_limits *limits,
                   struct hfd_unsent **ret_unsent) {
        struct hfd_unsent *unsent = calloc(1, sizeof *unsent);

        if (!unsent)
                return -ENOMEM;
        unsent->host = host;
        unsent->limits =
                limits ? *limits
                       : (struct hfd_unsent_limits){.user_bytes = HFD_UNSENT_USER_BYTES,
                                                    .user_responses = HFD_UNSENT_USER_RESPONSES,
                                                    .total_bytes = HFD_UNSENT_TOTAL_BYTES};
        int r = hf__mutex_init(&unsent->mu);
        if (r != 0) {
                free(unsent);
                return r;
        }
        unsent->bytes_metric =
                hf_metrics_get(host->metrics, HF_METRIC_GAUGE, "holdfast_unsent_bytes",
                               "Bytes of responses that clients have not read yet.", "");
        unsent->full_metric =
                hf_metrics_get(host->metrics, HF_METRIC_COUNTER, "holdfast_unsent_full_total",
                               "Requests that found the account of unread responses full.", "");
        unsent->cut_metric =
                hf_metrics_get(host->metrics, HF_METRIC_COUNTER, "holdfast_unsent_cut_total",
                               "Stalled connections that were closed to make room for "
                               "another request.",
                               "");
        unsent->ended_metric =
                hf_metrics_get(host->metrics, HF_METRIC_COUNTER,
                               "holdfast_unsent_watches_ended_total",
                               "Watches that were ended because their client did not read and the "
                               "account was full.",
                               "");
        *ret_unsent = unsent;
        return 0;
}

struct hfd_unsent *hfd_unsent_free(struct hfd_unsent *unsent) {
        if (!unsent)
                return NULL;
        assert(unsent->bytes == 0 && unsent->watch_bytes == 0 && unsent->n_accounts == 0);
        assert(unsent->n_charged == 0 && unsent->n_with_responses == 0);
        assert(unsent->n_reserved == 0);
        pthread_mutex_destroy(&unsent->mu);
        free(unsent);
        return NULL;
}

/* Hashes a user's name with FNV-1a. It needs no secret seed: the names are those of the senders,
 * before impersonation, so a client that wants many in one bucket needs credentials for each. */
static uint64_t hash_of(const char *user) {
        uint64_t hash = UINT64_C(14695981039346656037);

        for (const char *c = user; *c; c++)
                hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
        return hash;
}

static struct hfd_unsent_account *find_account(struct hfd_unsent *unsent, const char *user,
                                               uint64_t hash) {
        struct hfd_unsent_account *account = unsent->buckets[hash % HFD_UNSENT_BUCKETS];

        while (account && (account->hash != hash || strcmp(account->user, user) != 0))
                account = account->next;
        return account;
}

struct hfd_unsent_account *hfd_unsent_find(struct hfd_unsent *unsent, const char *user) {
        hf__mutex_assert_held(&unsent->mu);
        return find_account(unsent, user, hash_of(user));
}

/* The name is copied, because the account may outlive the request that it was made for. */
struct hfd_unsent_account *hfd_unsent_get(struct hfd_unsent *unsent, const char *user) {
        uint64_t hash = hash_of(user);
        size_t n = strlen(user) + 1;
        struct hfd_unsent_account *account = find_account(unsent, user, hash);

        hf__mutex_assert_held(&unsent->mu);
        if (account)
                return account;
        account = malloc(sizeof *account + n);
        if (!account)
                return NULL;
        *account = (struct hfd_unsent_account){.hash = hash,
                                               .next = unsent->buckets[hash % HFD_UNSENT_BUCKETS]};
        memcpy(account->user, user, n);
        unsent->buckets[hash % HFD_UNSENT_BUCKETS] = account;
        unsent->n_accounts++;
        return account;
}

void hfd_unsent_drop(struct hfd_unsent *unsent, struct hfd_unsent_account *account) {
        struct hfd_unsent_account **link = &unsent->buckets[account->hash % HFD_UNSENT_BUCKETS];

        hf__mutex_assert_held(&unsent->mu);
        if (account->n > 0 || account->n_watches > 0 || account->n_reserved > 0)
                return;
        /* Heaps, entries and watches point to their account, so none may be left that does. */
        assert(account->bytes == 0 && account->watch_bytes == 0 && !account->charged);
        assert(!account->oldest && !account->first_behind && !account->late.first);
        assert(!account->by_bytes.queued && !account->by_watch_bytes.queued);
        while (*link != account)
                link = &(*link)->next;
        *link = account->next;
        assert(unsent->n_accounts > 0);
        unsent->n_accounts--;
        free(account);
}

/* ---- the orders ---- */

/* A heap of timers is ordered by time, the earliest first. So the "time" of an account or watch is
 * the number of its bytes with a minus, and the first one is the largest. */
void hfd_unsent_place(struct hf__timer_heap *order, struct hf__timer *place, size_t bytes) {
        hf_nsec at = -(hf_nsec)bytes;

        if (place->queued && place->at == at)
                return;
        hf__timer_heap_remove(order, place);
        if (bytes > 0)
                hf__timer_heap_add(order, place, at);
}

void hfd_unsent_changed(struct hfd_unsent *unsent, struct hfd_unsent_account *account) {
        bool charged = account->bytes > 0 || account->watch_bytes > 0;

        hf__mutex_assert_held(&unsent->mu);
        unsent->n_charged += charged;
        unsent->n_charged -= account->charged;
        account->charged = charged;
        hfd_unsent_place(&unsent->by_bytes, &account->by_bytes, account->bytes);
        hfd_unsent_place(&unsent->by_watch_bytes, &account->by_watch_bytes, account->watch_bytes);
        hf_metric_set(unsent->bytes_metric, (double)(unsent->bytes + unsent->watch_bytes));
}

struct hfd_unsent_account *hfd_unsent_largest(struct hfd_unsent *unsent) {
        struct hf__timer *first = unsent->by_bytes.first;

        hf__mutex_assert_held(&unsent->mu);
        return first ? ACCOUNT_OF(first, by_bytes) : NULL;
}

struct hfd_unsent_account *hfd_unsent_largest_of_watches(struct hfd_unsent *unsent) {
        struct hf__timer *first = unsent->by_watch_bytes.first;

        hf__mutex_assert_held(&unsent->mu);
        return first ? ACCOUNT_OF(first, by_watch_bytes) : NULL;
}
