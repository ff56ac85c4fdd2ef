/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The API: registry-driven resources over a store, seen through HTTP (hfd_api_handle) or in process
 * (the loopback client).
 *
 * A resource is a table row (resource.h). Reads are served from the watch cache, whose entries are
 * the very bytes that are sent; consistent reads ask the store for its revision, readers sharing a
 * probe that is not yet sent; writes are one transaction. Nothing here blocks, all completions come
 * on the store's or the caller's thread.
 *
 * Thread: any, for all functions but new, start, free.
 */
#include <stdbool.h>

#include <holdfast/client.h>

#include "server/auth/auth.h"
#include "server/http/http.h"
#include "server/storage/store.h"

struct hfd_api;

struct hfd_api_config {
        struct hfd_store *store; /* borrowed */
        const char *prefix;      /* "/registry"; copied */
        /*
         * The store's history turned out to be another one (a restored backup, another cluster):
         * whoever leads by it must stop. Any thread, must not block; NULL = nobody is told.
         */
        void (*on_history_replaced)(void *ctx);
        void *ctx;
        struct hfd_auth *auth; /* borrowed, may be NULL: the filters authorize */
};

int hfd_api_new(const struct hf_host *host, const struct hfd_api_config *config,
                struct hfd_api **ret_api);
/* Begins to fill the watch cache: list, then watch, with retries and backoff for ever. Returns at
 * once. */
int hfd_api_start(struct hfd_api *api);
bool hfd_api_synced(struct hfd_api *api); /* the first list is in */
/* Blocks until synced, or token fires: HF_E_CANCELED with the last failure's words in
 * reterr_status. */
int hfd_api_wait_synced(struct hfd_api *api, struct hf_cancel *token,
                        struct hf_status *reterr_status);
/* When the store answered last (boot time): for the etcd health check. */
hf_nsec hfd_api_store_heard_at(struct hfd_api *api);
/* Ends every watch cleanly (their clients watch again elsewhere); further ones are refused with
 * 503. */
void hfd_api_end_watches(struct hfd_api *api);
struct hfd_api *
hfd_api_free(struct hfd_api *api); /* after the HTTP server and the loopback clients are gone */

/* The handler for /api, /api/..., /apis, /apis/... and /openapi/...; it authorizes nothing itself,
 * the filters have (filters.h). */
void hfd_api_handle(void *api, struct hfd_http_request *request);

/* An in-process client with the rights of system:masters; fences are compared as over HTTP, and
 * always echoed. */
int hfd_api_loopback(struct hfd_api *api, struct hf_client **ret_client);
