/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of a pod's spec and of a pod template.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/core/v1: the name in JSON, the
 * schema of the value, a description for `kubectl explain`, the number of the field in protobuf
 * (protobuf_tag), and flags. HFD_FIELD_POINTER stands for a Go pointer, HFD_FIELD_MERGE and
 * merge_key for the struct tags patchStrategy and patchMergeKey, and list_type and list_keys for
 * the markers +listType and +listMapKey. A schema named *_text (not hfd_schema_text) is a Go string
 * type with a name of its own; error messages show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/strategies/pod/pod_schema.h"

#include "server/schema/common.h"

static const struct hfd_schema pod_condition_type_text = {.type = HFD_SCHEMA_TEXT,
                                                          .definition =
                                                                  HFD_CORE "PodConditionType"};
static const struct hfd_schema node_inclusion_policy_text = {.type = HFD_SCHEMA_TEXT,
                                                             .definition = HFD_CORE
                                                             "NodeInclusionPolicy"};
static const struct hfd_schema unsatisfiable_constraint_action_text =
        {.type = HFD_SCHEMA_TEXT, .definition = HFD_CORE "UnsatisfiableConstraintAction"};
static const struct hfd_schema os_name_text = {.type = HFD_SCHEMA_TEXT,
                                               .definition = HFD_CORE "OSName"};
static const char *const by_name[] = {"name", NULL};
static const struct hfd_schema dns_policy_text = {.type = HFD_SCHEMA_TEXT,
                                                  .definition = HFD_CORE "DNSPolicy"};
static const char *const by_ip[] = {"ip", NULL};
static const struct hfd_schema preemption_policy_text = {.type = HFD_SCHEMA_TEXT,
                                                         .definition = HFD_CORE "PreemptionPolicy"};
static const struct hfd_schema restart_policy_text = {.type = HFD_SCHEMA_TEXT,
                                                      .definition = HFD_CORE "RestartPolicy"};
/* Apply tells constraints apart by topologyKey and whenUnsatisfiable. The merge_key of a strategic
 * merge patch can only be one of the two: topologyKey. */
static const char *const by_topology_key_and_when_unsatisfiable[] = {"topologyKey",
                                                                     "whenUnsatisfiable", NULL};

static const struct hfd_schema_field host_alias_fields[] = {
        {"hostnames", &hfd_schema_list_of_texts, "Names of the address.", .protobuf_tag = 2},
        {"ip", &hfd_schema_text, "The address.", .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema host_alias = {HFD_STRUCT(HFD_CORE "HostAlias", host_alias_fields)};

static const struct hfd_schema_field pod_dns_config_option_fields[] = {
        {"name", &hfd_schema_text, "The name.", .protobuf_tag = 1},
        {"value", &hfd_schema_text, "The value.", .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema pod_dns_config_option = {
        HFD_STRUCT(HFD_CORE "PodDNSConfigOption", pod_dns_config_option_fields)};

static const struct hfd_schema_field pod_dns_config_fields[] = {
        {"nameservers", &hfd_schema_list_of_texts, "Addresses of name servers.", .protobuf_tag = 1},
        {"options", HFD_LIST_OF(&pod_dns_config_option), "Options of the resolver.",
         .protobuf_tag = 3},
        {"searches", &hfd_schema_list_of_texts, "Domains in which names are searched.",
         .protobuf_tag = 2},
};
static const struct hfd_schema pod_dns_config = {
        HFD_STRUCT(HFD_CORE "PodDNSConfig", pod_dns_config_fields)};

static const struct hfd_schema_field pod_readiness_gate_fields[] = {
        {"conditionType", &pod_condition_type_text, "The type of a condition of the pod.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema pod_readiness_gate = {
        HFD_STRUCT(HFD_CORE "PodReadinessGate", pod_readiness_gate_fields)};

/* The fields that later versions of Kubernetes added are pointers or lists: an absent one means
 * what the older versions did. */
static const struct hfd_schema_field topology_spread_constraint_fields[] = {
        {"labelSelector", &hfd_schema_label_selector, "Selects pods by their labels.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"matchLabelKeys", &hfd_schema_list_of_texts,
         "Keys of labels whose values must be those of the pod itself.", .protobuf_tag = 8},
        {"maxSkew", &hfd_schema_int32, "By how many pods the domains may differ.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"minDomains", &hfd_schema_int32, "The number of domains that there must be.",
         .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"nodeAffinityPolicy", &node_inclusion_policy_text,
         "Whether nodes that the pod cannot use count: Honor or Ignore.", .protobuf_tag = 6,
         .flags = HFD_FIELD_POINTER},
        {"nodeTaintsPolicy", &node_inclusion_policy_text,
         "Whether nodes with taints count: Honor or Ignore.", .protobuf_tag = 7,
         .flags = HFD_FIELD_POINTER},
        {"topologyKey", &hfd_schema_text, "The label that nodes of one domain share.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"whenUnsatisfiable", &unsatisfiable_constraint_action_text,
         "DoNotSchedule or ScheduleAnyway.", .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema topology_spread_constraint = {
        HFD_STRUCT(HFD_CORE "TopologySpreadConstraint", topology_spread_constraint_fields)};

static const struct hfd_schema_field pod_os_fields[] = {
        {"name", &os_name_text, "linux or windows.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema pod_os = {HFD_STRUCT(HFD_CORE "PodOS", pod_os_fields)};

static const struct hfd_schema_field pod_scheduling_gate_fields[] = {
        {"name", &hfd_schema_text, "The name.", .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema pod_scheduling_gate = {
        HFD_STRUCT(HFD_CORE "PodSchedulingGate", pod_scheduling_gate_fields)};

static const struct hfd_schema_field pod_resource_claim_fields[] = {
        {"name", &hfd_schema_text, "The name.", .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"resourceClaimName", &hfd_schema_text, "The name of the claim.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"resourceClaimTemplateName", &hfd_schema_text,
         "The template from which a claim is made for the pod.", .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema pod_resource_claim = {
        HFD_STRUCT(HFD_CORE "PodResourceClaim", pod_resource_claim_fields)};

static const struct hfd_schema_field pod_scheduling_group_fields[] = {
        {"podGroupName", &hfd_schema_text, "The name of the pod group.", .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema pod_scheduling_group = {
        HFD_STRUCT(HFD_CORE "PodSchedulingGroup", pod_scheduling_group_fields)};

/* A volume and a resource claim have one source each. So their lists have RETAIN_KEYS: a patch that
 * gives a volume another source names the keys that stay, and the old source goes. Tolerations are
 * atomic, because no member identifies one: two may have the same key. serviceAccount is the old
 * name of serviceAccountName, and both are kept equal (pod_defaults.c). */
static const struct hfd_schema_field pod_spec_fields[] = {
        {"activeDeadlineSeconds", &hfd_schema_int64,
         "Seconds from the start after which the pod is stopped and counts as failed.",
         .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"affinity", &hfd_affinity_schema, "Rules about the nodes and the neighbours of the pod.",
         .protobuf_tag = 18, .flags = HFD_FIELD_POINTER},
        {"automountServiceAccountToken", &hfd_schema_boolean,
         "Whether the containers get a token of the service account.", .protobuf_tag = 21,
         .flags = HFD_FIELD_POINTER},
        {"containers",
         HFD_LIST_OF(&hfd_container_schema, .list_type = HFD_LIST_MAP, .list_keys = by_name),
         "The containers of the pod, one at least. They cannot be added or removed later.",
         .merge_key = "name", .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED | HFD_FIELD_MERGE},
        {"dnsConfig", &pod_dns_config, "Settings of DNS, in addition to those of the policy.",
         .protobuf_tag = 26, .flags = HFD_FIELD_POINTER},
        {"dnsPolicy", &dns_policy_text, "ClusterFirst, ClusterFirstWithHostNet, Default or None.",
         .protobuf_tag = 6},
        {"enableServiceLinks", &hfd_schema_boolean,
         "Whether the containers get a variable for each service.", .protobuf_tag = 30,
         .flags = HFD_FIELD_POINTER},
        {"ephemeralContainers",
         HFD_LIST_OF(&hfd_ephemeral_container_schema, .list_type = HFD_LIST_MAP,
                     .list_keys = by_name),
         "Containers that were added to a running pod to examine it.", .merge_key = "name",
         .protobuf_tag = 34, .flags = HFD_FIELD_MERGE},
        {"hostAliases", HFD_LIST_OF(&host_alias, .list_type = HFD_LIST_MAP, .list_keys = by_ip),
         "Lines that are added to the pod's hosts file.", .merge_key = "ip", .protobuf_tag = 23,
         .flags = HFD_FIELD_MERGE},
        {"hostIPC", &hfd_schema_boolean, "Whether the pod uses the IPC namespace of the host.",
         .protobuf_tag = 13},
        {"hostNetwork", &hfd_schema_boolean, "Whether the pod uses the network of the host.",
         .protobuf_tag = 11},
        {"hostPID", &hfd_schema_boolean, "Whether the pod sees the processes of the host.",
         .protobuf_tag = 12},
        {"hostUsers", &hfd_schema_boolean, "Whether the pod uses the user namespace of the host.",
         .protobuf_tag = 37, .flags = HFD_FIELD_POINTER},
        {"hostname", &hfd_schema_text, "The host name of the pod. Absent: the pod's name.",
         .protobuf_tag = 16},
        {"hostnameOverride", &hfd_schema_text, "A host name that replaces every other one.",
         .protobuf_tag = 41, .flags = HFD_FIELD_POINTER},
        {"imagePullSecrets",
         HFD_LIST_OF(&hfd_schema_local_object_reference, .list_type = HFD_LIST_MAP,
                     .list_keys = by_name),
         "Secrets with the credentials for the images.", .merge_key = "name", .protobuf_tag = 15,
         .flags = HFD_FIELD_MERGE},
        {"initContainers",
         HFD_LIST_OF(&hfd_container_schema, .list_type = HFD_LIST_MAP, .list_keys = by_name),
         "Containers that run one after the other before the others start.", .merge_key = "name",
         .protobuf_tag = 20, .flags = HFD_FIELD_MERGE},
        {"nodeName", &hfd_schema_text,
         "The node that runs the pod. Empty: a scheduler has to choose one.", .protobuf_tag = 10},
        {"nodeSelector", &hfd_schema_atomic_map_of_texts, "Labels that the node must have.",
         .protobuf_tag = 7},
        {"os", &pod_os, "The operating system of the containers.", .protobuf_tag = 36,
         .flags = HFD_FIELD_POINTER},
        {"overhead", &hfd_schema_resource_list,
         "What it costs to run the pod, by its runtime class.", .protobuf_tag = 32},
        {"preemptionPolicy", &preemption_policy_text,
         "PreemptLowerPriority or Never: whether the pod may displace others.", .protobuf_tag = 31,
         .flags = HFD_FIELD_POINTER},
        {"priority", &hfd_schema_int32, "The value of the priority class.", .protobuf_tag = 25,
         .flags = HFD_FIELD_POINTER},
        {"priorityClassName", &hfd_schema_text, "The name of the priority class.",
         .protobuf_tag = 24},
        {"readinessGates", HFD_LIST_OF(&pod_readiness_gate),
         "Conditions that must be True before the pod is ready.", .protobuf_tag = 28},
        {"resourceClaims",
         HFD_LIST_OF(&pod_resource_claim, .list_type = HFD_LIST_MAP, .list_keys = by_name),
         "Claims of resources that containers can use.", .merge_key = "name", .protobuf_tag = 39,
         .flags = HFD_FIELD_MERGE | HFD_FIELD_RETAIN_KEYS},
        {"resources", &hfd_resource_requirements_schema,
         "The resources that are needed, and how much may be used.", .protobuf_tag = 40,
         .flags = HFD_FIELD_POINTER},
        {"restartPolicy", &restart_policy_text, "Always, OnFailure or Never.", .protobuf_tag = 3},
        {"runtimeClassName", &hfd_schema_text, "The name of the RuntimeClass.", .protobuf_tag = 29,
         .flags = HFD_FIELD_POINTER},
        {"schedulerName", &hfd_schema_text, "The scheduler that chooses the node.",
         .protobuf_tag = 19},
        {"schedulingGates",
         HFD_LIST_OF(&pod_scheduling_gate, .list_type = HFD_LIST_MAP, .list_keys = by_name),
         "Names of controllers that must act before the pod is scheduled.", .merge_key = "name",
         .protobuf_tag = 38, .flags = HFD_FIELD_MERGE},
        {"schedulingGroup", &pod_scheduling_group, "The group of pods that are scheduled together.",
         .protobuf_tag = 43, .flags = HFD_FIELD_POINTER},
        {"securityContext", &hfd_pod_security_context_schema,
         "Users, groups and rights of the processes.", .protobuf_tag = 14,
         .flags = HFD_FIELD_POINTER},
        {"serviceAccount", &hfd_schema_text, "Deprecated; use serviceAccountName.",
         .protobuf_tag = 9},
        {"serviceAccountName", &hfd_schema_text, "The service account of the pod.",
         .protobuf_tag = 8},
        {"setHostnameAsFQDN", &hfd_schema_boolean,
         "Whether the host name is the full name of the pod.", .protobuf_tag = 35,
         .flags = HFD_FIELD_POINTER},
        {"shareProcessNamespace", &hfd_schema_boolean,
         "Whether the containers see the processes of each other.", .protobuf_tag = 27,
         .flags = HFD_FIELD_POINTER},
        {"subdomain", &hfd_schema_text, "The subdomain of the pod's full name.",
         .protobuf_tag = 17},
        {"terminationGracePeriodSeconds", &hfd_schema_int64,
         "Seconds that the processes get to end by themselves.", .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
        {"tolerations", HFD_LIST_OF(&hfd_toleration_schema),
         "Taints of nodes that the pod tolerates.", .protobuf_tag = 22},
        {"topologySpreadConstraints",
         HFD_LIST_OF(&topology_spread_constraint, .list_type = HFD_LIST_MAP,
                     .list_keys = by_topology_key_and_when_unsatisfiable),
         "How the pods are spread over domains.", .merge_key = "topologyKey", .protobuf_tag = 33,
         .flags = HFD_FIELD_MERGE},
        {"volumes",
         HFD_LIST_OF(&hfd_volume_schema, .list_type = HFD_LIST_MAP, .list_keys = by_name),
         "The volumes that containers can mount.", .merge_key = "name", .protobuf_tag = 1,
         .flags = HFD_FIELD_MERGE | HFD_FIELD_RETAIN_KEYS},
};
const struct hfd_schema hfd_pod_spec_schema = {HFD_STRUCT(HFD_CORE "PodSpec", pod_spec_fields),
                                               .description = "The desired state of a pod."};

/* Go has the whole ObjectMeta here, although a template has neither a name nor a version of its
 * own. What a controller does not use is stored all the same, as in Kubernetes. */
static const struct hfd_schema_field pod_template_spec_fields[] = {
        {"metadata", &hfd_schema_object_meta,
         "The metadata of the objects that are made from the template.", .protobuf_tag = 1},
        {"spec", &hfd_pod_spec_schema, "The desired state of the pods.", .protobuf_tag = 2},
};
const struct hfd_schema hfd_pod_template_spec_schema =
        {HFD_STRUCT(HFD_CORE "PodTemplateSpec", pod_template_spec_fields),
         .description = "The desired state of the pods that are made from it."};
