/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The lock port: what an elector needs of the place where its record lives, asynchronous.
 * lease_lock.c implements it over an API client, two_lease_lock.c over two of those. Callbacks come
 * on any thread, exactly once per operation, and only post to the elector's mailbox.
 */
#include <holdfast/error.h>
#include <holdfast/host.h>

#include "leader/record.h"

struct hf__lock;

struct hf__lock_reply {
        int result; /* as in HF__EV_READ_DONE and HF__EV_WRITE_DONE */
        hf_nsec retry_after;
        struct hf__record record; /* when result is 0 */
        struct hf_status status;  /* when it is not */
};
typedef void (*hf__lock_fn)(void *ctx, uint32_t op_id, const struct hf__lock_reply *reply);
typedef void (*hf__lock_watch_fn)(
        void *ctx, const struct hf__record *record); /* record NULL: the watch has ended */

struct hf__lock_ops {
        void (*read)(struct hf__lock *lock, uint32_t op_id, hf_nsec deadline);
        void (*write)(struct hf__lock *lock, uint32_t op_id, const struct hf__record *record,
                      hf_nsec deadline);
        void (*watch)(struct hf__lock *lock); /* (re)opens; a former watch's news no longer comes */
        void (*unwatch)(struct hf__lock *lock);
        void (*free)(struct hf__lock *lock); /* cancels all; after it no callback runs */
        /*
         * What the last write that succeeded in taking the lock gives to its term beyond the
         * Lease's own name and the record's revision: a second Lease in the fence, the revision
         * that a cache must reach. NULL: nothing.
         */
        void (*grant)(struct hf__lock *lock, struct hf_fence *fence,
                      char acquired_at[HF__REVISION_MAX]);
};

struct hf__lock {
        const struct hf__lock_ops *ops;
        hf__lock_fn done;            /* set by the elector before the first call */
        hf__lock_watch_fn on_record; /* likewise */
        void *ctx;
};

struct hf_elector_config;
/* The coordination.k8s.io/v1 Lease. config is borrowed for the call only; its client for the lock's
 * life. 0 or -errno. */
int hf__lease_lock_new(const struct hf_host *host, const struct hf_elector_config *config,
                       struct hf__lock **ret_lock);
/* The Leases config->migrate_from (old) and config->name (new) as one. Likewise; lease_duration: as
 * it is recorded. */
int hf__two_lease_lock_new(const struct hf_host *host, const struct hf_elector_config *config,
                           hf_nsec lease_duration, struct hf__lock **ret_lock);
