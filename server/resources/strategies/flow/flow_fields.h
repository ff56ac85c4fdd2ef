/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Parts of schemas that FlowSchemas and PriorityLevelConfigurations share. Only their two .c files
 * include this header, each once, because the macro defines static tables. */
#include "server/schema/common.h"

#define HFD_FLOW "io.k8s.api.flowcontrol.v1."

/* Defines status_schema, the status of a kind, which has conditions only. kind: the name of the
 * kind; text: the description. Used at file scope. Go has two types for the two kinds, with equal
 * fields. */
#define HFD_FLOW_STATUS(kind, text)                                                                \
        static const struct hfd_schema_field condition_fields[] = {                                \
                {"lastTransitionTime", &hfd_schema_time, "When the status last changed.",          \
                 .protobuf_tag = 3},                                                               \
                {"message", &hfd_schema_text, "Details for a human reader.", .protobuf_tag = 5},   \
                {"reason", &hfd_schema_text, "Why the status last changed, in one word.",          \
                 .protobuf_tag = 4},                                                               \
                {"status", HFD_NAMED_TEXT(HFD_FLOW "ConditionStatus"), "True, False or Unknown.",  \
                 .protobuf_tag = 2},                                                               \
                {"type", HFD_NAMED_TEXT(HFD_FLOW kind "ConditionType"),                            \
                 "The type of the condition.", .protobuf_tag = 1},                                 \
        };                                                                                         \
        static const struct hfd_schema condition_schema = {HFD_STRUCT(HFD_FLOW kind "Condition",   \
                                                                      condition_fields),           \
                                                           .description =                          \
                                                                   "One aspect of the state."};    \
        static const char *const by_type[] = {"type", NULL};                                       \
        static const struct hfd_schema_field status_fields[] = {                                   \
                {"conditions",                                                                     \
                 HFD_LIST_OF(&condition_schema, .list_type = HFD_LIST_MAP, .list_keys = by_type),  \
                 "Conditions, one of each type.", .merge_key = "type", .protobuf_tag = 1,          \
                 .flags = HFD_FIELD_MERGE},                                                        \
        };                                                                                         \
        static const struct hfd_schema status_schema = {HFD_STRUCT(HFD_FLOW kind "Status",         \
                                                                   status_fields),                 \
                                                        .description = (text)}
