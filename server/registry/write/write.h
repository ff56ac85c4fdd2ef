/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A write: the create, update, patch or delete of one object.
 *
 * It is an optimistic loop. An attempt works on `current`, one version of the object, and ends in
 * one transaction, which the store carries out only if the object still has that version. Normally
 * the first attempt commits, and the write costs one round trip.
 *
 *      start -> attempt -> commit -> reply
 *                  ^         |
 *                  +---------+ conflict: the failed transaction has read the newer version
 *
 * The files of this folder carry it out, in this order:
 *
 *      write.c      start, the loop, and asking the store for the newest version
 *      body.c       the body: parsed, and brought into the normal form of its kind
 *      namespace.c  a create: whether its namespace lets objects in
 *      update.c     an attempt of a create, an update or a patch
 *      patch.c      applies a patch to the current object
 *      delete.c     an attempt of a delete
 *      fence.c      what a fence compares, and the term record of a Lease
 *      commit.c     the transaction; a conflict leads back to the loop
 *      reply.c      the response, which ends the write
 *
 * The first attempt uses the newest version that the cacher knows as `current`. This costs nothing,
 * but the version may be old. So an attempt must not refuse the request because of it: it first
 * asks the store (hfd_write_refetch) and is then repeated with the store's version. `fresh` is true
 * if the store returned `current`. A commit needs no fresh version, because its transaction
 * compares the version.
 *
 * Thread: a write belongs to the thread that drives it; the store hands it from one to the next.
 * There is no lock, and nothing blocks.
 *
 * Invariant: a function that may reply or ask the store takes the write. Its caller must not touch
 * the write afterwards, because it may have been freed, or another thread may be using it.
 */
#include "server/registry/registry.h"
#include "server/registry/request.h"

struct hfd_fence_compares;

struct hfd_write {
        /* Immutable after start. */
        struct hfd_registry *registry;
        struct hfd_request *request;      /* the caller's until done */
        struct hfd_fence_compares *fence; /* owned; NULL = the write is not fenced */

        /* The loop. */
        unsigned n_attempts;
        bool at_store; /* the store has been asked; only its callback may use the write */

        /* The object that the write is about. */
        char path[HFD_PATH_MAX]; /* "" = a create that has not found a name yet */
        char *key;               /* owned; the store's key for path; NULL = not built yet */
        bool name_generated;     /* a create made the name from generateName */
        unsigned n_names_taken;  /* generated names that existed already */
        /* owned; the version that this attempt is based on; NULL = there is no such object */
        struct hfd_object *current;
        bool fresh; /* the store returned current; false: the cacher did */

        /* The trees. Their thread frees them before the transaction is sent. */

        /* owned; the body: object, patch or DeleteOptions; NULL = none, or it became `object` */
        struct hf__json *sent;
        struct hf__json *object; /* owned; the object that will be stored */

        /*
         * What the transaction does. One of: put `stored`; delete and reply with `last`; delete (if
         * both are NULL); only compare (`unchanged`).
         */
        struct hf__buf *stored; /* owned; the bytes to put */
        struct hf__buf *last;   /* owned; if an update deletes: the object in the response */
        bool unchanged;
        bool created;
        bool same_term; /* for a Lease: holder and acquireTime are the same as in current */

        /*
         * The namespace that an object is created in, as last seen. Revision 0 and fresh: there is
         * no such namespace.
         */
        uint64_t ns_revision;
        bool ns_terminating, ns_fresh;

        /* Only used by a fenced write. */
        struct hf__buf *epoch; /* owned; the epoch known at the first commit; NULL = none yet */
        bool epoch_exists;     /* the store had an epoch key then */
        bool fence_compared;   /* a transaction has compared it, with either result */
};

/*
 * Carries out request, which is answered once, on any thread, perhaps before this returns. Thread:
 * any. Never blocks.
 */
void hfd_write_start(struct hfd_registry *registry, struct hfd_request *request);

/* Each of the following functions may end the write, or pass it to another thread. */

/* Makes one more attempt, based on the present w->current. */
void hfd_write_attempt(struct hfd_write *w);
/* Asks the store for the newest version and attempts again with it. w must not be fresh. */
void hfd_write_refetch(struct hfd_write *w);
/*
 * Replies 409: a precondition (what: "UID" or "ResourceVersion") requires the value `wanted`, but
 * the object has the value `found`. Unless current is fresh, asks the store first.
 */
void hfd_write_precondition_failed(struct hfd_write *w, const char *what, const char *wanted,
                                   const char *found);

/* After the following functions the caller still owns the write. */

/* Builds w->key from w->path. 0, -ENOMEM or HF_E_TOO_LARGE. */
int hfd_write_make_key(struct hfd_write *w);
/* Sets w->current to the object that the store has just returned. NULL: it does not exist. */
void hfd_write_set_current(struct hfd_write *w, struct hfd_object *current);
/* The object's name for messages; "" = it has none yet. Borrowed from the write. */
const char *hfd_write_name(const struct hfd_write *w);
