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
#include "server/resources/workloads/workloads.h"

/* Both versions of Events have these columns. The paths are those of the stored form, v1. */
#define EVENT_COLUMNS                                                                              \
        {"Last Seen", "string", "", "@event:last"}, {"Type", "string", "", "type"},                \
                {"Reason", "string", "", "reason"}, {"Object", "string", "", "@event:object"},     \
                {"Subobject", "string", "", "involvedObject.fieldPath", true},                     \
                {"Source", "string", "", "@event:source", true},                                   \
                {"Message", "string", "", "@event:message"},                                       \
                {"First Seen", "string", "", "@event:first", true},                                \
                {"Count", "integer", "", "@event:count", true}, {                                  \
                "Name", "string", "", "metadata.name", true                                        \
        }

static const struct hfd_resource table[] = {
        {
                .group = "",
                .version = "v1",
                .plural = "componentstatuses",
                .singular = "componentstatus",
                .kind = "ComponentStatus",
                .short_name = "cs",
                .is_review = true,
                .is_report = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Status", "string", "", "@component:status"},
                            {"Message", "string", "", "@component:message"},
                            {"Error", "string", "", "@component:error"}},
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
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Data", "integer", "", "@count:data"},
                            {"Age", "string", "", "@age"}},
                .schema = &hfd_configmap_schema,
                .prepare = hfd_configmap_prepare,
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
                .columns = {EVENT_COLUMNS},
                .schema = &hfd_event_schema,
                .validate = hfd_event_validate,
        },
        {
                .group = "",
                .version = "v1",
                .plural = "limitranges",
                .singular = "limitrange",
                .kind = "LimitRange",
                .short_name = "limits",
                .storage = "limitranges",
                .namespaced = true,
                .unconditional_update = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Created At", "date", "", "metadata.creationTimestamp"}},
                .schema = &hfd_limit_range_schema,
                .prepare = hfd_limit_range_prepare,
                .validate = hfd_limit_range_validate,
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
                .subresources_write_meta = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Status", "string", "", "status.phase"},
                            {"Age", "string", "", "@age"}},
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
                .has_generation = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Containers", "string", "", "@containers:name"},
                            {"Images", "string", "", "@containers:image"},
                            {"Pod Labels", "string", "", "@labels:template.metadata.labels"}},
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
                .subresources = HFD_SUB_STATUS,
                .subresources_write_meta = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Request", "string", "", "@quota:requests"},
                            {"Limit", "string", "", "@quota:limits"},
                            {"Age", "string", "", "@age"}},
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
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Type", "string", "", "type"},
                            {"Data", "integer", "", "@count:data"},
                            {"Age", "string", "", "@age"}},
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
                .subresources = HFD_SUB_TOKEN,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Secrets", "string", "", "@count:secrets"},
                            {"Age", "string", "", "@age"}},
                .schema = &hfd_service_account_schema,
        },
        {
                .group = "admissionregistration.k8s.io",
                .version = "v1",
                .plural = "mutatingadmissionpolicies",
                .singular = "mutatingadmissionpolicy",
                .kind = "MutatingAdmissionPolicy",
                .category = "api-extensions",
                .storage = "mutatingadmissionpolicies",
                .has_generation = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Mutations", "integer", "", "@count:spec.mutations",
                             .description = "How many changes the policy makes."},
                            {"ParamKind", "string", "", "@params:kind",
                             .description = "The kind of the params of the policy."},
                            {"Age", "string", "", "@age"}},
                .schema = &hfd_mutating_policy_schema,
                .prepare = hfd_admission_policy_prepare,
                .validate = hfd_mutating_policy_validate,
        },
        {
                .group = "admissionregistration.k8s.io",
                .version = "v1",
                .plural = "mutatingadmissionpolicybindings",
                .singular = "mutatingadmissionpolicybinding",
                .kind = "MutatingAdmissionPolicyBinding",
                .category = "api-extensions",
                .storage = "mutatingadmissionpolicybindings",
                .has_generation = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"PolicyName", "string", "", "spec.policyName",
                             .description = "The policy that is in force."},
                            {"ParamRef", "string", "", "@params:ref",
                             .description = "The params of the policy."},
                            {"Age", "string", "", "@age"}},
                .schema = &hfd_mutating_binding_schema,
                .prepare = hfd_admission_binding_prepare,
                .validate = hfd_mutating_binding_validate,
        },
        {
                .group = "admissionregistration.k8s.io",
                .version = "v1",
                .plural = "mutatingwebhookconfigurations",
                .singular = "mutatingwebhookconfiguration",
                .kind = "MutatingWebhookConfiguration",
                .category = "api-extensions",
                .storage = "mutatingwebhookconfigurations",
                .has_generation = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Webhooks", "integer", "", "@count:webhooks",
                             .description = "How many webhooks the configuration has."},
                            {"Age", "string", "", "@age"}},
                .schema = &hfd_mutating_webhooks_schema,
                .prepare = hfd_mutating_webhooks_prepare,
                .validate = hfd_webhooks_validate_object,
        },
        {
                .group = "admissionregistration.k8s.io",
                .version = "v1",
                .plural = "validatingadmissionpolicies",
                .singular = "validatingadmissionpolicy",
                .kind = "ValidatingAdmissionPolicy",
                .category = "api-extensions",
                .storage = "validatingadmissionpolicies",
                .has_generation = true,
                .subresources = HFD_SUB_STATUS,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Validations", "integer", "", "@count:spec.validations",
                             .description = "How many rules the policy has."},
                            {"ParamKind", "string", "", "@params:kind",
                             .description = "The kind of the params of the policy."},
                            {"Age", "string", "", "@age"}},
                .schema = &hfd_validating_policy_schema,
                .prepare = hfd_admission_policy_prepare,
                .validate = hfd_validating_policy_validate,
                .validate_status = hfd_validating_policy_validate_status,
        },
        {
                .group = "admissionregistration.k8s.io",
                .version = "v1",
                .plural = "validatingadmissionpolicybindings",
                .singular = "validatingadmissionpolicybinding",
                .kind = "ValidatingAdmissionPolicyBinding",
                .category = "api-extensions",
                .storage = "validatingadmissionpolicybindings",
                .has_generation = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"PolicyName", "string", "", "spec.policyName",
                             .description = "The policy that is in force."},
                            {"ParamRef", "string", "", "@params:ref",
                             .description = "The params of the policy."},
                            {"Age", "string", "", "@age"}},
                .schema = &hfd_validating_binding_schema,
                .prepare = hfd_admission_binding_prepare,
                .validate = hfd_validating_binding_validate,
        },
        {
                .group = "admissionregistration.k8s.io",
                .version = "v1",
                .plural = "validatingwebhookconfigurations",
                .singular = "validatingwebhookconfiguration",
                .kind = "ValidatingWebhookConfiguration",
                .category = "api-extensions",
                .storage = "validatingwebhookconfigurations",
                .has_generation = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Webhooks", "integer", "", "@count:webhooks",
                             .description = "How many webhooks the configuration has."},
                            {"Age", "string", "", "@age"}},
                .schema = &hfd_validating_webhooks_schema,
                .prepare = hfd_validating_webhooks_prepare,
                .validate = hfd_webhooks_validate_object,
        },
        {
                .group = "apiextensions.k8s.io",
                .version = "v1",
                .plural = "customresourcedefinitions",
                .singular = "customresourcedefinition",
                .kind = "CustomResourceDefinition",
                .short_name = "crd",
                .other_short_name = "crds",
                .category = "api-extensions",
                .storage = "apiextensions.k8s.io/customresourcedefinitions",
                .has_generation = true,
                .subresources = HFD_SUB_STATUS,
                .subresources_write_meta = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Created At", "date", "", "metadata.creationTimestamp"}},
                .schema = &hfd_definition_schema,
                .prepare = hfd_definition_prepare,
                .validate = hfd_definition_validate,
                .validate_status = hfd_definition_validate_status,
                .mark_deleted = hfd_definition_mark_deleted,
        },
        {
                .group = "apiregistration.k8s.io",
                .version = "v1",
                .plural = "apiservices",
                .singular = "apiservice",
                .kind = "APIService",
                .category = "api-extensions",
                .storage = "apiregistration.k8s.io/apiservices",
                .name_is_segment = true, /* the core group's ends with a dot: "v1." */
                .subresources = HFD_SUB_STATUS,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Service", "string", "", "@service"},
                            {"Available", "string", "", "@available"},
                            {"Age", "string", "", "@age"}},
                .schema = &hfd_api_service_schema,
                .prepare = hfd_api_service_prepare,
                .validate = hfd_api_service_validate,
        },
        {
                .group = "authentication.k8s.io",
                .version = "v1",
                .plural = "selfsubjectreviews",
                .singular = "selfsubjectreview",
                .kind = "SelfSubjectReview",
                .is_review = true,
                .schema = &hfd_self_review_schema,
        },
        {
                .group = "authentication.k8s.io",
                .version = "v1",
                .plural = "tokenreviews",
                .singular = "tokenreview",
                .kind = "TokenReview",
                .is_review = true,
                .schema = &hfd_token_review_schema,
        },
        {
                .group = "authorization.k8s.io",
                .version = "v1",
                .plural = "localsubjectaccessreviews",
                .singular = "localsubjectaccessreview",
                .kind = "LocalSubjectAccessReview",
                .namespaced = true,
                .is_review = true,
                .schema = &hfd_local_access_review_schema,
        },
        {
                .group = "authorization.k8s.io",
                .version = "v1",
                .plural = "selfsubjectaccessreviews",
                .singular = "selfsubjectaccessreview",
                .kind = "SelfSubjectAccessReview",
                .is_review = true,
                .schema = &hfd_self_access_review_schema,
        },
        {
                .group = "authorization.k8s.io",
                .version = "v1",
                .plural = "selfsubjectrulesreviews",
                .singular = "selfsubjectrulesreview",
                .kind = "SelfSubjectRulesReview",
                .is_review = true,
                .schema = &hfd_rules_review_schema,
        },
        {
                .group = "authorization.k8s.io",
                .version = "v1",
                .plural = "subjectaccessreviews",
                .singular = "subjectaccessreview",
                .kind = "SubjectAccessReview",
                .is_review = true,
                .schema = &hfd_access_review_schema,
        },
        {
                .group = "certificates.k8s.io",
                .version = "v1",
                .plural = "certificatesigningrequests",
                .singular = "certificatesigningrequest",
                .kind = "CertificateSigningRequest",
                .short_name = "csr",
                .storage = "certificatesigningrequests",
                .name_is_segment = true,
                .unconditional_update = true,
                .subresources = HFD_SUB_STATUS | HFD_SUB_APPROVAL,
                .subresources_write_meta = true,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Age", "string", "", "@age"},
                            {"SignerName", "string", "", "spec.signerName"},
                            {"Requestor", "string", "", "spec.username"},
                            {"RequestedDuration", "string", "", "@duration:spec.expirationSeconds"},
                            {"Condition", "string", "", "@certificate"}},
                .schema = &hfd_certificate_request_schema,
                .validate = hfd_certificate_request_validate,
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
                /* No unconditional_update: a candidate must not overwrite a record that it has not
                 * read. */
                .term_record = true, /* fenced writes compare it */
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Holder", "string", "", "spec.holderIdentity"},
                            {"Age", "string", "", "@age"}},
                .schema = &hfd_lease_schema,
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
                .conversion = &hfd_new_event_conversion,
                .namespaced = true,
                .create_on_update = true,
                .unconditional_update = true,
                .owns_nothing = true,
                .columns = {EVENT_COLUMNS},
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
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"PriorityLevel", "string", "", "spec.priorityLevelConfiguration.name"},
                            {"MatchingPrecedence", "string", "",
                             "@integer:spec.matchingPrecedence"},
                            {"DistinguisherMethod", "string", "",
                             "@none:spec.distinguisherMethod.type"},
                            {"Age", "string", "", "@age"},
                            {"MissingPL", "string", "", "@dangling"}},
                .schema = &hfd_flow_schema_schema,
                .prepare = hfd_flow_schema_prepare,
                .validate = hfd_flow_schema_validate,
                .validate_status = hfd_flow_validate_status,
        },
        {
                .group = "flowcontrol.apiserver.k8s.io",
                .version = "v1",
                .plural = "prioritylevelconfigurations",
                .singular = "prioritylevelconfiguration",
                .kind = "PriorityLevelConfiguration",
                .storage = "prioritylevelconfigurations",
                .unconditional_update = true,
                .has_generation = true,
                .subresources = HFD_SUB_STATUS,
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Type", "string", "", "spec.type"},
                            {"NominalConcurrencyShares", "string", "",
                             "@integer-or-none:spec.limited.nominalConcurrencyShares"},
                            {"Queues", "string", "",
                             "@integer-or-none:spec.limited.limitResponse.queuing.queues"},
                            {"HandSize", "string", "",
                             "@integer-or-none:spec.limited.limitResponse.queuing.handSize"},
                            {"QueueLengthLimit", "string", "",
                             "@integer-or-none:spec.limited.limitResponse.queuing."
                             "queueLengthLimit"},
                            {"Age", "string", "", "@age"}},
                .schema = &hfd_priority_level_schema,
                .prepare = hfd_priority_level_prepare,
                .validate = hfd_priority_level_validate,
                .validate_status = hfd_flow_validate_status,
        },
        {
                .group = "node.k8s.io",
                .version = "v1",
                .plural = "runtimeclasses",
                .singular = "runtimeclass",
                .kind = "RuntimeClass",
                .storage = "runtimeclasses",
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Handler", "string", "", "handler"},
                            {"Age", "string", "", "@age"}},
                .schema = &hfd_runtime_class_schema,
                .validate = hfd_runtime_class_validate,
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
                .schema = &hfd_cluster_role_binding_schema,
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
                .schema = &hfd_cluster_role_schema,
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
                .schema = &hfd_role_binding_schema,
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
                .schema = &hfd_role_schema,
                .validate = hfd_role_validate,
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
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Value", "integer", "", "@integer:value"},
                            {"Global-Default", "boolean", "", "@boolean:globalDefault"},
                            {"Age", "string", "", "@age"},
                            {"PreemptionPolicy", "string", "", "preemptionPolicy"}},
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
                .columns = {{"Name", "string", "name", "metadata.name"},
                            {"Phase", "string", "", "status.phase"},
                            {"Age", "string", "", "@age"}},
                .schema = &hfd_workspace_schema,
                .prepare = hfd_workspace_prepare,
        },
};

#define N_ROWS (sizeof table / sizeof table[0])

_Static_assert(N_ROWS <= HFD_RESOURCES_MAX, "the cacher has a tree for each resource");

/* The rows that are served: those of the table, or after hfd_resources_add_workloads a copy of them
 * and of the workload kinds. */
static struct hfd_resource all_rows[HFD_RESOURCES_MAX];
static const struct hfd_resource *rows = table;
static size_t n_rows = N_ROWS;

/* Appends the rows of the core group, or those of the others. */
static void append_rows(const struct hfd_resource *more, size_t n, bool core) {
        for (size_t i = 0; i < n; i++)
                if ((*more[i].group == '\0') == core) {
                        assert(n_rows < HFD_RESOURCES_MAX);
                        all_rows[n_rows++] = more[i];
                }
}

void hfd_resources_add_workloads(void) {
        size_t n_core, n_others;
        const struct hfd_resource *core = hfd_core_workload_rows(&n_core),
                                  *others = hfd_group_workload_rows(&n_others);

        if (rows != table)
                return;
        rows = all_rows;
        n_rows = 0;
        /* The rows of one group are adjacent. */
        append_rows(table, N_ROWS, true);
        append_rows(core, n_core, true);
        append_rows(table, N_ROWS, false);
        append_rows(others, n_others, false);
}

const struct hfd_resource *hfd_resources(size_t *ret_n) {
        *ret_n = n_rows;
        return rows;
}

size_t hfd_resource_index(const struct hfd_resource *resource) {
        if (resource->slot != 0)
                return resource->slot;
        assert(resource >= rows && resource < rows + n_rows);
        return (size_t)(resource - rows);
}

bool hfd_resource_starts_version(const struct hfd_resource *resource) {
        for (size_t i = 0; i < hfd_resource_index(resource); i++)
                if (strcmp(rows[i].group, resource->group) == 0 &&
                    strcmp(rows[i].version, resource->version) == 0)
                        return false;
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
        static _Thread_local size_t last;

        if (last < n_rows && is_row(&rows[last], group, version, plural))
                return &rows[last];
        for (size_t i = 0; i < n_rows; i++)
                if (is_row(&rows[i], group, version, plural)) {
                        last = i;
                        return &rows[i];
                }
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
        } all[] = {{"", HFD_SUB_NONE},
                   {"status", HFD_SUB_STATUS},
                   {"finalize", HFD_SUB_FINALIZE},
                   {"approval", HFD_SUB_APPROVAL},
                   {"token", HFD_SUB_TOKEN},
                   {"scale", HFD_SUB_SCALE},
                   {"binding", HFD_SUB_BINDING},
                   {"eviction", HFD_SUB_EVICTION}};

        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
                if (strcmp(all[i].name, name) == 0) {
                        /* HFD_SUB_NONE is 0, so the test below accepts it for every row. */
                        unsigned bit = (unsigned)all[i].subresource;
                        *ret_subresource = all[i].subresource;
                        return (resource->subresources & bit) == bit;
                }
        return false;
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
        case HFD_SUB_APPROVAL: break;
        }
        return NULL;
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
