/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A write: the create, update, patch or delete of one object.
 *
 * It is an optimistic loop. An attempt is based on `current`, one version of the object, and ends
 * with one transaction, which the store commits only if the object still has that version. Normally
 * the first attempt commits, so the write costs one request to the store.
 *
 *      start -> attempt -> commit -> reply
 *                  ^         |
 *                  +---------+ conflict: the failed transaction returns the newer version
 *
 * The files, in the order of the steps:
 *
 *      steps/start.c         the checks that need no version of the object; the first attempt
 *      write.c               the loop, and reading the newest version from the store
 *      body.c, apply_body.c  parse the body, and convert it to the normal form of its kind
 *      steps/update.c        an attempt of a create, an update or a patch
 *      admit.c               asks admission, which may change or refuse the object
 *      patches/              a patch or an apply:
 *        patch.c               applies a patch to the current object
 *        apply.c               server-side apply, and the owners of fields
 *        merge_parts.c         the parts that a request to this path may change
 *      steps/delete.c        an attempt of a delete
 *      checks/               the checks besides the rules of the kind:
 *        namespace.c           a create: whether its namespace accepts new objects
 *        custom.c              a custom resource: whether its definition is there; its schema
 *        grant.c               a role or binding: whether its user may grant these rights
 *        certificate.c         a certificate request: its user, and the right to approve or sign
 *        param_access.c        an admission policy or a binding: whether its user may read its
 *                              params
 *        priority_default.c    a priority class: whether it may be the default
 *        pod_account.c         a pod: its service account
 *        pod_priority.c        a pod: the priority of its class
 *        pod_runtime.c         a pod: its runtime class
 *        taints.c              a new node: its taint; a pod: the tolerations it gets
 *        limit_ranges.c        a pod or a claim: the LimitRanges of its namespace
 *        default_class.c       a new claim or Ingress that names no class: the default one
 *        claim_resize.c        a claim that asks for more: whether its class lets it grow
 *      quota/                whether the quotas of the namespace allow the write
 *      fence.c               the compares of a fence, and the term record of a Lease
 *      convert.c             the conversions by the webhook of a custom resource: current before an
 *                            attempt, the new object before the commit, the object of the response
 *      steps/commit.c        the transaction; a conflict leads back to the loop
 *      defer.c               passes a large write to the pool of threads
 *      quota_turn.c          the turns of writes that the same quotas count
 *      reply.c               the response, which ends the write
 *
 * Uses go in one direction: steps/ uses checks/, patches/ and quota/, and all four use the files of
 * this folder. So write.c cannot name an attempt, which is in steps/: the loop calls it through the
 * pointer that the start has set.
 *
 * The first attempt uses the newest version that the cacher knows as `current` (a create: none).
 * This costs nothing, but the version may be old. So an attempt must not refuse the request because
 * of it. Instead it reads the object from the store (hfd_write_refetch), and another attempt uses
 * that version. `fresh` is true if `current` came from the store, or if the write is a create,
 * which assumes that there is no object. A commit needs no fresh version, because its transaction
 * compares the version.
 *
 * Thread: a write belongs to one thread at a time. At first that is the caller's. Later it is the
 * one that runs the current callback of the write: a thread of the store, of the cacher or of
 * outbound calls, a thread of the pool, or the thread of the write that had the turn of its quotas
 * before (quota_turn.h). There is no lock, and nothing blocks.
 *
 * Invariant: after a function that may send the response or a request to the store, the caller must
 * not touch the write: it may have been freed, or another thread may be using it.
 */
#include "server/registry/base/registry_state.h"
#include "server/registry/base/request.h"

struct hfd_fence_compares;
struct hfd_write_admission;
struct hfd_write_quota;

struct hfd_write {
        /* Immutable after start. */
        struct hfd_registry *registry;
        struct hfd_request *request;      /* borrowed until done */
        struct hfd_fence_compares *fence; /* owned; NULL = the write is not fenced */

        /* The loop. */
        unsigned n_attempts;
        /* Immutable after start: the attempt of its verb (steps/update.h, steps/delete.h). */
        void (*attempt)(struct hfd_write *w);
        /* A request to the store, admission, a conversion or a wait for the cache runs; only its
         * callback may use the write. Stays false while the write waits for its turn of the quotas
         * (quota_turn.c), although it then belongs to the turn. */
        bool awaiting;
        bool on_pool; /* a thread of the pool runs it (defer.c) */

        /* The object that is written. */
        char path[HFD_PATH_MAX];   /* "" = a create whose name is not known yet */
        char *key;                 /* owned; the store's key for path; NULL = path is "" */
        bool name_generated;       /* for a create: the name was made from generateName */
        unsigned n_name_conflicts; /* generated names that existed already */
        /* owned; the version that this attempt is based on; NULL = there is no such object */
        struct hfd_object *current;
        bool fresh; /* current came from the store, or is the NULL that a create begins with */
        /* Only for a kind that a webhook converts (convert.c). */
        struct hfd_object *converted; /* owned; current in the version of the request */
        struct hfd_object *to_store;  /* owned; `stored`, while it is converted */
        struct hfd_object *to_show;   /* owned; the object of the response, likewise */
        /* resume: what follows the conversion that is running. next: what follows when `stored` is
         * converted and complete. */
        void (*resume)(struct hfd_write *w), (*next)(struct hfd_write *w);

        /* Up to this mark, request->options.strict has the duplicate fields of the body. After the
         * mark come the unknown fields of the object that this attempt decodes. */
        struct hfd_strict_mark strict_of_body;
        bool unknown_reported; /* the unknown fields are before the mark, too (strict.h) */
        bool accepts_config;   /* the body that is read is the configuration of an apply */
        /* The object in the body has a resourceVersion other than "" and "0". A create refuses it,
         * except in a dry run. */
        bool names_revision;

        /* The parsed JSON. commit.c frees it before it sends the transaction. */

        /* owned; the body: object, patch or DeleteOptions; NULL = none, or it became `object` */
        struct hf__json *body;
        struct hf__json *object; /* owned; the object that will be stored */
        struct hf__json *old; /* owned; current, as this attempt began with it; NULL = a create */

        /*
         * The effect of the transaction. One of: put `stored`; delete and respond with `last`;
         * delete (if both are NULL); only compare (`unchanged`).
         */
        struct hf__buf *stored; /* owned; the bytes to put */
        struct hf__buf *last;   /* owned; the last state of an object that an update deletes */
        bool unchanged;
        bool changed;          /* of an update: object differs from current for certain (apply.h) */
        uint64_t committed_at; /* the revision of the commit, if its reply is deferred; else 0 */
        bool created;          /* the object is new */
        /* The write has waited for the cache (checks/priority_default.c). The cache then contains
         * all writes of classes that were acknowledged before the wait, so a class that the cache
         * lacks does not exist. But a wait with may_be_late may end before that (same file). */
        bool knows_classes;
        /* checks/pod_account.c: the cache has had time to learn the account of the new pod. */
        bool knows_account;
        bool same_term; /* for a Lease: holder and acquireTime are the same as in current */

        /*
         * For a create: the latest known state of the namespace. Revision 0 and fresh: there is no
         * such namespace.
         */
        uint64_t ns_revision;
        bool ns_terminating, ns_fresh; /* fresh: the state came from the store */
        /*
         * For a create of a custom resource: the revision of its definition, which the transaction
         * compares; 0 = not known yet. gone, terminating: as the last transaction has found it.
         */
        uint64_t definition_revision;
        bool definition_gone, definition_terminating;
        /* owned; the quotas of its namespace (quota_turn.h); NULL = none, or not looked up yet */
        struct hfd_write_quota *quota;

        /* owned; the admission of this attempt; NULL = it is not asked (admit.h) */
        struct hfd_write_admission *admission;
        /* owned; admission has refused an attempt that was based on the cacher's version; NULL = it
         * has not. If the store has the same version, this is the response. */
        struct hfd_response *refusal;
        uint64_t refused_revision;

        /* Used only if the write is fenced. */
        struct hf__buf *epoch; /* owned; the epoch known at the first commit; NULL = none yet */
        bool epoch_exists;     /* the store had an epoch key then */
        /* The last transaction has compared the fence, with either result, or the store was
         * replaced. */
        bool fence_compared;
};

/* The following functions may end the write or pass it to another thread. */

/* Makes one attempt, based on w->current. */
void hfd_write_attempt(struct hfd_write *w);
/*
 * Reads the newest version from the store and makes another attempt with it. w->fresh must be
 * false: a second read would not help.
 */
void hfd_write_refetch(struct hfd_write *w);

/* After the following functions the caller still owns the write. */

/* Call before anything is started whose callback may come at any time (`awaiting`). The callback
 * sets `awaiting` to false. */
static inline void hfd_write_await(struct hfd_write *w) {
        w->awaiting = true;
        w->on_pool = false;
}

/* Builds w->key from w->path. 0, -ENOMEM or HF_E_TOO_LARGE. */
int hfd_write_make_key(struct hfd_write *w);
/*
 * Sets w->current to the object that the store has just returned, and consumes the reference to it.
 * NULL: the object does not exist, as a create assumes.
 */
void hfd_write_set_current(struct hfd_write *w, struct hfd_object *current);
/* The object's name; "" = it has none yet. Borrowed from the write: it changes with w->object. */
const char *hfd_write_name(const struct hfd_write *w);
