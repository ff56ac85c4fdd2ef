/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the text of an audit policy, and makes its rules. Invariants:
 *
 *  - An unknown field is an error, except within metadata: a misspelt field would otherwise widen
 *    its rule without a warning.
 *  - All values that audit_policy.c reads later have the type that it expects.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "client/yaml_body.h"
#include "server/audit/audit_policy.h"
#include "server/audit/policy_private.h"

#define JSON_MAX  ((size_t)4 << 20) /* bytes of the JSON of a YAML text; aliases multiply them */
#define WHERE_MAX 64 /* bytes for "rules[12]."; "rules[12].resources[3]." gets twice as many */

/* ---- from text to JSON ---- */

/* A field that occurs twice is an error, because which one counts would be a guess. */
static int check_unique(const struct hf__json *json, struct hf_status *reterr_status) {
        const char *key = NULL;
        int r = hf__json_check_unique(json, &key);

        if (r > 0)
                return hf_fail(reterr_status, HF_E_INVALID, "the field %.60s occurs twice", key);
        return r != 0 ? hf_fail(reterr_status, r, "out of memory") : 0;
}

static int parse_yaml(const char *text, size_t n, struct hf__json **ret_json,
                      struct hf_status *reterr_status) {
        struct hf__strbuf json = {.max = JSON_MAX};

        int r = hf__yaml_body_to_json(text, n, &json, reterr_status);
        if (r == 0) {
                r = hf__json_parse(json.data, json.n, ret_json, NULL);
                if (r != 0)
                        hf_fail(reterr_status, r, "%s", hf_strerror(r));
        }
        hf__strbuf_done(&json);
        return r > 0 ? HF_E_INVALID : r; /* the user must correct the text, or install libyaml */
}

/* Tries JSON first, which needs no libyaml. A text that is not JSON may still be YAML, even if it
 * has braces. */
static int parse_text(const char *text, size_t n, struct hf__json **ret_json,
                      struct hf_status *reterr_status) {
        int r = hf__json_parse(text, n, ret_json, NULL);

        if (r < 0)
                return hf_fail(reterr_status, r, "out of memory");
        if (r > 0)
                r = parse_yaml(text, n, ret_json, reterr_status);
        return r != 0 ? r : check_unique(*ret_json, reterr_status);
}

/* ---- fields ---- */

/* where: the path of the object with a dot at its end, or "". */
static int refuse_rule(struct hf_status *reterr_status, const char *where, const char *field,
                       const char *rule) {
        return hf_fail(reterr_status, HF_E_INVALID, "%s%.60s: %s", where, field, rule);
}

/* Refuses unknown fields. known: names, ends with NULL. */
static int check_fields(const struct hf__json *object, const char *where, const char *const *known,
                        struct hf_status *reterr_status) {
        for (const struct hf__json *m = hf__json_first(object); m; m = hf__json_next(m)) {
                size_t i = 0;
                while (known[i] && strcmp(known[i], hf__json_key(m)) != 0)
                        i++;
                if (!known[i])
                        return refuse_rule(reterr_status, where, hf__json_key(m), "unknown field");
        }
        return 0;
}

/* Checks that the field is missing, null, or a list of objects (of_objects) or of strings.
 * *ret_list: the list; NULL = there is none. It is not set on failure. */
static int check_list(const struct hf__json *object, const char *where, const char *field,
                      bool of_objects, const struct hf__json **ret_list,
                      struct hf_status *reterr_status) {
        const struct hf__json *list = hf__json_get(object, field);

        if (list && !hf__json_is_null(list) && !hf__json_is_array(list))
                return refuse_rule(reterr_status, where, field, "must be a list");
        for (const struct hf__json *e = hf__json_first(list); e; e = hf__json_next(e))
                if (of_objects ? !hf__json_is_object(e) : !hf__json_is_string(e))
                        return refuse_rule(reterr_status, where, field,
                                           of_objects ? "must be a list of objects"
                                                      : "must be a list of strings");
        *ret_list = hf__json_is_array(list) ? list : NULL;
        return 0;
}

/* Adds the stages in omitStages to *stages, a bit for each. The stages of a rule are added to those
 * of the policy. */
static int parse_stages(const struct hf__json *object, const char *where, unsigned *stages,
                        struct hf_status *reterr_status) {
        const struct hf__json *list;

        int r = check_list(object, where, "omitStages", false, &list, reterr_status);
        if (r != 0)
                return r;
        for (const struct hf__json *e = hf__json_first(list); e; e = hf__json_next(e)) {
                unsigned stage = 0;
                while (stage <= HFD_AUDIT_PANIC &&
                       strcmp(hfd_audit_stage_name(stage), hf__json_text(e)) != 0)
                        stage++;
                if (stage > HFD_AUDIT_PANIC)
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "%somitStages: \"%.60s\" is not one of RequestReceived, "
                                       "ResponseStarted, ResponseComplete, Panic",
                                       where, hf__json_text(e));
                *stages |= 1u << stage;
        }
        return 0;
}

/* If the field is missing, *flag keeps its value. */
static int parse_omit_managed_fields(const struct hf__json *object, const char *where, bool *flag,
                                     struct hf_status *reterr_status) {
        const struct hf__json *value = hf__json_get(object, "omitManagedFields");

        if (!value || hf__json_is_null(value))
                return 0;
        if (!hf__json_is_bool(value))
                return refuse_rule(reterr_status, where, "omitManagedFields",
                                   "must be true or false");
        *flag = hf__json_is_true(value);
        return 0;
}

/* A rule must have a level. No default would be right: None would hide requests, and any other one
 * would record what nobody has asked for. */
static int parse_level(const struct hf__json *rule, const char *where, enum hfd_audit_level *level,
                       struct hf_status *reterr_status) {
        const char *text = hf__json_string(rule, "level");

        for (unsigned i = 0; text && i <= HFD_AUDIT_REQUEST_RESPONSE; i++)
                if (strcmp(hfd_audit_level_name(i), text) == 0) {
                        *level = i;
                        return 0;
                }
        if (!text)
                return refuse_rule(reterr_status, where, "level", "required");
        return hf_fail(reterr_status, HF_E_INVALID,
                       "%slevel: \"%.60s\" is not one of None, Metadata, Request, RequestResponse",
                       where, text);
}

/* ---- rules ---- */

/* Checks the elements of nonResourceURLs. */
static int check_urls(const struct hf__json *urls, const char *where,
                      struct hf_status *reterr_status) {
        for (const struct hf__json *e = hf__json_first(urls); e; e = hf__json_next(e)) {
                const char *url = hf__json_text(e), *star = strchr(url, '*');

                if (strcmp(url, "*") == 0)
                        continue;
                if (url[0] != '/')
                        return refuse_rule(reterr_status, where, "nonResourceURLs",
                                           "a path must begin with '/'");
                if (star && star[1])
                        return refuse_rule(reterr_status, where, "nonResourceURLs",
                                           "'*' must be the last character of a path");
        }
        return 0;
}

/* Refuses a group with a version, because "apps/v1" would match nothing. */
static bool is_group(const char *text) {
        return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789.-") == strlen(text);
}

/* The lists are only checked here; audit_policy.c reads them from the JSON at each request. */
static int check_resources(const struct hf__json *entries, const char *rule_where,
                           struct hf_status *reterr_status) {
        static const char *const known[] = {"group", "resources", "resourceNames", NULL};
        size_t i = 0;
        int r = 0;

        for (const struct hf__json *e = hf__json_first(entries); r == 0 && e;
             e = hf__json_next(e), i++) {
                const struct hf__json *group = hf__json_get(e, "group"), *resources, *names;
                char where[2 * WHERE_MAX];

                (void)snprintf(where, sizeof where, "%.60sresources[%zu].", rule_where, i);
                r = check_fields(e, where, known, reterr_status);
                if (r == 0)
                        r = check_list(e, where, "resources", false, &resources, reterr_status);
                if (r == 0)
                        r = check_list(e, where, "resourceNames", false, &names, reterr_status);
                if (r == 0 && group && !hf__json_is_null(group) &&
                    (!hf__json_is_string(group) || !is_group(hf__json_text(group))))
                        r = refuse_rule(reterr_status, where, "group",
                                        "must be the name of an API group, without a version");
                if (r == 0 && hf__json_first(names) && !hf__json_first(resources))
                        r = refuse_rule(reterr_status, where, "resourceNames",
                                        "needs at least one resource");
        }
        return r;
}

/* Sets the lists of the rule, which are borrowed from json. */
static int parse_lists(const struct hf__json *json, const char *where, struct hfd_audit_rule *rule,
                       struct hf_status *reterr_status) {
        const struct {
                const char *field;
                bool of_objects;
                const struct hf__json **list;
        } lists[] = {{"users", false, &rule->users},
                     {"userGroups", false, &rule->groups},
                     {"verbs", false, &rule->verbs},
                     {"namespaces", false, &rule->namespaces},
                     {"resources", true, &rule->resources},
                     {"nonResourceURLs", false, &rule->urls}};
        int r = 0;

        for (size_t i = 0; r == 0 && i < sizeof lists / sizeof lists[0]; i++)
                r = check_list(json, where, lists[i].field, lists[i].of_objects, lists[i].list,
                               reterr_status);
        return r;
}

/* Fills the rule, whose decision has the defaults of the policy. i: its index, for messages. */
static int parse_rule(const struct hf__json *json, size_t i, struct hfd_audit_rule *rule,
                      struct hf_status *reterr_status) {
        static const char *const known[] = {"level",
                                            "users",
                                            "userGroups",
                                            "verbs",
                                            "resources",
                                            "namespaces",
                                            "nonResourceURLs",
                                            "omitStages",
                                            "omitManagedFields",
                                            NULL};
        char where[WHERE_MAX];

        (void)snprintf(where, sizeof where, "rules[%zu].", i);
        int r = check_fields(json, where, known, reterr_status);
        if (r == 0)
                r = parse_level(json, where, &rule->decision.level, reterr_status);
        if (r == 0)
                r = parse_stages(json, where, &rule->decision.omitted, reterr_status);
        if (r == 0)
                r = parse_omit_managed_fields(json, where, &rule->decision.omit_managed_fields,
                                              reterr_status);
        if (r == 0)
                r = parse_lists(json, where, rule, reterr_status);
        if (r == 0)
                r = check_resources(rule->resources, where, reterr_status);
        if (r == 0)
                r = check_urls(rule->urls, where, reterr_status);
        if (r == 0 && hf__json_first(rule->urls) &&
            (hf__json_first(rule->resources) || hf__json_first(rule->namespaces)))
                r = refuse_rule(reterr_status, where, "nonResourceURLs",
                                "a rule is either for resources or for other paths");
        return r;
}

/* ---- the policy ---- */

static int check_header(const struct hf__json *json, struct hf_status *reterr_status) {
        static const char *const known[] = {"apiVersion", "kind",       "metadata",
                                            "rules",      "omitStages", "omitManagedFields",
                                            NULL};

        if (!hf__json_is_object(json))
                return hf_fail(reterr_status, HF_E_INVALID, "it is not an object");
        if (!hf__json_has_text(json, "apiVersion", "audit.k8s.io/v1"))
                return refuse_rule(reterr_status, "", "apiVersion", "must be audit.k8s.io/v1");
        if (!hf__json_has_text(json, "kind", "Policy"))
                return refuse_rule(reterr_status, "", "kind", "must be Policy");
        return check_fields(json, "", known, reterr_status);
}

/* Fills the policy, which has room for the rules, from its JSON. */
static int parse_policy(struct hfd_audit_policy *policy, struct hf_status *reterr_status) {
        struct hfd_audit_decision defaults = {.level = HFD_AUDIT_NONE};
        const struct hf__json *rules = hf__json_get(policy->json, "rules");

        int r = parse_stages(policy->json, "", &defaults.omitted, reterr_status);
        if (r == 0)
                r = parse_omit_managed_fields(policy->json, "", &defaults.omit_managed_fields,
                                              reterr_status);
        for (const struct hf__json *e = hf__json_first(rules); r == 0 && e; e = hf__json_next(e)) {
                policy->rules[policy->n] = (struct hfd_audit_rule){.decision = defaults};
                r = parse_rule(e, policy->n, &policy->rules[policy->n], reterr_status);
                policy->n++;
        }
        return r;
}

HF__CLEANUP_DEFINE(policy_cleanup, struct hfd_audit_policy *, hfd_audit_policy_unref)

int hfd_audit_policy_parse(const char *text, size_t n, struct hfd_audit_policy **ret_policy,
                           struct hf_status *reterr_status) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *json = NULL;
        const struct hf__json *rules = NULL;

        int r = parse_text(text, n, &json, reterr_status);
        if (r == 0)
                r = check_header(json, reterr_status);
        if (r == 0)
                r = check_list(json, "", "rules", true, &rules, reterr_status);
        if (r == 0 && !hf__json_first(rules))
                r = refuse_rule(reterr_status, "", "rules", "needs at least one rule");
        if (r != 0)
                return r;
        HF__CLEANUP(policy_cleanup)
        struct hfd_audit_policy *policy =
                calloc(1, sizeof *policy + hf__json_count(rules) * sizeof policy->rules[0]);
        if (!policy)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        atomic_init(&policy->refs, 1);
        policy->json = HF__TAKE(json);
        r = parse_policy(policy, reterr_status);
        if (r != 0)
                return r;
        *ret_policy = HF__TAKE(policy);
        return 0;
}
