/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charges the watches of slow clients to the accounts of their users, and chooses the one that ends
 * when there is no room.
 *
 * A watch that has just fallen behind is in its account's list, in the order of `since`. A charge
 * that finds an account which must lose a watch (crowded_locked) moves a few watches of that
 * account, which have been behind for HFD_UNSENT_STALL, from the list to the order by bytes. The
 * first watch of that order ends or, if it was ended before, is cut. The charge moves few, so that
 * its work does not grow with the number of watches. But it moves more than the two that it may add
 * to the list (its own watch, and the one that ends), so no watch stays there for long while the
 * account must lose watches.
 *
 * `charged` spares most updates the lock. A measurement, which runs under the lock, sets `charged`
 * and then reads the bytes. Code that takes bytes away does that first and then reads `charged`. So
 * at least one of the two sees what the other has written: either the measurement has seen the
 * change, or the watch is measured again. This needs sequentially consistent stores and loads of
 * `charged` and of the bytes in the response: with release and acquire both could read the old
 * value.
 *
 * Invariants: watch_bytes and n_watches of an account are the sums of its watches, and the total is
 * the sum of the accounts. A watch that is charged is either in the list or in the order.
 */
#include <assert.h>
#include <stddef.h>

#include "base/thread.h"
#include "server/filters/limits/unsent.h"
#include "server/filters/limits/unsent_accounts.h"
#include "server/http/http.h"

#define LATE_LOOKUP 16 /* watches that one charge moves at most */

static void append_watch_locked(struct hfd_unsent_account *account,
                                struct hfd_unsent_watch *watch) {
        hf__mutex_assert_held(&watch->unsent->mu);
        assert(!watch->by_bytes.queued);
        watch->older = account->last_behind;
        watch->newer = NULL;
        if (account->last_behind)
                account->last_behind->newer = watch;
        else
                account->first_behind = watch;
        account->last_behind = watch;
}

static void unlink_watch_locked(struct hfd_unsent_account *account,
                                struct hfd_unsent_watch *watch) {
        hf__mutex_assert_held(&watch->unsent->mu);
        assert(watch->older ? watch->older->newer == watch : account->first_behind == watch);
        assert(watch->newer ? watch->newer->older == watch : account->last_behind == watch);
        if (watch->older)
                watch->older->newer = watch->newer;
        else
                account->first_behind = watch->newer;
        if (watch->newer)
                watch->newer->older = watch->older;
        else
                account->last_behind = watch->older;
}

/* Puts the watch into the list of those that have just fallen behind. */
static void make_young_locked(struct hfd_unsent_watch *watch, hf_nsec now) {
        hf__mutex_assert_held(&watch->unsent->mu);
        assert(watch->account);
        hf__timer_heap_remove(&watch->account->late, &watch->by_bytes);
        watch->since = now;
        append_watch_locked(watch->account, watch);
}

static void unlink_locked(struct hfd_unsent_watch *watch) {
        hf__mutex_assert_held(&watch->unsent->mu);
        if (watch->by_bytes.queued)
                hf__timer_heap_remove(&watch->account->late, &watch->by_bytes);
        else
                unlink_watch_locked(watch->account, watch);
}

/* Sets the bytes that are charged for the watch. 0: it is charged no longer. */
static void set_watch_locked(struct hfd_unsent_watch *watch, size_t bytes, hf_nsec now) {
        struct hfd_unsent *unsent = watch->unsent;

        hf__mutex_assert_held(&watch->unsent->mu);
        if (!watch->account && bytes > 0) {
                watch->account = hfd_unsent_get(unsent, watch->user);
                if (watch->account) {
                        watch->account->n_watches++;
                        make_young_locked(watch, now);
                }
        }
        struct hfd_unsent_account *account = watch->account;
        if (account) {
                assert(account->watch_bytes >= watch->bytes && unsent->watch_bytes >= watch->bytes);
                if (bytes == 0)
                        unlink_locked(watch);
                else if (watch->by_bytes.queued)
                        hfd_unsent_place(&account->late, &watch->by_bytes, bytes);
                account->watch_bytes = account->watch_bytes - watch->bytes + bytes;
                unsent->watch_bytes = unsent->watch_bytes - watch->bytes + bytes;
                watch->bytes = bytes;
                hfd_unsent_changed(unsent, account);
        }
        if (account && bytes == 0) {
                assert(account->n_watches > 0);
                account->n_watches--;
                watch->account = NULL;
                hfd_unsent_drop(unsent, account);
        }
        atomic_store(&watch->charged, watch->account != NULL);
}

static void measure_watch_locked(struct hfd_unsent_watch *watch, hf_nsec now) {
        hf__mutex_assert_held(&watch->unsent->mu);
        atomic_store(&watch->charged, true); /* first, and seq_cst: see the head of this file */
        size_t bytes = watch->measure(watch->ctx);
        set_watch_locked(watch, bytes >= HFD_UNSENT_WATCH ? bytes : 0, now);
}

/* The account that must lose a watch, because `account`, or all accounts together, exceed their
 * limit. `account` may be NULL. NULL: no account must. */
static struct hfd_unsent_account *crowded_locked(struct hfd_unsent *unsent,
                                                 struct hfd_unsent_account *account) {
        hf__mutex_assert_held(&unsent->mu);
        if (account && account->bytes + account->watch_bytes > unsent->limits.user_bytes)
                return account;
        if (unsent->bytes + unsent->watch_bytes <= unsent->limits.total_bytes)
                return NULL;
        struct hfd_unsent_account *largest = hfd_unsent_largest_of_watches(unsent);
        /* As for responses, every user has a share, and one is left for a user who comes next. An
         * account below its share loses nothing: others have filled the total with responses then,
         * and the end of one of its watches would give nearly nothing back. */
        size_t share = unsent->limits.total_bytes / (unsent->n_charged + 1);
        return largest && largest->bytes + largest->watch_bytes > share ? largest : NULL;
}

/* Moves watches that have been behind for long enough to the order by bytes. */
static void find_late_locked(struct hfd_unsent_account *account, hf_nsec now) {
        for (size_t i = 0; i < LATE_LOOKUP && account->first_behind &&
                           account->first_behind->since <= now - HFD_UNSENT_STALL;
             i++) {
                struct hfd_unsent_watch *watch = account->first_behind;

                unlink_watch_locked(account, watch);
                hfd_unsent_place(&account->late, &watch->by_bytes, watch->bytes);
        }
}

/* Returns the watch that must end, with a reference to its request. NULL: there is none.
 * *ret_again: it was ended before, so its response must be cut. */
static struct hfd_unsent_watch *take_largest_locked(struct hfd_unsent_account *account, hf_nsec now,
                                                    bool *ret_again) {
        if (account)
                find_late_locked(account, now);
        if (!account || !account->late.first)
                return NULL;
        struct hfd_unsent_watch *watch =
                (void *)((char *)account->late.first - offsetof(struct hfd_unsent_watch, by_bytes));
        *ret_again = watch->ended;
        watch->ended = true;
        make_young_locked(watch, now); /* its client gets HFD_UNSENT_STALL before it is cut */
        /* The request is alive: its watch leaves the account before it is freed (unsent.h). */
        (void)hfd_http_request_ref(watch->request);
        return watch;
}

void hfd_unsent_watch_charge(struct hfd_unsent_watch *watch) {
        struct hfd_unsent *unsent = watch->unsent;
        bool again = false;

        if (!unsent)
                return;
        hf_nsec now = hf_now(hf_host_clock(unsent->host));
        pthread_mutex_lock(&unsent->mu);
        measure_watch_locked(watch, now);
        struct hfd_unsent_watch *largest =
                take_largest_locked(crowded_locked(unsent, watch->account), now, &again);
        pthread_mutex_unlock(&unsent->mu);
        if (!largest)
                return;
        /* The watch lives as long as its request, to which this function has a reference. */
        struct hfd_http_request *request = largest->request;
        if (again) {
                (void)hfd_http_request_cut_stalled(request, now - HFD_UNSENT_STALL);
        } else {
                hf_metric_add(unsent->ended_metric, 1);
                largest->end(largest->ctx);
        }
        hfd_http_request_unref(request);
}

void hfd_unsent_watch_update(struct hfd_unsent_watch *watch) {
        struct hfd_unsent *unsent = watch->unsent;

        if (!atomic_load(&watch->charged)) /* seq_cst: see the head of this file */
                return;
        hf_nsec now = hf_now(hf_host_clock(unsent->host));
        pthread_mutex_lock(&unsent->mu);
        measure_watch_locked(watch, now);
        pthread_mutex_unlock(&unsent->mu);
}

void hfd_unsent_watch_remove(struct hfd_unsent_watch *watch) {
        struct hfd_unsent *unsent = watch->unsent;

        if (!atomic_load(&watch->charged))
                return;
        pthread_mutex_lock(&unsent->mu);
        set_watch_locked(watch, 0, 0); /* no time is needed: it enters no list */
        pthread_mutex_unlock(&unsent->mu);
}
