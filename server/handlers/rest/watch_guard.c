/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends the watch of a user who has lost the right to it, whose sender has lost the right to
 * impersonate this user, or whose sender's token is not valid any more. What the guard borrows (the
 * user, the attributes, the credential) belongs to the HTTP request, which outlives the guard.
 *
 * Invariant: the guard is freed with its stream, and not before. The authorizer or the thread of
 * the service accounts may still be calling end_revoked after untrack, with a reference to the
 * request.
 */
#include "server/handlers/rest/watch_guard.h"

#include <stdlib.h>

#include "server/handlers/rest/rest_request.h"
#include "server/service_accounts/account_watches.h"

struct hfd_watch_guard {
        struct hfd_watch_right right;
        struct hfd_account_watch account; /* for a sender by token */
};

static void end_revoked(void *ctx) {
        struct hfd_watch_stream *stream = ctx;

        /* The flag first, then the watcher. The thread that opens the stream stores the watcher
         * first (rest_watch.c), so one of the two sees the other's store: both orders must stay
         * seq_cst. */
        atomic_store(&stream->revoked, true);
        struct hfd_watcher *watcher = atomic_load(&stream->watcher);
        if (watcher) /* otherwise it is canceled as soon as there is one */
                hfd_watcher_cancel(watcher);
}

static bool track_right(struct hfd_watch_stream *stream, const struct hfd_rest_request *rest) {
        struct hfd_watch_right *right = &stream->guard->right;

        if (!rest->request.requester)
                return true;
        *right = (struct hfd_watch_right){.subject = &rest->request.requester->subject,
                                          .attributes = rest->attributes,
                                          .sender = rest->sender ? &rest->sender->subject : NULL,
                                          .impersonated = rest->request.requester,
                                          .n_named_groups = rest->n_named_groups,
                                          .impersonation_mode = rest->impersonation_mode,
                                          .request = stream->http_request,
                                          .end = end_revoked,
                                          .ctx = stream};
        return hfd_authorizer_track(rest->request.authorizer, right);
}

static bool track_account(struct hfd_watch_stream *stream, const struct hfd_rest_request *rest) {
        struct hfd_account_watch *account = &stream->guard->account;

        if (!rest->credential)
                return true;
        *account = (struct hfd_account_watch){.credential = rest->credential,
                                              .request = stream->http_request,
                                              .end = end_revoked,
                                              .ctx = stream};
        return hfd_account_watches_track(rest->account_watches, account);
}

/* Without a requester no right can be lost: the user is an administrator (filters.c). */
bool hfd_watch_guard_track(struct hfd_watch_stream *stream, const struct hfd_rest_request *rest) {
        if (!rest->request.requester && !rest->credential)
                return true;
        stream->guard = calloc(1, sizeof *stream->guard);
        return stream->guard && track_right(stream, rest) && track_account(stream, rest);
}

void hfd_watch_guard_untrack(struct hfd_watch_stream *stream) {
        if (!stream->guard)
                return;
        hfd_authorizer_untrack(&stream->guard->right);
        hfd_account_watches_untrack(&stream->guard->account);
}

void hfd_watch_guard_free(struct hfd_watch_guard *guard) { free(guard); }
