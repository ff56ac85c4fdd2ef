/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The registry carries out the verbs of the API on a generic store, in the same way for every
 * resource. Kubernetes' apiserver has a component of the same name.
 *
 * A request (request.h) comes from HTTP (handlers/rest/rest.c) or from inside the process
 * (loopback.h). Reads are served from the cacher if possible. A write is normally one transaction
 * of the store, which compares the version that the cacher knows; after a conflict another one
 * follows. The differences between kinds are in the resource table and in the strategies
 * (resources/).
 *
 * Thread: base/registry_state.h says how the registry's members may be used. A request belongs to
 * one thread at a time: first the caller's, and later each thread that runs a callback of the
 * request. The store, the cacher, outbound calls and the pool run such callbacks. Nothing in
 * server/registry blocks, except freeing a loopback client or the registry.
 *
 * Invariants: every request except a watch gets exactly one response. If the response to a write is
 * a success, the store has committed the write, under the fence of the request if it has one. There
 * are two exceptions: a dry run commits nothing, and a write that changes nothing only compares.
 */
#include <stdbool.h>

#include "server/registry/base/registry_state.h"

struct hfd_outbound;
struct hfd_request;
struct hfd_response;
struct hfd_service_resolver;
struct hfd_watcher;
struct hfd_watch_sink;

/* Creates a registry and starts the threads of its pool. host and cacher outlive it. 0 or -errno.
 */
int hfd_registry_new(const struct hf_host *host, struct hfd_cacher *cacher,
                     struct hfd_registry **ret_registry);
/* Lets the registry call webhooks. outbound and services outlive it; services may be NULL. Call it
 * before the first request. */
void hfd_registry_use_webhooks(struct hfd_registry *registry, struct hfd_outbound *outbound,
                               const struct hfd_service_resolver *services);
/* Joins the pool's threads. The HTTP server and all loopback clients must be gone. Accepts NULL;
 * returns NULL. */
struct hfd_registry *hfd_registry_free(struct hfd_registry *registry);

/*
 * Carries out a request with any verb except watch. request->done is called once, on any thread,
 * perhaps before this returns. Thread: any.
 */
void hfd_registry_serve(struct hfd_registry *registry, struct hfd_request *request);
/*
 * Begins a watch. request has the verb HFD_WATCH. With sendInitialEvents the caller has waited
 * until the cacher has the state that the options require, and sends the bookmark after the initial
 * events. The selectors of request are moved to the watch, and the registry does not use the rest
 * after the call. request->done is never called. False: response contains the failure, and the sink
 * is never called. See hfd_watcher_new for the rest. Thread: any.
 */
bool hfd_registry_watch(struct hfd_registry *registry, struct hfd_request *request,
                        const struct hfd_watch_sink *sink, void *ctx, struct hfd_response *response,
                        struct hfd_watcher **ret_watcher);
