/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of resources. To serve another kind, add a row; strategies/strategies.h lists what else
 * the kind needs. Columns and flags of Kubernetes' kinds follow kube-apiserver, so that kubectl
 * shows the usual tables (without some columns of -o wide) and clients meet the usual rules.
 *
 * Invariants:
 *
 *  - The storage segments are part of the on-disk format and must never change.
 *  - Rows of one group and version are adjacent. The first row of a group has the version that
 *    discovery prefers.
 */
#include "server/resources/resource.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/resources/strategies/strategies.h"

static const struct hfd_resource table[] = {
        {
                .group = "",
                .version = "v1",
                .plural = "configmaps",
                .singular = "configmap",
                .kind = "ConfigMap",
                .short_name = "cm",
                .storage = "configmaps",
                .namespaced = true,
                .unconditional_update = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Data", "integer", "", "@count:data"},
                            {"Age", "string", "", "@age"}},
                .decode = hfd_configmap_decode,
                .validate = hfd_configmap_validate,
        },
        {
                .group = "",
                .version = "v1",
                .plural = "events",
                .singular = "event",
                .kind = "Event",
                .short_name = "ev",
                .storage = "events",
                .namespaced = true,
                .create_on_update = true,
                .unconditional_update = true,
                .owns_nothing = true,
                .columns = {{"Last Seen", "string", "", "@age:lastTimestamp"},
                            {"Type", "string", "", "type"},
                            {"Reason", "string", "", "reason"},
                            {"Object", "string", "", "@object"},
                            {"Message", "string", "", "message"}},
                .decode = hfd_event_decode,
        },
        {
                .group = "",
                .version = "v1",
                .plural = "namespaces",
                .singular = "namespace",
                .kind = "Namespace",
                .short_name = "ns",
                .storage = "namespaces",
                .name_is_label = true,
                .unconditional_update = true,
                .no_delete_collection = true, /* one request would delete everything */
                .subresources = HFD_SUB_STATUS | HFD_SUB_FINALIZE,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Status", "string", "", "status.phase"},
                            {"Age", "string", "", "@age"}},
                .decode = hfd_namespace_decode,
                .prepare = hfd_namespace_prepare,
                .validate = hfd_namespace_validate,
        },
        {
                .group = "",
                .version = "v1",
                .plural = "secrets",
                .singular = "secret",
                .kind = "Secret",
                .storage = "secrets",
                .namespaced = true,
                .unconditional_update = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Type", "string", "", "type"},
                            {"Data", "integer", "", "@count:data"},
                            {"Age", "string", "", "@age"}},
                .decode = hfd_secret_decode,
                .prepare = hfd_secret_prepare,
                .validate = hfd_secret_validate,
        },
        {
                .group = "",
                .version = "v1",
                .plural = "serviceaccounts",
                .singular = "serviceaccount",
                .kind = "ServiceAccount",
                .short_name = "sa",
                .storage = "serviceaccounts",
                .namespaced = true,
                .unconditional_update = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Secrets", "string", "", "@count:secrets"},
                            {"Age", "string", "", "@age"}},
                .decode = hfd_service_account_decode,
        },
        {
                .group = "coordination.k8s.io",
                .version = "v1",
                .plural = "leases",
                .singular = "lease",
                .kind = "Lease",
                .storage = "leases",
                .namespaced = true,
                .create_on_update = true,
                /* No unconditional_update: a candidate must not overwrite a record that it has
                 * not read. */
                .term_record = true, /* fenced writes compare it */
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Holder", "string", "", "spec.holderIdentity"},
                            {"Age", "string", "", "@age"}},
                .decode = hfd_lease_decode,
                .validate = hfd_lease_validate,
        },
        {
                .group = "coordination.k8s.io",
                .version = "v1beta1",
                .plural = "leasecandidates",
                .singular = "leasecandidate",
                .kind = "LeaseCandidate",
                .storage = "leasecandidates",
                .namespaced = true,
                .name_is_segment = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"LeaseName", "string", "", "spec.leaseName"},
                            {"BinaryVersion", "string", "", "spec.binaryVersion"},
                            {"EmulationVersion", "string", "", "spec.emulationVersion"},
                            {"Strategy", "string", "", "spec.strategy"},
                            {"Age", "string", "", "@age"}},
                .decode = hfd_lease_candidate_decode,
                .validate = hfd_lease_candidate_validate,
        },
        {
                .group = "rbac.authorization.k8s.io",
                .version = "v1",
                .plural = "clusterrolebindings",
                .singular = "clusterrolebinding",
                .kind = "ClusterRoleBinding",
                .storage = "clusterrolebindings",
                .unconditional_update = true,
                .name_is_segment = true, /* names of system roles contain colons */
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Role", "string", "", "@role"},
                            {"Age", "string", "", "@age"},
                            {"Users", "string", "", "@subjects:User", true},
                            {"Groups", "string", "", "@subjects:Group", true},
                            {"ServiceAccounts", "string", "", "@subjects:ServiceAccount", true}},
                .decode = hfd_role_binding_decode,
                .prepare = hfd_role_binding_prepare,
                .validate = hfd_cluster_role_binding_validate,
        },
        {
                .group = "rbac.authorization.k8s.io",
                .version = "v1",
                .plural = "clusterroles",
                .singular = "clusterrole",
                .kind = "ClusterRole",
                .storage = "clusterroles",
                .unconditional_update = true,
                .name_is_segment = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Created At", "date", "", "metadata.creationTimestamp"}},
                .decode = hfd_cluster_role_decode,
                .validate = hfd_cluster_role_validate,
        },
        {
                .group = "rbac.authorization.k8s.io",
                .version = "v1",
                .plural = "rolebindings",
                .singular = "rolebinding",
                .kind = "RoleBinding",
                .storage = "rolebindings",
                .namespaced = true,
                .unconditional_update = true,
                .name_is_segment = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Role", "string", "", "@role"},
                            {"Age", "string", "", "@age"},
                            {"Users", "string", "", "@subjects:User", true},
                            {"Groups", "string", "", "@subjects:Group", true},
                            {"ServiceAccounts", "string", "", "@subjects:ServiceAccount", true}},
                .decode = hfd_role_binding_decode,
                .prepare = hfd_role_binding_prepare,
                .validate = hfd_role_binding_validate,
        },
        {
                .group = "rbac.authorization.k8s.io",
                .version = "v1",
                .plural = "roles",
                .singular = "role",
                .kind = "Role",
                .storage = "roles",
                .namespaced = true,
                .unconditional_update = true,
                .name_is_segment = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Created At", "date", "", "metadata.creationTimestamp"}},
                .decode = hfd_role_decode,
                .validate = hfd_role_validate,
        },
        {
                .group = "tenancy.holdfast.dev",
                .version = "v1alpha1",
                .plural = "workspaces",
                .singular = "workspace",
                .kind = "Workspace",
                .short_name = "ws",
                /* Kubernetes stores objects of custom resources under group and plural. */
                .storage = "tenancy.holdfast.dev/workspaces",
                .name_is_label = true,
                .n_name_reserved = 3, /* its Namespace is called "ws-NAME" */
                .unconditional_update = true,
                .has_generation = true,
                .no_strategic_patch = true,
                .subresources = HFD_SUB_STATUS,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Phase", "string", "", "status.phase"},
                            {"Age", "string", "", "@age"}},
                .decode = hfd_workspace_decode,
                .prepare = hfd_workspace_prepare,
        },
};

#define N_ROWS (sizeof table / sizeof table[0])

_Static_assert(N_ROWS <= HFD_RESOURCES_MAX, "the cacher has a tree for each resource");

const struct hfd_resource *hfd_resources(size_t *ret_n) {
        *ret_n = N_ROWS;
        return table;
}

size_t hfd_resource_index(const struct hfd_resource *resource) {
        assert(resource >= table && resource < table + N_ROWS);
        return (size_t)(resource - table);
}

bool hfd_resource_starts_group(const struct hfd_resource *resource) {
        for (size_t i = 0; i < hfd_resource_index(resource); i++)
                if (strcmp(table[i].group, resource->group) == 0)
                        return false;
        return true;
}

bool hfd_resource_starts_version(const struct hfd_resource *resource) {
        for (size_t i = 0; i < hfd_resource_index(resource); i++)
                if (strcmp(table[i].group, resource->group) == 0 &&
                    strcmp(table[i].version, resource->version) == 0)
                        return false;
        return true;
}

const struct hfd_resource *hfd_resource_find(const char *group, const char *version,
                                             const char *plural) {
        for (size_t i = 0; i < N_ROWS; i++)
                if (strcmp(table[i].plural, plural) == 0 && strcmp(table[i].group, group) == 0 &&
                    strcmp(table[i].version, version) == 0)
                        return &table[i];
        return NULL;
}

const struct hfd_resource *hfd_resource_namespaces(void) {
        const struct hfd_resource *namespaces = hfd_resource_find("", "v1", "namespaces");

        assert(namespaces);
        return namespaces;
}

bool hfd_resource_subresource(const struct hfd_resource *resource, const char *name,
                              enum hfd_subresource *ret_subresource) {
        static const struct {
                const char *name;
                enum hfd_subresource subresource;
        } all[] = {{"", HFD_SUB_NONE}, {"status", HFD_SUB_STATUS}, {"finalize", HFD_SUB_FINALIZE}};

        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
                if (strcmp(all[i].name, name) == 0) {
                        /* HFD_SUB_NONE is 0, so the test below accepts it for every row. */
                        unsigned bit = (unsigned)all[i].subresource;
                        *ret_subresource = all[i].subresource;
                        return (resource->subresources & bit) == bit;
                }
        return false;
}

bool hfd_is_system_namespace(const char *name) {
        return strcmp(name, "default") == 0 || strcmp(name, "kube-system") == 0 ||
               strcmp(name, "kube-public") == 0 || strcmp(name, "kube-node-lease") == 0;
}

void hfd_resource_api_version(const struct hfd_resource *resource, char text[HFD_API_VERSION_MAX]) {
        size_t n = hf__join(text, HFD_API_VERSION_MAX, resource->group, *resource->group ? "/" : "",
                            resource->version, NULL);

        assert(n > 0); /* 0 = too long: a row of the table is wrong */
        (void)n;
}

void hfd_resource_qualified(const struct hfd_resource *resource, char text[HFD_QUALIFIED_MAX]) {
        (void)snprintf(text, HFD_QUALIFIED_MAX, "%s%s%s", resource->plural,
                       *resource->group ? "." : "", resource->group);
}
