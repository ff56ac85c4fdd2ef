/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the kind of params, which may be built in or custom.
 *
 * Invariant: a kind that is not served now may be served later, or served in another version, so
 * nothing is remembered. Built-in kinds come first, as for the paths of requests.
 */
#include "server/admission/policy/param_kind.h"

#include <string.h>

#include "server/cacher/cacher.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/custom_table.h"
#include "server/resources/rows/resource_table.h"

/* A row without storage, such as that of a review, has no objects that could be params. */
static bool is_kind(const struct hfd_resource *row, const char *group, size_t n_group,
                    const char *version, const char *kind) {
        return strlen(row->group) == n_group && memcmp(row->group, group, n_group) == 0 &&
               strcmp(row->version, version) == 0 && strcmp(row->kind, kind) == 0 && row->storage;
}

const struct hfd_resource *hfd_policy_params_kind_in(struct hfd_custom_table *table,
                                                     const char *api_version, const char *kind) {
        const char *slash = strchr(api_version, '/');
        const char *version = slash ? slash + 1 : api_version;
        size_t n_group = slash ? (size_t)(slash - api_version) : 0;
        struct hfd_custom_set *set = table ? hfd_custom_table_set(table) : NULL;
        const struct hfd_resource *found = NULL;

        for (size_t i = 0; i < hfd_resources_count() && !found; i++)
                if (is_kind(hfd_resource_at(i), api_version, n_group, version, kind))
                        found = hfd_resource_at(i);
        for (size_t i = 0; set && i < set->n && !found; i++)
                for (size_t k = 0; k < set->kinds[i]->n_versions && !found; k++) {
                        const struct hfd_custom_version *v = &set->kinds[i]->versions[k];

                        if (v->served && is_kind(&v->row, api_version, n_group, version, kind))
                                found = &v->row;
                }
        found = hfd_resource_ref(found); /* before the unref: the set keeps its rows alive */
        hfd_custom_set_unref(set);
        return found;
}

const struct hfd_resource *hfd_policy_params_kind(struct hfd_cacher *cacher,
                                                  const char *api_version, const char *kind) {
        return hfd_policy_params_kind_in(hfd_cacher_table(cacher), api_version, kind);
}
