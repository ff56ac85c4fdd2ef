/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of the etcd store share: the endpoints and which of them is in use, and how etcd's
 * errors become ours.
 */
#include <stdatomic.h>
#include <stddef.h>

#include "base/http/engine.h"
#include "server/storage/etcd/codec.h"
#include "server/storage/store.h"

#define HFD_ETCD_LANE_CALLS 0
#define HFD_ETCD_LANE_LEASE 1 /* a renewal does not queue behind a list */
#define HFD_ETCD_LANE_WATCH 2 /* a watch that pours does not delay a transaction */

#define HFD_ETCD_BODY_MAX                                                                          \
        (512u * 1024 *                                                                             \
         1024) /* of one answer; etcd is trusted, a broken one is not followed into the swap */
#define HFD_ETCD_URL_MAX 512

struct hfd_etcd {
        struct hfd_store store;
        /* immutable */
        struct hf__http_engine *engine; /* owned */
        struct hf__http_tls *tls;       /* owned; NULL = none needed */
        char (*endpoints)[HFD_ETCD_URL_MAX];
        size_t n_endpoints;
        /* any thread */
        _Atomic size_t current; /* the endpoint in use: the last that was not seen to fail */
};

struct hfd_etcd *hfd_etcd_of(struct hfd_store *store);
size_t hfd_etcd_endpoint(struct hfd_etcd *etcd);
/* `endpoint` failed: use the next one, unless another request has moved on already. */
void hfd_etcd_move_on(struct hfd_etcd *etcd, size_t endpoint);
/* Fills in what every request to that endpoint has in common; url has HFD_ETCD_URL_MAX + 64 bytes.
 */
void hfd_etcd_request(struct hfd_etcd *etcd, size_t endpoint, const char *path, char *url,
                      struct hf__http_request *request);

/*
 * The outcome of a request that got no good answer, by the engine's outcome, the HTTP status and
 * the gRPC status. unknown: it may have been done, so whatever does not say for certain that it was
 * not is HF_E_TIMEOUT. Never 0.
 */
int hfd_etcd_error(const struct hf__http_result *result, bool unknown, const char *endpoint,
                   struct hf_status *reterr_status);

int hfd_etcd_get(struct hfd_store *store, const char *key, hf_nsec deadline, hfd_store_fn done,
                 void *ctx);
int hfd_etcd_list(struct hfd_store *store, const char *prefix, const char *start_key,
                  uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                  hfd_store_fn done, void *ctx);
int hfd_etcd_txn(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                 hfd_store_fn done, void *ctx);
int hfd_etcd_compact(struct hfd_store *store, uint64_t revision, hf_nsec deadline,
                     hfd_store_fn done, void *ctx);
int hfd_etcd_revision(struct hfd_store *store, hf_nsec deadline, hfd_store_fn done, void *ctx);
int hfd_etcd_watch(struct hfd_store *store, const char *begin, const char *end, uint64_t revision,
                   const struct hfd_watch_handler *handler, void *ctx, uint64_t *ret_id);
void hfd_etcd_watch_cancel(struct hfd_store *store, uint64_t id);
