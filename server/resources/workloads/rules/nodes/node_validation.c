/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of Nodes, except those of their statuses (node_status.c).
 *
 * Invariants: the texts of the causes, their fields and their order are those of kube-apiserver,
 * because clients show them and tests compare them. So the fields of taints begin with
 * "metadata". An update checks only what it changes: a node that was stored before these rules
 * existed can still be cordoned.
 *
 * Not checked are two annotations of early versions of Kubernetes: one had the taints of a node
 * before there was a field, the other one the pods that it should avoid.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/workloads/addresses.h"
#include "server/resources/workloads/rules/nodes/element_pairs.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/schema.h"

/* ---- taints ---- */

static void validate_taint(const struct hf__json *taint, const char *field,
                           struct hfd_causes *causes) {
        static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
        char path[HFD_FIELD_PATH_MAX];

        hfd_qualified_name_validate(hfd_text_of(taint, "key"), hfd_field_path(path, field, "key"),
                                    causes);
        hfd_taint_value_validate(hfd_text_of(taint, "value"), hfd_field_path(path, field, "value"),
                                 causes);
        hfd_require_one_of(taint, field, "effect", effects, causes);
}

static void validate_taints(const struct hf__json *taints, struct hfd_causes *causes) {
        static const char list[] = "metadata.taints"; /* Kubernetes' mistake */
        const struct hfd_schema *schema =
                hfd_schema_of_member(hfd_schema_of_member(&hfd_node_schema, "spec"), "taints");
        char path[HFD_FIELD_PATH_MAX];
        struct hfd_element_pairs pairs;
        size_t i = 0;

        if (!hfd_causes_check(causes, hfd_element_pairs_init(&pairs, taints, "effect", "key")))
                return;
        for (const struct hf__json *m = hf__json_first(taints); m; m = hf__json_next(m)) {
                validate_taint(m, hfd_field_index(path, list, i++), causes);
                if (hfd_element_pairs_repeat(&pairs))
                        hfd_element_refuse_repeated(schema, m, path,
                                                    "taints must be unique by key and effect pair",
                                                    causes);
        }
        hfd_element_pairs_done(&pairs);
}

/* ---- ranges for pods ---- */

static const char cidrs_field[] = "spec.podCIDRs";

int hfd_node_set_cidrs(struct hf__json *node) {
        const char *one = hf__json_string_or_empty(node, "spec.podCIDR");
        const struct hf__json *first = hf__json_first(hf__json_path(node, cidrs_field));
        struct hf__json *list;

        if (!*one)
                return first ? hf__json_set_string(node, "spec.podCIDR",
                                                   hf__json_text_or_empty(first))
                             : 0;
        if (first && strcmp(one, hf__json_text_or_empty(first)) == 0)
                return 0;
        list = hf__json_array();
        int r = list ? hf__json_append_string(list, one) : -ENOMEM;
        if (r == 0)
                return hf__json_set(node, cidrs_field, list);
        hf__json_free(list);
        return r;
}

/* Adds the cause for a text, one of several, that is no CIDR; i is its position. Returns true, for
 * is_unknown. Go shows an address that could not be parsed as <nil>. */
static bool refuse_unknown_family(size_t i, const char *text, struct hfd_causes *causes) {
        char why[400];

        (void)snprintf(why, sizeof why,
                       "Internal error: invalid PodCIDRs. failed to check with dual stack with "
                       "error:invalid CIDR[%zu]: <nil> (invalid CIDR address: %.200s)",
                       i, text);
        hfd_cause_add(causes, "InternalError", cidrs_field, why);
        return true;
}

/* At most one range of each family. */
static void validate_cidrs(const struct hf__json *cidrs, struct hfd_causes *causes) {
        size_t n = hf__json_count(cidrs), i = 0;
        bool has_ipv4 = false, has_ipv6 = false, is_unknown = false;
        char path[HFD_FIELD_PATH_MAX], shown[300];
        struct hfd_cidr cidr;

        for (const struct hf__json *m = hf__json_first(cidrs); m; m = hf__json_next(m))
                (void)hfd_cidr_validate(hf__json_text_or_empty(m),
                                        hfd_field_index(path, cidrs_field, i++), &cidr, causes);
        if (n < 2)
                return;
        i = 0;
        for (const struct hf__json *m = hf__json_first(cidrs); m && !is_unknown;
             m = hf__json_next(m), i++) {
                if (!hfd_cidr_parse(hf__json_text_or_empty(m), &cidr))
                        is_unknown = refuse_unknown_family(i, hf__json_text_or_empty(m), causes);
                has_ipv4 = has_ipv4 || cidr.family == AF_INET;
                has_ipv6 = has_ipv6 || cidr.family == AF_INET6;
        }
        if (n == 2 && has_ipv4 && has_ipv6 && !is_unknown)
                return;
        hfd_quote_list(cidrs, shown, sizeof shown);
        hfd_cause_invalid(causes, cidrs_field, shown,
                          "may specify no more than one CIDR for each IP family");
}

/* ---- what an update may change ---- */

/* The ranges and the provider's id of a node are set once, by controllers. externalID, which is
 * obsolete, never changes. */
static void refuse_changes(const struct hf__json *spec, const struct hf__json *was,
                           struct hfd_causes *causes) {
        if (hf__json_first(hf__json_get(was, "podCIDRs")) &&
            !hfd_causes_equal(causes, hf__json_get(spec, "podCIDRs"),
                              hf__json_get(was, "podCIDRs")))
                hfd_cause_forbidden(causes, cidrs_field,
                                    "node updates may not change podCIDR except from \"\" to "
                                    "valid");
        if (*hfd_text_of(was, "providerID") &&
            strcmp(hfd_text_of(spec, "providerID"), hfd_text_of(was, "providerID")) != 0)
                hfd_cause_forbidden(causes, "spec.providerID",
                                    "node updates may not change providerID except from \"\" to "
                                    "valid");
        if (strcmp(hfd_text_of(spec, "externalID"), hfd_text_of(was, "externalID")) != 0)
                hfd_cause_forbidden(causes, "spec.externalID", "may not be updated");
}

/* ---- rules ---- */

/* Whether an update leaves the member of the spec as it is. */
static bool is_kept(const struct hf__json *spec, const struct hf__json *was, const char *member,
                    struct hfd_causes *causes) {
        return was &&
               hfd_causes_equal_member(causes, hfd_schema_of_member(&hfd_node_schema, "spec"), spec,
                                       was, member);
}

/* A create may set the status (hfd_resource.created_with_status); an update has the old one. */
void hfd_node_validate(const struct hf__json *object, const struct hf__json *old,
                       struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *was = hf__json_get(old, "spec");

        if (!is_kept(spec, was, "taints", causes))
                validate_taints(hf__json_get(spec, "taints"), causes);
        if (!old)
                hfd_node_first_status_validate(object, causes);
        if (!is_kept(spec, was, "podCIDRs", causes))
                validate_cidrs(hf__json_get(spec, "podCIDRs"), causes);
        if (old)
                refuse_changes(spec, was, causes);
}
