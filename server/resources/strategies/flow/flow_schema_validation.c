/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of FlowSchemas, and those that PriorityLevelConfigurations share with them
 * (flow_rules.h).
 *
 * Invariants: only the schema `exempt` has the precedence 1, so no other schema takes requests from
 * it. The spec of a mandatory schema is the one that the server gives it. The texts of the causes
 * and their order are those of kube-apiserver, because clients show them and tests compare them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/flow/flow_objects.h"
#include "server/resources/strategies/flow/flow_rules.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"

#define FIELD_MAX 160 /* bytes of a path, as in a cause; longer paths are cut */

static const char verbs_supported[] = "\"create\", \"delete\", \"deletecollection\", \"get\", "
                                      "\"list\", \"patch\", \"proxy\", \"update\", \"watch\"";

static bool is_all(const char *text) { return strcmp(text, HFD_FLOW_EVERYBODY) == 0; }

/* ---- subjects ---- */

/* Adds a cause if a member is present that does not belong to the kind of the subject. */
static void forbid_member(const struct hf__json *subject, const char *member, const char *kind,
                          const char *field, struct hfd_causes *causes) {
        char path[FIELD_MAX], detail[100];

        if (!hf__json_get(subject, member))
                return;
        (void)snprintf(path, sizeof path, "%.100s.%s", field, member);
        (void)snprintf(detail, sizeof detail, "%s is forbidden when subject kind is not '%s'",
                       member, kind);
        hfd_cause_forbidden(causes, path, detail);
}

/* Returns the member that the kind of the subject needs. NULL: it is missing; a cause was added. */
static const struct hf__json *require_member(const struct hf__json *subject, const char *member,
                                             const char *kind, const char *field,
                                             struct hfd_causes *causes) {
        const struct hf__json *found = hf__json_get(subject, member);
        char path[FIELD_MAX], detail[100];

        (void)snprintf(path, sizeof path, "%.100s.%s", field, member);
        (void)snprintf(detail, sizeof detail, "%s is required when subject kind is '%s'", member,
                       kind);
        if (!found)
                hfd_cause_required(causes, path, detail);
        return found;
}

/* name: of the member. member NULL: it is missing, which has got a cause already. */
static void require_name(const struct hf__json *member, const char *name, const char *field,
                         struct hfd_causes *causes) {
        char path[FIELD_MAX];

        (void)snprintf(path, sizeof path, "%.100s.%s.name", field, name);
        if (member && !*hf__json_string_or_empty(member, "name"))
                hfd_cause_required(causes, path, "");
}

static void validate_account(const struct hf__json *account, const char *field,
                             struct hfd_causes *causes) {
        const char *name = hf__json_string_or_empty(account, "name"),
                   *ns = hf__json_string_or_empty(account, "namespace");
        char path[FIELD_MAX];

        require_name(account, "serviceAccount", field, causes);
        (void)snprintf(path, sizeof path, "%.100s.serviceAccount.name", field);
        if (*name && !is_all(name))
                hfd_subdomain_text_validate(name, strlen(name), path, name, causes);
        (void)snprintf(path, sizeof path, "%.100s.serviceAccount.namespace", field);
        if (!*ns)
                hfd_cause_required(causes, path, "must specify namespace for service account");
        else
                hfd_label_text_validate(ns, path, ns, causes);
}

/* Each kind has a member of its own, with a name in it. A member of another kind would be ignored
 * by the match, so it is refused. */
static void validate_subject(const struct hf__json *subject, const char *field,
                             struct hfd_causes *causes) {
        const char *kind = hf__json_string_or_empty(subject, "kind");
        char path[FIELD_MAX];

        if (strcmp(kind, "ServiceAccount") == 0) {
                const struct hf__json *account =
                        require_member(subject, "serviceAccount", kind, field, causes);
                if (account)
                        validate_account(account, field, causes);
                forbid_member(subject, "user", "User", field, causes);
                forbid_member(subject, "group", "Group", field, causes);
        } else if (strcmp(kind, "User") == 0) {
                require_name(require_member(subject, "user", kind, field, causes), "user", field,
                             causes);
                forbid_member(subject, "serviceAccount", "ServiceAccount", field, causes);
                forbid_member(subject, "group", "Group", field, causes);
        } else if (strcmp(kind, "Group") == 0) {
                require_name(require_member(subject, "group", kind, field, causes), "group", field,
                             causes);
                forbid_member(subject, "serviceAccount", "ServiceAccount", field, causes);
                forbid_member(subject, "user", "User", field, causes);
        } else {
                (void)snprintf(path, sizeof path, "%.100s.kind", field);
                hfd_cause_unsupported_text(causes, path, kind,
                                           "\"Group\", \"ServiceAccount\", \"User\"");
        }
}

/* ---- rules ---- */

/* Validates a list in which "*" stands for all and must then be the only element. missing: the text
 * of the cause for an empty list; NULL: the list may be empty. what: the word for the elements in
 * the other cause. Returns whether the caller must check the elements one by one. */
static bool validate_list(const struct hf__json *rule, const char *member, const char *missing,
                          const char *what, const char *field, struct hfd_causes *causes) {
        const struct hf__json *list = hf__json_get(rule, member);
        char path[FIELD_MAX], value[300], detail[100];

        (void)snprintf(path, sizeof path, "%.100s.%s", field, member);
        if (hf__json_count(list) == 0) {
                if (missing)
                        hfd_cause_required(causes, path, missing);
                return false;
        }
        if (!hf__json_has_element(list, HFD_FLOW_EVERYBODY))
                return true;
        if (hf__json_count(list) > 1) {
                hfd_quote_list(list, value, sizeof value);
                (void)snprintf(detail, sizeof detail,
                               "if '*' is present, must not specify other %s", what);
                hfd_cause_invalid(causes, path, value, detail);
        }
        return false;
}

/* The verbs of requests for resources, as authorization knows them. "proxy" is one of
 * kube-apiserver's, too, although no request has it any more. */
static bool is_verb(const char *verb) {
        static const char *const all[] = {"get",    "list",   "create",
                                          "update", "delete", "deletecollection",
                                          "patch",  "watch",  "proxy"};

        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
                if (strcmp(verb, all[i]) == 0)
                        return true;
        return false;
}

/* One cause for all unknown verbs, which shows the whole list, as in kube-apiserver. */
static void validate_verbs(const struct hf__json *rule, const char *field,
                           struct hfd_causes *causes) {
        const struct hf__json *verbs = hf__json_get(rule, "verbs");
        char path[FIELD_MAX], value[300];

        if (!validate_list(rule, "verbs", "verbs must contain at least one value", "verbs", field,
                           causes))
                return;
        for (const struct hf__json *m = hf__json_first(verbs); m; m = hf__json_next(m)) {
                if (is_verb(hf__json_text(m)))
                        continue;
                (void)snprintf(path, sizeof path, "%.100s.verbs", field);
                hfd_quote_list(verbs, value, sizeof value);
                hfd_cause_unsupported(causes, path, value, verbs_supported);
                return;
        }
}

/* A path outside the API, which may end with a slash and the wildcard '*'. url[n - 2] exists where
 * it is read, because the text begins with '/' and has a '*' after it. */
static void validate_path(const char *url, const char *field, struct hfd_causes *causes) {
        const char *star = strchr(url, '*');
        size_t n = strlen(url);

        if (!*url)
                hfd_cause_invalid_text(causes, field, url, "must not be empty");
        else if (*url != '/')
                hfd_cause_invalid_text(causes, field, url, "must start with slash");
        else if (strchr(url, ' '))
                hfd_cause_invalid_text(causes, field, url, "must not contain white-space");
        else if (strstr(url, "//"))
                hfd_cause_invalid_text(causes, field, url, "must not contain double slash");
        else if (star && (star != url + n - 1 || url[n - 2] != '/'))
                hfd_cause_invalid_text(causes, field, url, "wildcard can only do suffix matching");
}

static void validate_path_rule(const struct hf__json *rule, const char *field,
                               struct hfd_causes *causes) {
        char path[FIELD_MAX];
        size_t i = 0;

        validate_verbs(rule, field, causes);
        if (!validate_list(rule, "nonResourceURLs",
                           "nonResourceURLs must contain at least one value", "non-resource URLs",
                           field, causes))
                return;
        for (const struct hf__json *m = hf__json_first(hf__json_get(rule, "nonResourceURLs")); m;
             m = hf__json_next(m)) {
                (void)snprintf(path, sizeof path, "%.120s.nonResourceURLs[%zu]", field, i++);
                validate_path(hf__json_text(m), path, causes);
        }
}

static void refuse_namespace(const char *name, const char *why, const char *field,
                             struct hfd_causes *causes) {
        char detail[400];

        (void)snprintf(detail, sizeof detail,
                       "each member of this list must be '*' or a DNS-1123 label; %s", why);
        hfd_cause_invalid_text(causes, field, name, detail);
}

/* A rule matches requests in the namespaces, and with clusterScope those without one. One of the
 * two must be given, else the rule could match nothing. */
static void validate_namespaces(const struct hf__json *rule, const char *field,
                                struct hfd_causes *causes) {
        bool in_cluster = hf__json_bool(rule, "clusterScope", false);
        char path[FIELD_MAX];
        size_t i = 0;

        if (!validate_list(rule, "namespaces",
                           in_cluster ? NULL
                                      : "resource rules that are not cluster scoped must supply at "
                                        "least one namespace",
                           "namespaces", field, causes))
                return;
        for (const struct hf__json *m = hf__json_first(hf__json_get(rule, "namespaces")); m;
             m = hf__json_next(m), i++) {
                const char *ns = hf__json_text(m), *fault = hfd_dns_label_fault(ns);
                (void)snprintf(path, sizeof path, "%.120s.namespaces[%zu]", field, i);
                if (strlen(ns) > HFD_DNS_LABEL_MAX)
                        refuse_namespace(ns, hfd_dns_label_length_rule, path, causes);
                if (fault)
                        refuse_namespace(ns, fault, path, causes);
        }
}

static void validate_resource_rule(const struct hf__json *rule, const char *field,
                                   struct hfd_causes *causes) {
        validate_verbs(rule, field, causes);
        (void)validate_list(rule, "apiGroups", "resource rules must supply at least one api group",
                            "api groups", field, causes);
        (void)validate_list(rule, "resources", "resource rules must supply at least one resource",
                            "resources", field, causes);
        validate_namespaces(rule, field, causes);
}

/* Calls a function for each element of a list. */
static void each_item(const struct hf__json *object, const char *member, const char *field,
                      void (*fn)(const struct hf__json *element, const char *field,
                                 struct hfd_causes *causes),
                      struct hfd_causes *causes) {
        char path[FIELD_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(object, member)); m;
             m = hf__json_next(m)) {
                (void)snprintf(path, sizeof path, "%.100s.%s[%zu]", field, member, i++);
                fn(m, path, causes);
        }
}

static void validate_rule(const struct hf__json *rule, const char *field,
                          struct hfd_causes *causes) {
        char path[FIELD_MAX];

        (void)snprintf(path, sizeof path, "%.100s.subjects", field);
        if (hf__json_count(hf__json_get(rule, "subjects")) == 0)
                hfd_cause_required(causes, path, "subjects must contain at least one value");
        each_item(rule, "subjects", field, validate_subject, causes);
        if (hf__json_count(hf__json_get(rule, "resourceRules")) == 0 &&
            hf__json_count(hf__json_get(rule, "nonResourceRules")) == 0)
                hfd_cause_required(causes, field,
                                   "at least one of resourceRules and nonResourceRules has to be "
                                   "non-empty");
        each_item(rule, "resourceRules", field, validate_resource_rule, causes);
        each_item(rule, "nonResourceRules", field, validate_path_rule, causes);
}

/* ---- the object ---- */

/* The lowest number counts first, if several schemas match. */
static void validate_precedence(const struct hf__json *object, struct hfd_causes *causes) {
        static const char field[] = "spec.matchingPrecedence";
        char value[32];
        int64_t precedence = 0;

        (void)hf__json_i64(object, field, &precedence);
        (void)snprintf(value, sizeof value, "%" PRId64, precedence);
        if (precedence <= 0)
                hfd_cause_invalid(causes, field, value, "must be a positive value");
        if (precedence > HFD_FLOW_PRECEDENCE_MAX)
                hfd_cause_invalid(causes, field, value, "must not be greater than 10000");
        if (precedence == 1 && !hf__json_has_text(object, "metadata.name", HFD_FLOW_EXEMPT))
                hfd_cause_invalid(causes, field, value,
                                  "only the schema named 'exempt' may have matchingPrecedence 1");
}

/* kube-apiserver's cause shows its internal Go type, not only the text. */
static void validate_distinguisher(const struct hf__json *object, struct hfd_causes *causes) {
        const struct hf__json *method = hf__json_path(object, "spec.distinguisherMethod");
        const char *type = hf__json_string_or_empty(method, "type");
        char value[300], quoted[280];

        if (!method || strcmp(type, "ByUser") == 0 || strcmp(type, "ByNamespace") == 0)
                return;
        hfd_quote(type, quoted, sizeof quoted);
        (void)snprintf(value, sizeof value, "{\"Type\":%s}", quoted);
        hfd_cause_unsupported(causes, "spec.distinguisherMethod.type", value,
                              "\"ByNamespace\", \"ByUser\"");
}

void hfd_flow_validate_fixed(const struct hf__json *object, const struct hf__json *wanted,
                             const char *detail, struct hfd_causes *causes) {
        const struct hf__json *spec = hf__json_get(object, "spec");
        struct hf__strbuf printed = {0};

        if (!wanted)
                hfd_causes_no_memory(causes);
        if (!wanted || hfd_causes_equal(causes, spec, wanted))
                return;
        hf__json_print(spec, &printed); /* the cause cuts a long value */
        (void)hfd_causes_check(causes, printed.error);
        hfd_cause_invalid(causes, "spec", printed.data ? printed.data : "{}", detail);
        hf__strbuf_done(&printed);
}

/* Each type of condition occurs once, and none is empty. An index finds repeated types, because a
 * client may send any number of conditions, and comparing each with all others would be quadratic.
 * An absent type counts as empty, but is not in the index: has_empty finds repeated empty types. */
void hfd_flow_validate_status(const struct hf__json *object, const struct hf__json *old,
                              struct hfd_causes *causes) {
        const struct hf__json *list = hf__json_path(object, "status.conditions");
        struct hf__json_index types;
        char field[FIELD_MAX];
        bool has_empty = false;
        size_t i = 0;

        bool is_indexed = hfd_causes_check(causes, hf__json_index_init(&types, list, "type"));
        for (const struct hf__json *m = hf__json_first(list); m && is_indexed;
             m = hf__json_next(m), i++) {
                const char *type = hf__json_string_or_empty(m, "type");
                const struct hf__json_index_entry *first = hf__json_index_find(&types, type);
                (void)snprintf(field, sizeof field, "status.conditions[%zu].type", i);
                if (*type ? first && first->position < i : has_empty)
                        hfd_cause_duplicate_text(causes, field, type);
                if (!*type)
                        hfd_cause_required(causes, field, "");
                has_empty = has_empty || !*type;
        }
        hf__json_index_done(&types);
}

void hfd_flow_schema_validate(const struct hf__json *object, const struct hf__json *old,
                              struct hfd_causes *causes) {
        static const char field[] = "spec.priorityLevelConfiguration.name";
        const char *name = hf__json_string_or_empty(object, "metadata.name"),
                   *level = hf__json_string_or_empty(object, field);
        const struct hfd_flow_object *fixed = hfd_flow_object_find(HFD_FLOW_SCHEMA_KIND, name);
        char detail[100];

        validate_precedence(object, causes);
        validate_distinguisher(object, causes);
        if (!*level)
                hfd_cause_required(causes, field, "must reference a priority level");
        else
                hfd_subdomain_text_validate(level, strlen(level), field, level, causes);
        each_item(hf__json_get(object, "spec"), "rules", "spec", validate_rule, causes);
        if (fixed && fixed->mandatory) {
                struct hf__json *spec = hfd_flow_object_spec(fixed);
                (void)snprintf(detail, sizeof detail, "spec of '%.40s' must equal the fixed value",
                               name);
                hfd_flow_validate_fixed(object, spec, detail, causes);
                hf__json_free(spec);
        }
        hfd_flow_validate_status(object, old, causes);
}
