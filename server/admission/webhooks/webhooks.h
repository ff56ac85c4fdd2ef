/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The two plug-ins that call webhooks: MutatingAdmissionWebhook and ValidatingAdmissionWebhook.
 *
 * matchConditions are evaluated at once. If they turn out to be expensive, the evaluation goes on
 * on the pool of threads.
 *
 * A request that waits for a webhook holds no thread. At most max_calls calls of one webhook are
 * under way. So a webhook that hangs holds at most that many of the places for writing requests
 * (--max-mutating-requests-inflight), and other requests still find a place. A request beyond that
 * is refused with 429, whatever the failurePolicy is.
 */
#include <holdfast/host.h>

#include "server/admission/admission.h"

struct hfd_outbound;
struct hfd_service_resolver;
struct hfd_webhooks;
struct hfd_work_pool;

struct hfd_webhooks_config {
        /* All are borrowed while the feed (admission_feed.h) runs or a request is served. */
        struct hfd_cacher *cacher;
        struct hfd_outbound *outbound;
        struct hfd_work_pool *pool;                  /* for expensive matchConditions */
        const struct hfd_service_resolver *services; /* NULL = each by its DNS name */
        size_t max_calls;                            /* of one webhook; at least 1 */
};

/* host outlives the plug-in. 0 or -errno. */
int hfd_webhooks_new(const struct hf_host *host, const struct hfd_webhooks_config *config,
                     bool mutating, struct hfd_webhooks **ret_webhooks);
/* Call it when no admission is under way and the feed (admission_feed.h) is stopped. Accepts NULL,
 * returns NULL. */
struct hfd_webhooks *hfd_webhooks_free(struct hfd_webhooks *webhooks);
/* The plug-in for a chain. Its ctx is webhooks. */
struct hfd_admission_plugin hfd_webhooks_plugin(struct hfd_webhooks *webhooks);
