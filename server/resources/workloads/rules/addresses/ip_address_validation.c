/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of IPAddresses and ServiceCIDRs: an address of a service that is taken, and a range
 * that services get their addresses from. Here nothing makes an IPAddress, but a client can.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec is not checked.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/go_value.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/addresses.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/schema.h"

/* ---- IPAddresses ---- */

/* "Invalid value: PARENT: field is immutable", with the parent as Kubernetes' Go type. */
static void refuse_parent(const struct hf__json *parent, struct hfd_causes *causes) {
        const struct hfd_schema *schema =
                hfd_schema_of_member(hfd_schema_of_member(&hfd_ip_address_schema, "spec"),
                                     "parentRef");
        struct hf__strbuf shown = {0};

        hfd_go_fields_print(&shown, schema, parent);
        hfd_cause_invalid(causes, "spec.parentRef",
                          hfd_causes_check(causes, shown.error) ? shown.data : "null",
                          "field is immutable");
        hf__strbuf_done(&shown);
}

/* Who has the address. The group of Services is "", so a group is not required. */
static void validate_parent(const struct hf__json *parent, struct hfd_causes *causes) {
        static const char field[] = "spec.parentRef";
        static const char *const names[] = {"resource", "name", "namespace"};
        char path[HFD_FIELD_PATH_MAX];

        if (!parent) {
                hfd_cause_required(causes, field, "");
                return;
        }
        if (*hfd_text_of(parent, "group"))
                hfd_subdomain_validate(hfd_text_of(parent, "group"), "spec.parentRef.group",
                                       causes);
        for (size_t i = 0; i < 3; i++) {
                if (i < 2 && !hfd_require_text(parent, field, names[i], causes))
                        continue;
                hfd_match_name_validate(hfd_text_of(parent, names[i]),
                                        hfd_field_path(path, field, names[i]), causes);
        }
}

/* The name is the address. It has one form only, so that no address is taken twice. */
void hfd_ip_address_validate(const struct hf__json *object, const struct hf__json *old,
                             struct hfd_causes *causes) {
        const struct hf__json *parent = hf__json_path(object, "spec.parentRef");

        if (!old)
                hfd_address_validate_canonical(hf__json_string_or_empty(object, "metadata.name"),
                                               "metadata.name", causes);
        if (hfd_spec_is_kept(&hfd_ip_address_schema, object, old, causes))
                return;
        validate_parent(parent, causes);
        if (old)
                refuse_parent(parent, causes);
}

/* ---- ServiceCIDRs ---- */

static const char cidrs_field[] = "spec.cidrs";

static void refuse_list(const struct hf__json *cidrs, const char *detail,
                        struct hfd_causes *causes) {
        char shown[300] = "null";

        if (cidrs)
                hfd_quote_list(cidrs, shown, sizeof shown);
        hfd_cause_invalid(causes, cidrs_field, shown, detail);
}

/* At most one range of each family. */
static void validate_cidrs(const struct hf__json *cidrs, struct hfd_causes *causes) {
        size_t n = hf__json_count(cidrs), i = 0;
        struct hfd_cidr found[2];
        bool is_cidr[2] = {false, false};
        char list[280], shown[300], path[HFD_FIELD_PATH_MAX];

        if (n == 0) {
                hfd_cause_required(causes, cidrs_field, "at least one CIDR required");
                return;
        }
        if (n > 2) {
                hfd_quote_list(cidrs, list, sizeof list);
                (void)snprintf(shown, sizeof shown, "{\"CIDRs\":%s}", list);
                hfd_cause_invalid(causes, cidrs_field, shown, "may only hold up to 2 values");
                return;
        }
        for (const struct hf__json *m = hf__json_first(cidrs); m; m = hf__json_next(m), i++)
                is_cidr[i] = hfd_cidr_validate_canonical(hf__json_text_or_empty(m),
                                                         hfd_field_index(path, cidrs_field, i),
                                                         &found[i], causes);
        if (is_cidr[0] && is_cidr[1] && found[0].family == found[1].family)
                refuse_list(cidrs,
                            "may specify no more than one IP for each IP family, i.e "
                            "192.168.0.0/24 and 2001:db8::/64",
                            causes);
}

/* Adds a cause for each of the n first elements that has changed. */
static void refuse_changes(const struct hf__json *cidrs, const struct hf__json *was, size_t n,
                           struct hfd_causes *causes) {
        const struct hf__json *now = hf__json_first(cidrs), *before = hf__json_first(was);
        char path[HFD_FIELD_PATH_MAX];

        for (size_t i = 0; i < n; i++) {
                if (strcmp(hf__json_text_or_empty(now), hf__json_text_or_empty(before)) != 0)
                        hfd_cause_invalid_text(causes, hfd_field_index(path, cidrs_field, i),
                                               hf__json_text_or_empty(now), "field is immutable");
                now = hf__json_next(now);
                before = hf__json_next(before);
        }
}

/* The only change: a second range, of the other family, may be added. */
void hfd_service_cidr_validate(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes) {
        const struct hf__json *cidrs = hf__json_path(object, cidrs_field),
                              *was = hf__json_path(old, cidrs_field);
        size_t n = hf__json_count(cidrs), n_old = hf__json_count(was);

        if (!old) {
                validate_cidrs(cidrs, causes);
        } else if (n == n_old) {
                refuse_changes(cidrs, was, n, causes);
        } else if (n_old == 1 && n == 2) {
                refuse_changes(cidrs, was, 1, causes);
                validate_cidrs(cidrs, causes);
        } else {
                refuse_list(cidrs, "field is immutable", causes);
        }
}
