/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of resources: it joins the parts of rows.h, and finds rows by their names.
 *
 * Invariants: a row has one index as long as the process runs, which is why the workload kinds are
 * added before anything uses the rows. Rows of one group and version are adjacent.
 */
#include "server/resources/rows/resource_table.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "server/resources/rows/rows.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/workloads/workloads.h"

/* Empty unless the workload kinds are served. */
static struct hfd_resource_part core_workloads, group_workloads;

/* The index of a row counts the rows of the parts before its own. The core group has two parts. */
static const struct hfd_resource_part *const parts[] = {
        &hfd_core_part,   &core_workloads,   &hfd_extension_part,
        &hfd_access_part, &hfd_cluster_part, &group_workloads,
};

#define N_PARTS (sizeof parts / sizeof parts[0])

void hfd_resources_add_workloads(void) {
        if (core_workloads.rows)
                return;
        core_workloads.rows = hfd_core_workload_rows(&core_workloads.n);
        group_workloads.rows = hfd_group_workload_rows(&group_workloads.n);
}

size_t hfd_resources_count(void) {
        size_t n = 0;

        for (size_t i = 0; i < N_PARTS; i++)
                n += parts[i]->n;
        assert(n <= HFD_RESOURCES_MAX); /* the cacher has a tree for each */
        return n;
}

const struct hfd_resource *hfd_resource_at(size_t index) {
        size_t part = 0;

        for (; index >= parts[part]->n; part++) {
                index -= parts[part]->n;
                assert(part + 1 < N_PARTS); /* the index is that of a row */
        }
        return &parts[part]->rows[index];
}

size_t hfd_resource_index(const struct hfd_resource *resource) {
        size_t n_before = 0;

        if (resource->slot != 0)
                return resource->slot;
        for (size_t i = 0; i < N_PARTS; i++) {
                /* As a number: pointers into different arrays have no order in C. */
                uintptr_t offset = (uintptr_t)resource - (uintptr_t)parts[i]->rows;

                if (offset < parts[i]->n * sizeof *resource)
                        return n_before + offset / sizeof *resource;
                n_before += parts[i]->n;
        }
        assert(false); /* neither a row of the table nor one of a custom resource */
        return 0;
}

bool hfd_resource_starts_version(const struct hfd_resource *resource) {
        for (size_t i = 0; i < hfd_resource_index(resource); i++) {
                const struct hfd_resource *row = hfd_resource_at(i);

                if (strcmp(row->group, resource->group) == 0 &&
                    strcmp(row->version, resource->version) == 0)
                        return false;
        }
        return true;
}

static bool is_row(const struct hfd_resource *row, const char *group, const char *version,
                   const char *plural) {
        /* The first bytes are compared for speed: each request comes here. */
        return row->plural[0] == plural[0] && strcmp(row->plural, plural) == 0 &&
               strcmp(row->group, group) == 0 && strcmp(row->version, version) == 0;
}

const struct hfd_resource *hfd_resource_find(const char *group, const char *version,
                                             const char *plural) {
        /* Often a thread's next request is for the same resource. */
        static _Thread_local const struct hfd_resource *last;

        if (last && is_row(last, group, version, plural))
                return last;
        for (size_t i = 0; i < N_PARTS; i++)
                for (size_t k = 0; k < parts[i]->n; k++)
                        if (is_row(&parts[i]->rows[k], group, version, plural)) {
                                last = &parts[i]->rows[k];
                                return last;
                        }
        return NULL;
}

const struct hfd_resource *hfd_resource_namespaces(void) {
        const struct hfd_resource *namespaces = hfd_resource_find("", "v1", "namespaces");

        assert(namespaces);
        return namespaces;
}

const struct hfd_resource *hfd_resource_of_part(enum hfd_subresource subresource) {
        switch (subresource) {
        case HFD_SUB_TOKEN: return hfd_resource_token_request();
        case HFD_SUB_SCALE: return hfd_resource_scale();
        case HFD_SUB_BINDING: return hfd_resource_binding();
        case HFD_SUB_EVICTION: return hfd_resource_eviction();
        case HFD_SUB_NONE:
        case HFD_SUB_STATUS:
        case HFD_SUB_FINALIZE:
        case HFD_SUB_APPROVAL:
        case HFD_SUB_EPHEMERAL_CONTAINERS:
        case HFD_SUB_RESIZE: break;
        }
        return NULL;
}
