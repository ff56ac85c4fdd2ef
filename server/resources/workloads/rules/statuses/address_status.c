/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of addresses in statuses: of Services and Ingresses, where a load balancer listens, and
 * of pods.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An address that the old status had is accepted, because it may
 * have been stored before these rules existed.
 */
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/custom/schema/formats/formats.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/names.h"
#include "server/resources/workloads/workloads.h"

/* ---- load balancers ---- */

/* Who answers at the address: the nodes, or a proxy in front of them. For the type LoadBalancer the
 * default is set before (hfd_service_prepare). */
static void validate_mode(const struct hf__json *ingress, const char *field,
                          struct hfd_causes *causes) {
        const char *ip = hfd_text_of(ingress, "ip"), *mode = hfd_text_of(ingress, "ipMode");
        char path[HFD_FIELD_PATH_MAX];

        hfd_field_path(path, field, "ipMode");
        if (!hf__json_get(ingress, "ipMode")) {
                if (*ip)
                        hfd_cause_required(causes, path, "must be specified when `ip` is set");
        } else if (!*ip) {
                hfd_cause_forbidden(causes, path, "may not be specified when `ip` is not set");
        } else if (strcmp(mode, "Proxy") != 0 && strcmp(mode, "VIP") != 0) {
                hfd_cause_unsupported_text(causes, path, mode, "\"Proxy\", \"VIP\"");
        }
}

/* field: the path of the element. known: the elements of the old status, by their addresses. */
static void validate_ingress(const struct hf__json *ingress, const char *field, bool has_mode,
                             const struct hf__json_index *known, struct hfd_causes *causes) {
        const char *ip = hfd_text_of(ingress, "ip"), *host = hfd_text_of(ingress, "hostname");
        char path[HFD_FIELD_PATH_MAX];

        if (*ip && !hf__json_index_find(known, ip))
                hfd_address_validate(ip, hfd_field_path(path, field, "ip"), causes);
        if (has_mode)
                validate_mode(ingress, field, causes);
        if (!*host)
                return;
        hfd_field_path(path, field, "hostname");
        hfd_subdomain_validate(host, path, causes);
        if (hfd_is_ipv4(host) || hfd_is_ipv6(host))
                hfd_cause_invalid_text(causes, path, host, "must be a DNS name, not an IP address");
}

static void validate_load_balancer(const struct hf__json *object, const struct hf__json *old,
                                   bool has_mode, struct hfd_causes *causes) {
        static const char list[] = "status.loadBalancer.ingress";
        struct hf__json_index known;
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (hfd_causes_check(causes, hf__json_index_init(&known, hf__json_path(old, list), "ip")))
                for (const struct hf__json *m = hf__json_first(hf__json_path(object, list)); m;
                     m = hf__json_next(m))
                        validate_ingress(m, hfd_field_index(path, list, i++), has_mode, &known,
                                         causes);
        hf__json_index_done(&known);
}

void hfd_service_validate_status(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes) {
        if (hfd_status_is_kept(&hfd_service_schema, object, old, causes))
                return;
        const struct hf__json *balancer = hf__json_path(object, "status.loadBalancer");
        if (!hf__json_has_text(object, "spec.type", "LoadBalancer") &&
            hf__json_first(hf__json_get(balancer, "ingress")) &&
            !hfd_causes_equal(causes, balancer, hf__json_path(old, "status.loadBalancer")))
                hfd_cause_forbidden(causes, "status.loadBalancer.ingress",
                                    "may only be used when `spec.type` is 'LoadBalancer'");
        else
                validate_load_balancer(object, old, true, causes);
}

void hfd_ingress_validate_status(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes) {
        if (!hfd_status_is_kept(&hfd_ingress_schema, object, old, causes))
                validate_load_balancer(object, old, false, causes);
}

/* ---- pods ---- */

/* The value of the cause is the list as kube-apiserver prints its internal Go type, whose field is
 * named "IP". A long list is cut. */
static void refuse_list(const struct hf__json *list, const char *field, struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};

        for (const struct hf__json *m = hf__json_first(list); m && shown.n < 300;
             m = hf__json_next(m)) {
                const char *ip = hfd_text_of(m, "ip");
                hf__strbuf_puts(&shown, m == hf__json_first(list) ? "[{\"IP\":" : ",{\"IP\":");
                hf__strbuf_json(&shown, ip, strnlen(ip, 300));
                hf__strbuf_puts(&shown, "}");
        }
        hf__strbuf_puts(&shown, "]");
        hfd_cause_invalid(causes, field, hfd_causes_check(causes, shown.error) ? shown.data : "[]",
                          "may specify no more than one IP for each IP family");
        hf__strbuf_done(&shown);
}

void hfd_pod_addresses_validate(const struct hf__json *list, const struct hf__json *old,
                                const char *field, struct hfd_causes *causes) {
        size_t n_ipv4 = 0, n_ipv6 = 0, i = 0;
        char path[HFD_FIELD_PATH_MAX];
        struct hf__json_index known;

        if (hfd_causes_check(causes, hf__json_index_init(&known, old, "ip")))
                for (const struct hf__json *m = hf__json_first(list); m;
                     m = hf__json_next(m), i++) {
                        const char *ip = hfd_text_of(m, "ip");
                        if (!hf__json_index_find(&known, ip))
                                hfd_address_validate(ip, hfd_field_index(path, field, i), causes);
                        n_ipv4 += !strchr(ip, ':') && hfd_is_ipv4(ip);
                        n_ipv6 += hfd_is_ipv6(ip);
                }
        hf__json_index_done(&known);
        if (i > 1 && (i > 2 || n_ipv4 != 1 || n_ipv6 != 1))
                refuse_list(list, field, causes);
}
