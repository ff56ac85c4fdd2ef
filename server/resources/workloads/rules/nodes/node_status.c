/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the statuses of Nodes, which kubelets report.
 *
 * Invariants: the texts of the causes, their fields and their order are those of kube-apiserver,
 * because clients show them and tests compare them. So the field of the swap begins with
 * "metadata". A write of the status checks only the members that it changes.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/names.h"
#include "server/resources/validation/resource_names.h"
#include "server/resources/workloads/rules/nodes/element_pairs.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/schema.h"

static void validate_resources(const struct hf__json *status, const char *member,
                               struct hfd_causes *causes) {
        char field[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        hfd_field_path(field, "status", member);
        for (const struct hf__json *m = hf__json_first(hf__json_get(status, member)); m;
             m = hf__json_next(m))
                hfd_resource_value_validate(hf__json_key(m), m,
                                            hfd_field_path(path, field, hf__json_key(m)), causes);
}

/* "MyFeature" or "MyFeature/myPart": segments of letters and digits. Each begins with a letter, the
 * first one with a capital letter. */
static bool is_feature(const char *name) {
        if (!isupper((unsigned char)*name))
                return false;
        for (const char *c = name; *c; c++) {
                bool begins = c == name || c[-1] == '/';
                if (begins ? !isalpha((unsigned char)*c)
                           : !isalnum((unsigned char)*c) && (*c != '/' || !c[1]))
                        return false;
        }
        return true;
}

static void validate_feature(const char *name, const char *field, struct hfd_causes *causes) {
        char why[600], quoted[300];
        bool is_long = strlen(name) > HFD_DNS_SUBDOMAIN_MAX;

        if (!is_long && is_feature(name))
                return;
        hfd_quote(name, quoted, sizeof quoted);
        (void)snprintf(why, sizeof why, "invalid feature name %s: %s", quoted,
                       is_long ? "must be no more than 253 characters"
                               : "must start with an UpperCamelCase segment, with subsequent "
                                 "segments separated by '/' (e.g., MyFeature or "
                                 "MyFeature/mySubFeature), and contain only alphanumeric "
                                 "characters and slashes");
        hfd_cause_invalid_text(causes, field, name, why);
}

/* The list must be sorted, so that nodes with the same features have the same list. If two
 * neighbours are in the wrong order, the cause names the second. */
static void validate_features(const struct hf__json *features, struct hfd_causes *causes) {
        static const char list[] = "status.declaredFeatures";
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(features); m; m = hf__json_next(m)) {
                const char *name = hf__json_text_or_empty(m),
                           *next = hf__json_text_or_empty(hf__json_next(m));
                validate_feature(name, hfd_field_index(path, list, i++), causes);
                hfd_field_index(path, list, i);
                if (hf__json_next(m) && strcmp(name, next) == 0)
                        hfd_cause_duplicate_text(causes, path, next);
                else if (hf__json_next(m) && strcmp(name, next) > 0)
                        hfd_cause_invalid_text(causes, path, next,
                                               "list must be sorted alphabetically");
        }
}

static void validate_addresses(const struct hf__json *addresses, struct hfd_causes *causes) {
        static const char list[] = "status.addresses";
        const struct hfd_schema *schema =
                hfd_schema_of_member(hfd_schema_of_member(&hfd_node_schema, "status"), "addresses");
        char path[HFD_FIELD_PATH_MAX];
        struct hfd_element_pairs pairs;
        size_t i = 0;

        if (!hfd_causes_check(causes, hfd_element_pairs_init(&pairs, addresses, "type", "address")))
                return;
        for (const struct hf__json *m = hf__json_first(addresses); m; m = hf__json_next(m), i++)
                if (hfd_element_pairs_repeat(&pairs))
                        hfd_element_refuse_repeated(schema, m, hfd_field_index(path, list, i), NULL,
                                                    causes);
        hfd_element_pairs_done(&pairs);
}

void hfd_node_first_status_validate(const struct hf__json *node, struct hfd_causes *causes) {
        const struct hf__json *status = hf__json_get(node, "status");

        validate_resources(status, "capacity", causes);
        validate_resources(status, "allocatable", causes);
        hfd_require_range(hf__json_path(status, "nodeInfo.swap"), "metadata.nodeSwapStatus",
                          "capacity", 1, INT64_MAX, "must be greater than zero", causes);
        validate_features(hf__json_get(status, "declaredFeatures"), causes);
}

/* Kubernetes checks the swap only when a node is created, and the addresses only here. A member
 * that stays as it was is not checked: a kubelet writes its heartbeat with a patch, and what was
 * stored beside it before there were rules must not make the node seem dead. */
void hfd_node_validate_status(const struct hf__json *object, const struct hf__json *old,
                              struct hfd_causes *causes) {
        static const char *const of_resources[] = {"capacity", "allocatable"};
        const struct hfd_schema *schema = hfd_schema_of_member(&hfd_node_schema, "status");
        const struct hf__json *status = hf__json_get(object, "status"),
                              *was = hf__json_get(old, "status");

        for (size_t i = 0; i < sizeof of_resources / sizeof of_resources[0]; i++)
                if (!hfd_causes_equal_member(causes, schema, status, was, of_resources[i]))
                        validate_resources(status, of_resources[i], causes);
        if (!hfd_causes_equal_member(causes, schema, status, was, "declaredFeatures"))
                validate_features(hf__json_get(status, "declaredFeatures"), causes);
        if (!hfd_causes_equal_member(causes, schema, status, was, "addresses"))
                validate_addresses(hf__json_get(status, "addresses"), causes);
}
