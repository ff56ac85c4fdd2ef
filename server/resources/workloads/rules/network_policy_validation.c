/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of NetworkPolicies.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An update that does not change the spec is not checked
 * (hfd_spec_is_kept). CIDRs that programs understand differently are refused, unless the old policy
 * had them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/addresses.h"
#include "server/resources/workloads/workloads.h"

/* ---- ports ---- */

/* `port` and `endPort` are a range, so both are numbers, in ascending order. */
static void validate_end_port(const struct hf__json *port, const char *field,
                              struct hfd_causes *causes) {
        const struct hf__json *end = hf__json_get(port, "endPort"),
                              *begin = hf__json_get(port, "port");
        int64_t number = 0, first = 0;
        const char *why = NULL;
        char path[HFD_FIELD_PATH_MAX], shown[24];

        if (!hf__json_integer(end, &number))
                return;
        hfd_field_path(path, field, "endPort");
        (void)snprintf(shown, sizeof shown, "%" PRId64, number);
        if (!begin)
                why = "may not be specified when `port` is not specified";
        else if (!hf__json_integer(begin, &first))
                why = "may not be specified when `port` is non-numeric";
        else if (number < first)
                why = "must be greater than or equal to `port`";
        if (why)
                hfd_cause_invalid(causes, path, shown, why);
        if (hf__json_is_number(begin))
                hfd_port_validate(end, path, causes);
}

/* `port` is a number or the name of a port of the pods. The name is checked last, because the
 * causes have Kubernetes' order. */
static void validate_port(const struct hf__json *port, const char *field,
                          struct hfd_causes *causes) {
        const char *protocol = hfd_text_of(port, "protocol");
        char path[HFD_FIELD_PATH_MAX];

        if (strcmp(protocol, "TCP") != 0 && strcmp(protocol, "UDP") != 0 &&
            strcmp(protocol, "SCTP") != 0)
                hfd_cause_unsupported_text(causes, hfd_field_path(path, field, "protocol"),
                                           protocol, "\"TCP\", \"UDP\", \"SCTP\"");
        hfd_field_path(path, field, "port");
        if (hf__json_is_number(hf__json_get(port, "port")))
                hfd_port_validate(hf__json_get(port, "port"), path, causes);
        validate_end_port(port, field, causes);
        if (hf__json_is_string(hf__json_get(port, "port")))
                hfd_port_name_validate(hfd_text_of(port, "port"), path, causes);
}

/* ---- blocks of addresses ---- */

/* Whether all addresses of `part` are in `whole`, and `whole` has more. Bits after the prefix do
 * not count. */
static bool is_strict_subset(const struct hfd_cidr *part, const struct hfd_cidr *whole) {
        if (part->family != whole->family || part->bits <= whole->bits)
                return false;
        unsigned n = whole->bits / 8, rest = whole->bits % 8;
        unsigned char mask = (unsigned char)(0xff << (8 - rest));
        return memcmp(part->address, whole->address, n) == 0 &&
               (rest == 0 || ((part->address[n] ^ whole->address[n]) & mask) == 0);
}

/* Adds a cause unless the text is a CIDR and programs agree on what it means. known: texts that are
 * accepted in any case. Returns whether it is a CIDR. */
static bool require_cidr(const char *text, const char *field, const struct hf__json_index *known,
                         struct hfd_cidr *ret_cidr, struct hfd_causes *causes) {
        if (hf__json_index_find(known, text))
                return hfd_cidr_parse(text, ret_cidr);
        return hfd_cidr_validate(text, field, ret_cidr, causes);
}

/* An ipBlock: each exception must lie inside the range that it is taken from. */
static void validate_block(const struct hf__json *block, const char *field,
                           const struct hf__json_index *known, struct hfd_causes *causes) {
        const char *cidr = hfd_text_of(block, "cidr");
        char path[HFD_FIELD_PATH_MAX], element[HFD_FIELD_PATH_MAX];
        struct hfd_cidr whole, part;
        size_t i = 0;

        hfd_field_path(path, field, "cidr");
        if (!*cidr)
                hfd_cause_required(causes, path, "");
        if (!*cidr || !require_cidr(cidr, path, known, &whole, causes))
                return;
        hfd_field_path(path, field, "except");
        for (const struct hf__json *m = hf__json_first(hf__json_get(block, "except")); m;
             m = hf__json_next(m)) {
                const char *except = hf__json_is_string(m) ? hf__json_text(m) : "";
                hfd_field_index(element, path, i++);
                if (!require_cidr(except, element, known, &part, causes))
                        continue;
                if (!is_strict_subset(&part, &whole))
                        hfd_cause_invalid_text(causes, element, except,
                                               "must be a strict subset of `cidr`");
        }
}

/* ---- blocks of the old policy ---- */

/* Appends the CIDRs of the rules to the array `all`. 0 or -ENOMEM. */
static int add_cidrs(struct hf__json *all, const struct hf__json *rules, const char *peers) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(rules); m; m = hf__json_next(m))
                for (const struct hf__json *p = hf__json_first(hf__json_get(m, peers)); p && r == 0;
                     p = hf__json_next(p)) {
                        const struct hf__json *block = hf__json_get(p, "ipBlock"),
                                              *except =
                                                      hf__json_first(hf__json_get(block, "except"));
                        if (block)
                                r = hf__json_append_string(all, hfd_text_of(block, "cidr"));
                        for (; except && r == 0; except = hf__json_next(except))
                                if (hf__json_is_string(except))
                                        r = hf__json_append_string(all, hf__json_text(except));
                }
        return r;
}

/* An array with the CIDRs of a policy, which the caller frees. spec: that of the policy; NULL has
 * none. Returns NULL if memory runs out. */
static struct hf__json *list_cidrs(const struct hf__json *spec) {
        struct hf__json *all = hf__json_array();
        int r = all ? add_cidrs(all, hf__json_get(spec, "ingress"), "from") : -ENOMEM;

        if (r == 0)
                r = add_cidrs(all, hf__json_get(spec, "egress"), "to");
        return r == 0 ? all : hf__json_free(all);
}

/* ---- rules ---- */

/* A peer is either a range of addresses, or pods. Pods are selected by their own labels, by those
 * of their namespace, or by both. */
static void validate_peer(const struct hf__json *peer, const char *field,
                          const struct hf__json_index *known, struct hfd_causes *causes) {
        static const char *const selectors[] = {"podSelector", "namespaceSelector"};
        const struct hf__json *block = hf__json_get(peer, "ipBlock");
        char path[HFD_FIELD_PATH_MAX];
        bool selects = false;

        for (size_t i = 0; i < 2; i++) {
                const struct hf__json *selector = hf__json_get(peer, selectors[i]);
                selects = selects || selector;
                if (selector)
                        hfd_match_selector_validate(selector,
                                                    hfd_field_path(path, field, selectors[i]),
                                                    causes);
        }
        if (block)
                validate_block(block, hfd_field_path(path, field, "ipBlock"), known, causes);
        if (!selects && !block)
                hfd_cause_required(causes, field, "must specify a peer");
        else if (selects && block)
                hfd_cause_forbidden(causes, field, "may not specify both ipBlock and another peer");
}

/* list: the path of the rules, "spec.ingress" or "spec.egress". peers: the member of a rule that
 * has its peers, "from" or "to". */
static void validate_rules(const struct hf__json *rules, const char *list, const char *peers,
                           const struct hf__json_index *known, struct hfd_causes *causes) {
        char rule[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX], element[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(rules); m; m = hf__json_next(m)) {
                size_t k = 0;
                hfd_field_index(rule, list, i++);
                hfd_field_path(path, rule, "ports");
                for (const struct hf__json *p = hf__json_first(hf__json_get(m, "ports")); p;
                     p = hf__json_next(p))
                        validate_port(p, hfd_field_index(element, path, k++), causes);
                k = 0;
                hfd_field_path(path, rule, peers);
                for (const struct hf__json *p = hf__json_first(hf__json_get(m, peers)); p;
                     p = hf__json_next(p))
                        validate_peer(p, hfd_field_index(element, path, k++), known, causes);
        }
}

/* Repeated types are accepted, as in Kubernetes. */
static void validate_types(const struct hf__json *types, struct hfd_causes *causes) {
        static const char field[] = "spec.policyTypes";
        char path[HFD_FIELD_PATH_MAX];
        struct hf__strbuf shown = {0};
        size_t i = 0;

        if (hf__json_count(types) > 2) {
                hf__json_print(types, &shown);
                hfd_cause_invalid(causes, field,
                                  hfd_causes_check(causes, shown.error) ? shown.data : "[]",
                                  "may not specify more than two policyTypes");
                hf__strbuf_done(&shown);
                return;
        }
        for (const struct hf__json *m = hf__json_first(types); m; m = hf__json_next(m)) {
                const char *type = hf__json_is_string(m) ? hf__json_text(m) : "";
                hfd_field_index(path, field, i++);
                if (strcmp(type, "Ingress") != 0 && strcmp(type, "Egress") != 0)
                        hfd_cause_unsupported_text(causes, path, type, "\"Ingress\", \"Egress\"");
        }
}

/* As in kube-apiserver, a CIDR that the old policy had anywhere is accepted: it may be older than
 * this check, and the policy's rules and peers have no names by which to find them again. */
static void validate_all_rules(const struct hf__json *spec, const struct hf__json *old_spec,
                               struct hfd_causes *causes) {
        struct hf__json *cidrs = list_cidrs(old_spec);
        struct hf__json_index known;

        if (hfd_causes_check(causes, cidrs ? hf__json_index_init(&known, cidrs, NULL) : -ENOMEM)) {
                validate_rules(hf__json_get(spec, "ingress"), "spec.ingress", "from", &known,
                               causes);
                validate_rules(hf__json_get(spec, "egress"), "spec.egress", "to", &known, causes);
                hf__json_index_done(&known);
        }
        hf__json_free(cidrs);
}

void hfd_network_policy_validate(const struct hf__json *object, const struct hf__json *old,
                                 struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec"),
                              *selector = hf__json_get(spec, "podSelector");

        if (hfd_spec_is_kept(&hfd_network_policy_schema, object, old, causes))
                return;
        if (selector)
                hfd_match_selector_validate(selector, "spec.podSelector", causes);
        validate_all_rules(spec, hf__json_get(old, "spec"), causes);
        validate_types(hf__json_get(spec, "policyTypes"), causes);
}
