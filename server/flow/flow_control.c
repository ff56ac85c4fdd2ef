/* SPDX-License-Identifier: Apache-2.0 */
/* The current index, and the thread that builds the next one. */
#include "server/flow/flow_control.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/cacher/feed.h"
#include "server/resources/resource.h"
#include "server/resources/strategies/flow/flow_objects.h"

#define PAUSE_MAX (500 * HF_NSEC_PER_MSEC)

struct hfd_flow_control {
        /* Immutable after start. */
        const struct hf_host *host; /* borrowed */
        struct hfd_feed *feed;      /* owned; NULL = not started */
        /* Guarded by mu. */
        pthread_mutex_t mu;
        /* An owned reference; NULL = there is none yet. Without mu its address may be compared. */
        _Atomic(struct hfd_flow_index *) index;
};

static const struct hfd_resource *find_resource(const char *plural) {
        return hfd_resource_find(HFD_FLOW_GROUP, "v1", plural);
}

bool hfd_flow_control_observes(const struct hfd_resource *resource) {
        return resource == find_resource(HFD_FLOW_SCHEMAS_PLURAL) ||
               resource == find_resource(HFD_FLOW_LEVELS_PLURAL);
}

int hfd_flow_control_new(const struct hf_host *host, struct hfd_flow_control **ret_flow) {
        struct hfd_flow_control *flow = calloc(1, sizeof *flow);

        if (!flow)
                return -ENOMEM;
        flow->host = host;
        int r = hf__mutex_init(&flow->mu);
        if (r != 0)
                free(flow);
        else
                *ret_flow = flow;
        return r;
}

void hfd_flow_control_stop(struct hfd_flow_control *flow) {
        if (flow)
                hfd_feed_stop(flow->feed);
}

struct hfd_flow_control *hfd_flow_control_free(struct hfd_flow_control *flow) {
        if (!flow)
                return NULL;
        flow->feed = hfd_feed_free(flow->feed);
        hfd_flow_index_unref(flow->index);
        pthread_mutex_destroy(&flow->mu);
        free(flow);
        return NULL;
}

/* ---- the index ---- */

static int add_level(void *ctx, const char *ns, const char *name, const struct hf__json *object) {
        return hfd_flow_builder_add_level(ctx, object);
}

static int add_schema(void *ctx, const char *ns, const char *name, const struct hf__json *object) {
        return hfd_flow_builder_add_schema(ctx, object);
}

static int make(void *ctx, struct hfd_cacher *cacher) {
        struct hfd_flow_control *flow = ctx;
        struct hfd_flow_builder *builder = hfd_flow_builder_new();
        int r = builder ? 0 : -ENOMEM;

        if (r == 0)
                r = hfd_feed_each(cacher, find_resource(HFD_FLOW_LEVELS_PLURAL), add_level,
                                  builder);
        if (r == 0)
                r = hfd_feed_each(cacher, find_resource(HFD_FLOW_SCHEMAS_PLURAL), add_schema,
                                  builder);
        if (r != 0) {
                hfd_flow_builder_free(builder);
                return r;
        }
        struct hfd_flow_index *index = hfd_flow_builder_finish(builder);
        if (!index)
                return -ENOMEM;
        pthread_mutex_lock(&flow->mu);
        struct hfd_flow_index *old = atomic_load_explicit(&flow->index, memory_order_relaxed);
        atomic_store_explicit(&flow->index, index, memory_order_relaxed);
        pthread_mutex_unlock(&flow->mu);
        hfd_flow_index_unref(old);
        return 0;
}

int hfd_flow_control_start(struct hfd_flow_control *flow, struct hfd_cacher *cacher) {
        const struct hfd_feed_config config = {.cacher = cacher,
                                               .thread = "hf-flow",
                                               .component = "flow-control",
                                               .pause_max = PAUSE_MAX,
                                               .make = make,
                                               .ctx = flow};

        return !flow ? 0 : hfd_feed_new(flow->host, &config, &flow->feed);
}

void hfd_flow_control_changed(struct hfd_flow_control *flow) {
        if (flow && flow->feed)
                hfd_feed_wake(flow->feed);
}

/* The current index keeps its address for itself until it is replaced, and so does the index of the
 * caller. So equal addresses mean the same index. */
bool hfd_flow_control_has(const struct hfd_flow_control *flow, const struct hfd_flow_index *index) {
        return flow && atomic_load_explicit(&flow->index, memory_order_relaxed) == index;
}

struct hfd_flow_index *hfd_flow_control_index(struct hfd_flow_control *flow) {
        if (!flow)
                return NULL;
        pthread_mutex_lock(&flow->mu);
        struct hfd_flow_index *index = hfd_flow_index_ref(flow->index);
        pthread_mutex_unlock(&flow->mu);
        return index;
}
