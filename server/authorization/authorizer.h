/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides whether a user may make a request: by the fixed rules (fixed_rules.h), and by the modes
 * of --authorization-mode. For RBAC the authorizer keeps an index (server/rbac/) of the roles and
 * bindings in the cacher. After a change a thread builds another index and replaces the current
 * one, so no decision waits until an index is built. Until the first index is complete, RBAC allows
 * nothing.
 *
 * Threads: any, except that new, start, stop and free are for the owner. Lock: one mutex guards the
 * current index and the list of watches. It is held for changes of pointers, and while a few
 * watches are checked against the index, without I/O.
 */
#include <stdbool.h>

#include <holdfast/host.h>

#include "server/auth/impersonation_rights.h"
#include "server/rbac/index.h"

struct hf__strbuf;
struct hfd_authorizer;
struct hfd_cacher;
struct hfd_http_request;
struct hfd_requester;
struct hfd_resource;

/* The modes of --authorization-mode; a set of modes is the sum of its bits. */
enum { HFD_MODE_RBAC = 1, HFD_MODE_ALWAYS_ALLOW = 2 };

/* host outlives the authorizer. 0 or -errno. */
int hfd_authorizer_new(const struct hf_host *host, unsigned modes,
                       struct hfd_authorizer **ret_authorizer);
/* Starts the thread that builds indexes from the cacher, if there is the mode RBAC. Call it once,
 * before any thread may call hfd_authorizer_changed, which reads without the lock what start sets.
 * 0 or -errno. */
int hfd_authorizer_start(struct hfd_authorizer *authorizer, struct hfd_cacher *cacher);
/* Joins the thread; call it before the cacher is freed. hfd_authorizer_changed may still be called.
 * Accepts NULL, and an authorizer that was not started. Idempotent. */
void hfd_authorizer_stop(struct hfd_authorizer *authorizer);
/* Stops the thread and frees everything. Requires that no watch is tracked. Accepts NULL, returns
 * NULL. */
struct hfd_authorizer *hfd_authorizer_free(struct hfd_authorizer *authorizer);

/* Call it when the roles or bindings in the cacher may have changed: the thread, if there is one,
 * builds another index. Never blocks. */
void hfd_authorizer_changed(struct hfd_authorizer *authorizer);
/* Whether the objects of the resource are roles or bindings. */
bool hfd_authorizer_observes(const struct hfd_resource *resource);

/*
 * Whether the user may make the request. authorizer NULL = there are only the fixed rules. reason:
 * as in hfd_rbac_allows.
 */
bool hfd_authorizer_allows(struct hfd_authorizer *authorizer, const struct hfd_subject *subject,
                           const struct hfd_attributes *attributes, struct hf__strbuf *reason);
/* A reference to the current index. NULL: it is not complete yet, the mode RBAC is off, or
 * authorizer is NULL. */
struct hfd_rbac_index *hfd_authorizer_index(struct hfd_authorizer *authorizer);
bool hfd_authorizer_has_mode(const struct hfd_authorizer *authorizer, unsigned mode);
/* Whether the mode AlwaysAllow allows the user everything. authorizer may be NULL. */
bool hfd_authorizer_always_allows(const struct hfd_authorizer *authorizer,
                                  const struct hfd_subject *subject);
/* Whether decisions take all roles and bindings into account: there is an index, or none is
 * needed. authorizer may be NULL. */
bool hfd_authorizer_knows_roles(struct hfd_authorizer *authorizer);

/* The right to an open watch. The watch ends when its user loses the right to it, or when the
 * sender of the request loses the right to impersonate this user. Part of the watch; zero = not
 * tracked. */
struct hfd_watch_right {
        /* Set by the owner, and borrowed until untrack. */
        const struct hfd_subject *subject;
        struct hfd_attributes attributes;
        /* For an impersonation: the sender, who must keep the right to it; the impersonated user;
         * how many groups the headers name; and the mode. sender NULL = nobody is impersonated, or
         * the sender is in system:masters, which cannot lose the right. */
        const struct hfd_subject *sender;
        const struct hfd_requester *impersonated;
        size_t n_named_groups;
        enum hfd_impersonation_mode impersonation_mode;
        struct hfd_http_request *request; /* lives until untrack; referenced while end runs */
        void (*end)(void *ctx);           /* called without a lock, once at most; must not block */
        void *ctx;
        /* Set by track, which has returned before the owner calls untrack; NULL = never tracked. */
        struct hfd_authorizer *authorizer;
        /* Guarded by the lock. */
        struct hfd_watch_right *older, *newer;
        const struct hfd_rbac_index *checked; /* the index that allowed it; only compared */
};
/* Whether the watch may begin: by the current index the user has the right to it, and the sender
 * the right to impersonate. True: the watch is tracked until one of these rights is lost, or until
 * untrack. False: nothing is tracked. authorizer NULL: true, and nothing is tracked either. */
bool hfd_authorizer_track(struct hfd_authorizer *authorizer, struct hfd_watch_right *right);
/* Harmless if right is not tracked. end may still be running, with a reference to the request, so
 * right and ctx must live as long as the request. */
void hfd_authorizer_untrack(struct hfd_watch_right *right);
