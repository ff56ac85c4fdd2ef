/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates ValidatingWebhookConfigurations and MutatingWebhookConfigurations.
 *
 * Some rules are newer than the kinds. As in Kubernetes, if the stored object already breaks such a
 * rule, an update may break it too. An update that changes no match condition does not check them
 * (struct options).
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. The work grows with n log n, because a client chooses the
 * length of the lists: duplicates are found with an index.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/admission/rule_path.h"
#include "server/resources/strategies/admission/webhook_client.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"

#define FIELD_MAX HFD_RULE_PATH_MAX
/* Versions of reviews that are checked. Only two exist, so nobody needs a longer list. */
#define VERSIONS_MAX 64

/* For each of the newer rules: whether the update need not keep it. */
struct options {
        bool any_side_effects; /* an old webhook has other side effects than v1 allows */
        bool unknown_versions; /* an old webhook lists versions, but neither v1 nor v1beta1 */
        bool same_names;       /* two old webhooks have one name */
        bool same_conditions;  /* the match conditions are as they were, so they stay unchecked */
};

/* ---- the old object ---- */

/* Whether a request with dryRun can be sent to the webhook. */
static bool has_no_side_effects(const struct hf__json *hook) {
        return hf__json_has_text(hook, "sideEffects", "None") ||
               hf__json_has_text(hook, "sideEffects", "NoneOnDryRun");
}

static bool knows_review(const struct hf__json *hook) {
        const struct hf__json *versions = hf__json_get(hook, "admissionReviewVersions");

        return hf__json_has_element(versions, "v1") || hf__json_has_element(versions, "v1beta1");
}

/* Whether two webhooks of the list have the same name. If memory runs out, the causes say so. */
static bool has_same_names(const struct hf__json *hooks, struct hfd_causes *causes) {
        struct hf__json_index names;
        bool same = false;
        size_t i = 0;

        if (!hfd_causes_check(causes, hf__json_index_init(&names, hooks, "name")))
                return false;
        for (const struct hf__json *m = hf__json_first(hooks); m && !same;
             m = hf__json_next(m), i++) {
                struct hf__json_index_entry *entry =
                        hf__json_index_find(&names,
                                            hf__json_text_or_empty(hf__json_get(m, "name")));
                same = entry && entry->position < i;
        }
        hf__json_index_done(&names);
        return same;
}

/* Whether the webhooks of both lists have the same match conditions, in the same order. */
static bool has_same_conditions(const struct hf__json *a, const struct hf__json *b,
                                struct hfd_causes *causes) {
        const struct hf__json *m = hf__json_first(a), *n = hf__json_first(b);

        while (m && n &&
               hfd_causes_equal(causes, hf__json_get(m, "matchConditions"),
                                hf__json_get(n, "matchConditions"))) {
                m = hf__json_next(m);
                n = hf__json_next(n);
        }
        return !m && !n;
}

/* hooks, old: the new and the old list. old NULL: a create, or a stored object without webhooks.
 * Then all rules hold. */
static struct options options_of(const struct hf__json *hooks, const struct hf__json *old,
                                 struct hfd_causes *causes) {
        struct options options = {0};

        if (!old)
                return options;
        for (const struct hf__json *m = hf__json_first(old); m; m = hf__json_next(m)) {
                options.any_side_effects |= !has_no_side_effects(m);
                options.unknown_versions |=
                        hf__json_first(hf__json_get(m, "admissionReviewVersions")) &&
                        !knows_review(m);
        }
        options.same_names = has_same_names(old, causes);
        options.same_conditions = has_same_conditions(hooks, old, causes);
        return options;
}

/* ---- one webhook ---- */

static void validate_name(const char *name, const char *field, struct hfd_causes *causes) {
        const char *dot = strchr(name, '.');

        if (!*name)
                hfd_cause_required(causes, field, "");
        else if (!hfd_is_dns_subdomain(name))
                hfd_subdomain_text_validate_once(name, strlen(name), field, name, causes);
        else if (!dot || !strchr(dot + 1, '.'))
                hfd_cause_invalid_text(causes, field, name,
                                       "should be a domain with at least three segments separated "
                                       "by dots");
}

/* Validates a member that is one of two values, or absent. */
static void validate_choice(const struct hf__json *hook, const char *key, const char *first,
                            const char *second, const char *field, struct hfd_causes *causes) {
        const char *value = hf__json_string(hook, key);
        char path[FIELD_MAX], supported[80];

        if (!value || strcmp(value, first) == 0 || strcmp(value, second) == 0)
                return;
        (void)snprintf(supported, sizeof supported, "\"%s\", \"%s\"", first, second);
        hfd_cause_unsupported_text(causes, hfd_rule_path(path, field, key), value, supported);
}

/* any: Some and Unknown, which only v1beta1 allows, are accepted. */
static void validate_side_effects(const struct hf__json *hook, bool any, const char *field,
                                  struct hfd_causes *causes) {
        const char *value = hf__json_string(hook, "sideEffects");
        char path[FIELD_MAX];

        hfd_rule_path(path, field, "sideEffects");
        if (!value) {
                hfd_cause_required(causes, path,
                                   any ? "must specify one of None, NoneOnDryRun, Some, Unknown"
                                       : "must specify one of None, NoneOnDryRun");
                return;
        }
        if (has_no_side_effects(hook) ||
            (any && (strcmp(value, "Some") == 0 || strcmp(value, "Unknown") == 0)))
                return;
        hfd_cause_unsupported_text(causes, path, value,
                                   any ? "\"None\", \"NoneOnDryRun\", \"Some\", \"Unknown\""
                                       : "\"None\", \"NoneOnDryRun\"");
}

static void validate_timeout(const struct hf__json *hook, const char *field,
                             struct hfd_causes *causes) {
        char path[FIELD_MAX], value[32];
        int64_t timeout;

        if (!hf__json_i64(hook, "timeoutSeconds", &timeout) || (timeout >= 1 && timeout <= 30))
                return;
        (void)snprintf(value, sizeof value, "%" PRId64, timeout);
        hfd_cause_invalid(causes, hfd_rule_path(path, field, "timeoutSeconds"), value,
                          "the timeout value must be between 1 and 30 seconds");
}

static void validate_client(const struct hf__json *client, const char *field,
                            struct hfd_causes *causes) {
        const char *url = hf__json_string(client, "url");
        const struct hf__json *service = hf__json_get(client, "service");
        char path[FIELD_MAX];

        if ((url != NULL) == (service != NULL))
                hfd_cause_required(causes, field, "exactly one of url or service is required");
        else if (url)
                hfd_webhook_url_validate(url, hfd_rule_path(path, field, "url"), causes);
        else
                hfd_webhook_service_validate(service, hfd_rule_path(path, field, "service"),
                                             causes);
}

/* unknown: the list need not have a version that kube-apiserver knows. */
static void validate_versions(const struct hf__json *hook, bool unknown, const char *field,
                              struct hfd_causes *causes) {
        const struct hf__json *versions = hf__json_get(hook, "admissionReviewVersions");
        struct hf__json_index seen;
        char path[FIELD_MAX], list[300];
        size_t i = 0;

        if (!hf__json_first(versions)) {
                hfd_cause_required(causes, field, "must specify one of v1, v1beta1");
                return;
        }
        if (!hfd_causes_check(causes, hf__json_index_init(&seen, versions, NULL)))
                return;
        for (const struct hf__json *m = hf__json_first(versions); m && i < VERSIONS_MAX;
             m = hf__json_next(m), i++) {
                const char *version = hf__json_text_or_empty(m), *faults[HFD_LABEL_FAULTS_MAX];
                struct hf__json_index_entry *entry = hf__json_index_find(&seen, version);
                hfd_rule_path_at(path, field, NULL, i);
                if (entry && entry->position < i)
                        hfd_cause_invalid_text(causes, path, version, "duplicate version");
                else
                        hfd_cause_invalid_each(causes, path, version, faults,
                                               hfd_dns1035_label_faults(version, faults));
        }
        hf__json_index_done(&seen);
        if (unknown || knows_review(hook))
                return;
        hfd_quote_list(versions, list, sizeof list);
        hfd_cause_invalid(causes, field, list, "must include at least one of v1, v1beta1");
}

/* *work: the work of compiling the conditions of all webhooks so far (match_schema.h). */
static void validate_hook(const struct hf__json *hook, const struct options *options,
                          const char *field, uint64_t *work, struct hfd_causes *causes) {
        char path[FIELD_MAX];
        size_t i = 0;

        validate_name(hf__json_text_or_empty(hf__json_get(hook, "name")),
                      hfd_rule_path(path, field, "name"), causes);
        for (const struct hf__json *m = hf__json_first(hf__json_get(hook, "rules")); m;
             m = hf__json_next(m), i++)
                hfd_match_rule_validate(m, hfd_rule_path_at(path, field, "rules", i), causes);
        validate_choice(hook, "failurePolicy", "Fail", "Ignore", field, causes);
        validate_choice(hook, "matchPolicy", "Equivalent", "Exact", field, causes);
        validate_side_effects(hook, options->any_side_effects, field, causes);
        validate_timeout(hook, field, causes);
        hfd_match_selector_validate(hf__json_get(hook, "namespaceSelector"),
                                    hfd_rule_path(path, field, "namespaceSelector"), causes);
        hfd_match_selector_validate(hf__json_get(hook, "objectSelector"),
                                    hfd_rule_path(path, field, "objectSelector"), causes);
        validate_choice(hook, "reinvocationPolicy", "IfNeeded", "Never", field, causes);
        validate_client(hf__json_get(hook, "clientConfig"),
                        hfd_rule_path(path, field, "clientConfig"), causes);
        if (!options->same_conditions)
                hfd_match_conditions_validate(hf__json_get(hook, "matchConditions"), false,
                                              hfd_rule_path(path, field, "matchConditions"), work,
                                              causes);
        validate_versions(hook, options->unknown_versions,
                          hfd_rule_path(path, field, "admissionReviewVersions"), causes);
}

void hfd_webhooks_validate_object(const struct hf__json *object, const struct hf__json *old,
                                  struct hfd_causes *causes) {
        const struct hf__json *hooks = hf__json_get(object, "webhooks");
        const struct options options =
                options_of(hooks, old ? hf__json_get(old, "webhooks") : NULL, causes);
        struct hf__json_index names;
        char field[FIELD_MAX], path[FIELD_MAX];
        uint64_t work = 0;
        size_t i = 0;

        if (!hfd_causes_check(causes, hf__json_index_init(&names, hooks, "name")))
                return;
        for (const struct hf__json *m = hf__json_first(hooks); m && causes->n < HFD_CAUSES_MAX;
             m = hf__json_next(m), i++) {
                const char *name = hf__json_text_or_empty(hf__json_get(m, "name"));
                struct hf__json_index_entry *entry = hf__json_index_find(&names, name);
                validate_hook(m, &options, hfd_rule_path_at(field, "webhooks", NULL, i), &work,
                              causes);
                if (*name && entry && entry->position < i && !options.same_names)
                        hfd_cause_duplicate_text(causes, hfd_rule_path(path, field, "name"), name);
        }
        hf__json_index_done(&names);
}
