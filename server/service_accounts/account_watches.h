/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Open watches of requests by tokens of service accounts. A thread ends those whose token is no
 * longer valid: it has expired, or its account or its Secret is gone (lookup.h). The thread checks
 * the watches after changes of accounts and Secrets in the cacher, when a token expires, and at
 * least once a minute.
 *
 * Threads: any, except for new, start, stop and free. Lock: one mutex guards the list. It is held
 * for changes of pointers only; the cacher is asked, and watches are ended, without it.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/host.h>

#include "server/auth/credential.h"

struct hfd_account_watches;
struct hfd_cacher;
struct hfd_http_request;

/* 0 or -errno. host outlives the object; cacher is borrowed until stop. */
int hfd_account_watches_new(const struct hf_host *host, struct hfd_cacher *cacher,
                            struct hfd_account_watches **ret_watches);
/* Starts the thread. 0 or -errno. */
int hfd_account_watches_start(struct hfd_account_watches *watches);
/* Joins the thread, which then does not use the cacher any more. Idempotent. */
void hfd_account_watches_stop(struct hfd_account_watches *watches);
/* Stops the thread and frees everything. Requires that no watch is tracked. Accepts NULL, returns
 * NULL. */
struct hfd_account_watches *hfd_account_watches_free(struct hfd_account_watches *watches);
/* An account or a Secret in the cacher may have changed. Never blocks. */
void hfd_account_watches_changed(struct hfd_account_watches *watches);

/* One watch, as this header sees it. The handler of the watch has it as a member of its own struct.
 * Zero = not tracked. */
struct hfd_account_watch {
        /* Set by the owner. It lives as long as request, because the thread may still read it after
         * untrack. */
        const struct hfd_credential *credential;
        /* Owns this struct. The thread takes a reference while it asks the cacher, and while end
         * runs. It may take one from any watch in the list, so the owner calls untrack before it
         * drops its own reference. */
        struct hfd_http_request *request;
        void (*end)(void *ctx); /* called without a lock, once at most; must not block */
        void *ctx;
        /* Guarded by the lock; the owner alone writes `watches`, and reads it without the lock. */
        struct hfd_account_watches *watches; /* NULL = not tracked */
        struct hfd_account_watch *older, *newer;
        bool listed; /* false while tracked: the thread asks the cacher about it, or has ended it */
        /* The round that has checked it last. The round in which it was tracked counts, because
         * track checks it, too. */
        uint64_t checked;
};

/* False: the token is not valid any more; nothing is tracked, but end may be called, or have been
 * called. */
bool hfd_account_watches_track(struct hfd_account_watches *watches,
                               struct hfd_account_watch *watch);
/* Harmless if watch is not tracked. end may still be running, with a reference to the request. */
void hfd_account_watches_untrack(struct hfd_account_watch *watch);
