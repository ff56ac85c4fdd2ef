/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the addresses that a Service has in the cluster: clusterIP, clusterIPs, ipFamilies
 * and ipFamilyPolicy.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. An address that the old Service had is accepted, because it may
 * have been stored before these rules existed; so are its families, because an update cannot change
 * them. No address is required: nothing here allocates one.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/addresses.h"
#include "server/resources/workloads/workloads.h"

static const char ips_field[] = "spec.clusterIPs", families_field[] = "spec.ipFamilies",
                  policy_field[] = "spec.ipFamilyPolicy";

/* NULL: the spec has no such list. In an old spec, another program may have stored any value. */
static const struct hf__json *list_of(const struct hf__json *spec, const char *member) {
        const struct hf__json *list = hf__json_get(spec, member);

        return hf__json_is_array(list) ? list : NULL;
}

static const struct hf__json *ips_of(const struct hf__json *spec) {
        return list_of(spec, "clusterIPs");
}

static const struct hf__json *families_of(const struct hf__json *spec) {
        return list_of(spec, "ipFamilies");
}

static bool is_external_name(const struct hf__json *spec) {
        return hf__json_has_text(spec, "type", "ExternalName");
}

static bool has_policy(const struct hf__json *spec, const char *policy) {
        return hf__json_has_text(spec, "ipFamilyPolicy", policy);
}

static bool is_same(const struct hf__json *spec, const struct hf__json *old, const char *member,
                    struct hfd_causes *causes) {
        return hfd_causes_equal_member(causes, hfd_schema_of_member(&hfd_service_schema, "spec"),
                                       spec, old, member);
}

bool hfd_service_is_headless(const struct hf__json *spec) {
        const struct hf__json *first = hf__json_first(ips_of(spec));

        return first && !hf__json_next(first) && strcmp(hf__json_text_or_empty(first), "None") == 0;
}

/* The cause shows the whole list, unless it is long. It shows the list NULL as null. */
static void refuse_list(const struct hf__json *list, const char *field, const char *why,
                        struct hfd_causes *causes) {
        char shown[250] = "null";

        if (list)
                hfd_quote_list(list, shown, sizeof shown);
        hfd_cause_invalid(causes, field, shown, why);
}

/* The cause shows a policy that is absent as null. */
static void refuse_policy(const struct hf__json *spec, const char *why, struct hfd_causes *causes) {
        if (hf__json_get(spec, "ipFamilyPolicy"))
                hfd_cause_invalid_text(causes, policy_field, hfd_text_of(spec, "ipFamilyPolicy"),
                                       why);
        else
                hfd_cause_invalid(causes, policy_field, "null", why);
}

/* ---- the lists by themselves ---- */

/* clusterIP and clusterIPs must agree. If the client sent only clusterIP, hfd_service_set_fields
 * has set clusterIPs. A list without clusterIP is refused. */
static void validate_agreement(const struct hf__json *spec, struct hfd_causes *causes) {
        const struct hf__json *list = ips_of(spec), *first = hf__json_first(list);
        const char *ip = hfd_text_of(spec, "clusterIP");

        if (*ip && !first)
                hfd_cause_required(causes, ips_field, "");
        else if (*ip && strcmp(hf__json_text_or_empty(first), ip) != 0)
                refuse_list(list, ips_field, "first value must match `clusterIP`", causes);
        else if (!*ip && first)
                refuse_list(list, ips_field, "must be empty when `clusterIP` is not specified",
                            causes);
}

static void validate_families(const struct hf__json *spec, struct hfd_causes *causes) {
        static const char *const known[] = {"IPv4", "IPv6", NULL};
        struct hf__json_index families;
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (hfd_causes_check(causes, hf__json_index_init(&families, families_of(spec), NULL)))
                for (const struct hf__json *m = hf__json_first(families_of(spec)); m;
                     m = hf__json_next(m), i++) {
                        const char *family = hf__json_text_or_empty(m);
                        hfd_field_index(path, families_field, i);
                        hfd_refuse_others(family, path, known, causes);
                        if (hfd_is_repeated(&families, family, i))
                                hfd_cause_duplicate_text(causes, path, family);
                }
        hf__json_index_done(&families);
}

static void validate_family_policy(const struct hf__json *spec, struct hfd_causes *causes) {
        static const char *const known[] = {"PreferDualStack", "RequireDualStack", "SingleStack",
                                            NULL};

        if (hf__json_get(spec, "ipFamilyPolicy"))
                hfd_refuse_others(hfd_text_of(spec, "ipFamilyPolicy"), policy_field, known, causes);
}

/* Returns whether the addresses can be compared with each other and with the families. */
static bool validate_ips(const struct hf__json *list, const struct hf__json *old,
                         struct hfd_causes *causes) {
        const struct hf__json *first = hf__json_first(list);
        bool several = first && hf__json_next(first);
        struct hf__json_index known;
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0, n = causes->n;

        if (!hfd_causes_check(causes, hf__json_index_init(&known, old, NULL)))
                return false;
        for (const struct hf__json *m = first; m; m = hf__json_next(m), i++) {
                const char *ip = hf__json_text_or_empty(m);
                if (i == 0 && strcmp(ip, "None") == 0) {
                        if (several)
                                refuse_list(list, ips_field,
                                            "'None' must be the first and only value", causes);
                } else if (!hf__json_index_find(&known, ip)) {
                        hfd_address_validate(ip, hfd_field_index(path, ips_field, i), causes);
                }
        }
        hf__json_index_done(&known);
        bool valid = causes->n == n;
        if (i > 2)
                refuse_list(list, ips_field, "may only hold up to 2 values", causes);
        return valid;
}

/* ---- the lists together ---- */

/* Whether there is an address of each family. An old text that is no address counts as both. */
static bool are_of_both_families(const struct hf__json *list) {
        bool has_ipv4 = false, has_ipv6 = false;
        struct in6_addr address;

        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                const char *ip = hf__json_text_or_empty(m);
                has_ipv6 |= hfd_address_is_ipv6(ip) || !hfd_address_parse(ip, &address);
                has_ipv4 |= !hfd_address_is_ipv6(ip);
        }
        return has_ipv4 && has_ipv6;
}

/* Each address is of the family at the same position, if there is one. */
static void validate_families_of_ips(const struct hf__json *spec, struct hfd_causes *causes) {
        const struct hf__json *family = hf__json_first(families_of(spec));
        char path[HFD_FIELD_PATH_MAX], why[80];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(ips_of(spec)); m && family;
             m = hf__json_next(m), family = hf__json_next(family), i++) {
                const char *ip = hf__json_text_or_empty(m), *name = hf__json_text_or_empty(family);
                const char *other = hfd_address_is_ipv6(ip) ? "IPv4" : "IPv6";
                if (strcmp(name, other) != 0)
                        continue;
                (void)snprintf(why, sizeof why,
                               "expected an %s value as indicated by `ipFamilies[%zu]`", other, i);
                hfd_cause_invalid_text(causes, hfd_field_index(path, ips_field, i), ip, why);
        }
}

static void validate_lists(const struct hf__json *spec, const struct hf__json *old,
                           struct hfd_causes *causes) {
        const struct hf__json *list = ips_of(spec), *first = hf__json_first(list);
        bool families_kept = old && is_same(spec, old, "ipFamilies", causes);

        validate_agreement(spec, causes);
        if (!families_kept)
                validate_families(spec, causes);
        validate_family_policy(spec, causes);
        if (!validate_ips(list, ips_of(old), causes))
                return;
        if (first && hf__json_next(first) && !are_of_both_families(list))
                refuse_list(list, ips_field, "may specify no more than one IP for each IP family",
                            causes);
        if (!hfd_service_is_headless(spec) &&
            !(families_kept && is_same(spec, old, "clusterIPs", causes)))
                validate_families_of_ips(spec, causes);
}

/* ---- the policy ---- */

/* Whether the new list is shorter. An empty one is not: the client has left it out. */
static bool is_reduced(const struct hf__json *list, const struct hf__json *old) {
        size_t n = hf__json_count(list);

        return n > 0 && n < hf__json_count(old);
}

/* What the policy says about the number of addresses and families. A Service that had too many of
 * them with the same policy keeps them, because an older version of this server stored it so. */
static void validate_numbers(const struct hf__json *spec, const struct hf__json *old,
                             struct hfd_causes *causes) {
        bool single = has_policy(spec, "SingleStack");

        if (old && !single && is_reduced(ips_of(spec), ips_of(old)))
                refuse_policy(spec, "must be 'SingleStack' to release the secondary cluster IP",
                              causes);
        if (old && !single && is_reduced(families_of(spec), families_of(old)))
                refuse_policy(spec, "must be 'SingleStack' to release the secondary IP family",
                              causes);
        if (!single ||
            (old && has_policy(old, "SingleStack") && is_same(spec, old, "clusterIPs", causes) &&
             is_same(spec, old, "ipFamilies", causes)))
                return;
        if (hf__json_count(ips_of(spec)) == 2)
                refuse_policy(spec,
                              "must be 'RequireDualStack' or 'PreferDualStack' when multiple "
                              "cluster IPs are specified",
                              causes);
        if (hf__json_count(families_of(spec)) == 2)
                refuse_policy(spec,
                              "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP "
                              "families are specified",
                              causes);
}

/* Whether an update changes neither the type nor the addresses nor the families of a Service that
 * has PreferDualStack, and had it or no policy before. Kubernetes makes no decision about such a
 * Service, so its addresses are validated with the rest. */
static bool keeps_to_prefer(const struct hf__json *spec, const struct hf__json *old,
                            struct hfd_causes *causes) {
        return old && has_policy(spec, "PreferDualStack") &&
               (!hf__json_get(old, "ipFamilyPolicy") || has_policy(old, "PreferDualStack")) &&
               is_same(spec, old, "type", causes) && is_same(spec, old, "clusterIPs", causes) &&
               is_same(spec, old, "ipFamilies", causes);
}

bool hfd_cluster_addresses_validate_first(const struct hf__json *spec, const struct hf__json *old,
                                          struct hfd_causes *causes) {
        size_t n = causes->n;

        if (is_external_name(spec) || keeps_to_prefer(spec, old, causes))
                return true;
        validate_lists(spec, old, causes);
        if (causes->n == n)
                validate_numbers(spec, old, causes);
        return causes->n == n;
}

void hfd_cluster_addresses_validate(const struct hf__json *spec, const struct hf__json *old,
                                    struct hfd_causes *causes) {
        if (!is_external_name(spec) && keeps_to_prefer(spec, old, causes))
                validate_lists(spec, old, causes);
}

/* ---- updates ---- */

/* The first address of a Service cannot change, because programs remember it, and of two addresses
 * neither can. Whether the second one may go has been checked before (validate_numbers). */
static void validate_kept_ips(const struct hf__json *spec, const struct hf__json *old,
                              struct hfd_causes *causes) {
        static const char field[] = "spec.clusterIPs[0]", why[] = "may not change once set";
        const struct hf__json *list = ips_of(spec), *m = hf__json_first(list),
                              *had = hf__json_first(ips_of(old));
        size_t n = hf__json_count(list), n_had = hf__json_count(ips_of(old));
        char path[HFD_FIELD_PATH_MAX];

        if (n == n_had) {
                for (size_t i = 0; m && had; m = hf__json_next(m), had = hf__json_next(had), i++)
                        if (strcmp(hf__json_text_or_empty(m), hf__json_text_or_empty(had)) != 0)
                                refuse_list(list, hfd_field_index(path, ips_field, i), why, causes);
                return;
        }
        if (n == 0)
                refuse_list(list, field, "primary clusterIP can not be unset", causes);
        if (m && had && strcmp(hf__json_text_or_empty(m), hf__json_text_or_empty(had)) != 0)
                refuse_list(list, field, why, causes);
}

/* The same for the families. As in Kubernetes, the path is always that of the first one, and the
 * value that of the addresses if the number of families changes. */
static void validate_kept_families(const struct hf__json *spec, const struct hf__json *old,
                                   struct hfd_causes *causes) {
        static const char field[] = "spec.ipFamilies[0]", why[] = "may not change once set";
        const struct hf__json *list = families_of(spec), *m = hf__json_first(list),
                              *had = hf__json_first(families_of(old));
        size_t n = hf__json_count(list), n_had = hf__json_count(families_of(old));

        if (n == n_had) {
                for (; m && had; m = hf__json_next(m), had = hf__json_next(had))
                        if (strcmp(hf__json_text_or_empty(m), hf__json_text_or_empty(had)) != 0)
                                refuse_list(list, field, why, causes);
                return;
        }
        if (m && had && strcmp(hf__json_text_or_empty(m), hf__json_text_or_empty(had)) != 0)
                refuse_list(ips_of(spec), field, why, causes);
}

void hfd_cluster_addresses_validate_update(const struct hf__json *spec, const struct hf__json *old,
                                           struct hfd_causes *causes) {
        bool headless = hfd_service_is_headless(spec), was = hfd_service_is_headless(old);

        /* An ExternalName service has no address. */
        if (is_external_name(spec) || is_external_name(old))
                return;
        validate_kept_ips(spec, old, causes);
        if (!headless && !was)
                validate_kept_families(spec, old, causes);
}
