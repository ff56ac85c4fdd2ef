/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The feed that makes the plug-ins of admission read their configuration again.
 *
 * Invariant: chain->ready becomes true after the first refresh of all plug-ins that succeeds, and
 * stays true: a plug-in whose later refresh fails keeps its old index, which is better than none.
 */
#include "server/admission/admission_feed.h"

#include <stdatomic.h>
#include <string.h>

#include "server/admission/admission.h"
#include "server/cacher/feed/feed.h"

/* Many objects may change at once, for example when a chart is installed. They share a refresh. */
#define PAUSE_MAX (300 * HF_NSEC_PER_MSEC)

bool hfd_admission_feed_observes(const struct hfd_resource *resource) {
        return strcmp(resource->group, HFD_ADMISSION_GROUP) == 0;
}

/* Refreshes all plug-ins. 0, or what the last failing one returned. */
static int refresh_chain(void *ctx, struct hfd_cacher *cacher) {
        struct hfd_admission_chain *chain = ctx;
        int result = 0;

        (void)cacher; /* the plug-ins know it */
        for (size_t i = 0; i < chain->n_plugins; i++) {
                const struct hfd_admission_plugin *plugin = &chain->plugins[i];
                int r = plugin->refresh ? plugin->refresh(plugin->ctx) : 0;
                if (r != 0)
                        result = r;
        }
        if (result == 0)
                atomic_store(&chain->ready, true);
        return result;
}

int hfd_admission_feed_new(const struct hf_host *host, struct hfd_admission_chain *chain,
                           struct hfd_cacher *cacher, struct hfd_feed **ret_feed) {
        const struct hfd_feed_config config = {.cacher = cacher,
                                               .thread = "hf-admission",
                                               .component = "admission",
                                               .pause_max = PAUSE_MAX,
                                               .make = refresh_chain,
                                               .ctx = chain};

        return hfd_feed_new(host, &config, ret_feed);
}
