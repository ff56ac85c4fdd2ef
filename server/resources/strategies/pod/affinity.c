/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of affinities and tolerations, which tell a scheduler which nodes may run
 * a pod.
 *
 * A table has a row for each field of a Go struct of k8s.io/api/core/v1: the name in JSON, the
 * schema of the value, a description for `kubectl explain`, the number of the field in protobuf
 * (protobuf_tag), and flags. HFD_FIELD_POINTER stands for a Go pointer. A schema named *_text (not
 * hfd_schema_text) is a Go string type with a name of its own; error messages show this name.
 *
 * Invariants: the rows of a table are sorted by name (strcmp), because look-ups bisect it. The
 * number and the type of a field never change: clients that use protobuf find a field by its number
 * alone.
 */
#include "server/resources/strategies/pod/pod_schema.h"

#include "server/schema/common.h"

static const struct hfd_schema node_selector_operator_text = {.type = HFD_SCHEMA_TEXT,
                                                              .definition = HFD_CORE
                                                              "NodeSelectorOperator"};
static const struct hfd_schema taint_effect_text = {.type = HFD_SCHEMA_TEXT,
                                                    .definition = HFD_CORE "TaintEffect"};
static const struct hfd_schema toleration_operator_text = {.type = HFD_SCHEMA_TEXT,
                                                           .definition =
                                                                   HFD_CORE "TolerationOperator"};

static const struct hfd_schema_field node_selector_requirement_fields[] = {
        {"key", &hfd_schema_text, "The key of the label.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"operator", &node_selector_operator_text, "In, NotIn, Exists, DoesNotExist, Gt or Lt.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"values", &hfd_schema_list_of_texts, "The values.", .protobuf_tag = 3},
};
static const struct hfd_schema node_selector_requirement = {
        HFD_STRUCT(HFD_CORE "NodeSelectorRequirement", node_selector_requirement_fields)};

static const struct hfd_schema_field node_selector_term_fields[] = {
        {"matchExpressions", HFD_LIST_OF(&node_selector_requirement),
         "Requirements on the labels of a node.", .protobuf_tag = 1},
        {"matchFields", HFD_LIST_OF(&node_selector_requirement),
         "Requirements on the fields of a node.", .protobuf_tag = 2},
};
static const struct hfd_schema node_selector_term = {HFD_STRUCT(HFD_CORE "NodeSelectorTerm",
                                                                node_selector_term_fields),
                                                     .atomic = true};

static const struct hfd_schema_field node_selector_fields[] = {
        {"nodeSelectorTerms", HFD_LIST_OF(&node_selector_term), "Terms of which one must match.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_node_selector_schema = {HFD_STRUCT(HFD_CORE "NodeSelector",
                                                               node_selector_fields),
                                                    .atomic = true};

static const struct hfd_schema_field preferred_scheduling_term_fields[] = {
        {"preference", &node_selector_term, "The nodes that are preferred.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"weight", &hfd_schema_int32, "How much the rule counts: 1 to 100.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema preferred_scheduling_term = {
        HFD_STRUCT(HFD_CORE "PreferredSchedulingTerm", preferred_scheduling_term_fields)};

static const struct hfd_schema_field node_affinity_fields[] = {
        {"preferredDuringSchedulingIgnoredDuringExecution", HFD_LIST_OF(&preferred_scheduling_term),
         "Rules that count by their weights.", .protobuf_tag = 2},
        {"requiredDuringSchedulingIgnoredDuringExecution", &hfd_node_selector_schema,
         "Rules that the node must meet.", .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema node_affinity = {
        HFD_STRUCT(HFD_CORE "NodeAffinity", node_affinity_fields)};

static const struct hfd_schema_field pod_affinity_term_fields[] = {
        {"labelSelector", &hfd_schema_label_selector, "Selects pods by their labels.",
         .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"matchLabelKeys", &hfd_schema_list_of_texts,
         "Keys of labels whose values must be those of the pod itself.", .protobuf_tag = 5},
        {"mismatchLabelKeys", &hfd_schema_list_of_texts,
         "Keys of labels whose values must differ from those of the pod itself.",
         .protobuf_tag = 6},
        {"namespaceSelector", &hfd_schema_label_selector, "Selects namespaces by their labels.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"namespaces", &hfd_schema_list_of_texts, "Names of namespaces.", .protobuf_tag = 2},
        {"topologyKey", &hfd_schema_text, "The label that nodes of one domain share.",
         .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema pod_affinity_term = {
        HFD_STRUCT(HFD_CORE "PodAffinityTerm", pod_affinity_term_fields)};

static const struct hfd_schema_field weighted_pod_affinity_term_fields[] = {
        {"podAffinityTerm", &pod_affinity_term, "Which pods, and what near means.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"weight", &hfd_schema_int32, "How much the rule counts: 1 to 100.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema weighted_pod_affinity_term = {
        HFD_STRUCT(HFD_CORE "WeightedPodAffinityTerm", weighted_pod_affinity_term_fields)};

static const struct hfd_schema_field pod_affinity_fields[] = {
        {"preferredDuringSchedulingIgnoredDuringExecution",
         HFD_LIST_OF(&weighted_pod_affinity_term), "Rules that count by their weights.",
         .protobuf_tag = 2},
        {"requiredDuringSchedulingIgnoredDuringExecution", HFD_LIST_OF(&pod_affinity_term),
         "Rules that the node must meet.", .protobuf_tag = 1},
};
static const struct hfd_schema pod_affinity = {
        HFD_STRUCT(HFD_CORE "PodAffinity", pod_affinity_fields)};

static const struct hfd_schema_field pod_anti_affinity_fields[] = {
        {"preferredDuringSchedulingIgnoredDuringExecution",
         HFD_LIST_OF(&weighted_pod_affinity_term), "Rules that count by their weights.",
         .protobuf_tag = 2},
        {"requiredDuringSchedulingIgnoredDuringExecution", HFD_LIST_OF(&pod_affinity_term),
         "Rules that the node must meet.", .protobuf_tag = 1},
};
static const struct hfd_schema pod_anti_affinity = {
        HFD_STRUCT(HFD_CORE "PodAntiAffinity", pod_anti_affinity_fields)};

static const struct hfd_schema_field affinity_fields[] = {
        {"nodeAffinity", &node_affinity, "Rules about the labels of the node.", .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
        {"podAffinity", &pod_affinity, "Pods that should be near.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"podAntiAffinity", &pod_anti_affinity, "Pods that should not be near.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_affinity_schema =
        {HFD_STRUCT(HFD_CORE "Affinity", affinity_fields),
         .description = "Where a pod should run, and near which others."};

static const struct hfd_schema_field toleration_fields[] = {
        {"effect", &taint_effect_text,
         "NoSchedule, PreferNoSchedule or NoExecute. Empty: every effect.", .protobuf_tag = 4},
        {"key", &hfd_schema_text, "The key of the taint. Empty: every key.", .protobuf_tag = 1},
        {"operator", &toleration_operator_text, "Exists, or Equal, which is meant if it is empty.",
         .protobuf_tag = 2},
        {"tolerationSeconds", &hfd_schema_int64,
         "How long a taint with the effect NoExecute is tolerated. Absent: for ever.",
         .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"value", &hfd_schema_text, "The value of the taint, for the operator Equal.",
         .protobuf_tag = 3},
};
const struct hfd_schema hfd_toleration_schema = {HFD_STRUCT(HFD_CORE "Toleration",
                                                            toleration_fields),
                                                 .description = "Taints that a pod tolerates."};
