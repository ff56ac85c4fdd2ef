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
 *      patch.c      of a patch: the object that it makes of the current one
 *      delete.c     an attempt of a delete
 *      fence.c      what a fence compares, and the term record of a Lease
 *      commit.c     the transaction; after a conflict back to the loop
 *      reply.c      the response, which ends the write
 *
 * Where `current` comes from: the first attempt takes the newest version that the cacher knows,
 * which costs nothing but may be old. So a refusal that rests on it is not sent. The store is asked
 * first (hfd_write_refetch), and the attempt is repeated on what it said; `fresh` tells the two
 * apart. A commit needs no such care, because its transaction compares the version.
 *
 * Thread: a write belongs to the thread that drives it; the store hands it from one to the next.
 * There is no lock, and nothing blocks.
 *
 * Invariant: a function that may reply or ask the store gives the write away. Its caller must not
 * touch the write afterwards, because it may have been freed, or be used by another thread.
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
        char *key;               /* owned; where path is in the store; NULL = as path */
        bool name_generated;     /* of a create: from generateName */
        unsigned n_names_taken;  /* generated names that existed already */
        /* owned; the version that this attempt is based on; NULL = there is no such object */
        struct hfd_object *current;
        bool fresh; /* current is what the store said, and not only the cacher */

        /* The trees. Their thread frees them before the transaction is sent. */

        /* owned; the body: object, patch or DeleteOptions; NULL = none, or it became `object` */
        struct hf__json *sent;
        struct hf__json *object; /* owned; the object as it is to be stored */

        /*
         * What the attempt wants from the transaction. One of: put `stored`; delete and reply with
         * `last`; delete (neither of them); change nothing and only compare (`unchanged`).
         */
        struct hf__buf *stored; /* owned; the bytes to put */
        struct hf__buf *last;   /* owned; of an update that deletes: the state in the response */
        bool unchanged;
        bool created;
        bool same_term; /* of a Lease: holder and acquireTime stay as they are in current */

        /*
         * The namespace that an object is created in, as last seen. Revision 0 and fresh: there is
         * no such namespace.
         */
        uint64_t ns_revision;
        bool ns_terminating, ns_fresh;

        /* Of a fenced write. */
        struct hf__buf *epoch; /* owned; the epoch known at the first commit; NULL = none yet */
        bool epoch_exists;     /* the store had an epoch key then */
        bool fence_compared;   /* by a transaction, with whatever result: the response says so */
};

/*
 * Carries out request, which is answered once, on any thread, perhaps before this returns. Thread:
 * any. Never blocks.
 */
void hfd_write_start(struct hfd_registry *registry, struct hfd_request *request);

/* Each of the following may end the write, or give it to another thread. */

/* Tries once more, based on w->current as it is now. */
void hfd_write_attempt(struct hfd_write *w);
/* Asks the store for the newest version, and attempts again with it. Only while not fresh. */
void hfd_write_refetch(struct hfd_write *w);
/*
 * Replies 409: a precondition of the request (what: "UID" or "ResourceVersion") asks for wanted,
 * and the object has found. Unless current is fresh it asks the store first.
 */
void hfd_write_precondition_failed(struct hfd_write *w, const char *what, const char *wanted,
                                   const char *found);

/* The following leave the write with the caller. */

/* Makes w->key of w->path. 0, -ENOMEM or HF_E_TOO_LARGE. */
int hfd_write_make_key(struct hfd_write *w);
/* Takes current, which the store has just returned. NULL: there is no such object. */
void hfd_write_adopt(struct hfd_write *w, struct hfd_object *current);
/* The object's name for messages; "" = it has none yet. Borrowed from the write. */
const char *hfd_write_name(const struct hfd_write *w);
