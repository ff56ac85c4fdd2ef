/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current index, and the watches that depend on it.
 *
 * A new index is published under the lock. Then the watches are checked against it, a few at a time
 * under the lock; those that are no longer allowed are ended after the lock was released. The list
 * is ordered by the time of the check: a watch that was checked moves to the end, so the walk is
 * over at the first watch that was allowed with the current index.
 *
 * Invariant: a tracked watch was allowed with the current index, or the thread that published this
 * index has still to check the watch. So no watch outlives its right because of a race at its
 * start.
 */
#include "server/authorization/authorizer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "base/thread.h"
#include "server/auth/fixed_rules.h"
#include "server/auth/impersonation_rights.h"
#include "server/authorization/role_index.h"
#include "server/cacher/feed/feed.h"
#include "server/http/http.h"
#include "server/rbac/decision.h"

#define CHECKS    32                       /* watches that are checked under one lock */
#define PAUSE_MAX (500 * HF_NSEC_PER_MSEC) /* between two indexes */

struct hfd_authorizer {
        /* Immutable after start. */
        const struct hf_host *host; /* borrowed */
        unsigned modes;
        struct hfd_feed *feed; /* owned; makes the index; NULL = not started */
        /* Guarded by mu. */
        pthread_mutex_t mu;
        struct hfd_rbac_index *index;            /* owned reference; NULL = none (yet) */
        struct hfd_watch_right *oldest, *newest; /* by the time of the last check */
};

int hfd_authorizer_new(const struct hf_host *host, unsigned modes,
                       struct hfd_authorizer **ret_authorizer) {
        struct hfd_authorizer *authorizer = calloc(1, sizeof *authorizer);

        if (!authorizer)
                return -ENOMEM;
        assert(host);
        authorizer->host = host;
        authorizer->modes = modes;
        int r = hf__mutex_init(&authorizer->mu);
        if (r != 0)
                free(authorizer);
        else
                *ret_authorizer = authorizer;
        return r;
}

void hfd_authorizer_stop(struct hfd_authorizer *authorizer) {
        if (authorizer)
                hfd_feed_stop(authorizer->feed);
}

struct hfd_authorizer *hfd_authorizer_free(struct hfd_authorizer *authorizer) {
        if (!authorizer)
                return NULL;
        authorizer->feed = hfd_feed_free(authorizer->feed);
        assert(!authorizer->oldest && !authorizer->newest);
        hfd_rbac_index_unref(authorizer->index);
        pthread_mutex_destroy(&authorizer->mu);
        free(authorizer);
        return NULL;
}

bool hfd_authorizer_has_mode(const struct hfd_authorizer *authorizer, unsigned mode) {
        return authorizer && authorizer->modes & mode;
}

/* ---- decisions ---- */

struct hfd_rbac_index *hfd_authorizer_index(struct hfd_authorizer *authorizer) {
        if (!authorizer)
                return NULL;
        pthread_mutex_lock(&authorizer->mu);
        struct hfd_rbac_index *index = hfd_rbac_index_ref(authorizer->index);
        pthread_mutex_unlock(&authorizer->mu);
        return index;
}

bool hfd_authorizer_knows_roles(struct hfd_authorizer *authorizer) {
        if (!hfd_authorizer_has_mode(authorizer, HFD_MODE_RBAC))
                return true;
        pthread_mutex_lock(&authorizer->mu);
        bool known = authorizer->index;
        pthread_mutex_unlock(&authorizer->mu);
        return known;
}

/* With --authorization-mode=AlwaysAllow Kubernetes accepts no anonymous requests, so here the mode
 * is for authenticated users only. */
bool hfd_authorizer_always_allows(const struct hfd_authorizer *authorizer,
                                  const struct hfd_subject *subject) {
        return hfd_authorizer_has_mode(authorizer, HFD_MODE_ALWAYS_ALLOW) &&
               !hfd_subject_in_group(subject, HFD_GROUP_UNAUTHENTICATED);
}

static bool is_allowed(const struct hfd_authorizer *authorizer, const struct hfd_rbac_index *index,
                       const struct hfd_subject *subject, const struct hfd_attributes *attributes,
                       struct hf__strbuf *reason) {
        return hfd_fixed_rules_allow(subject, attributes) ||
               hfd_authorizer_always_allows(authorizer, subject) ||
               (index && hfd_rbac_allows(index, subject, attributes, reason));
}

bool hfd_authorizer_allows(struct hfd_authorizer *authorizer, const struct hfd_subject *subject,
                           const struct hfd_attributes *attributes, struct hf__strbuf *reason) {
        /* The fixed rules and the mode AlwaysAllow need no index. They allow all requests of
         * system:masters, so such requests do not take the lock. */
        if (is_allowed(authorizer, NULL, subject, attributes, NULL))
                return true;
        struct hfd_rbac_index *index = hfd_authorizer_index(authorizer);
        bool allowed = is_allowed(authorizer, index, subject, attributes, reason);
        hfd_rbac_index_unref(index);
        return allowed;
}

/* ---- watches ---- */

/* Who impersonates somebody, and the authorizer whose current index has this sender's rights. */
struct sender {
        const struct hfd_authorizer *authorizer;
        const struct hfd_subject *subject;
};

static bool has_right_locked(void *ctx, const struct hfd_attributes *right) {
        const struct sender *sender = ctx;

        return is_allowed(sender->authorizer, sender->authorizer->index, sender->subject, right,
                          NULL);
}

/* Whether the watch is allowed with the current index. */
static bool may_watch_locked(struct hfd_authorizer *authorizer,
                             const struct hfd_watch_right *right) {
        struct sender sender = {authorizer, right->sender};
        const struct hfd_impersonation asked = {right->impersonated, right->n_named_groups,
                                                &right->attributes};
        struct hfd_missing_right missing;

        hf__mutex_assert_held(&authorizer->mu);
        return is_allowed(authorizer, authorizer->index, right->subject, &right->attributes,
                          NULL) &&
               (!right->sender || hfd_impersonation_allowed(&asked, right->impersonation_mode,
                                                            has_right_locked, &sender, &missing));
}

static void unlink_locked(struct hfd_authorizer *authorizer, struct hfd_watch_right *right) {
        hf__mutex_assert_held(&authorizer->mu);
        *(right->older ? &right->older->newer : &authorizer->oldest) = right->newer;
        *(right->newer ? &right->newer->older : &authorizer->newest) = right->older;
        right->older = right->newer = NULL;
}

static void append_locked(struct hfd_authorizer *authorizer, struct hfd_watch_right *right) {
        hf__mutex_assert_held(&authorizer->mu);
        right->older = authorizer->newest;
        *(right->older ? &right->older->newer : &authorizer->oldest) = right;
        authorizer->newest = right;
        right->checked = authorizer->index;
}

bool hfd_authorizer_track(struct hfd_authorizer *authorizer, struct hfd_watch_right *right) {
        if (!authorizer)
                return true;
        assert(!right->authorizer);
        pthread_mutex_lock(&authorizer->mu);
        bool allowed = may_watch_locked(authorizer, right);
        if (allowed) {
                right->authorizer = authorizer;
                append_locked(authorizer, right);
        }
        pthread_mutex_unlock(&authorizer->mu);
        return allowed;
}

/* check_some may have unlinked the right already, if it is lost. */
void hfd_authorizer_untrack(struct hfd_watch_right *right) {
        struct hfd_authorizer *authorizer = right->authorizer;

        if (!authorizer)
                return;
        assert(right->subject && right->end);
        pthread_mutex_lock(&authorizer->mu);
        if (right->older || authorizer->oldest == right)
                unlink_locked(authorizer, right);
        pthread_mutex_unlock(&authorizer->mu);
}

/* Checks some watches. Moves those that are no longer allowed into `revoked`, with a reference to
 * their requests. The requests still exist: the owner of a linked right holds its request until
 * untrack, which needs the lock. Returns how many; *ret_done: no watch is left to check. */
static size_t check_some(struct hfd_authorizer *authorizer, struct hfd_watch_right *revoked[CHECKS],
                         bool *ret_done) {
        size_t n = 0;

        pthread_mutex_lock(&authorizer->mu);
        *ret_done = false;
        for (size_t n_checks = 0; n_checks < CHECKS && !*ret_done;) {
                struct hfd_watch_right *right = authorizer->oldest;
                *ret_done = !right || right->checked == authorizer->index;
                if (*ret_done)
                        break;
                /* The check of an impersonation may ask for some hundred rights (groups and extra
                 * values), so it is the last check before the lock is released. */
                n_checks += right->sender ? CHECKS : 1;
                unlink_locked(authorizer, right);
                if (may_watch_locked(authorizer, right)) {
                        append_locked(authorizer, right);
                } else {
                        (void)hfd_http_request_ref(right->request);
                        assert(n < CHECKS);
                        revoked[n++] = right;
                }
        }
        pthread_mutex_unlock(&authorizer->mu);
        return n;
}

static void check_watches(struct hfd_authorizer *authorizer) {
        struct hfd_watch_right *revoked[CHECKS];
        bool done = false;

        while (!done) {
                size_t n = check_some(authorizer, revoked, &done);
                for (size_t i = 0; i < n; i++) {
                        struct hfd_http_request *request = revoked[i]->request;
                        revoked[i]->end(revoked[i]->ctx);
                        hfd_http_request_unref(request);
                }
        }
}

/* ---- the index ---- */

/* The walk compares indexes by their addresses. The new index was made while the old one was alive,
 * so their addresses differ, and after the walk no watch in the list names the old one. */
static int make_index(void *ctx, struct hfd_cacher *cacher) {
        struct hfd_authorizer *authorizer = ctx;
        struct hfd_rbac_index *index;
        int r = hfd_role_index_make(cacher, &index);

        if (r != 0)
                return r;
        pthread_mutex_lock(&authorizer->mu);
        struct hfd_rbac_index *old = authorizer->index;
        authorizer->index = index;
        pthread_mutex_unlock(&authorizer->mu);
        check_watches(authorizer);
        hfd_rbac_index_unref(old);
        return 0;
}

bool hfd_authorizer_observes(const struct hfd_resource *resource) {
        return hfd_role_index_observes(resource);
}

int hfd_authorizer_start(struct hfd_authorizer *authorizer, struct hfd_cacher *cacher) {
        if (!hfd_authorizer_has_mode(authorizer, HFD_MODE_RBAC))
                return 0;
        assert(!authorizer->feed);
        const struct hfd_feed_config config = {.cacher = cacher,
                                               .thread = "hf-rbac",
                                               .component = "authorization",
                                               .pause_max = PAUSE_MAX,
                                               .make = make_index,
                                               .ctx = authorizer};
        return hfd_feed_new(authorizer->host, &config, &authorizer->feed);
}

void hfd_authorizer_changed(struct hfd_authorizer *authorizer) { hfd_feed_wake(authorizer->feed); }
