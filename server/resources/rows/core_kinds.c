/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the core group, except the workload kinds (workloads/workloads.h). Columns and flags
 * are those of kube-apiserver. The invariants are those in rows.h.
 */
#include "server/resources/resource.h"
#include "server/resources/rows/rows.h"
#include "server/resources/strategies/strategies.h"

static const struct hfd_resource rows[] = {
        {
                .group = "",
                .version = "v1",
                .plural = "componentstatuses",
                .singular = "componentstatus",
                .kind = "ComponentStatus",
                .deprecation = "v1 ComponentStatus is deprecated in v1.19+",
                .short_name = "cs",
                /* As in Kubernetes, nothing is stored: each read makes the objects anew, from a
                 * look at the store. So there is no watch, and no resourceVersion to compare. */
                .is_review = true,
                .is_report = true,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Status", "string", "", "@component:status"},
                                       {"Message", "string", "", "@component:message"},
                                       {"Error", "string", "", "@component:error"}),
                .schema = &hfd_component_status_schema,
        },
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
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Data", "integer", "", "@count:data"},
                                       {"Age", "string", "", "@age"}),
                .schema = &hfd_configmap_schema,
                .validate = hfd_configmap_validate,
        },
        {
                .group = "",
                .version = "v1",
                /* This is the form that the store has of an Event. The row of events.k8s.io/v1
                 * converts it (cluster_kinds.c). An Event describes another object and owns
                 * nothing, so a delete ignores the propagationPolicy. */
                .plural = "events",
                .singular = "event",
                .kind = "Event",
                .short_name = "ev",
                .storage = "events",
                .namespaced = true,
                .create_on_update = true,
                .unconditional_update = true,
                .owns_nothing = true,
                .columns = HFD_COLUMNS(HFD_EVENT_COLUMNS),
                .schema = &hfd_event_schema,
                .validate = hfd_event_validate,
        },
        {
                .group = "",
                .version = "v1",
                /* kube-apiserver has no columns of its own for LimitRanges, so they have its
                 * default columns: the name, and when the object was created. */
                .plural = "limitranges",
                .singular = "limitrange",
                .kind = "LimitRange",
                .short_name = "limits",
                .storage = "limitranges",
                .namespaced = true,
                .create_on_update = true,
                .unconditional_update = true,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Created At", "date", "", "metadata.creationTimestamp"}),
                .schema = &hfd_limit_range_schema,
                .prepare = hfd_limit_range_prepare,
                .validate = hfd_limit_range_validate,
        },
        {
                .group = "",
                .version = "v1",
                /* A Namespace's name is a label of DNS, because it is a part of the names of its
                 * services: "service.namespace.svc". spec.finalizers hold the Namespace until it is
                 * empty, so clients may change them only by .../finalize. */
                .plural = "namespaces",
                .singular = "namespace",
                .kind = "Namespace",
                .short_name = "ns",
                .storage = "namespaces",
                .name_is_label = true,
                .unconditional_update = true,
                .no_delete_collection = true, /* one request would delete everything */
                .subresources = HFD_SUB_STATUS | HFD_SUB_FINALIZE,
                .subresources_write_meta = true,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Status", "string", "", "status.phase"},
                                       {"Age", "string", "", "@age"}),
                .schema = &hfd_namespace_schema,
                .prepare = hfd_namespace_prepare,
                .validate = hfd_namespace_validate,
        },
        {
                .group = "",
                .version = "v1",
                .plural = "podtemplates",
                .singular = "podtemplate",
                .kind = "PodTemplate",
                .storage = "podtemplates",
                .namespaced = true,
                .unconditional_update = true,
                /* There is no status: the generation is that of kube-apiserver, but nobody reports
                 * which one was observed. */
                .has_generation = true,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Containers", "string", "", "@containers:name"},
                                       {"Images", "string", "", "@containers:image"},
                                       {"Pod Labels", "string", "",
                                        "@labels:template.metadata.labels"}),
                .schema = &hfd_pod_template_schema,
                .prepare = hfd_pod_template_prepare,
                .validate = hfd_pod_template_validate,
        },
        {
                .group = "",
                .version = "v1",
                .plural = "resourcequotas",
                .singular = "resourcequota",
                .kind = "ResourceQuota",
                .short_name = "quota",
                .storage = "resourcequotas",
                .namespaced = true,
                .unconditional_update = true,
                /* The transaction of each create or update that raises the use also adds to
                 * status.used of the quota. A client that writes the quota itself must not set
                 * status.used back, so it is under .../status. */
                .subresources = HFD_SUB_STATUS,
                .subresources_write_meta = true,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Request", "string", "", "@quota:requests"},
                                       {"Limit", "string", "", "@quota:limits"},
                                       {"Age", "string", "", "@age"}),
                .schema = &hfd_resource_quota_schema,
                .validate = hfd_resource_quota_validate,
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
                .keeps_extract = true,
                /* The number of keys, never a value: a Table is printed, logged and shared. */
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Type", "string", "", "type"},
                                       {"Data", "integer", "", "@count:data"},
                                       {"Age", "string", "", "@age"}),
                .schema = &hfd_secret_schema,
                .normalize = hfd_secret_normalize,
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
                .keeps_extract = true,
                /* A create at .../token signs a token. The server does not store the token: only
                 * the response contains it. */
                .subresources = HFD_SUB_TOKEN,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Age", "string", "", "@age"}),
                .schema = &hfd_service_account_schema,
                .prepare = hfd_service_account_prepare,
        },
};
const struct hfd_resource_part hfd_core_part = {rows, sizeof rows / sizeof rows[0]};
