/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dispatches each request to the file that implements its verb: get (read.c), list (list.c),
 * create, update, patch and delete (write/), deletecollection (delete_collection.c), watch (the
 * cacher's watchers). A request to a subresource whose bodies are of another kind goes to parts/,
 * whatever its verb.
 *
 * Invariant: request->done is called exactly once for every verb except watch.
 */
#include "server/registry/registry.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "server/cacher/watch/watcher.h"
#include "server/pool/work_pool.h"
#include "server/registry/base/request.h"
#include "server/registry/delete_collection.h"
#include "server/registry/list/list.h"
#include "server/registry/list/read.h"
#include "server/registry/list/rendering.h"
#include "server/registry/parts/part.h"
#include "server/registry/write/steps/start.h"
#include "server/resources/forms/conversion.h"

/*
 * Two threads: one large step does not stop all lists. These threads are nice, so that the threads
 * that serve connections, and those of the elector, get more processor time when it is scarce. With
 * a nice value of 5, a small request beside large patches still waited twice as long as at rest.
 */
#define WORK_THREADS 2
#define WORK_NICE    15

HF__CLEANUP_DEFINE(registry_cleanup, struct hfd_registry *, hfd_registry_free)

/* Initializes the parts that are members of the struct and not pointers. hfd_registry_free needs
 * all of them, because it cannot see whether one is missing. 0, or -errno: none is initialized. */
static int init_locks(struct hfd_registry *registry) {
        int r = hfd_convert_turns_init(&registry->convert_turns);

        if (r != 0)
                return r;
        r = hfd_shared_table_init(&registry->shared);
        if (r == 0) {
                r = hfd_quota_turns_init(&registry->turns);
                if (r == 0)
                        return 0;
                hfd_shared_table_done(&registry->shared);
        }
        hfd_convert_turns_done(&registry->convert_turns);
        return r;
}

int hfd_registry_new(const struct hf_host *host, struct hfd_cacher *cacher,
                     struct hfd_registry **ret_registry) {
        HF__CLEANUP(hf__free_cleanup) struct hfd_registry *memory = malloc(sizeof *memory);

        if (!memory)
                return -ENOMEM;
        *memory = (struct hfd_registry){.host = host,
                                        .cacher = cacher,
                                        .prefix = hfd_cacher_prefix(cacher)};
        int r = init_locks(memory);
        if (r != 0)
                return r;
        HF__CLEANUP(registry_cleanup) struct hfd_registry *registry = HF__TAKE(memory);
        r = hfd_renderings_new(registry, &registry->renderings);
        if (r != 0)
                return r;
        r = hfd_work_pool_new(host, WORK_THREADS, WORK_NICE, &registry->work);
        if (r != 0)
                return r;
        *ret_registry = HF__TAKE(registry);
        return 0;
}

void hfd_registry_use_webhooks(struct hfd_registry *registry, struct hfd_outbound *outbound,
                               const struct hfd_service_resolver *services) {
        registry->outbound = outbound;
        registry->services = services;
}

struct hfd_registry *hfd_registry_free(struct hfd_registry *registry) {
        if (!registry)
                return NULL;
        /* Joins the threads of the pool first: their steps use the other parts. */
        hfd_work_pool_free(registry->work);
        hfd_renderings_free(registry->renderings);
        hfd_quota_turns_done(&registry->turns);
        hfd_shared_table_done(&registry->shared);
        hfd_convert_turns_done(&registry->convert_turns);
        free(registry);
        return NULL;
}

void hfd_registry_serve(struct hfd_registry *registry, struct hfd_request *request) {
        struct hfd_response response = {0};

        assert(request->resource && request->done);
        if (request->part_of && request->resource != request->part_of) {
                hfd_part_serve(registry, request, hfd_registry_serve);
                return;
        }
        switch (request->verb) {
        case HFD_GET: hfd_read_get(registry, request); return;
        case HFD_LIST: hfd_list(registry, request); return;
        case HFD_CREATE:
        case HFD_UPDATE:
        case HFD_PATCH:
        case HFD_DELETE_OBJECT: hfd_write_start(registry, request); return;
        case HFD_DELETE_COLLECTION: hfd_delete_collection(registry, request); return;
        case HFD_WATCH: break; /* a misuse: a watch begins with hfd_registry_watch */
        }
        hfd_response_not_allowed(&response);
        request->done(request, &response);
        hfd_response_done(&response);
}

bool hfd_registry_watch(struct hfd_registry *registry, struct hfd_request *request,
                        const struct hfd_watch_sink *sink, void *ctx, struct hfd_response *response,
                        struct hfd_watcher **ret_watcher) {
        struct hfd_options *options = &request->options;
        bool initial = options->has_send_initial && options->send_initial;
        const struct hfd_watcher_spec spec = {.resource = hfd_resource_stored(request->resource),
                                              .ns = request->ns,
                                              .name = request->name,
                                              .labels = &options->labels,
                                              .fields = &options->fields,
                                              /* With initial events the watch begins with all
                                               * current objects, so at no revision. */
                                              .revision = initial ? 0 : options->revision,
                                              .from_now = options->has_send_initial && !initial,
                                              .timeout_s = options->timeout_s,
                                              .bookmarks = options->bookmarks,
                                              .in_process = request->in_process};

        assert(request->verb == HFD_WATCH && request->resource);
        return hfd_watcher_new(registry->cacher, &spec, sink, ctx, response, ret_watcher);
}
