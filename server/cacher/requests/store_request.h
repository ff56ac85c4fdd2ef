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
#include <holdfast/clock.h>
#include <holdfast/host.h>

#include "server/storage/store.h"

struct hfd_cacher;
struct hfd_store_requests;

/* Registers the metrics. NULL: out of memory. */
struct hfd_store_requests *hfd_store_requests_new(const struct hf_host *host);
/* Requires that no request runs. Accepts NULL; returns NULL. */
struct hfd_store_requests *hfd_store_requests_free(struct hfd_store_requests *requests);
/* Call it when the cacher stops. Blocks until no request runs, which each one's deadline bounds. */
void hfd_store_requests_await_end(struct hfd_cacher *cacher);

/* The store has replied, or its watch has delivered events, at `now` (boot time). */
void hfd_store_requests_heard(struct hfd_cacher *cacher, hf_nsec now);
/* The boot time of the store's last reply or event; 0 = none yet. */
hf_nsec hfd_store_requests_last_contact(const struct hfd_cacher *cacher);
/* The boot time at which the store last refused a write because it is full; 0 = it has refused none
 * since the last put that succeeded. */
hf_nsec hfd_store_requests_full(const struct hfd_cacher *cacher);

/* The parameters are those of the store's operations (store.h); deadline is a boot time. */
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
