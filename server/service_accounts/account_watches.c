/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread and a list. In each round the thread takes the watches from the beginning of the list, a
 * few at a time, asks the cacher about them, and puts those that are still valid at the end. So a
 * round ends when the first watch of the list was already checked in this round.
 *
 * Invariants. A watch is in the list before `track` checks its token, so no change after that check
 * is missed. While the thread asks about a watch, the watch is not in the list, and a reference to
 * its request keeps it alive; if its owner lets go of it meanwhile, `watches` is NULL, and the
 * thread forgets it. The thread sleeps without a time limit while nothing is tracked. After a round
 * it pauses PAUSE_FACTOR times as long as the round took, but at most PAUSE_MAX.
 */
#include "server/service_accounts/account_watches.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/thread.h"
#include "server/http/http.h"
#include "server/service_accounts/lookup.h"

#define CHECKS 32 /* watches that are asked about at a time */
/* While accounts change all the time the thread uses a fifth of a processor, unless a round takes
 * longer than PAUSE_MAX / PAUSE_FACTOR. A pause delays the end of a watch by PAUSE_MAX at most. */
#define PAUSE_FACTOR 4
#define PAUSE_MAX    (500 * HF_NSEC_PER_MSEC)
/*
 * All watches are checked again after this time, because the wall clock may be set, and because an
 * account becomes invalid a minute after its deletion began, which the cacher does not report as a
 * change.
 */
#define ROUND_MAX (60 * HF_NSEC_PER_SEC)

struct hfd_account_watches {
        /* Immutable, but for thread and started, which only start and stop use. */
        const struct hf_host *host;
        struct hfd_cacher *cacher;
        pthread_t thread;
        bool started;
        /* Guarded by mu. */
        pthread_mutex_t mu;
        pthread_cond_t cond;
        struct hfd_account_watch *oldest, *newest; /* by the time of the last check */
        size_t n;                                  /* watches that are tracked */
        uint64_t round;                            /* the number of the current or last one */
        hf_nsec began;                             /* when that round began; boot time */
        int64_t expires; /* seconds since 1970: the first expiry that this round has seen */
        bool changed, stopping;
};

static int64_t now_s(const struct hfd_account_watches *watches) {
        const struct hf_clock *clock = hf_host_clock(watches->host);

        return clock->real(clock->ctx) / HF_NSEC_PER_SEC;
}

/* ---- the list ---- */

static void unlink_locked(struct hfd_account_watches *watches, struct hfd_account_watch *watch) {
        hf__mutex_assert_held(&watches->mu);
        *(watch->older ? &watch->older->newer : &watches->oldest) = watch->newer;
        *(watch->newer ? &watch->newer->older : &watches->newest) = watch->older;
        watch->older = watch->newer = NULL;
        watch->listed = false;
}

static void append_locked(struct hfd_account_watches *watches, struct hfd_account_watch *watch,
                          uint64_t checked) {
        hf__mutex_assert_held(&watches->mu);
        watch->older = watches->newest;
        *(watch->older ? &watch->older->newer : &watches->oldest) = watch;
        watches->newest = watch;
        watch->listed = true;
        watch->checked = checked;
        if (watch->credential->expires < watches->expires)
                watches->expires = watch->credential->expires;
}

bool hfd_account_watches_track(struct hfd_account_watches *watches,
                               struct hfd_account_watch *watch) {
        assert(!watch->watches && watch->credential);
        pthread_mutex_lock(&watches->mu);
        int64_t expires = watches->expires;
        watch->watches = watches;
        watches->n++;
        append_locked(watches, watch, watches->round);
        if (watches->n == 1 || watches->expires < expires)
                pthread_cond_signal(&watches->cond); /* the thread has to wake earlier */
        pthread_mutex_unlock(&watches->mu);
        bool valid =
                hfd_account_lookup(watches->cacher, watch->credential, now_s(watches), NULL) == 0;
        if (!valid)
                hfd_account_watches_untrack(watch);
        return valid;
}

void hfd_account_watches_untrack(struct hfd_account_watch *watch) {
        struct hfd_account_watches *watches = watch->watches;

        if (!watches)
                return;
        pthread_mutex_lock(&watches->mu);
        if (watch->listed)
                unlink_locked(watches, watch);
        watch->watches = NULL;
        assert(watches->n > 0);
        watches->n--;
        pthread_mutex_unlock(&watches->mu);
}

/* ---- a round ---- */

/* Takes some watches that the round has not seen, with references to their requests. */
static size_t take_some(struct hfd_account_watches *watches,
                        struct hfd_account_watch *taken[CHECKS]) {
        size_t n = 0;

        pthread_mutex_lock(&watches->mu);
        while (n < CHECKS && !watches->stopping && watches->oldest &&
               watches->oldest->checked != watches->round) {
                struct hfd_account_watch *watch = watches->oldest;
                unlink_locked(watches, watch);
                (void)hfd_http_request_ref(watch->request);
                assert(n < CHECKS);
                taken[n++] = watch;
        }
        pthread_mutex_unlock(&watches->mu);
        return n;
}

/* Puts a watch back into the list if it is valid. True: the watch has to end. */
static bool return_watch(struct hfd_account_watches *watches, struct hfd_account_watch *watch,
                         bool valid) {
        pthread_mutex_lock(&watches->mu);
        bool tracked = watch->watches != NULL; /* otherwise its owner has let go of it */
        assert(!tracked || !watch->listed);    /* take_some has unlinked it */
        if (tracked && valid)
                append_locked(watches, watch, watches->round);
        pthread_mutex_unlock(&watches->mu);
        return tracked && !valid;
}

/* Checks all watches once. */
static void check_watches(struct hfd_account_watches *watches) {
        struct hfd_account_watch *taken[CHECKS];
        size_t n;

        while ((n = take_some(watches, taken)) > 0)
                for (size_t i = 0; i < n; i++) {
                        struct hfd_http_request *request = taken[i]->request;
                        bool valid = hfd_account_lookup(watches->cacher, taken[i]->credential,
                                                        now_s(watches), NULL) == 0;
                        if (return_watch(watches, taken[i], valid))
                                taken[i]->end(taken[i]->ctx);
                        hfd_http_request_unref(request);
                }
}

/* ---- the thread ---- */

/* When the next round has to begin, in boot time, if nothing changes. */
static hf_nsec next_round_locked(struct hfd_account_watches *watches) {
        const struct hf_clock *clock = hf_host_clock(watches->host);

        hf__mutex_assert_held(&watches->mu);
        if (watches->n == 0)
                return HF_NSEC_NEVER;
        /* In this order: time that passes between the two makes the round earlier, not later. */
        hf_nsec now = hf_now(clock), real = clock->real(clock->ctx);
        hf_nsec at = watches->began + ROUND_MAX;
        /* An expiry that is far away may not fit into nanoseconds (INT64_MAX = never). */
        if (watches->expires - real / HF_NSEC_PER_SEC > ROUND_MAX / HF_NSEC_PER_SEC)
                return at;
        hf_nsec expiry = now + watches->expires * HF_NSEC_PER_SEC - real;
        return expiry < at ? expiry : at;
}

/* Waits until there is something to check. False: the thread has to end. */
static bool wait_for_work(struct hfd_account_watches *watches) {
        const struct hf_clock *clock = hf_host_clock(watches->host);

        pthread_mutex_lock(&watches->mu);
        while (!watches->stopping && !(watches->changed && watches->n > 0)) {
                hf_nsec at = next_round_locked(watches);
                if (at <= hf_now(clock))
                        break;
                (void)clock->wait(clock->ctx, &watches->cond, &watches->mu, at);
        }
        watches->changed = false;
        watches->round++;
        watches->began = hf_now(clock);
        watches->expires = INT64_MAX; /* the round finds it again */
        bool more = !watches->stopping;
        pthread_mutex_unlock(&watches->mu);
        return more;
}

/* Waits until the boot time `until`, or for the stop. */
static void pause_until(struct hfd_account_watches *watches, hf_nsec until) {
        const struct hf_clock *clock = hf_host_clock(watches->host);

        pthread_mutex_lock(&watches->mu);
        while (!watches->stopping && hf_now(clock) < until)
                (void)clock->wait(clock->ctx, &watches->cond, &watches->mu, until);
        pthread_mutex_unlock(&watches->mu);
}

static void *watches_main(void *ctx) {
        struct hfd_account_watches *watches = ctx;
        const struct hf_clock *clock = hf_host_clock(watches->host);

        while (wait_for_work(watches)) {
                hf_nsec began = hf_now(clock);
                check_watches(watches);
                hf_nsec ended = hf_now(clock), pause = (ended - began) * PAUSE_FACTOR;
                pause_until(watches, ended + (pause < PAUSE_MAX ? pause : PAUSE_MAX));
        }
        return NULL;
}

void hfd_account_watches_changed(struct hfd_account_watches *watches) {
        pthread_mutex_lock(&watches->mu);
        watches->changed = true;
        if (watches->n > 0)
                pthread_cond_signal(&watches->cond);
        pthread_mutex_unlock(&watches->mu);
}

int hfd_account_watches_new(const struct hf_host *host, struct hfd_cacher *cacher,
                            struct hfd_account_watches **ret_watches) {
        struct hfd_account_watches *watches = calloc(1, sizeof *watches);

        if (!watches)
                return -ENOMEM;
        *watches =
                (struct hfd_account_watches){.host = host, .cacher = cacher, .expires = INT64_MAX};
        int r = hf__mutex_cond_init(&watches->mu, &watches->cond);
        if (r != 0) {
                free(watches);
                return r;
        }
        *ret_watches = watches;
        return 0;
}

int hfd_account_watches_start(struct hfd_account_watches *watches) {
        assert(!watches->started);
        int r = hf__thread_start(watches->host, "hf-accounts", watches_main, watches,
                                 &watches->thread);

        watches->started = r == 0;
        return r;
}

void hfd_account_watches_stop(struct hfd_account_watches *watches) {
        pthread_mutex_lock(&watches->mu);
        watches->stopping = true;
        pthread_cond_broadcast(&watches->cond);
        pthread_mutex_unlock(&watches->mu);
        if (watches->started)
                (void)hf__thread_join(watches->thread);
        watches->started = false;
}

struct hfd_account_watches *hfd_account_watches_free(struct hfd_account_watches *watches) {
        if (!watches)
                return NULL;
        hfd_account_watches_stop(watches);
        assert(!watches->oldest && !watches->newest && watches->n == 0);
        pthread_cond_destroy(&watches->cond);
        pthread_mutex_destroy(&watches->mu);
        free(watches);
        return NULL;
}
