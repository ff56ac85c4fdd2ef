/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of ComponentStatus. The kind has no strategy, because nothing is stored:
 * server/handlers/reviews/ makes the objects for each read.
 *
 * Invariants: names, types and numbers in protobuf (protobuf_tag) are those of k8s.io/api/core/v1.
 * The rows of a table are sorted by name, because look-ups bisect it.
 */
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

static const struct hfd_schema_field condition_fields[] = {
        {"error", &hfd_schema_text, "What the check failed with.", .protobuf_tag = 4},
        {"message", &hfd_schema_text, "What the check said.", .protobuf_tag = 3},
        {"status", HFD_NAMED_TEXT(HFD_CORE "ConditionStatus"), "True, False or Unknown.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", HFD_NAMED_TEXT(HFD_CORE "ComponentConditionType"),
         "The type of the condition: Healthy.", .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema condition = {HFD_STRUCT(HFD_CORE "ComponentCondition",
                                                       condition_fields),
                                            .description = "The health of a component."};
static const char *const by_type[] = {"type", NULL};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        {"conditions", HFD_LIST_OF(&condition, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         "The health of the component.", .merge_key = "type", .protobuf_tag = 2,
         .flags = HFD_FIELD_MERGE},
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
};
const struct hfd_schema hfd_component_status_schema =
        {HFD_STRUCT(HFD_CORE "ComponentStatus", fields),
         .description = "ComponentStatus says whether a part of the cluster works. Deprecated."};
