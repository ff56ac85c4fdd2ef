/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a pod template and of its spec. Other files of this folder have the rules of
 * volumes, containers and tolerations.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Rules that only pods have are not here, but in the folder
 * workloads/pods, except the one for images of volumes (of_pod).
 */
#include "server/resources/strategies/pod/rules/pod_validation.h"

#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/validation/meta_validation.h"

static const char *const restart_policies[] = {"Always", "OnFailure", "Never", NULL};
static const char *const dns_policies[] = {"ClusterFirstWithHostNet", "ClusterFirst", "Default",
                                           "None", NULL};
static const char *const preemption_policies[] = {"PreemptLowerPriority", "Never", NULL};

/* Checks that members with the name of another object are DNS subdomains. "" counts as absent.
 * names ends with NULL. */
static void validate_names(const struct hf__json *spec, const char *field, const char *const *names,
                           struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        for (; *names; names++)
                if (*hfd_text_of(spec, *names))
                        hfd_subdomain_validate(hfd_text_of(spec, *names),
                                               hfd_field_path(path, field, *names), causes);
}

static void validate_tolerations(const struct hf__json *list, const char *field,
                                 struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                hfd_toleration_validate(m, hfd_field_index(path, field, i++), causes);
}

void hfd_pod_spec_validate(const struct hf__json *spec, const char *field, bool of_pod,
                           struct hfd_causes *causes) {
        static const char *const of_node[] = {"serviceAccountName", "nodeName", NULL},
                                 *const of_classes[] = {"priorityClassName", "runtimeClassName",
                                                        NULL};
        struct hf__json_index volumes;
        char path[HFD_FIELD_PATH_MAX];

        hfd_volumes_validate(spec, field, of_pod, &volumes, causes);
        hfd_device_claims_validate(hf__json_get(spec, "resourceClaims"),
                                   hfd_field_path(path, field, "resourceClaims"), causes);
        hfd_containers_validate(spec, field, &volumes, causes);
        hf__json_index_done(&volumes);
        hfd_host_network_validate(spec, field, causes);
        hfd_require_one_of(spec, field, "restartPolicy", restart_policies, causes);
        hfd_require_one_of(spec, field, "dnsPolicy", dns_policies, causes);
        hfd_labels_validate(hf__json_get(spec, "nodeSelector"),
                            hfd_field_path(path, field, "nodeSelector"), causes);
        hfd_pod_security_validate(spec, field, causes);
        hfd_affinity_validate(hf__json_get(spec, "affinity"),
                              hfd_field_path(path, field, "affinity"), causes);
        hfd_dns_validate(spec, field, causes);
        hfd_gates_validate(spec, field, causes);
        hfd_spread_validate(hf__json_get(spec, "topologySpreadConstraints"),
                            hfd_field_path(path, field, "topologySpreadConstraints"), causes);
        hfd_host_processes_validate(spec, field, causes);
        hfd_host_users_validate(spec, field, causes);
        hfd_hostname_override_validate(spec, field, causes);
        validate_names(spec, field, of_node, causes);
        hfd_require_range(spec, field, "activeDeadlineSeconds", 1, INT32_MAX,
                          "must be between 1 and 2147483647, inclusive", causes);
        if (*hfd_text_of(spec, "hostname"))
                hfd_label_name_validate(spec, field, "hostname", causes);
        if (*hfd_text_of(spec, "subdomain"))
                hfd_label_name_validate(spec, field, "subdomain", causes);
        validate_tolerations(hf__json_get(spec, "tolerations"),
                             hfd_field_path(path, field, "tolerations"), causes);
        hfd_host_aliases_validate(hf__json_get(spec, "hostAliases"),
                                  hfd_field_path(path, field, "hostAliases"), causes);
        validate_names(spec, field, of_classes, causes);
        if (hf__json_get(spec, "preemptionPolicy"))
                hfd_require_one_of(spec, field, "preemptionPolicy", preemption_policies, causes);
        hfd_overhead_validate(hf__json_get(spec, "overhead"),
                              hfd_field_path(path, field, "overhead"), causes);
        hfd_os_validate(spec, field, causes);
        hfd_file_volumes_validate(spec, field, causes);
}

void hfd_pod_template_spec_validate(const struct hf__json *template, const char *field,
                                    struct hfd_causes *causes) {
        const struct hf__json *meta = hf__json_get(template, "metadata"),
                              *spec = hf__json_get(template, "spec"),
                              *annotations = hf__json_get(meta, "annotations");
        char of_spec[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        hfd_labels_validate(hf__json_get(meta, "labels"), hfd_field_path(path, field, "labels"),
                            causes);
        hfd_annotations_validate(annotations, hfd_field_path(path, field, "annotations"), causes);
        hfd_app_armor_annotations_validate(annotations, spec, path, causes);
        hfd_field_path(of_spec, field, "spec");
        hfd_pod_spec_validate(spec, of_spec, false, causes);
        hfd_app_armor_match_validate(annotations, spec, of_spec, causes);
        if (hf__json_first(hf__json_get(spec, "ephemeralContainers")))
                hfd_cause_forbidden(causes, hfd_field_path(path, of_spec, "ephemeralContainers"),
                                    "ephemeral containers not allowed in pod template");
}
