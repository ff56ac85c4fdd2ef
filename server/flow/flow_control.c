/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current index, the thread that builds the next one, and the levels.
 *
 * Invariants: from hfd_flow_control_new on there is an index. Whoever takes a reference through the
 * member `index` holds mu, so that the index cannot be replaced and freed in between.
 */
#include "server/flow/flow_control.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "server/cacher/cacher.h"
#include "server/cacher/feed/feed.h"
#include "server/flow/flow_levels.h"
#include "server/resources/custom/custom_table.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/strategies/flow/flow_objects.h"

/* After a build, further changes wait for this time at most, and share the next build: at a first
 * start all FlowSchemas are created one after another. Meanwhile requests are classified by the
 * previous index. Kubernetes promises no more, because its informers are behind, too. */
#define PAUSE_MAX (500 * HF_NSEC_PER_MSEC)

struct hfd_flow_control {
        /* Immutable after start. */
        const struct hf_host *host;     /* borrowed */
        struct hfd_flow_levels *levels; /* owned */
        struct hfd_feed *feed;          /* owned; NULL = not started */
        /* Borrowed; NULL = not started, or stopped. */
        _Atomic(struct hfd_cacher *) cacher;
        /* Guarded by mu. */
        pthread_mutex_t mu;
        /* An owned reference; NULL only while hfd_flow_control_new runs. Its address may be
         * compared without mu. */
        _Atomic(struct hfd_flow_index *) index;
};

static const struct hfd_resource *find_flow_resource(const char *plural) {
        return hfd_resource_find(HFD_FLOW_GROUP, "v1", plural);
}

bool hfd_flow_control_observes(const struct hfd_resource *resource) {
        return resource == find_flow_resource(HFD_FLOW_SCHEMAS_PLURAL) ||
               resource == find_flow_resource(HFD_FLOW_LEVELS_PLURAL);
}

/* Makes an index of the mandatory objects only, because the stored ones are not known yet. 0 or
 * -ENOMEM. */
static int make_first(struct hfd_flow_control *flow) {
        struct hfd_flow_builder *builder = hfd_flow_builder_new();

        return builder ? hfd_flow_control_use(flow, builder) : -ENOMEM;
}

HF__CLEANUP_DEFINE(flow_cleanup, struct hfd_flow_control *, hfd_flow_control_free)

int hfd_flow_control_new(const struct hf_host *host, unsigned seats,
                         struct hfd_flow_control **ret_flow) {
        HF__CLEANUP(hf__free_cleanup) struct hfd_flow_control *memory = calloc(1, sizeof *memory);

        if (!memory)
                return -ENOMEM;
        memory->host = host;
        int r = hf__mutex_init(&memory->mu);
        if (r != 0)
                return r;
        HF__CLEANUP(flow_cleanup) struct hfd_flow_control *flow = HF__TAKE(memory);
        r = hfd_flow_levels_new(host, seats, &flow->levels);
        if (r != 0)
                return r;
        r = make_first(flow);
        if (r != 0)
                return r;
        *ret_flow = HF__TAKE(flow);
        return 0;
}

void hfd_flow_control_stop(struct hfd_flow_control *flow) {
        if (!flow)
                return;
        hfd_feed_stop(flow->feed); /* first: its thread changes the levels */
        hfd_flow_levels_stop(flow->levels);
        atomic_store(&flow->cacher, NULL);
}

struct hfd_flow_control *hfd_flow_control_free(struct hfd_flow_control *flow) {
        if (!flow)
                return NULL;
        hfd_flow_control_stop(flow);
        assert(!atomic_load(&flow->cacher));
        flow->feed = hfd_feed_free(flow->feed);
        hfd_flow_index_unref(flow->index); /* before the levels to which it refers */
        hfd_flow_levels_free(flow->levels);
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

int hfd_flow_control_use(struct hfd_flow_control *flow, struct hfd_flow_builder *builder) {
        struct hfd_flow_index *index = hfd_flow_builder_finish(builder, flow->levels);

        if (!index)
                return -ENOMEM;
        pthread_mutex_lock(&flow->mu);
        struct hfd_flow_index *old = atomic_load_explicit(&flow->index, memory_order_relaxed);
        atomic_store_explicit(&flow->index, index, memory_order_relaxed);
        pthread_mutex_unlock(&flow->mu);
        hfd_flow_index_unref(old);
        return 0;
}

static int make_index(void *ctx, struct hfd_cacher *cacher) {
        struct hfd_flow_control *flow = ctx;
        struct hfd_flow_builder *builder = hfd_flow_builder_new();
        uint64_t revision = 0;
        int r = builder ? 0 : -ENOMEM;

        if (r == 0)
                r = hfd_feed_each(cacher, find_flow_resource(HFD_FLOW_LEVELS_PLURAL), &revision,
                                  add_level, builder);
        if (r == 0)
                r = hfd_feed_each(cacher, find_flow_resource(HFD_FLOW_SCHEMAS_PLURAL), &revision,
                                  add_schema, builder);
        if (r != 0) {
                hfd_flow_builder_free(builder);
                return r;
        }
        return hfd_flow_control_use(flow, builder);
}

int hfd_flow_control_start(struct hfd_flow_control *flow, struct hfd_cacher *cacher) {
        const struct hfd_feed_config config = {.cacher = cacher,
                                               .thread = "hf-flow",
                                               .component = "flow-control",
                                               .pause_max = PAUSE_MAX,
                                               .make = make_index,
                                               .ctx = flow};

        if (!flow)
                return 0;
        assert(cacher && !flow->feed);
        atomic_store(&flow->cacher, cacher);
        int r = hfd_flow_levels_start(flow->levels);
        return r == 0 ? hfd_feed_new(flow->host, &config, &flow->feed) : r;
}

void hfd_flow_control_changed(struct hfd_flow_control *flow) {
        if (flow && flow->feed)
                hfd_feed_wake(flow->feed);
}

/* The caller has a reference, so no other index can have the same address. Therefore equal
 * addresses mean the same index. */
bool hfd_flow_control_has(const struct hfd_flow_control *flow, const struct hfd_flow_index *index) {
        return flow && atomic_load_explicit(&flow->index, memory_order_relaxed) == index;
}

struct hfd_flow_index *hfd_flow_control_index(struct hfd_flow_control *flow) {
        if (!flow)
                return NULL;
        pthread_mutex_lock(&flow->mu);
        assert(flow->index); /* there is one from hfd_flow_control_new on */
        struct hfd_flow_index *index = hfd_flow_index_ref(flow->index);
        pthread_mutex_unlock(&flow->mu);
        return index;
}

struct hfd_flow_levels *hfd_flow_control_levels(struct hfd_flow_control *flow) {
        return flow->levels;
}

size_t hfd_flow_control_objects(struct hfd_flow_control *flow, const char *group,
                                const char *version, const char *resource) {
        struct hfd_cacher *cacher = flow ? atomic_load(&flow->cacher) : NULL;

        if (!cacher)
                return 0;
        const struct hfd_resource *found =
                hfd_custom_table_find(hfd_cacher_table(cacher), group, version, resource);
        size_t n = found ? hfd_cacher_count(cacher, found) : 0;
        hfd_resource_unref(found);
        return n;
}
