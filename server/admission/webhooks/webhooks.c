/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates the two plug-ins that call webhooks, and replaces their indexes of webhooks when a
 * configuration has changed.
 *
 * Invariants: while there are no webhooks (`any` is false), a request does not take the lock. An
 * index is freed outside the lock, by whoever drops its last reference: a request that has begun
 * with the old index ends with it.
 */
#include "server/admission/webhooks/webhooks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/thread.h"
#include "server/admission/webhooks/webhook_call.h"

int hfd_webhooks_new(const struct hf_host *host, const struct hfd_webhooks_config *config,
                     bool mutating, struct hfd_webhooks **ret_webhooks) {
        struct hfd_webhooks *webhooks = calloc(1, sizeof *webhooks);

        assert(config->max_calls > 0);
        if (!webhooks)
                return -ENOMEM;
        webhooks->host = host;
        webhooks->config = *config;
        webhooks->mutating = mutating;
        int r = hf__mutex_init(&webhooks->mu);
        if (r != 0)
                free(webhooks);
        else
                *ret_webhooks = webhooks;
        return r;
}

struct hfd_webhooks *hfd_webhooks_free(struct hfd_webhooks *webhooks) {
        if (!webhooks)
                return NULL;
        hfd_webhook_index_unref(webhooks->index);
        pthread_mutex_destroy(&webhooks->mu);
        free(webhooks);
        return NULL;
}

struct hfd_webhook_index *hfd_webhooks_index(struct hfd_webhooks *webhooks) {
        pthread_mutex_lock(&webhooks->mu);
        struct hfd_webhook_index *index = hfd_webhook_index_ref(webhooks->index);
        pthread_mutex_unlock(&webhooks->mu);
        return index;
}

static bool wants_request(void *ctx, const struct hfd_admission_attributes *of) {
        struct hfd_webhooks *webhooks = ctx;

        if (!atomic_load_explicit(&webhooks->any, memory_order_acquire) ||
            hfd_admission_is_configuration(of))
                return false;
        struct hfd_webhook_index *index = hfd_webhooks_index(webhooks);
        assert(index); /* `any` was set after it */
        bool wanted = hfd_webhook_index_wants(index, of);
        hfd_webhook_index_unref(index);
        return wanted;
}

/* `any` is set after the index, so whoever reads true finds an index. admission_feed.h never calls
 * this twice at the same time, so no other thread replaces the index meanwhile: webhooks->index is
 * still the index to which `old` is a second reference, and nothing is freed under the lock. */
static int refresh_index(void *ctx) {
        struct hfd_webhooks *webhooks = ctx;
        struct hfd_webhook_index *index = NULL, *old = hfd_webhooks_index(webhooks);
        const char *plural = webhooks->mutating ? "mutatingwebhookconfigurations"
                                                : "validatingwebhookconfigurations";
        int r = hfd_webhook_index_new(webhooks->config.cacher, plural, webhooks->config.services,
                                      old, &index);

        if (r == 0) {
                pthread_mutex_lock(&webhooks->mu);
                assert(index);
                hfd_webhook_index_unref(webhooks->index);
                webhooks->index = index;
                pthread_mutex_unlock(&webhooks->mu);
                atomic_store_explicit(&webhooks->any, index->n > 0, memory_order_release);
        }
        hfd_webhook_index_unref(old);
        return r;
}

struct hfd_admission_plugin hfd_webhooks_plugin(struct hfd_webhooks *webhooks) {
        bool mutating = webhooks->mutating;

        return (struct hfd_admission_plugin){.name = mutating ? "MutatingAdmissionWebhook"
                                                              : "ValidatingAdmissionWebhook",
                                             .ctx = webhooks,
                                             .wants = wants_request,
                                             .mutate = mutating ? hfd_webhooks_mutate : NULL,
                                             .validate = mutating ? NULL : hfd_webhooks_validate,
                                             .refresh = refresh_index};
}
