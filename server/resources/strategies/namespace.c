/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema, the defaults and the rules of Namespaces.
 *
 * Invariants: every new Namespace gets the finalizer "kubernetes" in spec.finalizers, so that a
 * deleted one remains until the namespace controller has removed its contents. The value of the
 * label kubernetes.io/metadata.name is always the Namespace's name, because selectors of clients
 * rely on it. Only a delete makes a Namespace Terminating.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/names.h"
#include "server/schema/common.h"

static const struct hfd_schema_field spec_fields[] = {
        {"finalizers", HFD_LIST_OF(HFD_NAMED_TEXT(HFD_CORE "FinalizerName")),
         "Names of controllers that must act before the namespace is removed.", .protobuf_tag = 1},
};
static const struct hfd_schema spec_schema = {HFD_STRUCT(HFD_CORE "NamespaceSpec", spec_fields),
                                              .description = "The desired state of a namespace."};

/* Not metav1.Condition: a NamespaceCondition has no observedGeneration. */
static const struct hfd_schema_field condition_fields[] = {
        {"lastTransitionTime", &hfd_schema_time, "When the status last changed.",
         .protobuf_tag = 4},
        {"message", &hfd_schema_text, "Details for a human reader.", .protobuf_tag = 6},
        {"reason", &hfd_schema_text, "Why the status last changed, in one word.",
         .protobuf_tag = 5},
        {"status", HFD_NAMED_TEXT(HFD_CORE "ConditionStatus"), "True, False or Unknown.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", HFD_NAMED_TEXT(HFD_CORE "NamespaceConditionType"), "The type of the condition.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema condition_schema =
        {HFD_STRUCT(HFD_CORE "NamespaceCondition", condition_fields),
         .description = "One aspect of the state of a namespace."};
static const char *const by_type[] = {"type", NULL};

static const struct hfd_schema_field status_fields[] = {
        {"conditions",
         HFD_LIST_OF(&condition_schema, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         "What delays the removal of the namespace.", .merge_key = "type", .protobuf_tag = 2,
         .flags = HFD_FIELD_MERGE},
        {"phase", HFD_NAMED_TEXT(HFD_CORE "NamespacePhase"), "Active or Terminating.",
         .protobuf_tag = 1},
};
static const struct hfd_schema status_schema = {HFD_STRUCT(HFD_CORE "NamespaceStatus",
                                                           status_fields),
                                                .description =
                                                        "The observed state of a namespace."};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &spec_schema, "The desired state.", .protobuf_tag = 2},
        {"status", &status_schema, "The observed state.", .protobuf_tag = 3},
};
const struct hfd_schema hfd_namespace_schema = {HFD_STRUCT(HFD_CORE "Namespace", fields),
                                                .description = "Namespace is a scope for names."};

/* Adds the finalizer "kubernetes" to spec.finalizers, unless it is there already. object has the
 * form of its schema. 0 or -ENOMEM. */
static int add_finalizer(struct hf__json *object) {
        struct hf__json *list = hf__json_path(object, "spec.finalizers");
        int r = 0;

        if (!hf__json_is_array(list)) {
                if (!hf__json_is_object(hf__json_get(object, "spec")))
                        r = hf__json_set(object, "spec", hf__json_object());
                if (r == 0)
                        r = hf__json_set(object, "spec.finalizers", hf__json_array());
                list = hf__json_path(object, "spec.finalizers");
        }
        if (r != 0 || hf__json_has_element(list, "kubernetes"))
                return r;
        return hf__json_append_string(list, "kubernetes");
}

int hfd_namespace_prepare(struct hf__json *object, const struct hf__json *old) {
        const char *name = hf__json_string(object, "metadata.name");
        struct hf__json *labels = hf__json_path(object, "metadata.labels");
        int r = 0;

        if (!hf__json_is_object(labels)) {
                r = hf__json_set(object, "metadata.labels", hf__json_object());
                labels = hf__json_path(object, "metadata.labels");
        }
        if (r == 0 && name)
                r = hf__json_put_string(labels, "kubernetes.io/metadata.name", name);
        if (r == 0 && !old)
                r = add_finalizer(object);
        /* A client must not create a Namespace that is already Terminating. */
        if (r == 0 && !old)
                r = hf__json_set(object, "status", hf__json_object());
        if (r == 0 && !hf__json_string(object, "status.phase"))
                r = hf__json_set_string(object, "status.phase", "Active");
        return r;
}

static bool is_standard_finalizer(const char *name) {
        return strcmp(name, "kubernetes") == 0 || strcmp(name, "orphan") == 0 ||
               strcmp(name, "foregroundDeletion") == 0;
}

/* The phase must follow from the deletionTimestamp. A status that the update does not change is not
 * checked. */
static void validate_phase(const struct hf__json *object, const struct hf__json *old,
                           struct hfd_causes *causes) {
        bool deleting = hf__json_string(object, "metadata.deletionTimestamp") != NULL;
        const char *phase = hf__json_string(object, "status.phase"),
                   *wanted = deleting ? "Terminating" : "Active";

        if (hfd_causes_equal(causes, hf__json_get(object, "status"), hf__json_get(old, "status")) ||
            (phase && strcmp(phase, wanted) == 0))
                return;
        hfd_cause_invalid_text(causes, "status.Phase", phase ? phase : "",
                               deleting ? "may only be 'Terminating' if `deletionTimestamp` is not "
                                          "empty"
                                        : "may only be 'Active' if `deletionTimestamp` is empty");
}

void hfd_namespace_validate(const struct hf__json *object, const struct hf__json *old,
                            struct hfd_causes *causes) {
        size_t i = 0;

        if (old)
                validate_phase(object, old, causes);
        for (const struct hf__json *m = hf__json_first(hf__json_path(object, "spec.finalizers")); m;
             m = hf__json_next(m), i++) {
                const char *name = hf__json_is_string(m) ? hf__json_text(m) : "";
                char field[64];
                if (is_standard_finalizer(name) ||
                    (strchr(name, '/') && hfd_is_qualified_name(name)))
                        continue;
                (void)snprintf(field, sizeof field, "spec.finalizers[%zu]", i);
                hfd_cause_invalid_text(causes, field, name,
                                       "name is neither a standard finalizer name nor is it fully "
                                       "qualified");
        }
}
