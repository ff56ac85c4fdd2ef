/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status of a pod: its rules, and its two members for addresses. A container that has ended for
 * good does not run again: clients have taken its exit code for the result.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. If a write does not change the status, only the annotations of
 * the pod are checked (hfd_status_is_kept). The time grows with n log n: a client chooses how many
 * containers a status names.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/schema.h"

/* ---- whether a container may run again ---- */

/* Whether the rule of a container (restartPolicyRules) applies to an exit code. */
static bool rule_applies(const struct hf__json *rule, int64_t exit_code) {
        const struct hf__json *codes = hf__json_get(rule, "exitCodes");
        const char *operator= hfd_text_of(codes, "operator");
        bool is_listed = false;
        int64_t code;

        for (const struct hf__json *m = hf__json_first(hf__json_get(codes, "values")); m;
             m = hf__json_next(m))
                is_listed = is_listed || (hf__json_integer(m, &code) && code == exit_code);
        return (strcmp(operator, "In") == 0 && is_listed) ||
               (strcmp(operator, "NotIn") == 0 && !is_listed);
}

/* The first rule that applies decides, then the policy of the container, then that of the pod. Only
 * a container with a policy may have rules. */
static bool may_run_again(const struct hf__json *container, const char *pod_policy,
                          int64_t exit_code) {
        const char *policy = hfd_text_of(container, "restartPolicy");
        const struct hf__json *rule = hf__json_first(hf__json_get(container, "restartPolicyRules"));

        while (*policy && rule && !rule_applies(rule, exit_code))
                rule = hf__json_next(rule);
        if (*policy && rule &&
            (hf__json_has_text(rule, "action", "Restart") ||
             hf__json_has_text(rule, "action", "RestartAllContainers")))
                return true;
        if (!*policy)
                policy = pod_policy;
        return strcmp(policy, "Never") != 0 && (strcmp(policy, "OnFailure") != 0 || exit_code != 0);
}

/* Whether the end of one container may restart all containers of the pod except ephemeral ones. */
static bool all_may_run_again(const struct hf__json *spec) {
        static const char *const lists[] = {"initContainers", "containers"};

        for (size_t i = 0; i < 2; i++)
                for (const struct hf__json *c = hf__json_first(hf__json_get(spec, lists[i])); c;
                     c = hf__json_next(c))
                        if (hf__json_element_with(hf__json_get(c, "restartPolicyRules"), "action",
                                                  "RestartAllContainers"))
                                return true;
        return false;
}

/* Sets the item of the first entry of a name to NULL if a status of this name has another state
 * than "terminated". A name may occur many times in the old and in the new statuses, so this is
 * found once for all. */
static void mark_left_ends(struct hf__json_index *statuses) {
        struct hf__json_index_entry *first = statuses->entries;

        for (size_t i = 0; i < statuses->n; i++) {
                struct hf__json_index_entry *m = &statuses->entries[i];
                if (strcmp(m->text, first->text) != 0)
                        first = m;
                if (!hf__json_path(m->item, "state.terminated"))
                        first->item = NULL;
        }
}

/* Walks the old statuses of one list. containers: the index of the containers by their names; NULL:
 * none of them may run again, which holds for ephemeral ones. */
static void validate_states(const struct hf__json *object, const struct hf__json *old,
                            const char *list, const struct hf__json_index *containers,
                            struct hfd_causes *causes) {
        const char *policy = hf__json_string(old, "spec.restartPolicy");
        const struct hf__json *was = hf__json_path(old, list);
        struct hf__json_index statuses;
        char element[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        bool is_indexed =
                hfd_causes_check(causes, hf__json_index_init(&statuses, hf__json_path(object, list),
                                                             "name"));
        if (is_indexed)
                mark_left_ends(&statuses);
        for (const struct hf__json *m = hf__json_first(was); m && is_indexed;
             m = hf__json_next(m), i++) {
                const char *name = hfd_text_of(m, "name");
                const struct hf__json_index_entry *container =
                        containers ? hf__json_index_find(containers, name) : NULL;
                const struct hf__json_index_entry *now = hf__json_index_find(&statuses, name);
                int64_t exit_code = 0;

                if (!hf__json_path(m, "state.terminated") || !now || now->item)
                        continue;
                (void)hf__json_i64(m, "state.terminated.exitCode", &exit_code);
                if (container && may_run_again(container->item, policy ? policy : "", exit_code))
                        continue;
                hfd_field_index(element, list, i);
                hfd_cause_forbidden(causes, hfd_field_path(path, element, "state"),
                                    "may not be transitioned to non-terminated state");
        }
        hf__json_index_done(&statuses);
}

static void validate_containers(const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes) {
        static const char *const lists[] = {"containers", "initContainers"},
                                 *const statuses[] = {"status.containerStatuses",
                                                      "status.initContainerStatuses"};
        const struct hf__json *spec = hf__json_get(old, "spec");
        struct hf__json_index containers;
        bool all = all_may_run_again(spec);

        for (size_t i = 0; i < 2 && !all; i++) {
                if (hfd_causes_check(causes,
                                     hf__json_index_init(&containers, hf__json_get(spec, lists[i]),
                                                         "name")))
                        validate_states(object, old, statuses[i], &containers, causes);
                hf__json_index_done(&containers);
        }
        validate_states(object, old, "status.ephemeralContainerStatuses", NULL, causes);
}

/* ---- the other members ---- */

static void validate_conditions(const struct hf__json *list, struct hfd_causes *causes) {
        static const char *const known[] = {"PodScheduled", "Ready", "Initialized"};
        char element[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t at = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                const char *type = hfd_text_of(m, "type");
                size_t i = 0;

                hfd_field_index(element, "status.conditions", at++);
                hfd_require_range(m, element, "observedGeneration", 0, INT64_MAX,
                                  "must be a non-negative integer", causes);
                while (i < 3 && strcmp(known[i], type) != 0)
                        i++;
                /* kube-apiserver writes "Type", not "type". */
                if (i == 3)
                        hfd_qualified_name_validate(type, hfd_field_path(path, element, "Type"),
                                                    causes);
        }
}

/* The node that the scheduler intends for the pod, until the pod is bound to one. */
static void validate_nominated(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes) {
        static const char field[] = "status.nominatedNodeName";
        const char *name = hf__json_string(object, field), *was = hf__json_string(old, field),
                   *bound = hf__json_string(old, "spec.nodeName");

        if (!name || !*name || (was && strcmp(name, was) == 0))
                return;
        hfd_subdomain_validate(name, field, causes);
        if (bound && *bound)
                hfd_cause_forbidden(causes, field,
                                    "may not be set on pods that are already bound to a node");
}

static void validate_class(const struct hf__json *object, const struct hf__json *old,
                           struct hfd_causes *causes) {
        static const char field[] = "status.qosClass";
        const char *class = hf__json_string(object, field), *was = hf__json_string(old, field);

        if (class && was && strcmp(class, was) != 0)
                hfd_cause_invalid_text(causes, field, class, "field is immutable");
}

/* Each claim that was made for the pod belongs to an entry of its spec. */
static void validate_claims(const struct hf__json *list, const struct hf__json *claims,
                            struct hfd_causes *causes) {
        struct hf__json_index names, own;
        char element[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;
        bool is_indexed = hfd_causes_check(causes, hf__json_index_init(&names, claims, "name"));

        is_indexed =
                hfd_causes_check(causes, hf__json_index_init(&own, list, "name")) && is_indexed;
        for (const struct hf__json *m = hf__json_first(list); m && is_indexed;
             m = hf__json_next(m), i++) {
                const char *name = hfd_text_of(m, "name"),
                           *claim = hfd_text_of(m, "resourceClaimName");
                const struct hf__json_index_entry *first = hf__json_index_find(&own, name);

                hfd_field_path(path, hfd_field_index(element, "status.resourceClaimStatuses", i),
                               "name");
                if (!hf__json_index_find(&names, name))
                        hfd_cause_invalid_text(causes, path, name,
                                               "must match the name of an entry in "
                                               "`spec.resourceClaims`");
                if (first && first->position < i)
                        hfd_cause_duplicate_text(causes, path, name);
                if (hf__json_get(m, "resourceClaimName"))
                        hfd_subdomain_validate(claim,
                                               hfd_field_path(path, element, "resourceClaimName"),
                                               causes);
        }
        hf__json_index_done(&own);
        hf__json_index_done(&names);
}

static void validate_addresses(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes) {
        const struct hf__json *hosts = hf__json_path(object, "status.hostIPs"),
                              *first = hf__json_first(hosts);
        const char *host = hf__json_string(object, "status.hostIP"), *ip = hfd_text_of(first, "ip");

        hfd_pod_addresses_validate(hf__json_path(object, "status.podIPs"),
                                   hf__json_path(old, "status.podIPs"), "status.podIPs", causes);
        if (first && strcmp(host ? host : "", ip) != 0)
                hfd_cause_invalid_text(causes, "status.hostIPs[0].ip", ip,
                                       "must be equal to `hostIP`");
        hfd_pod_addresses_validate(hosts, hf__json_path(old, "status.hostIPs"), "status.hostIPs",
                                   causes);
}

/* Inside kube-apiserver there is only the list podIPs, and podIP shows its first element. Older
 * clients write podIP alone, so it wins if both differ. */
int hfd_pod_set_addresses(struct hf__json *object) {
        const char *ip = hf__json_string(object, "status.podIP"),
                   *first = hf__json_string(hf__json_first(hf__json_path(object, "status.podIPs")),
                                            "ip");
        struct hf__json *list, *element;

        if (!ip || !*ip)
                return first ? hf__json_set_string(object, "status.podIP", first) : 0;
        if (first && strcmp(ip, first) == 0)
                return 0;
        list = hf__json_array();
        element = hf__json_object();
        int r = list && element ? hf__json_put_string(element, "ip", ip) : -ENOMEM;
        if (r == 0) {
                r = hf__json_append(list, element);
                element = NULL;
        }
        hf__json_free(element);
        if (r == 0)
                return hf__json_set(object, "status.podIPs", list);
        hf__json_free(list);
        return r;
}

/* Whether the write leaves the member of the status as it is. */
static bool keeps(const struct hf__json *object, const struct hf__json *old, const char *member,
                  struct hfd_causes *causes) {
        return hfd_causes_equal_member(causes, hfd_schema_of_member(&hfd_pod_schema, "status"),
                                       hf__json_get(object, "status"), hf__json_get(old, "status"),
                                       member);
}

/* The two members for claims, which the scheduler and the controller of claims write, are checked
 * only if they change: a kubelet reports often, and patches other members. */
void hfd_pod_validate_status(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes) {
        const struct hf__json *status = hf__json_get(object, "status");

        hfd_pod_validate_annotations(object, old, causes);
        if (hfd_status_is_kept(&hfd_pod_schema, object, old, causes))
                return;
        validate_conditions(hf__json_get(status, "conditions"), causes);
        validate_nominated(object, old, causes);
        hfd_require_range(status, "status", "observedGeneration", 0, INT64_MAX,
                          "must be a non-negative integer", causes);
        validate_class(object, old, causes);
        validate_containers(object, old, causes);
        if (!keeps(object, old, "resourceClaimStatuses", causes))
                validate_claims(hf__json_get(status, "resourceClaimStatuses"),
                                hf__json_path(object, "spec.resourceClaims"), causes);
        if (!keeps(object, old, "extendedResourceClaimStatus", causes))
                hfd_extended_claim_validate(object, causes);
        validate_addresses(object, old, causes);
        hfd_container_users_validate(object, causes);
        hfd_device_health_validate(object, causes);
}
