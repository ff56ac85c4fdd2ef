/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the index from the four kinds, on the thread of a feed (server/cacher/feed/feed.h). */
#include "server/authorization/index_feed.h"

#include <errno.h>
#include <stdlib.h>

#include "server/cacher/feed/feed.h"
#include "server/rbac/index.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"

#define PAUSE_MAX (500 * HF_NSEC_PER_MSEC)

struct hfd_index_feed {
        /* Immutable. */
        void (*on_index)(void *ctx, struct hfd_rbac_index *index);
        void *ctx;
        struct hfd_feed *feed; /* owned */
};

static const struct {
        const char *plural;
        enum hfd_rbac_kind kind;
} kinds[] = {{"clusterroles", HFD_RBAC_CLUSTER_ROLE},
             {"roles", HFD_RBAC_ROLE},
             {"clusterrolebindings", HFD_RBAC_CLUSTER_ROLE_BINDING},
             {"rolebindings", HFD_RBAC_ROLE_BINDING}};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

static const struct hfd_resource *find_resource(size_t i) {
        return hfd_resource_find(HFD_RBAC_API, "v1", kinds[i].plural);
}

bool hfd_index_feed_observes(const struct hfd_resource *resource) {
        for (size_t i = 0; i < N_KINDS; i++)
                if (resource == find_resource(i))
                        return true;
        return false;
}

struct adding {
        struct hfd_rbac_builder *builder;
        enum hfd_rbac_kind kind;
};

static int add_object(void *ctx, const char *ns, const char *name, const struct hf__json *object) {
        struct adding *adding = ctx;

        return hfd_rbac_builder_add(adding->builder, adding->kind, ns, name, object);
}

static int make(void *ctx, struct hfd_cacher *cacher) {
        struct hfd_index_feed *feed = ctx;
        struct hfd_rbac_builder *builder = hfd_rbac_builder_new();
        struct hfd_rbac_index *index;
        int r = builder ? 0 : -ENOMEM;

        for (size_t i = 0; i < N_KINDS && r == 0; i++) {
                struct adding adding = {builder, kinds[i].kind};
                r = hfd_feed_each(cacher, find_resource(i), add_object, &adding);
        }
        if (r != 0) {
                hfd_rbac_builder_free(builder);
                return r;
        }
        index = hfd_rbac_builder_finish(builder);
        if (!index)
                return -ENOMEM;
        feed->on_index(feed->ctx, index);
        return 0;
}

int hfd_index_feed_new(const struct hf_host *host, struct hfd_cacher *cacher,
                       void (*on_index)(void *ctx, struct hfd_rbac_index *index), void *ctx,
                       struct hfd_index_feed **ret_feed) {
        struct hfd_index_feed *feed = calloc(1, sizeof *feed);

        if (!feed)
                return -ENOMEM;
        *feed = (struct hfd_index_feed){.on_index = on_index, .ctx = ctx};
        const struct hfd_feed_config config = {.cacher = cacher,
                                               .thread = "hf-rbac",
                                               .component = "authorization",
                                               .pause_max = PAUSE_MAX,
                                               .make = make,
                                               .ctx = feed};
        int r = hfd_feed_new(host, &config, &feed->feed);
        if (r != 0)
                free(feed);
        else
                *ret_feed = feed;
        return r;
}

void hfd_index_feed_stop(struct hfd_index_feed *feed) {
        if (feed)
                hfd_feed_stop(feed->feed);
}

struct hfd_index_feed *hfd_index_feed_free(struct hfd_index_feed *feed) {
        if (!feed)
                return NULL;
        hfd_feed_free(feed->feed);
        free(feed);
        return NULL;
}

void hfd_index_feed_wake(struct hfd_index_feed *feed) { hfd_feed_wake(feed->feed); }
