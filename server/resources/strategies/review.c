/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schemas of reviews: a client creates one to ask a question, and gets it back with
 * the answer in its status. They are not stored and have no strategy; server/handlers/reviews/
 * answers them.
 *
 * A row of a table is a field: its name in JSON, the schema of the value, a description for
 * `kubectl explain`, its number in protobuf (protobuf_tag), and flags (schema.h).
 *
 * Invariants: names, types and numbers are those of k8s.io/api/authentication/v1 and
 * k8s.io/api/authorization/v1 and never change. The rows of a table are sorted by name (strcmp),
 * because look-ups bisect it.
 */
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

#define IDENTITY "io.k8s.api.authentication.v1."
#define RIGHTS   "io.k8s.api.authorization.v1."

/* ---- the user ---- */

/* `extra` is what an authenticator or an impersonation adds, such as the id of the token of a
 * service account. */
static const struct hfd_schema_field user_fields[] = {
        {"extra", HFD_MAP_OF_LISTS(IDENTITY "ExtraValue"), "Further values, by key.",
         .protobuf_tag = 4},
        {"groups", &hfd_schema_list_of_texts, "The groups of the user.", .protobuf_tag = 3},
        {"uid", &hfd_schema_text, "What identifies the user over time.", .protobuf_tag = 2},
        {"username", &hfd_schema_text, "The name of the user.", .protobuf_tag = 1},
};
static const struct hfd_schema user_schema = {HFD_STRUCT(IDENTITY "UserInfo", user_fields),
                                              .description = "A user, as the server sees it."};

static const struct hfd_schema_field self_status_fields[] = {
        {"userInfo", &user_schema, "The user who has sent the request.", .protobuf_tag = 1},
};
static const struct hfd_schema self_status = {HFD_STRUCT(IDENTITY "SelfSubjectReviewStatus",
                                                         self_status_fields),
                                              .description = "The answer."};
static const struct hfd_schema_field self_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS("metadata is standard object's metadata. More info: " HFD_CONVENTIONS
                              "#metadata"),
        {"status", &self_status, "The answer, which the server writes.", .protobuf_tag = 2},
};
const struct hfd_schema hfd_self_review_schema =
        {HFD_STRUCT(IDENTITY "SelfSubjectReview", self_fields),
         .description = "SelfSubjectReview asks who the client is."};

static const struct hfd_schema_field token_spec_fields[] = {
        {"audiences", &hfd_schema_list_of_texts, "The audiences that the token is used for.",
         .protobuf_tag = 2},
        {"token", &hfd_schema_text, "The bearer token.", .protobuf_tag = 1},
};
static const struct hfd_schema token_spec = {HFD_STRUCT(IDENTITY "TokenReviewSpec",
                                                        token_spec_fields),
                                             .description = "The question."};
/* A token that is not valid is an answer, not an error: the response is 201, and `error` says
 * why. */
static const struct hfd_schema_field token_status_fields[] = {
        {"audiences", &hfd_schema_list_of_texts, "The audiences that the token is valid for.",
         .protobuf_tag = 4},
        {"authenticated", &hfd_schema_boolean, "Whether the token is known.", .protobuf_tag = 1},
        {"error", &hfd_schema_text, "Why it is not.", .protobuf_tag = 3},
        {"user", &user_schema, "The user of the token.", .protobuf_tag = 2},
};
static const struct hfd_schema token_status = {HFD_STRUCT(IDENTITY "TokenReviewStatus",
                                                          token_status_fields),
                                               .description = "The answer."};
static const struct hfd_schema_field token_fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(
                "metadata is the standard object's metadata. More info: " HFD_CONVENTIONS
                "#metadata"),
        {"spec", &token_spec, "The question.", .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"status", &token_status, "The answer, which the server writes.", .protobuf_tag = 3},
};
const struct hfd_schema hfd_token_review_schema = {HFD_STRUCT(IDENTITY "TokenReview", token_fields),
                                                   .description =
                                                           "TokenReview asks whose token this is."};

/* ---- the action ---- */

static const struct hfd_schema_field field_requirement_fields[] = {
        {"key", &hfd_schema_text, "A label or a field.", .protobuf_tag = 1},
        {"operator", HFD_NAMED_TEXT(HFD_META "FieldSelectorOperator"),
         "In, NotIn, Exists or DoesNotExist.", .protobuf_tag = 2},
        {"values", &hfd_schema_list_of_texts, "The values of In and NotIn.", .protobuf_tag = 3},
};
static const struct hfd_schema field_requirement = {HFD_STRUCT(HFD_META "FieldSelectorRequirement",
                                                               field_requirement_fields),
                                                    .description = "One part of a selector."};
/* In Kubernetes an authorizer may look at the selectors of a list or watch. No authorization mode
 * of this server does, so selectors change no answer. */
#define SELECTOR_FIELDS(requirement)                                                               \
        {                                                                                          \
                {"rawSelector", &hfd_schema_text, "The selector as text.", .protobuf_tag = 1},     \
                        {"requirements", HFD_LIST_OF(requirement), "Its parts.",                   \
                         .protobuf_tag = 2},                                                       \
        }
static const struct hfd_schema_field field_selector_fields[] = SELECTOR_FIELDS(&field_requirement);
static const struct hfd_schema_field label_selector_fields[] =
        SELECTOR_FIELDS(&hfd_schema_label_requirement);
static const struct hfd_schema field_selector = {HFD_STRUCT(RIGHTS "FieldSelectorAttributes",
                                                            field_selector_fields),
                                                 .description =
                                                         "A selector. It limits no right here."};
static const struct hfd_schema label_selector = {HFD_STRUCT(RIGHTS "LabelSelectorAttributes",
                                                            label_selector_fields),
                                                 .description =
                                                         "A selector. It limits no right here."};
static const struct hfd_schema_field resource_fields[] = {
        {"fieldSelector", &field_selector, "The fields of the objects.", .protobuf_tag = 8,
         .flags = HFD_FIELD_POINTER},
        {"group", &hfd_schema_text, "The API group; * is any.", .protobuf_tag = 3},
        {"labelSelector", &label_selector, "The labels of the objects.", .protobuf_tag = 9,
         .flags = HFD_FIELD_POINTER},
        {"name", &hfd_schema_text, "The name; empty means all.", .protobuf_tag = 7},
        {"namespace", &hfd_schema_text, "The namespace; empty means all.", .protobuf_tag = 1},
        {"resource", &hfd_schema_text, "The plural of the kind; * is any.", .protobuf_tag = 5},
        {"subresource", &hfd_schema_text, "The part of the object; empty means none.",
         .protobuf_tag = 6},
        {"verb", &hfd_schema_text, "The verb; * is any.", .protobuf_tag = 2},
        {"version", &hfd_schema_text, "The API version; * is any.", .protobuf_tag = 4},
};
static const struct hfd_schema resource_attributes = {HFD_STRUCT(RIGHTS "ResourceAttributes",
                                                                 resource_fields),
                                                      .description = "A request for objects."};
static const struct hfd_schema_field path_fields[] = {
        {"path", &hfd_schema_text, "The path of the URL.", .protobuf_tag = 1},
        {"verb", &hfd_schema_text, "The method of HTTP, in lower case.", .protobuf_tag = 2},
};
static const struct hfd_schema path_attributes = {HFD_STRUCT(RIGHTS "NonResourceAttributes",
                                                             path_fields),
                                                  .description = "A request for another path."};

#define FIELD_PATH                                                                                 \
        {                                                                                          \
                .name = "nonResourceAttributes", .schema = &path_attributes,                       \
                .description = "A request for another path.", .protobuf_tag = 2,                   \
                .flags = HFD_FIELD_POINTER                                                         \
        }
#define FIELD_RESOURCE                                                                             \
        {                                                                                          \
                .name = "resourceAttributes", .schema = &resource_attributes,                      \
                .description = "A request for objects.", .protobuf_tag = 1,                        \
                .flags = HFD_FIELD_POINTER                                                         \
        }

/* The server never sets `denied`: the modes of its authorizer only allow, and have no rules that
 * deny. */
static const struct hfd_schema_field access_status_fields[] = {
        {"allowed", &hfd_schema_boolean, "Whether the request would be allowed.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"denied", &hfd_schema_boolean, "Whether it would be denied for good.", .protobuf_tag = 4},
        {"evaluationError", &hfd_schema_text, "What could not be decided.", .protobuf_tag = 3},
        {"reason", &hfd_schema_text, "Why.", .protobuf_tag = 2},
};
static const struct hfd_schema access_status = {HFD_STRUCT(RIGHTS "SubjectAccessReviewStatus",
                                                           access_status_fields),
                                                .description = "The answer."};

static const struct hfd_schema_field access_spec_fields[] = {
        {"extra", HFD_MAP_OF_LISTS(RIGHTS "ExtraValue"), "Further values of the user.",
         .protobuf_tag = 5},
        {"groups", &hfd_schema_list_of_texts, "The groups of the user.", .protobuf_tag = 4},
        FIELD_PATH,
        FIELD_RESOURCE,
        {"uid", &hfd_schema_text, "What identifies the user over time.", .protobuf_tag = 6},
        {"user", &hfd_schema_text, "The name of the user.", .protobuf_tag = 3},
};
static const struct hfd_schema access_spec = {HFD_STRUCT(RIGHTS "SubjectAccessReviewSpec",
                                                         access_spec_fields),
                                              .description = "The question."};
static const struct hfd_schema_field self_access_spec_fields[] = {FIELD_PATH, FIELD_RESOURCE};
static const struct hfd_schema self_access_spec = {HFD_STRUCT(RIGHTS "SelfSubjectAccessReviewSpec",
                                                              self_access_spec_fields),
                                                   .description = "The question."};

#define REVIEW_FIELDS(spec_schema, status_schema)                                                  \
        HFD_FIELD_API_VERSION, HFD_FIELD_KIND, HFD_FIELD_METADATA,                                 \
                {"spec", &(spec_schema), "The question.", .protobuf_tag = 2,                       \
                 .flags = HFD_FIELD_REQUIRED},                                                     \
        {                                                                                          \
                "status", &(status_schema), "The answer, which the server writes.",                \
                        .protobuf_tag = 3                                                          \
        }

static const struct hfd_schema_field access_fields[] = {REVIEW_FIELDS(access_spec, access_status)};
static const struct hfd_schema_field self_access_fields[] = {
        REVIEW_FIELDS(self_access_spec, access_status)};
const struct hfd_schema hfd_access_review_schema =
        {HFD_STRUCT(RIGHTS "SubjectAccessReview", access_fields),
         .description = "SubjectAccessReview asks what a user may do."};
const struct hfd_schema hfd_local_access_review_schema =
        {HFD_STRUCT(RIGHTS "LocalSubjectAccessReview", access_fields),
         .description = "LocalSubjectAccessReview asks what a user may do in one namespace."};
const struct hfd_schema hfd_self_access_review_schema =
        {HFD_STRUCT(RIGHTS "SelfSubjectAccessReview", self_access_fields),
         .description = "SelfSubjectAccessReview asks what the client may do."};

/* ---- rules ---- */

static const struct hfd_schema_field rules_spec_fields[] = {
        {"namespace", &hfd_schema_text, "The namespace; required.", .protobuf_tag = 1},
};
static const struct hfd_schema rules_spec = {HFD_STRUCT(RIGHTS "SelfSubjectRulesReviewSpec",
                                                        rules_spec_fields),
                                             .description = "The question."};
/* A rule of one of the client's roles, or the one of the mode AlwaysAllow. It does not say which
 * role it is from, because the client may have no right to read that role. */
static const struct hfd_schema_field resource_rule_fields[] = {
        {"apiGroups", &hfd_schema_list_of_texts, "API groups; * is any.", .protobuf_tag = 2},
        {"resourceNames", &hfd_schema_list_of_texts, "Names. None: all objects.",
         .protobuf_tag = 4},
        {"resources", &hfd_schema_list_of_texts, "Resources; * is any.", .protobuf_tag = 3},
        {"verbs", &hfd_schema_list_of_texts, "Verbs; * is any.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema resource_rule = {HFD_STRUCT(RIGHTS "ResourceRule",
                                                           resource_rule_fields),
                                                .description = "What may be done with objects."};
static const struct hfd_schema_field path_rule_fields[] = {
        {"nonResourceURLs", &hfd_schema_list_of_texts, "Paths.", .protobuf_tag = 2},
        {"verbs", &hfd_schema_list_of_texts, "Methods; * is any.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema path_rule = {HFD_STRUCT(RIGHTS "NonResourceRule", path_rule_fields),
                                            .description = "What may be done with other paths."};
static const struct hfd_schema_field rules_status_fields[] = {
        {"evaluationError", &hfd_schema_text, "What could not be decided.", .protobuf_tag = 4},
        {"incomplete", &hfd_schema_boolean, "Whether there may be more rules.", .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
        {"nonResourceRules", HFD_LIST_OF(&path_rule), "Rules for other paths.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"resourceRules", HFD_LIST_OF(&resource_rule), "Rules for objects.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema rules_status = {HFD_STRUCT(RIGHTS "SubjectRulesReviewStatus",
                                                          rules_status_fields),
                                               .description = "The answer."};
static const struct hfd_schema_field rules_fields[] = {REVIEW_FIELDS(rules_spec, rules_status)};
const struct hfd_schema hfd_rules_review_schema =
        {HFD_STRUCT(RIGHTS "SelfSubjectRulesReview", rules_fields),
         .description = "SelfSubjectRulesReview asks for all rights of the client in a namespace."};
