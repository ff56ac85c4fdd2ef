/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RuntimeClasses. They are for the programs that run pods. If the workload kinds are served, a new
 * pod gets the overhead and the scheduling of its class (registry/write/checks/pod_runtime.c). The
 * rules are those of kube-apiserver.
 *
 * Invariant: the handler never changes, because the pods of the class were started by it.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/pod/pod_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"
#include "server/schema/common.h"

#define NODE "io.k8s.api.node.v1."

/* Bytes of the path of a field in a cause, with the NUL. */
#define FIELD_MAX 160

static const struct hfd_schema_field overhead_fields[] = {
        {"podFixed", &hfd_schema_resource_list, "The resources that each pod needs in addition.",
         .protobuf_tag = 1},
};
static const struct hfd_schema overhead_schema = {HFD_STRUCT(NODE "Overhead", overhead_fields),
                                                  .description =
                                                          "What it costs to run a pod at all."};

static const struct hfd_schema_field scheduling_fields[] = {
        {"nodeSelector", &hfd_schema_atomic_map_of_texts,
         "Labels that a node must have to support the class.", .protobuf_tag = 1},
        {"tolerations", HFD_LIST_OF(&hfd_toleration_schema),
         "Tolerations that the pods of the class get.", .protobuf_tag = 2},
};
static const struct hfd_schema scheduling_schema = {HFD_STRUCT(NODE "Scheduling",
                                                               scheduling_fields),
                                                    .description = "Which nodes support a class."};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        {"handler", &hfd_schema_text,
         "The name by which the nodes know the runtime and its settings. It cannot be changed.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS("More info: " HFD_CONVENTIONS "#metadata"),
        {"overhead", &overhead_schema, "What it costs to run a pod of the class.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"scheduling", &scheduling_schema, "Which nodes support the class. Absent: all of them.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_runtime_class_schema =
        {HFD_STRUCT(NODE "RuntimeClass", fields),
         .description = "RuntimeClass names a container runtime that pods can ask for."};

/* ---- scheduling ---- */

static void validate_scheduling(const struct hf__json *object, struct hfd_causes *causes) {
        const struct hf__json *scheduling = hf__json_get(object, "scheduling");
        char field[FIELD_MAX];
        size_t i = 0;

        hfd_labels_validate(hf__json_get(scheduling, "nodeSelector"), "scheduling.nodeSelector",
                            causes);
        for (const struct hf__json *m = hf__json_first(hf__json_get(scheduling, "tolerations")); m;
             m = hf__json_next(m)) {
                (void)snprintf(field, sizeof field, "scheduling.tolerations[%zu]", i++);
                hfd_toleration_validate(m, field, causes);
        }
}

/* ---- all parts ---- */

static void validate_handler(const char *handler, struct hfd_causes *causes) {
        if (!*handler)
                hfd_cause_required(causes, "handler", "");
        else
                hfd_label_text_validate(handler, "handler", handler, causes);
}

/* A part that an update does not change is not checked: it may be older than its rules. */
void hfd_runtime_class_validate(const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes) {
        const struct hfd_schema *schema = &hfd_runtime_class_schema;
        const char *handler = hf__json_string_or_empty(object, "handler");
        bool is_moved = old && strcmp(handler, hf__json_string_or_empty(old, "handler")) != 0;

        if (!old || is_moved)
                validate_handler(handler, causes);
        if (!old || !hfd_causes_equal_member(causes, schema, object, old, "overhead"))
                hfd_overhead_validate(hf__json_path(object, "overhead.podFixed"), "overhead",
                                      causes);
        if (!old || !hfd_causes_equal_member(causes, schema, object, old, "scheduling"))
                validate_scheduling(object, causes);
        if (is_moved)
                hfd_cause_invalid_text(causes, "handler", handler, "field is immutable");
}
