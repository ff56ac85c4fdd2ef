/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The operations of the in-process client: requests (loopback.c) and watches (loopback_watch.h).
 *
 * An operation stays in the client's list until its last callback (done or on_end). Canceling a
 * request calls done at once; the registry finishes the request later, and that response is
 * dropped.
 *
 * References of an operation: one for the registry, dropped when the registry has finished; one
 * while it is listed, dropped after the last callback; one for each function that uses it without
 * the lock.
 *
 * Invariant: the last callback runs exactly once. Several threads may try to run it (the registry,
 * a cancel, hf_client_free). Only the thread that removes the operation from the list runs it.
 *
 * Thread: any, where nothing else is said. Nothing blocks.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/client_port.h>

#include "server/registry/base/request.h"
#include "server/registry/registry.h"

struct hfd_watcher;

struct hfd_loopback {
        struct hf_client base; /* first member: a pointer to it is cast to the outer struct */
        struct hfd_registry *registry; /* borrowed */
        bool for_metadata;             /* immutable */
        pthread_mutex_t mu;
        pthread_cond_t idle; /* signalled when n_operations becomes 0 */

        /* Guarded by mu. */
        struct hfd_operation *operations; /* list */
        size_t n_operations;              /* operations that were listed and are not freed yet */
        uint64_t last_id;
        bool closing; /* hf_client_free has begun: no operation may be added to the list */
};

/* A request or a watch. */
struct hfd_operation {
        /* Immutable after hfd_operation_list. */
        struct hfd_loopback *client;
        const struct hfd_resource *resource; /* owned reference; NULL = there is none */
        struct hfd_loopback_request *whole;  /* the request that contains this; NULL = a watch */
        hf_event_fn on_event;                /* for a watch */
        hf_watch_end_fn on_end;              /* for a watch */
        void *ctx;

        /* For a watch; only the watcher's calls, which do not overlap, use it. */
        hf_nsec told_at; /* when a bookmark was last sent in place of a change that is left out */

        atomic_int refs;

        /* Guarded by client->mu. */
        struct hfd_operation *next, **link; /* in the client's list; link NULL = not listed */
        uint64_t id;
        /* owned reference; NULL = a request, or a watch that has not begun */
        struct hfd_watcher *watcher;
};

/*
 * A request. A watch is only an operation, which is much smaller: there are many watches, and they
 * last long.
 */
struct hfd_loopback_request {
        struct hfd_operation op; /* first member: the two are freed as one */
        /* Filled before the registry gets it, and then used by the registry only. */
        struct hfd_request request;

        /* Immutable after hfd_operation_list. */
        void *body;            /* owned; NULL = none */
        struct hf_fence fence; /* the request's, if it has one */
        hf_response_fn done;
};

/* Fills op, which is zeroed, and gives it the references of the registry and of the list. */
void hfd_operation_init(struct hfd_operation *op, struct hfd_loopback *client,
                        const struct hf_resource *resource, void *ctx);
/* Frees an operation that was never listed, and that the registry never got. Does not decrement
 * n_operations, which does not include op. hfd_operation_unref frees all other operations. */
void hfd_operation_free(struct hfd_operation *op);
/* Drops a reference. The last one frees op, and then the client may be freed. */
void hfd_operation_unref(struct hfd_operation *op);
/* Adds op to the list, so that its last callback will run. 0, or HF_E_CLOSED: op was not added. */
int hfd_operation_list(struct hfd_operation *op, uint64_t *ret_id);
/*
 * Removes op from the list. True: the caller must run the last callback, and then drop the list's
 * reference. False: another thread has removed op.
 */
bool hfd_operation_unlist(struct hfd_operation *op);
/* Returns the listed operation with this ID, with a new reference. NULL: it has ended. */
struct hfd_operation *hfd_operation_find_locked(struct hfd_loopback *client, uint64_t id);

/* Whether the resource has version and plural, and ns and name fit into a request. */
bool hfd_operation_is_valid_target(const struct hf_resource *resource, const char *ns,
                                   const char *name);
/* Fills the target of the operation's request, which is zeroed. ns and name may be NULL;
 * hfd_operation_is_valid_target has checked their lengths. */
void hfd_operation_request_init(struct hfd_request *request, const struct hfd_operation *op,
                                const char *ns, const char *name);
void hfd_operation_request_deinit(struct hfd_request *request);
