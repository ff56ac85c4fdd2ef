/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PriorityClasses. If the workload kinds are served, a new pod gets its priority from its class
 * (registry/write/checks/pod_priority.c). The rules are those of kube-apiserver.
 *
 * Names that begin with "system-" belong to the two classes that every cluster has. The server
 * creates them at its start (server/manifests/phase-0), and registry/write/steps/start.c refuses to
 * delete them. registry/write/checks/priority_default.c checks that only one class is the default,
 * because this depends on other objects.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

#define SCHEDULING "io.k8s.api.scheduling.v1."

#define SYSTEM_PREFIX  "system-"
#define USER_VALUE_MAX 1000000000 /* larger values are for system classes */
#define DEFAULT_POLICY "PreemptLowerPriority"

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        {"description", &hfd_schema_text, "For whom the class is, for a human reader.",
         .protobuf_tag = 4},
        {"globalDefault", &hfd_schema_boolean,
         "Whether pods that name no class get this one. One class at most can be the default.",
         .protobuf_tag = 3},
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"preemptionPolicy", HFD_NAMED_TEXT(HFD_CORE "PreemptionPolicy"),
         "Never, or PreemptLowerPriority: whether pods of this class may displace others.",
         .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
        {"value", &hfd_schema_int32,
         "The priority of the pods of this class. Higher values come first. It cannot be changed.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_priority_class_schema =
        {HFD_STRUCT(SCHEDULING "PriorityClass", fields),
         .description = "PriorityClass maps the name of a priority to its value."};

/* Kubernetes' own classes. Their values are above those of all users' classes. */
static const struct {
        const char *name;
        int64_t value;
} system_classes[] = {{"system-cluster-critical", 2000000000},
                      {"system-node-critical", 2000001000}};
#define N_SYSTEM (sizeof system_classes / sizeof system_classes[0])

bool hfd_is_system_priority_class(const char *name) {
        for (size_t i = 0; i < N_SYSTEM; i++)
                if (strcmp(name, system_classes[i].name) == 0)
                        return true;
        return false;
}

static int64_t value_of(const struct hf__json *object) {
        int64_t value = 0;

        (void)hf__json_i64(object, "value", &value);
        return value;
}

int hfd_priority_class_prepare(struct hf__json *object, const struct hf__json *old) {
        int r = 0;

        /* No has_generation in rows/cluster_kinds.c: as in Kubernetes, no update raises it. */
        if (!old)
                r = hf__json_set_i64(object, "metadata.generation", 1);
        if (r == 0 && !hf__json_get(object, "value"))
                r = hf__json_set_i64(object, "value", 0);
        if (r == 0 && !hf__json_get(object, "preemptionPolicy"))
                r = hf__json_set_string(object, "preemptionPolicy", DEFAULT_POLICY);
        if (r == 0 && !hf__json_bool(object, "globalDefault", false))
                hf__json_drop(object, "globalDefault"); /* Go omits false */
        return r;
}

/* Only the two system classes may have a name with the prefix, and only with their own values. */
static void validate_system_name(const struct hf__json *object, const char *name,
                                 struct hfd_causes *causes) {
        char why[160], detail[280];
        size_t i = 0;

        while (i < N_SYSTEM && strcmp(name, system_classes[i].name) != 0)
                i++;
        if (i == N_SYSTEM)
                (void)snprintf(why, sizeof why, "%.100s is not a known system priority class",
                               name);
        else if (value_of(object) != system_classes[i].value)
                (void)snprintf(why, sizeof why, "value of %s PriorityClass must be %lld", name,
                               (long long)system_classes[i].value);
        else if (hf__json_bool(object, "globalDefault", false))
                (void)snprintf(why, sizeof why, "globalDefault of %s PriorityClass must be false",
                               name);
        else
                return;
        (void)snprintf(detail, sizeof detail,
                       "priority class names with '" SYSTEM_PREFIX
                       "' prefix are reserved for system use only. error: %s",
                       why);
        hfd_cause_forbidden(causes, "metadata.name", detail);
}

static void validate_policy(const char *policy, struct hfd_causes *causes) {
        if (!*policy)
                hfd_cause_required(causes, "preemptionPolicy", "");
        else if (strcmp(policy, DEFAULT_POLICY) != 0 && strcmp(policy, "Never") != 0)
                hfd_cause_unsupported_text(causes, "preemptionPolicy", policy,
                                           "\"PreemptLowerPriority\", \"Never\"");
}

/* Pods have copied the value and the policy, so a change would be true for new pods only. */
static void validate_update(const struct hf__json *object, const struct hf__json *old,
                            const char *policy, struct hfd_causes *causes) {
        const char *old_policy = hf__json_string(old, "preemptionPolicy");

        if (value_of(object) != value_of(old))
                hfd_cause_forbidden(causes, "value", "may not be changed in an update.");
        if (strcmp(policy, old_policy ? old_policy : DEFAULT_POLICY) != 0)
                hfd_cause_invalid_text(causes, "preemptionPolicy", policy, "field is immutable");
}

void hfd_priority_class_validate(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes) {
        const char *name = hf__json_string(object, "metadata.name"),
                   *policy = hf__json_string(object, "preemptionPolicy");
        char detail[80];

        assert(policy); /* prepare has set it */
        if (old) {
                validate_update(object, old, policy, causes);
                return;
        }
        if (name && strncmp(name, SYSTEM_PREFIX, strlen(SYSTEM_PREFIX)) == 0) {
                validate_system_name(object, name, causes);
        } else if (value_of(object) > USER_VALUE_MAX) {
                (void)snprintf(detail, sizeof detail,
                               "maximum allowed value of a user defined priority is %d",
                               USER_VALUE_MAX);
                hfd_cause_forbidden(causes, "value", detail);
        }
        validate_policy(policy, causes);
}
