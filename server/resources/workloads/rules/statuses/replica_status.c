/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the statuses of Deployments, ReplicaSets, ReplicationControllers, StatefulSets,
 * DaemonSets, disruption budgets and autoscalers. They refuse numbers of pods that cannot be true,
 * and bad conditions of budgets. No controller of this server writes these statuses; controllers in
 * other programs do.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. A write that does not change the status is not checked: the
 * status may have been stored before these rules existed, and .../status also writes metadata.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/names.h"
#include "server/resources/workloads/workloads.h"

#define REASON_MAX  1024        /* bytes of the reason of a condition */
#define MESSAGE_MAX (32 * 1024) /* bytes of its message */

static const char not_negative[] = "must be greater than or equal to 0";

bool hfd_status_is_kept(const struct hfd_schema *schema, const struct hf__json *object,
                        const struct hf__json *old, struct hfd_causes *causes) {
        return hfd_causes_equal_member(causes, schema, object, old, "status");
}

int64_t hfd_status_number(const struct hf__json *status, const char *name) {
        int64_t n = 0;

        (void)hf__json_integer(hf__json_get(status, name), &n);
        return n;
}

void hfd_status_refuse_number(const struct hf__json *status, const char *name, const char *detail,
                              struct hfd_causes *causes) {
        char field[HFD_FIELD_PATH_MAX], shown[24];

        (void)snprintf(shown, sizeof shown, "%" PRId64, hfd_status_number(status, name));
        hfd_cause_invalid(causes, hfd_field_path(field, "status", name), shown, detail);
}

/* ---- numbers of pods ---- */

/* What the numbers of a status must fulfil. An absent number is 0, as in Go. */
struct numbers {
        const char *const *names;   /* none is negative; ends with NULL */
        const char *const *bounded; /* none is greater than `replicas`; NULL, or ends with NULL */
        /* The text of the cause for more available pods than ready ones; NULL = no such rule. */
        const char *too_available;
        bool counts_collisions; /* collisionCount never falls: lower ones gave names that collide */
};

/* The caller has looked whether the status is kept. */
static void validate_numbers(const struct hf__json *status, const struct hf__json *was,
                             const struct numbers *rules, struct hfd_causes *causes) {
        static const char collisions[] = "collisionCount", available[] = "availableReplicas";

        for (const char *const *name = rules->names; *name; name++)
                hfd_require_range(status, "status", *name, 0, INT64_MAX, not_negative, causes);
        for (const char *const *name = rules->bounded; name && *name; name++)
                if (hfd_status_number(status, *name) > hfd_status_number(status, "replicas"))
                        hfd_status_refuse_number(status, *name,
                                                 "cannot be greater than status.replicas", causes);
        if (rules->too_available &&
            hfd_status_number(status, available) > hfd_status_number(status, "readyReplicas"))
                hfd_status_refuse_number(status, available, rules->too_available, causes);
        /* To remove a count of 0 is to lower it, too. */
        if (rules->counts_collisions && hf__json_get(was, collisions) &&
            (!hf__json_get(status, collisions) ||
             hfd_status_number(status, collisions) < hfd_status_number(was, collisions)))
                hfd_status_refuse_number(status, collisions, "cannot be decremented", causes);
}

/* For a kind whose status has no rules but those of its numbers. */
static void validate_counts(const struct hfd_schema *schema, const struct hf__json *object,
                            const struct hf__json *old, const struct numbers *rules,
                            struct hfd_causes *causes) {
        if (!hfd_status_is_kept(schema, object, old, causes))
                validate_numbers(hf__json_get(object, "status"), hf__json_get(old, "status"), rules,
                                 causes);
}

void hfd_deployment_validate_status(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes) {
        static const char *const
                names[] = {"observedGeneration",  "replicas",          "updatedReplicas",
                           "readyReplicas",       "availableReplicas", "unavailableReplicas",
                           "terminatingReplicas", "collisionCount",    NULL},
                *const bounded[] = {"updatedReplicas", "readyReplicas", "availableReplicas", NULL};
        static const struct numbers rules = {names, bounded, "cannot be greater than readyReplicas",
                                             true};

        validate_counts(&hfd_deployment_schema, object, old, &rules, causes);
}

/* ReplicationControllers have the same rules. */
void hfd_replica_set_validate_status(const struct hf__json *object, const struct hf__json *old,
                                     struct hfd_causes *causes) {
        static const char *const names[] = {"replicas",
                                            "fullyLabeledReplicas",
                                            "readyReplicas",
                                            "availableReplicas",
                                            "observedGeneration",
                                            "terminatingReplicas",
                                            NULL},
                                 *const bounded[] = {"fullyLabeledReplicas", "readyReplicas",
                                                     "availableReplicas", NULL};
        static const struct numbers rules = {names, bounded, "cannot be greater than readyReplicas",
                                             false};

        validate_counts(&hfd_replica_set_schema, object, old, &rules, causes);
}

void hfd_stateful_set_validate_status(const struct hf__json *object, const struct hf__json *old,
                                      struct hfd_causes *causes) {
        static const char *const names[] = {"replicas",          "readyReplicas",
                                            "currentReplicas",   "updatedReplicas",
                                            "availableReplicas", "observedGeneration",
                                            "collisionCount",    NULL},
                                 *const bounded[] = {"readyReplicas", "currentReplicas",
                                                     "updatedReplicas", "availableReplicas", NULL};
        static const struct numbers rules = {names, bounded,
                                             "cannot be greater than status.readyReplicas", true};

        validate_counts(&hfd_stateful_set_schema, object, old, &rules, causes);
}

void hfd_daemon_set_validate_status(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes) {
        static const char *const names[] = {"currentNumberScheduled", "numberMisscheduled",
                                            "desiredNumberScheduled", "numberReady",
                                            "observedGeneration",     "updatedNumberScheduled",
                                            "numberAvailable",        "numberUnavailable",
                                            "collisionCount",         NULL};
        static const struct numbers rules = {.names = names, .counts_collisions = true};

        validate_counts(&hfd_daemon_set_schema, object, old, &rules, causes);
}

/* The status of an autoscaler has both numbers in v1 and in v2, so either schema will do. */
void hfd_autoscaler_validate_status(const struct hf__json *object, const struct hf__json *old,
                                    struct hfd_causes *causes) {
        static const char *const names[] = {"currentReplicas", "desiredReplicas", NULL};
        static const struct numbers rules = {.names = names};

        validate_counts(&hfd_horizontal_pod_autoscaler_schema, object, old, &rules, causes);
}

/* ---- conditions of budgets ---- */

/* The reason of a condition is a word for programs: it begins with a letter, and ends with a
 * letter, a digit or '_'; ',' and ':' are allowed in between. */
static bool is_reason(const char *text) {
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
                          more[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "0123456789_,:";
        size_t n = strlen(text);

        return n > 0 && strchr(letters, text[0]) && strspn(text, more) == n && text[n - 1] != ',' &&
               text[n - 1] != ':';
}

static void validate_reason(const char *reason, const char *field, struct hfd_causes *causes) {
        if (!*reason)
                hfd_cause_required(causes, field, "");
        else if (!is_reason(reason))
                hfd_cause_invalid_text(causes, field, reason,
                                       "a condition reason must start with alphabetic character, "
                                       "optionally followed by a string of alphanumeric characters "
                                       "or '_,:', and must end with an alphanumeric character or "
                                       "'_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or "
                                       "'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for "
                                       "validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')");
        if (strlen(reason) > REASON_MAX)
                hfd_cause_too_long(causes, field, "may not be more than 1024 bytes");
}

/* field: the path of the condition. */
static void validate_condition(const struct hf__json *condition, const char *field,
                               struct hfd_causes *causes) {
        const char *type = hfd_text_of(condition, "type"),
                   *status = hfd_text_of(condition, "status");
        char path[HFD_FIELD_PATH_MAX];

        if (!hfd_is_qualified_name(type))
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "type"), type,
                                       hfd_qualified_name_rule);
        if (strcmp(status, "True") != 0 && strcmp(status, "False") != 0 &&
            strcmp(status, "Unknown") != 0)
                hfd_cause_unsupported_text(causes, hfd_field_path(path, field, "status"), status,
                                           "\"False\", \"True\", \"Unknown\"");
        hfd_require_range(condition, field, "observedGeneration", 0, INT64_MAX,
                          "must be greater than or equal to zero", causes);
        if (!*hfd_text_of(condition, "lastTransitionTime"))
                hfd_cause_required(causes, hfd_field_path(path, field, "lastTransitionTime"), "");
        validate_reason(hfd_text_of(condition, "reason"), hfd_field_path(path, field, "reason"),
                        causes);
        if (strlen(hfd_text_of(condition, "message")) > MESSAGE_MAX)
                hfd_cause_too_long(causes, hfd_field_path(path, field, "message"),
                                   "may not be more than 32768 bytes");
}

void hfd_budget_validate_status(const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes) {
        static const char *const names[] = {"disruptionsAllowed", "currentHealthy",
                                            "desiredHealthy", "expectedPods", NULL};
        static const struct numbers rules = {.names = names};
        const struct hf__json *list = hf__json_path(object, "status.conditions");
        char field[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        struct hf__json_index types;
        size_t i = 0;

        if (hfd_status_is_kept(&hfd_pod_disruption_budget_schema, object, old, causes))
                return;
        bool is_indexed = hfd_causes_check(causes, hf__json_index_init(&types, list, "type"));
        for (const struct hf__json *m = hf__json_first(list); m && is_indexed;
             m = hf__json_next(m), i++) {
                const char *type = hfd_text_of(m, "type");
                const struct hf__json_index_entry *first = hf__json_index_find(&types, type);
                hfd_field_index(field, "status.conditions", i);
                if (first && first->position < i)
                        hfd_cause_duplicate_text(causes, hfd_field_path(path, field, "type"), type);
                validate_condition(m, field, causes);
        }
        hf__json_index_done(&types);
        validate_numbers(hf__json_get(object, "status"), NULL, &rules, causes);
}
