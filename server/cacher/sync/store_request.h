/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The cacher and the registry send requests to the store through these functions, which
 *
 *      - measure the duration (etcd_request_duration_seconds),
 *      - count the requests, so that hfd_cacher_free can wait until all have ended,
 *      - compare each reply with the known identity of the store (store_identity.h), and with what
 *        the store's watch has delivered (store_lag.h), and
 *      - remember whether the store has room (store_room.h).
 *
 * Thread: any; never under the cacher's lock. Never blocks. `done` is called once, on a thread of
 * the store. The reply is borrowed until done returns. If a function does not return 0 (-ENOMEM, or
 * the store has refused the request at once), done is not called.
 */
#include <stdatomic.h>

#include <holdfast/metrics.h>

#include "server/cacher/sync/store_room.h"
#include "server/storage/store.h"

struct hfd_cacher;

/* The operations whose duration is measured. */
enum hfd_store_operation {
        HFD_STORE_GET,
        HFD_STORE_LIST,
        HFD_STORE_TXN,
        HFD_STORE_REVISION,
        HFD_STORE_N_OPERATIONS
};

/* The cacher's state for requests to the store. */
struct hfd_store_requests {
        struct hf_metric *metrics[HFD_STORE_N_OPERATIONS]; /* by operation; immutable */
        size_t n;                  /* running requests; guarded by the cacher's lock */
        atomic_llong last_contact; /* boot time of the store's last reply or event */
        struct hfd_store_room room;
};

/* Registers the metrics. */
void hfd_store_requests_init(struct hfd_store_requests *requests, const struct hf_host *host);

/* urgent: as in store.h. */
int hfd_store_request_get(struct hfd_cacher *cacher, const char *key, bool urgent, hf_nsec deadline,
                          hfd_store_fn done, void *ctx);
int hfd_store_request_list(struct hfd_cacher *cacher, const char *prefix, const char *start_key,
                           uint64_t revision, size_t limit, hf_nsec deadline, hfd_store_fn done,
                           void *ctx);
/* Lists keys without their values. */
int hfd_store_request_keys(struct hfd_cacher *cacher, const char *prefix, const char *start_key,
                           uint64_t revision, size_t limit, hf_nsec deadline, hfd_store_fn done,
                           void *ctx);
int hfd_store_request_txn(struct hfd_cacher *cacher, const struct hfd_txn *txn, hf_nsec deadline,
                          hfd_store_fn done, void *ctx);
int hfd_store_request_revision(struct hfd_cacher *cacher, hf_nsec deadline, hfd_store_fn done,
                               void *ctx);
