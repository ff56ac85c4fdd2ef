/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the groups that no other file here has, such as those of Leases and Workspaces.
 * Columns and flags are those of kube-apiserver; of Workspaces, which it does not have, those of a
 * custom resource, except for the name's syntax and unconditional_update. Invariants: as in rows.h.
 */
#include "server/resources/resource.h"
#include "server/resources/rows/rows.h"
#include "server/resources/strategies/strategies.h"

static const struct hfd_resource rows[] = {
        {
                .group = "coordination.k8s.io",
                .version = "v1",
                .plural = "leases",
                .singular = "lease",
                .kind = "Lease",
                .storage = "leases",
                .namespaced = true,
                .create_on_update = true,
                /* No unconditional_update: a candidate must not overwrite a record that it has not
                 * read. */
                .term_record = true, /* fenced writes compare it */
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Holder", "string", "", "spec.holderIdentity"},
                                       {"Age", "string", "", "@age"}),
                .schema = &hfd_lease_schema,
                .validate = hfd_lease_validate,
        },
        {
                .group = "coordination.k8s.io",
                .version = "v1beta1",
                /* In Kubernetes, too, LeaseCandidates have no stable version yet. A candidate
                 * renews its own object, so an update must name the version that it is based on. */
                .plural = "leasecandidates",
                .singular = "leasecandidate",
                .kind = "LeaseCandidate",
                .storage = "leasecandidates",
                .namespaced = true,
                .create_on_update = true,
                .name_is_segment = true,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"LeaseName", "string", "", "spec.leaseName"},
                                       {"BinaryVersion", "string", "", "spec.binaryVersion"},
                                       {"EmulationVersion", "string", "", "spec.emulationVersion"},
                                       {"Strategy", "string", "", "spec.strategy"},
                                       {"Age", "string", "", "@age"}),
                .schema = &hfd_lease_candidate_schema,
                .validate = hfd_lease_candidate_validate,
        },
        {
                .group = "events.k8s.io",
                .version = "v1",
                .plural = "events",
                .singular = "event",
                .kind = "Event",
                .short_name = "ev",
                .storage = "events",
                /* The same stored objects as the Events of the core group: a client sees each Event
                 * in both groups. */
                .conversion = &hfd_new_event_conversion,
                .namespaced = true,
                .create_on_update = true,
                .unconditional_update = true,
                .owns_nothing = true,
                .columns = HFD_COLUMNS(HFD_EVENT_COLUMNS),
                .schema = &hfd_new_event_schema,
                .validate = hfd_new_event_validate,
        },
        {
                .group = "flowcontrol.apiserver.k8s.io",
                .version = "v1",
                .plural = "flowschemas",
                .singular = "flowschema",
                .kind = "FlowSchema",
                .storage = "flowschemas",
                .unconditional_update = true,
                .has_generation = true,
                .subresources = HFD_SUB_STATUS,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"PriorityLevel", "string", "",
                                        "spec.priorityLevelConfiguration.name"},
                                       {"MatchingPrecedence", "string", "",
                                        "@integer:spec.matchingPrecedence"},
                                       {"DistinguisherMethod", "string", "",
                                        "@none:spec.distinguisherMethod.type"},
                                       {"Age", "string", "", "@age"},
                                       /* The condition Dangling of the status: the priority level
                                        * that the FlowSchema names is missing. */
                                       {"MissingPL", "string", "", "@dangling"}),
                .schema = &hfd_flow_schema_schema,
                .prepare = hfd_flow_schema_prepare,
                .validate = hfd_flow_schema_validate,
                .validate_status = hfd_flow_validate_status,
        },
        {
                .group = "flowcontrol.apiserver.k8s.io",
                .version = "v1",
                /* A level of the type Exempt has no spec.limited, and a level that rejects requests
                 * has no queues. The cells of what a level does not have say "<none>". */
                .plural = "prioritylevelconfigurations",
                .singular = "prioritylevelconfiguration",
                .kind = "PriorityLevelConfiguration",
                .storage = "prioritylevelconfigurations",
                .unconditional_update = true,
                .has_generation = true,
                .subresources = HFD_SUB_STATUS,
                .columns =
                        HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                    {"Type", "string", "", "spec.type"},
                                    {"NominalConcurrencyShares", "string", "",
                                     "@integer-or-none:spec.limited.nominalConcurrencyShares"},
                                    {"Queues", "string", "",
                                     "@integer-or-none:spec.limited.limitResponse.queuing.queues"},
                                    {"HandSize", "string", "",
                                     "@integer-or-none:spec.limited.limitResponse.queuing."
                                     "handSize"},
                                    {"QueueLengthLimit", "string", "",
                                     "@integer-or-none:spec.limited.limitResponse.queuing."
                                     "queueLengthLimit"},
                                    {"Age", "string", "", "@age"}),
                .schema = &hfd_priority_level_schema,
                .prepare = hfd_priority_level_prepare,
                .validate = hfd_priority_level_validate,
                .validate_status = hfd_flow_validate_status,
        },
        {
                .group = "node.k8s.io",
                .version = "v1",
                /* A pod gets the overhead and the scheduling of its class when it is created, so a
                 * later change of the class does not reach it. */
                .plural = "runtimeclasses",
                .singular = "runtimeclass",
                .kind = "RuntimeClass",
                .storage = "runtimeclasses",
                .create_on_update = true,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Handler", "string", "", "handler"},
                                       {"Age", "string", "", "@age"}),
                .schema = &hfd_runtime_class_schema,
                .validate = hfd_runtime_class_validate,
        },
        {
                .group = "scheduling.k8s.io",
                .version = "v1",
                .plural = "priorityclasses",
                .singular = "priorityclass",
                .kind = "PriorityClass",
                .short_name = "pc",
                .storage = "priorityclasses",
                .unconditional_update = true,
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Value", "integer", "", "@integer:value"},
                                       {"Global-Default", "boolean", "", "@boolean:globalDefault"},
                                       {"Age", "string", "", "@age"},
                                       {"PreemptionPolicy", "string", "", "preemptionPolicy"}),
                .schema = &hfd_priority_class_schema,
                .prepare = hfd_priority_class_prepare,
                .validate = hfd_priority_class_validate,
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
                .columns = HFD_COLUMNS({"Name", "string", "name", "metadata.name"},
                                       {"Phase", "string", "", "status.phase"},
                                       {"Age", "string", "", "@age"}),
                .schema = &hfd_workspace_schema,
                .prepare = hfd_workspace_prepare,
        },
};
const struct hfd_resource_part hfd_cluster_part = {rows, sizeof rows / sizeof rows[0]};
