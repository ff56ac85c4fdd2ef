/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charges the responses that clients have not read yet to the accounts of their users, and decides
 * whether a user may begin another request.
 *
 * The search for a stalled reader examines only the first CUT_LOOKUP entries of an account, so that
 * the work of a refusal does not grow with the number of unread responses. The examined entries
 * move to the end, and the next search continues with the others.
 *
 * Invariants: bytes and n of an account are the sums of its charged entries, n_reserved is the
 * number of its entries with a reservation, and the totals are the sums of the accounts. Only
 * charged entries are in the account's linked list, so a request that has only a reservation is
 * never cut.
 */
#include "base/thread.h"
#include "server/filters/limits/unsent.h"

#include <assert.h>

#include "server/filters/limits/unsent_accounts.h"
#include "server/http/http.h"

#define CUT_LOOKUP 16 /* entries that one search examines */

static void append_locked(struct hfd_unsent_account *account, struct hfd_unsent_entry *entry) {
        assert(!entry->older && account->newest != entry);
        entry->older = account->newest;
        entry->newer = NULL;
        if (account->newest)
                account->newest->newer = entry;
        else
                account->oldest = entry;
        account->newest = entry;
}

static void unlink_locked(struct hfd_unsent_account *account, struct hfd_unsent_entry *entry) {
        assert(entry->older ? entry->older->newer == entry : account->oldest == entry);
        assert(entry->newer ? entry->newer->older == entry : account->newest == entry);
        if (entry->older)
                entry->older->newer = entry->newer;
        else
                account->oldest = entry->newer;
        if (entry->newer)
                entry->newer->older = entry->older;
        else
                account->newest = entry->older;
}

void hfd_unsent_reserve(struct hfd_unsent *unsent, struct hfd_unsent_entry *entry,
                        const char *user) {
        assert(!entry->account);
        pthread_mutex_lock(&unsent->mu);
        struct hfd_unsent_account *account = hfd_unsent_get(unsent, user);
        if (account) {
                *entry = (struct hfd_unsent_entry){.account = account, .reserved = true};
                account->n_reserved++;
                unsent->n_reserved++;
        }
        pthread_mutex_unlock(&unsent->mu);
}

/* Ends the reservation, if there is one. The caller drops the account if nothing else is in it. */
static void unreserve_locked(struct hfd_unsent *unsent, struct hfd_unsent_entry *entry) {
        if (!entry->reserved)
                return;
        assert(entry->account->n_reserved > 0 && unsent->n_reserved > 0);
        entry->account->n_reserved--;
        unsent->n_reserved--;
        entry->reserved = false;
}

void hfd_unsent_add(struct hfd_unsent *unsent, struct hfd_unsent_entry *entry, const char *user,
                    struct hfd_http_request *request, size_t bytes) {
        assert(!entry->account || entry->reserved);
        pthread_mutex_lock(&unsent->mu);
        struct hfd_unsent_account *account =
                entry->reserved ? entry->account : hfd_unsent_get(unsent, user);
        unreserve_locked(unsent, entry);
        if (account) {
                *entry = (struct hfd_unsent_entry){.account = account,
                                                   .request = request,
                                                   .bytes = bytes};
                append_locked(account, entry);
                unsent->n_with_responses += account->n == 0;
                account->n++;
                account->bytes += bytes;
                unsent->bytes += bytes;
                atomic_fetch_add_explicit(&unsent->n, 1, memory_order_relaxed);
                hfd_unsent_changed(unsent, account);
        }
        pthread_mutex_unlock(&unsent->mu);
}

static void uncharge_locked(struct hfd_unsent *unsent, struct hfd_unsent_account *account,
                            struct hfd_unsent_entry *entry) {
        assert(account->n > 0 && account->bytes >= entry->bytes && unsent->bytes >= entry->bytes);
        unlink_locked(account, entry);
        account->n--;
        unsent->n_with_responses -= account->n == 0;
        account->bytes -= entry->bytes;
        unsent->bytes -= entry->bytes;
        atomic_fetch_sub_explicit(&unsent->n, 1, memory_order_relaxed);
        hfd_unsent_changed(unsent, account);
}

void hfd_unsent_remove(struct hfd_unsent *unsent, struct hfd_unsent_entry *entry) {
        struct hfd_unsent_account *account = entry->account;

        if (!account)
                return;
        pthread_mutex_lock(&unsent->mu);
        if (entry->reserved)
                unreserve_locked(unsent, entry);
        else
                uncharge_locked(unsent, account, entry);
        hfd_unsent_drop(unsent, account);
        pthread_mutex_unlock(&unsent->mu);
        entry->account = NULL;
}

/* ---- limits ---- */

struct candidate {
        struct hfd_http_request *request;
        size_t bytes; /* charged for it */
};

/*
 * Moves the next few entries of the account to its end, and takes references to their requests.
 * Returns how many. A request whose entry is charged is alive: on_finished (filters.c) removes the
 * entry before the HTTP server drops its own reference.
 */
static size_t take_candidates_locked(struct hfd_unsent_account *account,
                                     struct candidate candidates[CUT_LOOKUP]) {
        size_t n = 0;

        assert(account->n == 0 || account->oldest);
        while (n < CUT_LOOKUP && n < account->n) {
                struct hfd_unsent_entry *entry = account->oldest;
                unlink_locked(account, entry);
                append_locked(account, entry);
                candidates[n++] =
                        (struct candidate){.request = hfd_http_request_ref(entry->request),
                                           .bytes = entry->bytes};
        }
        return n;
}

/* What counts against the limit: what is charged, and what is reserved once half of the limit is
 * charged (unsent.h says why). */
static size_t counted(size_t bytes, size_t n_reserved, size_t limit) {
        return bytes + (bytes >= limit / 2 ? n_reserved * HFD_UNSENT_STREAM : 0);
}

/* The account that must shrink before the user may begin another request. NULL: there is room. Only
 * bytes of responses count, because watches make no request fail (unsent.h). */
static struct hfd_unsent_account *full_locked(struct hfd_unsent *unsent, const char *user,
                                              bool list) {
        struct hfd_unsent_account *account = hfd_unsent_find(unsent, user);
        size_t factor = list ? 1 : 2, more = list ? HFD_UNSENT_STREAM : 0;
        size_t limit = unsent->limits.user_bytes * factor;
        size_t total = unsent->limits.total_bytes * factor;
        /* Reservations count only against lists. So lists that run cannot use up the room between
         * the limit and its double, which is for other requests. */
        size_t n_reserved = account && list ? account->n_reserved : 0;
        size_t n_reserved_by_all = list ? unsent->n_reserved : 0;

        hf__mutex_assert_held(&unsent->mu);
        if (account && (counted(account->bytes, n_reserved, limit) + more > limit ||
                        account->n >= unsent->limits.user_responses * factor))
                return account;
        /* Every user with responses has a share, so that the users with the most bytes cannot shut
         * out others. + 1: this user may have no response yet, and needs a share, too. */
        if (counted(unsent->bytes, n_reserved_by_all, total) + more > total &&
            (account ? account->bytes : 0) + more > total / (unsent->n_with_responses + 1))
                return hfd_unsent_largest(unsent);
        return NULL;
}

/* Cuts stalled readers until their responses give back as many bytes as the new one may need:
 * otherwise each small response that is cut would let a large list in. False: they give back less;
 * the next request goes on with others. Drops the references that the candidates have. */
static bool make_room(struct hfd_unsent *unsent, struct candidate *candidates, size_t n,
                      bool list) {
        hf_nsec since = hf_now(hf_host_clock(unsent->host)) - HFD_UNSENT_STALL;
        size_t wanted = list ? HFD_UNSENT_STREAM : 1, n_bytes = 0;

        for (size_t i = 0; i < n; i++) {
                if (n_bytes < wanted &&
                    hfd_http_request_cut_stalled(candidates[i].request, since)) {
                        n_bytes += candidates[i].bytes > 0 ? candidates[i].bytes : 1;
                        hf_metric_add(unsent->cut_metric, 1);
                }
                hfd_http_request_unref(candidates[i].request);
        }
        return n_bytes >= wanted;
}

bool hfd_unsent_admit(struct hfd_unsent *unsent, const char *user, bool list) {
        struct candidate candidates[CUT_LOOKUP];
        size_t n = 0;

        /* Usually all responses have been read, and the lock is not needed. A charge that another
         * thread makes meanwhile may be missed; a later request sees it. Relaxed, because what the
         * count stands for is read under the lock. */
        if (atomic_load_explicit(&unsent->n, memory_order_relaxed) == 0)
                return true;
        pthread_mutex_lock(&unsent->mu);
        struct hfd_unsent_account *full = full_locked(unsent, user, list);
        if (full) {
                n = take_candidates_locked(full, candidates);
                hf_metric_add(unsent->full_metric, 1);
        }
        pthread_mutex_unlock(&unsent->mu);
        return !full || make_room(unsent, candidates, n, list);
}

size_t hfd_unsent_bytes(struct hfd_unsent *unsent) {
        pthread_mutex_lock(&unsent->mu);
        size_t n = unsent->bytes + unsent->watch_bytes;
        pthread_mutex_unlock(&unsent->mu);
        return n;
}
