/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schemas of ValidatingWebhookConfigurations and MutatingWebhookConfigurations, and their
 * defaults.
 *
 * A row of a table is a field: its name in JSON, the schema of the value, a description for
 * `kubectl explain`, its number in protobuf (protobuf_tag), and flags (schema.h). Macros define the
 * fields that both kinds of webhooks have; where their numbers differ, the macro takes the number.
 *
 * Invariants: names, types, numbers and the ways in which apply merges are those of
 * k8s.io/api/admissionregistration/v1 and never change. The rows of a table are sorted by name
 * (strcmp), because look-ups bisect it.
 */
#include <errno.h>

#include "base/json.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

static const char *const by_name[] = {"name", NULL};

static const struct hfd_schema_field service_fields[] = {
        {"name", &hfd_schema_text, "The name of the service.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"namespace", &hfd_schema_text, "The namespace of the service.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"path", &hfd_schema_text, "The path of the URL.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
        {"port", &hfd_schema_int32, "The port of the service; 443 if it is absent.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema service = {HFD_STRUCT(HFD_ADMISSION_V1 "ServiceReference",
                                                     service_fields),
                                          .description = "Names a service."};

static const struct hfd_schema_field client_fields[] = {
        {"caBundle", &hfd_schema_bytes, "CA certificates in PEM, by which the webhook is trusted.",
         .protobuf_tag = 2},
        {"service", &service, "The service of the webhook.", .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
        {"url", &hfd_schema_text, "The URL of the webhook.", .protobuf_tag = 3,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema client = {HFD_STRUCT(HFD_ADMISSION_V1 "WebhookClientConfig",
                                                    client_fields),
                                         .description = "How a webhook is called."};

#define REVIEW_VERSIONS                                                                            \
        {                                                                                          \
                "admissionReviewVersions", HFD_LIST_OF(&hfd_schema_text),                          \
                        "The versions of AdmissionReview that the webhook knows, best first.",     \
                        .protobuf_tag = 8, .flags = HFD_FIELD_REQUIRED                             \
        }
#define CLIENT                                                                                     \
        {                                                                                          \
                "clientConfig", &client, "How the webhook is called.", .protobuf_tag = 2,          \
                                                                       .flags = HFD_FIELD_REQUIRED \
        }
#define FAILURE_POLICY                                                                             \
        {                                                                                          \
                "failurePolicy", HFD_NAMED_TEXT(HFD_ADMISSION_V1 "FailurePolicyType"),             \
                        "What happens if the webhook cannot be called: Fail or Ignore.",           \
                        .protobuf_tag = 4, .flags = HFD_FIELD_POINTER                              \
        }
#define CONDITIONS(tag)                                                                            \
        {                                                                                          \
                "matchConditions",                                                                 \
                        HFD_LIST_OF(&hfd_match_condition_schema, .list_type = HFD_LIST_MAP,        \
                                    .list_keys = by_name),                                         \
                        "Expressions that must all be true for a request to match.",               \
                        .merge_key = "name", .protobuf_tag = (tag), .flags = HFD_FIELD_MERGE       \
        }
#define MATCH_POLICY                                                                               \
        {                                                                                          \
                "matchPolicy", HFD_NAMED_TEXT(HFD_ADMISSION_V1 "MatchPolicyType"),                 \
                        "Exact, or Equivalent: rules also match other versions of their "          \
                        "resources.",                                                              \
                        .protobuf_tag = 9, .flags = HFD_FIELD_POINTER                              \
        }
#define NAME                                                                                       \
        {                                                                                          \
                "name", &hfd_schema_text,                                                          \
                        "The name of the webhook, a domain with at least three parts.",            \
                        .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED                             \
        }
#define NAMESPACE_SELECTOR                                                                         \
        {                                                                                          \
                "namespaceSelector", &hfd_schema_label_selector,                                   \
                        "Selects by the labels of the namespace of the object.",                   \
                        .protobuf_tag = 5, .flags = HFD_FIELD_POINTER                              \
        }
#define OBJECT_SELECTOR(tag)                                                                       \
        {                                                                                          \
                "objectSelector", &hfd_schema_label_selector,                                      \
                        "Selects by the labels of the object.", .protobuf_tag = (tag),             \
                                                                .flags = HFD_FIELD_POINTER         \
        }
#define RULES                                                                                      \
        {                                                                                          \
                "rules", HFD_LIST_OF(&hfd_rule_with_operations_schema),                            \
                        "The requests about which the webhook is asked.", .protobuf_tag = 3        \
        }
/* Required, because v1 has no default: the configuration must say whether a dry run may call the
 * webhook. v1beta1 also had the values Some and Unknown. webhook_validation.c refuses them, unless
 * the stored object has them already. */
#define SIDE_EFFECTS                                                                               \
        {                                                                                          \
                "sideEffects", HFD_NAMED_TEXT(HFD_ADMISSION_V1 "SideEffectClass"),                 \
                        "None or NoneOnDryRun: a dry run changes nothing by the webhook.",         \
                        .protobuf_tag = 6, .flags = HFD_FIELD_POINTER | HFD_FIELD_REQUIRED         \
        }
#define TIMEOUT                                                                                    \
        {                                                                                          \
                "timeoutSeconds", &hfd_schema_int32,                                               \
                        "How long the webhook may take: 1 to 30, by default 10.",                  \
                        .protobuf_tag = 7, .flags = HFD_FIELD_POINTER                              \
        }

/* A mutating webhook has one field more, in the middle of the numbers of protobuf: so the two kinds
 * differ in the numbers of matchConditions and objectSelector. */
static const struct hfd_schema_field validating_fields[] = {
        REVIEW_VERSIONS,
        CLIENT,
        FAILURE_POLICY,
        CONDITIONS(11),
        MATCH_POLICY,
        NAME,
        NAMESPACE_SELECTOR,
        OBJECT_SELECTOR(10),
        RULES,
        SIDE_EFFECTS,
        TIMEOUT,
};
static const struct hfd_schema validating_webhook =
        {HFD_STRUCT(HFD_ADMISSION_V1 "ValidatingWebhook", validating_fields),
         .description = "A webhook that allows or refuses requests."};

static const struct hfd_schema_field mutating_fields[] = {
        REVIEW_VERSIONS,
        CLIENT,
        FAILURE_POLICY,
        CONDITIONS(12),
        MATCH_POLICY,
        NAME,
        NAMESPACE_SELECTOR,
        OBJECT_SELECTOR(11),
        {"reinvocationPolicy", HFD_NAMED_TEXT(HFD_ADMISSION_V1 "ReinvocationPolicyType"),
         "IfNeeded: the webhook is called again if others change the object after it; or Never.",
         .protobuf_tag = 10, .flags = HFD_FIELD_POINTER},
        RULES,
        SIDE_EFFECTS,
        TIMEOUT,
};
static const struct hfd_schema mutating_webhook =
        {HFD_STRUCT(HFD_ADMISSION_V1 "MutatingWebhook", mutating_fields),
         .description = "A webhook that may change objects before they are stored."};

#define WEBHOOKS(schema)                                                                           \
        {                                                                                          \
                "webhooks",                                                                        \
                        HFD_LIST_OF(&(schema), .list_type = HFD_LIST_MAP, .list_keys = by_name),   \
                        "The webhooks and the requests that they are asked about.",                \
                        .merge_key = "name", .protobuf_tag = 2, .flags = HFD_FIELD_MERGE           \
        }

static const struct hfd_schema_field validating_configuration_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(
                "metadata is the standard object metadata; More info: " HFD_CONVENTIONS
                "#metadata."),
        WEBHOOKS(validating_webhook),
};
const struct hfd_schema hfd_validating_webhooks_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "ValidatingWebhookConfiguration",
                    validating_configuration_fields),
         .description = "ValidatingWebhookConfiguration names webhooks that allow or refuse "
                        "requests."};

static const struct hfd_schema_field mutating_configuration_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(
                "metadata is the standard object metadata; More info: " HFD_CONVENTIONS
                "#metadata."),
        WEBHOOKS(mutating_webhook),
};
const struct hfd_schema hfd_mutating_webhooks_schema =
        {HFD_STRUCT(HFD_ADMISSION_V1 "MutatingWebhookConfiguration", mutating_configuration_fields),
         .description = "MutatingWebhookConfiguration names webhooks that may change objects "
                        "before they are stored."};

/* ---- defaults ---- */

static int set_default(struct hf__json *hook, const char *key, const char *value) {
        return hf__json_get(hook, key) ? 0 : hf__json_set_string(hook, key, value);
}

/* An empty selector matches everything, an absent one nothing (in Go). So kube-apiserver sets an
 * empty one, and clients see what is in force. */
static int set_empty_selector(struct hf__json *hook, const char *key) {
        return hf__json_get(hook, key) ? 0 : hf__json_set(hook, key, hf__json_object());
}

/* The defaults are those that kube-apiserver has for v1; v1beta1 had others: Ignore, Exact and 30
 * seconds. Returns what prepare returns (strategies.h). */
static int prepare_webhook(struct hf__json *hook, bool mutating) {
        struct hf__json *named = hf__json_path(hook, "clientConfig.service");
        int r = set_default(hook, "failurePolicy", "Fail");

        if (r == 0)
                r = set_default(hook, "matchPolicy", "Equivalent");
        if (r == 0)
                r = set_empty_selector(hook, "namespaceSelector");
        if (r == 0)
                r = set_empty_selector(hook, "objectSelector");
        if (r == 0 && !hf__json_get(hook, "timeoutSeconds"))
                r = hf__json_set_i64(hook, "timeoutSeconds", 10);
        if (r == 0 && mutating)
                r = set_default(hook, "reinvocationPolicy", "Never");
        if (r == 0 && hf__json_is_object(named) && !hf__json_get(named, "port"))
                r = hf__json_set_i64(named, "port", 443);
        return r == 0 ? hfd_match_rules_prepare(hf__json_get(hook, "rules")) : r;
}

static int prepare_webhooks(struct hf__json *object, bool mutating) {
        int r = 0;

        for (struct hf__json *m = hf__json_first(hf__json_get(object, "webhooks")); m && r == 0;
             m = hf__json_next(m))
                r = prepare_webhook(m, mutating);
        return r;
}

/* "old" makes no difference: a webhook that an update adds gets its defaults, too. */
int hfd_validating_webhooks_prepare(struct hf__json *object, const struct hf__json *old) {
        return prepare_webhooks(object, false);
}

int hfd_mutating_webhooks_prepare(struct hf__json *object, const struct hf__json *old) {
        return prepare_webhooks(object, true);
}
