/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Every request to the store goes through here. It is measured (etcd_request_duration_seconds),
 * counted, so that freeing the cacher can wait for the last one, and its reply is compared with the
 * identity of the store that is known (store_identity.h).
 *
 * Thread: any; never under the cacher's lock. `done` is called once, on a thread of the store, with
 * a reply that is borrowed until it returns. When a function does not return 0 (-ENOMEM, or what
 * the store refused at once), done is not called.
 */
#include <stdatomic.h>

#include <holdfast/metrics.h>

#include "server/storage/store.h"

struct hfd_cacher;

/* The state, a part of the cacher. */
struct hfd_store_requests {
        struct hf_metric *metrics[4]; /* by operation; immutable */
        size_t n;                     /* under way; guarded by the cacher's lock */
        atomic_llong heard_at;        /* boot time of the store's last reply or event */
};

/* Registers the metrics. */
void hfd_store_requests_init(struct hfd_store_requests *requests, const struct hf_host *host);

int hfd_store_request_get(struct hfd_cacher *cacher, const char *key, hf_nsec deadline,
                          hfd_store_fn done, void *ctx);
int hfd_store_request_list(struct hfd_cacher *cacher, const char *prefix, const char *start_key,
                           uint64_t revision, size_t limit, hf_nsec deadline, hfd_store_fn done,
                           void *ctx);
/* A list without values. */
int hfd_store_request_keys(struct hfd_cacher *cacher, const char *prefix, const char *start_key,
                           uint64_t revision, size_t limit, hf_nsec deadline, hfd_store_fn done,
                           void *ctx);
int hfd_store_request_txn(struct hfd_cacher *cacher, const struct hfd_txn *txn, hf_nsec deadline,
                          hfd_store_fn done, void *ctx);
int hfd_store_request_revision(struct hfd_cacher *cacher, hf_nsec deadline, hfd_store_fn done,
                               void *ctx);
