/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The informer's struct. The parts of the informer share it; each part has a file and a header:
 *
 *      informer.c           creates, starts and frees it
 *      informer_handlers.c  calls the handlers
 *      informer_barrier.c   waits until the informer has seen a revision
 *      informer_lookup.c    reads objects for the user
 *      informer_store.c     stores the objects; indexer.c stores the indexes over them
 *      reflector.c          lists, watches and fills the store, in steps
 *      informer_thread.c    gives the reflectors of one informer or of several their turns
 *
 * Lock: `mu` guards the members marked below. No callback of the user runs under it, except the
 * `each` functions of hf_informer_each and hf_informer_by_index. While the informer's own code
 * holds `mu`, it takes only one other lock: the mu of the informer's thread.
 *
 * Threads: after the start the reflector's thread is the only one that changes the store and the
 * indexes, and it changes the entries under `mu`; therefore it may read them without `mu`. The
 * client's callbacks run on threads of the client. They only transform objects, append messages for
 * the reflector, or mark a watch as lost.
 */
#include <pthread.h>
#include <stdint.h>

#include <holdfast/informer.h>

#include "client/indexer.h"
#include "client/informer_store.h"
#include "client/informer_thread.h"
#include "client/informer_transform.h"
#include "client/reflector.h"
#include "client/reflector_source.h"

struct hf_informer {
        /* immutable after start */
        const struct hf_host *host;   /* borrowed */
        const struct hf_clock *clock; /* borrowed */
        struct hf_client *client;     /* borrowed */
        struct hf_resource resource;  /* its strings are owned */
        char *ns, *query;             /* owned; "" = none */
        bool one_revision;
        hf__informer_transform_fn transform;  /* NULL = objects are kept as they are */
        hf_nsec resync;                       /* period; 0 = never */
        struct hf_informer_thread *thread;    /* own_thread, or a borrowed one */
        struct hf_informer_thread own_thread; /* not initialised if `thread` is another one */
        bool started;
        pthread_mutex_t mu;
        pthread_cond_t changed; /* signals other threads: progress, or a handler has returned */

        /* guarded by mu, changed by the reflector's thread only */
        struct hf__informer_store store; /* `mu` guards its entries only */
        struct hf__indexer indexer;
        /* The store has all changes up to this revision, and the handlers were called for them. */
        uint64_t seen_revision;
        /* The highest number of a consistent list that the store contains. */
        uint64_t newest_consistent_list;
        bool synced;                         /* the first list is complete */
        struct hf_informer_handler *running; /* the handler that is being called; NULL = none */

        /* guarded by mu */
        struct hf_informer_handler *handlers; /* owned, in the order in which they were added */
        struct hf__informer_waiter *waiters;  /* owned by the calls that wait */
        /* No probe starts earlier. A probe is a list in parallel to the watch, which the reflector
         * requests because threads wait. */
        hf_nsec probe_at;
        /* Counts the probes since a new waiter last had to wait, up to 3: reflector_backoff.c
         * chooses the next delay by this number. Leaves out a probe that is repeated at once,
         * because a thread began to wait too late for it. */
        unsigned probe_failures;
        /* Consistent lists begun so far. They are numbered from 1, so this is also the number of
         * the newest one. */
        uint64_t n_consistent_lists;
        struct hf__reflector_queue queue;
        /* The reflector has nothing to do, and no message has woken it yet. While this is false,
         * the reflector looks for messages again before it rests. */
        bool rests;
        bool stop;

        struct hf__informer_turn turn; /* guarded by the thread's mu */

        /* the reflector's thread only */
        struct hf__reflector reflector;
        hf_nsec resync_at; /* boot time of the next resync */
};
