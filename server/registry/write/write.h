/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * create, update, patch and delete of one object: one write under way.
 *
 * A write goes through these files, from top to bottom:
 *
 *      write.c      start; the loop; what the store says now
 *      body.c       the body: parsed, accepted in the normal form of its kind
 *      namespace.c  create: the namespace lets objects in
 *      update.c     attempt: create, update, patch
 *      delete.c     attempt: delete
 *      fence.c      the compares of a fence, and the term record of a Lease
 *      commit.c     the transaction; on conflict back to the loop
 *      reply.c      the response; the end of the write
 *
 * Thread: a write belongs to the thread that drives it; the store hands it from one to the next.
 * There is no lock. Invariant: after a call that may answer or send a transaction (attempt,
 * refetch, commit, finish), w may be gone.
 */
#include "server/registry/registry.h"
#include "server/registry/request.h"

struct hfd_fence_compares;

struct hfd_write {
        struct hfd_registry *registry;
        struct hfd_request *request; /* the caller's until done */
        /* owned; the object or DeleteOptions in the body; NULL = none, or it has become object */
        struct hf__json *sent;
        /* owned; what is to be stored, prepared; freed before the transaction is sent */
        struct hf__json *object;
        struct hfd_object
                *current; /* owned; the version that this attempt is based on; NULL = none */
        bool fresh;       /* current is what the store said, not the cache */
        bool generated, created, unchanged;
        bool fence_compared;
        /* owned; of a fenced write: the epoch known at the first attempt; NULL = none was */
        struct hf__buf *epoch;
        bool epoch_exists;
        bool same_term; /* of a Lease: holder and acquireTime stay as they are in current */
        unsigned tries, n_generated;
        char path[HFD_PATH_MAX];
        char *key; /* owned; of path in the store; NULL = the object has no name yet */
        struct hf__buf
                *stored;      /* owned; what the transaction puts; NULL = it deletes or compares */
        struct hf__buf *last; /* owned; of an update that deletes: the state in the response */
        /*
         * The namespace that an object is created in, as last seen. Revision 0 and fresh: there is
         * none.
         */
        uint64_t ns_revision;
        bool ns_terminating, ns_fresh;
        struct hfd_fence_compares *fence; /* owned; NULL = the write is not fenced */
};

void hfd_write_start(struct hfd_registry *registry, struct hfd_request *request);
/* Makes w->key of w->path. 0, -ENOMEM or HF_E_TOO_LARGE. */
int hfd_write_make_key(struct hfd_write *w);
/* Tries once more, based on w->current as it is now. */
void hfd_write_attempt(struct hfd_write *w);
/* A refusal rests on the cache's state: asks the store first, and attempts again. */
void hfd_write_refetch(struct hfd_write *w);
/*
 * 409: a precondition of the request does not hold (what: "UID" or "ResourceVersion"). Asks the
 * store first, unless w->current is what the store said.
 */
void hfd_write_precondition_failed(struct hfd_write *w, const char *what, const char *wanted,
                                   const char *found);
/* Takes current, which the store has just said. NULL: there is no such object. */
void hfd_write_adopt(struct hfd_write *w, struct hfd_object *current);
/* The name for messages: that of the request, or the one that was generated. */
const char *hfd_write_name(const struct hfd_write *w);
