/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the index of rights from four kinds: Roles, ClusterRoles and their bindings.
 *
 * Invariant: an index has all objects of the four kinds that can be parsed, or it is not made: with
 * a part of them it would refuse users who have the right. All four kinds are read at the same
 * revision, unless the cacher cannot restore their state at it (hfd_feed_each): a new binding to a
 * role that was narrowed before must not grant what the role granted once. A binding to a role that
 * does not exist grants nothing until the role exists.
 */
#include "server/authorization/role_index.h"

#include <errno.h>

#include "server/cacher/feed/feed.h"
#include "server/rbac/index.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"

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

bool hfd_role_index_observes(const struct hfd_resource *resource) {
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

int hfd_role_index_make(struct hfd_cacher *cacher, struct hfd_rbac_index **ret_index) {
        struct hfd_rbac_builder *builder = hfd_rbac_builder_new();
        uint64_t revision = 0;
        int r = builder ? 0 : -ENOMEM;

        for (size_t i = 0; i < N_KINDS && r == 0; i++) {
                struct adding adding = {builder, kinds[i].kind};
                r = hfd_feed_each(cacher, find_resource(i), &revision, add_object, &adding);
        }
        if (r != 0) {
                hfd_rbac_builder_free(builder);
                return r;
        }
        *ret_index = hfd_rbac_builder_finish(builder);
        return *ret_index ? 0 : -ENOMEM;
}
