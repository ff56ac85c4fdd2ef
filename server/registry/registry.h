/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The registry: the verbs of the API over a generic store, for every resource alike. Named as in
 * Kubernetes' apiserver.
 *
 * A request (request.h) comes from HTTP (handlers/rest.c) or from inside the process (loopback.h).
 * Reads are answered from the cacher. A write is one transaction of the store, which compares the
 * version that the cacher knows. What is particular to a kind is in its row of the resource table
 * and in its strategy (resources/).
 *
 * Thread: the registry is immutable after new, and has no lock and no thread of its own. A request
 * belongs to one thread at a time; the cacher and the store hand it from one to the next. Nothing
 * here blocks, except freeing a loopback client.
 *
 * Invariants: every request is answered exactly once. A write that is answered with success has
 * been committed by the store, under the fence that the request names, if any.
 */
#include <stdbool.h>

#include <holdfast/host.h>

#include "server/cacher/cacher.h"

/* How long a request may take, and a deletecollection, unless the caller has set a deadline. */
#define HFD_REGISTRY_DEADLINE      (10 * HF_NSEC_PER_SEC)
#define HFD_REGISTRY_MANY_DEADLINE (60 * HF_NSEC_PER_SEC)

struct hfd_request;
struct hfd_response;
struct hfd_watcher;
struct hfd_watcher_sink;

struct hfd_registry {
        const struct hf_host *host; /* borrowed */
        struct hfd_cacher *cacher;  /* borrowed */
        const char *prefix;         /* of all keys: "/registry"; borrowed from the cacher */
};

/* host and cacher outlive the registry. 0 or -ENOMEM. */
int hfd_registry_new(const struct hf_host *host, struct hfd_cacher *cacher,
                     struct hfd_registry **ret_registry);
/* The HTTP server and all loopback clients must be gone. Accepts NULL; returns NULL. */
struct hfd_registry *hfd_registry_free(struct hfd_registry *registry);

/*
 * Carries out a request of any verb but watch. request->done is called once, on any thread, perhaps
 * before this returns. Thread: any.
 */
void hfd_registry_serve(struct hfd_registry *registry, struct hfd_request *request);
/*
 * Begins a watch. request has the verb HFD_WATCH; its selectors are taken over, and the rest of it
 * is not needed after the call. request->done is never called. False: response says why not, and
 * the sink is never called. Otherwise as hfd_watcher_new. Thread: any.
 */
bool hfd_registry_watch(struct hfd_registry *registry, struct hfd_request *request,
                        const struct hfd_watcher_sink *sink, void *ctx,
                        struct hfd_response *response, struct hfd_watcher **ret_watcher);

/* The boot time, in which deadlines are given. */
static inline hf_nsec hfd_registry_now(const struct hfd_registry *registry) {
        return hf_now(hf_host_clock(registry->host));
}
