/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The lock port: how an elector reads, writes and watches its record. lease_lock.c implements it
 * with one Lease behind an API client, two_lease_lock.c with two such locks.
 *
 * Reads, writes and watches are asynchronous. The elector loop starts them (two_lease_lock.c starts
 * reads and writes of its two locks on any thread). No function blocks, except that `free` waits
 * for callbacks. Callbacks come on any thread, possibly before the starting function has returned:
 * exactly one reply to each read or write (none once the lock is freed), and any number of records
 * from a watch. A callback must not block. (The elector's callbacks only post a message to its
 * loop.)
 */
#include <holdfast/error.h>
#include <holdfast/host.h>

#include "leader/record.h"

struct hf__lock;

struct hf__lock_reply {
        int result;               /* as for HF__EV_READ_DONE and HF__EV_WRITE_DONE (core.h) */
        hf_nsec retry_after;      /* the server's Retry-After; 0 = none */
        struct hf__record record; /* if result is 0 */
        struct hf_status status;  /* if result is not 0 */
};
typedef void (*hf__lock_reply_fn)(void *ctx, uint32_t op_id, const struct hf__lock_reply *reply);
/* record: borrowed; NULL = the watch has ended, could not be opened, or has lost an event: open
 * another one */
typedef void (*hf__lock_watch_fn)(void *ctx, const struct hf__record *record);

struct hf__lock_ops {
        void (*read)(struct hf__lock *lock, uint32_t op_id, hf_nsec deadline);
        /* record.exists = false: create the Lease; true: update it at revision record.rv. */
        void (*write)(struct hf__lock *lock, uint32_t op_id, const struct hf__record *record,
                      hf_nsec deadline);
        /* Opens the watch. A watch that is already open is replaced. The old watch reports nothing
         * more, except through a callback that has begun. */
        void (*watch)(struct hf__lock *lock);
        void (*unwatch)(struct hf__lock *lock);
        /* Cancels everything under way, and waits for the callbacks that run at this moment. After
         * it has returned no callback runs. Thread: the one that frees the electors. */
        void (*free)(struct hf__lock *lock);
        /*
         * If not NULL, called after a successful acquire, before the controllers of the term start;
         * not for an elector without leader-only controllers. For a lock of two Leases: adds the
         * second Lease to the fence, and replaces acquired_at by the revision that caches must
         * reach.
         */
        void (*grant)(struct hf__lock *lock, struct hf_fence *fence,
                      char acquired_at[HF__REVISION_MAX]);
        /* If not NULL: copies the description of the process that wrote the record of this holder
         * and acquire time (lease_record.h). False: it is not known, or has more than max - 1
         * bytes. */
        bool (*process)(struct hf__lock *lock, const char *holder, int64_t acquire_us,
                        char *process, size_t max);
};

struct hf__lock {
        const struct hf__lock_ops *ops;
        hf__lock_reply_fn on_reply;  /* set by the lock's owner before the first operation */
        hf__lock_watch_fn on_record; /* likewise */
        void *ctx;                   /* passed to both */
};
