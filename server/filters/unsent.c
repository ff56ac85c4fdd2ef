/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts of the responses that clients have not read yet.
 *
 * Accounts are found by the hash of the user's name. An account exists while a response is charged
 * to it, so there are never more accounts than unread responses.
 *
 * The search for a stalled reader examines only the first CUT_LOOKUP entries of an account, so that
 * the work of a refusal does not grow with the number of unread responses. The examined entries
 * move to the end, and the next search continues with the others.
 *
 * Invariants: bytes and n of an account are the sums of its entries, and the total is the sum of
 * the accounts.
 */
#include "server/filters/unsent.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/metrics.h>

#include "base/thread.h"
#include "server/http/http.h"

#define N_BUCKETS  256
#define CUT_LOOKUP 16 /* entries that one search examines */

struct hfd_unsent_account {
        struct hfd_unsent_account *next; /* in its bucket */
        uint64_t hash;
        size_t bytes, n;
        struct hfd_unsent_entry *oldest, *newest; /* an examined entry becomes the newest */
        char user[];
};

struct hfd_unsent {
        /* immutable */
        const struct hf_host *host; /* borrowed */
        struct hfd_unsent_limits limits;
        struct hf_metric *bytes_metric, *full_metric, *cut_metric; /* borrowed; may be NULL */

        atomic_size_t n; /* charged entries; changed under mu, read without it as a hint */

        /* guarded by mu */
        pthread_mutex_t mu;
        struct hfd_unsent_account *buckets[N_BUCKETS]; /* owned */
        size_t bytes, n_accounts;
};

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
                               "Requests that found the account of unread responses "
                               "full.",
                               "");
        unsent->cut_metric =
                hf_metrics_get(host->metrics, HF_METRIC_COUNTER, "holdfast_unsent_cut_total",
                               "Stalled connections that were closed to make room for another "
                               "request.",
                               "");
        *ret_unsent = unsent;
        return 0;
}

struct hfd_unsent *hfd_unsent_free(struct hfd_unsent *unsent) {
        if (!unsent)
                return NULL;
        assert(unsent->bytes == 0 && unsent->n_accounts == 0);
        pthread_mutex_destroy(&unsent->mu);
        free(unsent);
        return NULL;
}

/* ---- accounts ---- */

/* FNV-1a. */
static uint64_t hash_of(const char *user) {
        uint64_t hash = UINT64_C(14695981039346656037);

        for (const char *c = user; *c; c++)
                hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
        return hash;
}

static struct hfd_unsent_account *find_locked(struct hfd_unsent *unsent, const char *user,
                                              uint64_t hash) {
        struct hfd_unsent_account *account = unsent->buckets[hash % N_BUCKETS];

        while (account && (account->hash != hash || strcmp(account->user, user) != 0))
                account = account->next;
        return account;
}

static struct hfd_unsent_account *make_locked(struct hfd_unsent *unsent, const char *user,
                                              uint64_t hash) {
        size_t n = strlen(user) + 1;
        struct hfd_unsent_account *account = malloc(sizeof *account + n);

        if (!account)
                return NULL;
        *account = (struct hfd_unsent_account){.hash = hash,
                                               .next = unsent->buckets[hash % N_BUCKETS]};
        memcpy(account->user, user, n);
        unsent->buckets[hash % N_BUCKETS] = account;
        unsent->n_accounts++;
        return account;
}

static void drop_locked(struct hfd_unsent *unsent, struct hfd_unsent_account *account) {
        struct hfd_unsent_account **link = &unsent->buckets[account->hash % N_BUCKETS];

        assert(account->n == 0 && account->bytes == 0 && !account->oldest);
        while (*link != account)
                link = &(*link)->next;
        *link = account->next;
        unsent->n_accounts--;
        free(account);
}

static void append_locked(struct hfd_unsent_account *account, struct hfd_unsent_entry *entry) {
        entry->older = account->newest;
        entry->newer = NULL;
        if (account->newest)
                account->newest->newer = entry;
        else
                account->oldest = entry;
        account->newest = entry;
}

static void unlink_locked(struct hfd_unsent_account *account, struct hfd_unsent_entry *entry) {
        if (entry->older)
                entry->older->newer = entry->newer;
        else
                account->oldest = entry->newer;
        if (entry->newer)
                entry->newer->older = entry->older;
        else
                account->newest = entry->older;
}

void hfd_unsent_add(struct hfd_unsent *unsent, struct hfd_unsent_entry *entry, const char *user,
                    struct hfd_http_request *request, size_t bytes) {
        uint64_t hash = hash_of(user);

        assert(!entry->account);
        pthread_mutex_lock(&unsent->mu);
        struct hfd_unsent_account *account = find_locked(unsent, user, hash);
        if (!account)
                account = make_locked(unsent, user, hash);
        if (account) {
                *entry = (struct hfd_unsent_entry){.account = account,
                                                   .request = request,
                                                   .bytes = bytes};
                append_locked(account, entry);
                account->n++;
                account->bytes += bytes;
                unsent->bytes += bytes;
                atomic_fetch_add_explicit(&unsent->n, 1, memory_order_relaxed);
                hf_metric_set(unsent->bytes_metric, (double)unsent->bytes);
        }
        pthread_mutex_unlock(&unsent->mu);
}

void hfd_unsent_remove(struct hfd_unsent *unsent, struct hfd_unsent_entry *entry) {
        struct hfd_unsent_account *account = entry->account;

        if (!account)
                return;
        pthread_mutex_lock(&unsent->mu);
        assert(account->n > 0 && account->bytes >= entry->bytes && unsent->bytes >= entry->bytes);
        unlink_locked(account, entry);
        account->n--;
        account->bytes -= entry->bytes;
        unsent->bytes -= entry->bytes;
        atomic_fetch_sub_explicit(&unsent->n, 1, memory_order_relaxed);
        hf_metric_set(unsent->bytes_metric, (double)unsent->bytes);
        if (account->n == 0)
                drop_locked(unsent, account);
        pthread_mutex_unlock(&unsent->mu);
        entry->account = NULL;
}

/* ---- limits ---- */

static struct hfd_unsent_account *largest_locked(struct hfd_unsent *unsent) {
        struct hfd_unsent_account *largest = NULL;

        for (size_t i = 0; i < N_BUCKETS; i++)
                for (struct hfd_unsent_account *a = unsent->buckets[i]; a; a = a->next)
                        if (!largest || a->bytes > largest->bytes)
                                largest = a;
        return largest;
}

/*
 * Takes references to the next few entries of the account, and moves them to its end. Returns their
 * number.
 */
static size_t take_candidates_locked(struct hfd_unsent_account *account,
                                     struct hfd_http_request *requests[CUT_LOOKUP]) {
        size_t n = 0;

        while (n < CUT_LOOKUP && n < account->n) {
                struct hfd_unsent_entry *entry = account->oldest;
                unlink_locked(account, entry);
                append_locked(account, entry);
                requests[n++] = hfd_http_request_ref(entry->request);
        }
        return n;
}

/* The account that must shrink before the user may begin another request. NULL: there is room. */
static struct hfd_unsent_account *full_locked(struct hfd_unsent *unsent, const char *user,
                                              bool list) {
        struct hfd_unsent_account *account = find_locked(unsent, user, hash_of(user));
        size_t bytes = (account ? account->bytes : 0) + (list ? HFD_UNSENT_STREAM : 0);
        size_t factor = list ? 1 : 2, total = unsent->limits.total_bytes * factor;

        if (account && (bytes > unsent->limits.user_bytes * factor ||
                        account->n >= unsent->limits.user_responses * factor))
                return account;
        /* Every user has a share, so that the users with the most bytes cannot shut out others. */
        if (unsent->bytes + (list ? HFD_UNSENT_STREAM : 0) > total &&
            bytes > total / (unsent->n_accounts + 1))
                return largest_locked(unsent);
        return NULL;
}

bool hfd_unsent_admit(struct hfd_unsent *unsent, const char *user, bool list) {
        struct hfd_http_request *requests[CUT_LOOKUP];
        hf_nsec since = hf_now(hf_host_clock(unsent->host)) - HFD_UNSENT_STALL;
        size_t n = 0;
        bool room = true;

        /* Usually all responses have been read, and the lock is not needed. */
        if (atomic_load_explicit(&unsent->n, memory_order_relaxed) == 0)
                return true;
        pthread_mutex_lock(&unsent->mu);
        struct hfd_unsent_account *full = full_locked(unsent, user, list);
        if (full) {
                room = false;
                n = take_candidates_locked(full, requests);
        }
        if (full)
                hf_metric_add(unsent->full_metric, 1);
        pthread_mutex_unlock(&unsent->mu);
        for (size_t i = 0; i < n; i++) {
                room = room || hfd_http_request_cut_stalled(requests[i], since);
                hfd_http_request_unref(requests[i]);
        }
        if (full && room)
                hf_metric_add(unsent->cut_metric, 1);
        return room;
}

size_t hfd_unsent_bytes(struct hfd_unsent *unsent) {
        pthread_mutex_lock(&unsent->mu);
        size_t n = unsent->bytes;
        pthread_mutex_unlock(&unsent->mu);
        return n;
}
