/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of Event in both versions. Events are stored as v1; events.k8s.io/v1 has
 * other names for some fields. event.c has their rules.
 *
 * A row of a table is a field: its name in JSON, the schema of the value, a description for
 * `kubectl explain`, its number in protobuf (protobuf_tag), and flags (schema.h).
 *
 * Invariants: names, types and numbers are those of k8s.io/api and never change. The rows of a
 * table are sorted by name (strcmp), because look-ups bisect it.
 */
#include "server/resources/resource.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

#define EVENTS "io.k8s.api.events.v1."

/* ---- v1 ---- */

static const struct hfd_schema_field source_fields[] = {
        {"component", &hfd_schema_text, "The component that reports the event.", .protobuf_tag = 1},
        {"host", &hfd_schema_text, "The host on which it runs.", .protobuf_tag = 2},
};
static const struct hfd_schema source_schema = {HFD_STRUCT(HFD_CORE "EventSource", source_fields),
                                                .description = "Who reports an event."};

static const struct hfd_schema_field series_fields[] = {
        {"count", &hfd_schema_int32, "How often the event has occurred in the series.",
         .protobuf_tag = 1},
        {"lastObservedTime", &hfd_schema_micro_time, "When it last occurred.", .protobuf_tag = 2},
};
static const struct hfd_schema series_schema = {HFD_STRUCT(HFD_CORE "EventSeries", series_fields),
                                                .description = "A series of similar events."};

static const struct hfd_schema_field fields[] = {
        {"action", &hfd_schema_text, "What the reporter did or failed to do.", .protobuf_tag = 12},
        HFD_FIELD_API_VERSION,
        {"count", &hfd_schema_int32, "How often the event has occurred.", .protobuf_tag = 8},
        {"eventTime", &hfd_schema_micro_time, "When the event was first observed.",
         .protobuf_tag = 10},
        {"firstTimestamp", &hfd_schema_time, "When the event was first recorded.",
         .protobuf_tag = 6},
        {"involvedObject", &hfd_schema_object_reference, "The object that the event is about.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        HFD_FIELD_KIND,
        {"lastTimestamp", &hfd_schema_time, "When the event was last recorded.", .protobuf_tag = 7},
        {"message", &hfd_schema_text, "What happened, for a human reader.", .protobuf_tag = 4},
        HFD_FIELD_METADATA,
        {"reason", &hfd_schema_text, "Why it happened, in one word.", .protobuf_tag = 3},
        {"related", &hfd_schema_object_reference, "A second object, for more complex events.",
         .protobuf_tag = 13, .flags = HFD_FIELD_POINTER},
        {"reportingComponent", &hfd_schema_text,
         "The name of the controller that reports the event.", .protobuf_tag = 14},
        {"reportingInstance", &hfd_schema_text, "The instance of that controller.",
         .protobuf_tag = 15},
        {"series", &series_schema, "The series that this event begins; absent for a single event.",
         .protobuf_tag = 11, .flags = HFD_FIELD_POINTER},
        {"source", &source_schema, "Who reports the event.", .protobuf_tag = 5},
        {"type", &hfd_schema_text, "Normal or Warning.", .protobuf_tag = 9},
};
const struct hfd_schema hfd_event_schema =
        {HFD_STRUCT(HFD_CORE "Event", fields),
         .description = "Event reports that something has happened. Events are kept for an hour."};

/* ---- events.k8s.io/v1 ---- */

static const struct hfd_schema_field new_series_fields[] = {
        {"count", &hfd_schema_int32, "How often the event has occurred in the series.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"lastObservedTime", &hfd_schema_micro_time, "When it last occurred.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema new_series_schema = {HFD_STRUCT(EVENTS "EventSeries",
                                                               new_series_fields),
                                                    .description = "A series of similar events."};

static const struct hfd_schema_field new_fields[] = {
        {"action", &hfd_schema_text, "What the reporter did or failed to do.", .protobuf_tag = 6},
        HFD_FIELD_API_VERSION,
        {"deprecatedCount", &hfd_schema_int32, "The count of a v1 Event.", .protobuf_tag = 15},
        {"deprecatedFirstTimestamp", &hfd_schema_time, "The firstTimestamp of a v1 Event.",
         .protobuf_tag = 13},
        {"deprecatedLastTimestamp", &hfd_schema_time, "The lastTimestamp of a v1 Event.",
         .protobuf_tag = 14},
        {"deprecatedSource", &source_schema, "The source of a v1 Event.", .protobuf_tag = 12},
        {"eventTime", &hfd_schema_micro_time, "When the event was first observed.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"note", &hfd_schema_text, "What happened, for a human reader.", .protobuf_tag = 10},
        {"reason", &hfd_schema_text, "Why it happened, in one word.", .protobuf_tag = 7},
        {"regarding", &hfd_schema_object_reference, "The object that the event is about.",
         .protobuf_tag = 8},
        {"related", &hfd_schema_object_reference, "A second object, for more complex events.",
         .protobuf_tag = 9, .flags = HFD_FIELD_POINTER},
        {"reportingController", &hfd_schema_text,
         "The name of the controller that reports the event.", .protobuf_tag = 4},
        {"reportingInstance", &hfd_schema_text, "The instance of that controller.",
         .protobuf_tag = 5},
        {"series", &new_series_schema,
         "The series that this event begins; absent for a single event.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"type", &hfd_schema_text, "Normal or Warning.", .protobuf_tag = 11},
};
const struct hfd_schema hfd_new_event_schema =
        {HFD_STRUCT(EVENTS "Event", new_fields),
         .description = "Event reports that something has happened. Events are kept for an hour."};

static const struct hfd_renamed renamed[] = {{"deprecatedCount", "count"},
                                             {"deprecatedFirstTimestamp", "firstTimestamp"},
                                             {"deprecatedLastTimestamp", "lastTimestamp"},
                                             {"deprecatedSource", "source"},
                                             {"note", "message"},
                                             {"regarding", "involvedObject"},
                                             {"reportingController", "reportingComponent"}};
const struct hfd_conversion hfd_new_event_conversion = {.group = "",
                                                        .version = "v1",
                                                        .renamed = renamed,
                                                        .n_renamed =
                                                                sizeof renamed / sizeof renamed[0]};
