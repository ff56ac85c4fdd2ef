/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The informer of a kind.
 *
 * Invariant: the values of an index depend on the object only, because the informer computes them
 * once for each version of an object. The garbage collector finds the dependents of an owner by
 * HFD_OWNER_INDEX alone, so a missing value would hide a dependent.
 */
#include "server/controllers/kinds/kind_informer.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "server/controllers/kinds/definition_index.h"
#include "server/controllers/kinds/gc_filter.h"
#include "server/quota/quota_kind.h"

/*
 * Runs on an informer's thread for each object that is added or changed. Most objects have no
 * owner, and gc_filter.h tells for most of these that they need not be parsed.
 */
static void index_owners(void *ctx, const char *ns, const char *name, const char *object, size_t n,
                         struct hf_informer_values *values) {
        struct hf__json *json;

        if (!hfd_gc_filter_may_concern(object, n))
                return;
        int r = hf__json_parse(object, n, &json, NULL);
        if (r == -ENOMEM)
                hf_informer_values_fail(values);
        if (r != 0)
                return;
        for (const struct hf__json *m =
                     hf__json_first(hf__json_path(json, "metadata.ownerReferences"));
             m; m = hf__json_next(m)) {
                const char *uid = hf__json_string(m, "uid");
                if (uid)
                        (void)hf_informer_values_add(values, uid);
        }
        hf__json_free(json);
}

/* Searches the text instead of parsing it. A label or an annotation named "finalizers" also
 * matches, which does no harm: the readers of the index parse the object. */
static void index_finalizers(void *ctx, const char *ns, const char *name, const char *object,
                             size_t n, struct hf_informer_values *values) {
        static const char finalizers[] = "\"finalizers\"";

        if (memmem(object, n, finalizers, sizeof finalizers - 1))
                (void)hf_informer_values_add(values, ns);
}

/* Whether controllers read more than the metadata of the kind from its informer. Most comparisons
 * ignore the group, so a custom kind with the same plural is kept whole too; that only costs
 * memory. */
static bool is_kept_whole(const struct hf_resource *resource) {
        return (strcmp(resource->plural, "namespaces") == 0 && !*resource->group) ||
               strcmp(resource->plural, "workspaces") == 0 ||
               strcmp(resource->plural, "certificatesigningrequests") == 0 ||
               strcmp(resource->plural, "clusterroles") == 0 ||
               strcmp(resource->plural, "validatingadmissionpolicies") == 0 ||
               strcmp(resource->group, "flowcontrol.apiserver.k8s.io") == 0 ||
               strcmp(resource->plural, "apiservices") == 0;
}

/* Whether a controller needs an event also when only other parts than the metadata change. That is
 * so for quotas, because of their limits, and for kinds whose use of resources quotas measure. */
static bool needs_all_changes(const struct hf_resource *resource) {
        return (strcmp(resource->plural, "resourcequotas") == 0 && !*resource->group) ||
               hfd_quota_kind(resource->group, resource->plural) != HFD_QUOTA_OBJECTS;
}

bool hfd_kind_is_definitions(const struct hf_resource *resource) {
        return strcmp(resource->group, "apiextensions.k8s.io") == 0 &&
               strcmp(resource->plural, "customresourcedefinitions") == 0;
}

static int add_indexes(struct hf_informer *informer, const struct hfd_kind_row *row) {
        int r = hf_informer_add_index(informer, HFD_OWNER_INDEX, index_owners, NULL);

        return r == 0 && row->namespaced ? hf_informer_add_index(informer, HFD_FINALIZER_INDEX,
                                                                 index_finalizers, NULL)
                                         : r;
}

int hfd_kind_new_informer(const struct hfd_kind_sources *sources, const struct hfd_kind_row *row,
                          struct hf_informer **ret_informer) {
        bool metadata_only = !is_kept_whole(&row->resource);
        bool leaves_out = sources->metadata_client && metadata_only &&
                          !hfd_kind_is_definitions(&row->resource) &&
                          !needs_all_changes(&row->resource);
        const struct hf_informer_config informer_config =
                {.size = sizeof informer_config,
                 .client = leaves_out ? sources->metadata_client : sources->client,
                 .resource = row->resource,
                 .one_revision = true,
                 .metadata_only = metadata_only,
                 .thread = sources->thread};
        struct hf_informer *informer;
        int r = hf_informer_new(sources->host, &informer_config, &informer);

        if (r != 0)
                return r;
        r = add_indexes(informer, row);
        if (r == 0 && hfd_kind_is_definitions(&row->resource)) /* replaces metadata_only */
                r = hfd_definition_prepare_informer(informer);
        if (r != 0)
                hf_informer_free(informer);
        else
                *ret_informer = informer;
        return r;
}
