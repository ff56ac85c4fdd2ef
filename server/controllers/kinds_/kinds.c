/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controllers' kinds and their informers.
 *
 * Invariant: the values of an index depend on the object only, because the informer computes them
 * once for each version of an object. The garbage collector finds the dependents of an owner by
 * HFD_OWNER_INDEX alone, so a missing value would hide a dependent.
 */
#include "server/controllers/kinds.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "server/controllers/garbage/gc_core.h"

/*
 * Runs on an informer's thread for each object that is added or changed. Most objects have no
 * owner, so only those that may have one are parsed.
 */
static void index_owners(void *ctx, const char *ns, const char *name, const char *object, size_t n,
                         struct hf_informer_values *values) {
        struct hf__json *json;

        if (!hfd_gc_may_concern(object, n))
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
 * matches, which does no harm: whoever reads the index parses the object. */
static void index_finalizers(void *ctx, const char *ns, const char *name, const char *object,
                             size_t n, struct hf_informer_values *values) {
        static const char finalizers[] = "\"finalizers\"";

        if (memmem(object, n, finalizers, sizeof finalizers - 1))
                (void)hf_informer_values_add(values, ns);
}

/* Controllers read more than the metadata of these kinds from the informers here. */
static bool is_kept_whole(const struct hf_resource *resource) {
        return (strcmp(resource->plural, "namespaces") == 0 && !*resource->group) ||
               strcmp(resource->plural, "workspaces") == 0 ||
               strcmp(resource->plural, "certificatesigningrequests") == 0 ||
               strcmp(resource->plural, "clusterroles") == 0 ||
               strcmp(resource->plural, "apiservices") == 0;
}

int hfd_kinds_init(struct hfd_kinds *kinds, const struct hf_host *host, struct hf_client *client,
                   struct hf_informer_thread *thread, const struct hfd_kind_row *rows, size_t n) {
        int r = n <= HFD_KINDS_MAX ? 0 : HF_E_TOO_LARGE;

        *kinds = (struct hfd_kinds){0};
        for (size_t i = 0; r == 0 && i < n; i++) {
                struct hf_informer_config config = {.size = sizeof config,
                                                    .client = client,
                                                    .resource = rows[i].resource,
                                                    .one_revision = true,
                                                    .metadata_only =
                                                            !is_kept_whole(&rows[i].resource),
                                                    .thread = thread};
                kinds->kinds[i].row = rows[i];
                r = hf_informer_new(host, &config, &kinds->kinds[i].informer);
                if (r == 0) {
                        kinds->n++;
                        r = hf_informer_add_index(kinds->kinds[i].informer, HFD_OWNER_INDEX,
                                                  index_owners, NULL);
                        if (r == 0 && rows[i].namespaced)
                                r = hf_informer_add_index(kinds->kinds[i].informer,
                                                          HFD_FINALIZER_INDEX, index_finalizers,
                                                          NULL);
                }
        }
        if (r != 0)
                hfd_kinds_done(kinds);
        return r;
}

int hfd_kinds_start(struct hfd_kinds *kinds) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < kinds->n; i++)
                r = hf_informer_start(kinds->kinds[i].informer);
        return r;
}

void hfd_kinds_done(struct hfd_kinds *kinds) {
        for (size_t i = 0; i < kinds->n; i++)
                hf_informer_free(kinds->kinds[i].informer);
        *kinds = (struct hfd_kinds){0};
}

const struct hfd_kind *hfd_kinds_find(const struct hfd_kinds *kinds, const char *group,
                                      const char *plural) {
        for (size_t i = 0; i < kinds->n; i++)
                if (strcmp(kinds->kinds[i].row.resource.plural, plural) == 0 &&
                    strcmp(kinds->kinds[i].row.resource.group, group) == 0)
                        return &kinds->kinds[i];
        return NULL;
}

const struct hfd_kind *hfd_kinds_find_by_name(const struct hfd_kinds *kinds,
                                              const char *api_version, const char *kind) {
        const char *slash = api_version ? strchr(api_version, '/') : NULL;
        size_t n_group = slash ? (size_t)(slash - api_version) : 0;

        for (size_t i = 0; kind && api_version && i < kinds->n; i++) {
                const struct hfd_kind_row *row = &kinds->kinds[i].row;
                if (strcmp(row->kind, kind) == 0 && strlen(row->resource.group) == n_group &&
                    memcmp(row->resource.group, api_version, n_group) == 0)
                        return &kinds->kinds[i];
        }
        return NULL;
}
