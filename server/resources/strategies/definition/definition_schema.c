/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of CustomResourceDefinition. schema_props.c has that of openAPIV3Schema.
 *
 * A row of a table is a field: its name in JSON, the schema of the value, a description for
 * `kubectl explain`, its number in protobuf (protobuf_tag), and flags (schema.h).
 *
 * Invariants: names, types and numbers are those of k8s.io/apiextensions-apiserver and never
 * change. The rows of a table are sorted by name (strcmp), because look-ups bisect it.
 */
#include "server/resources/strategies/definition/definition_schema.h"

#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

/* ---- versions ---- */

static const struct hfd_schema_field column_fields[] = {
        {"description", &hfd_schema_text, "What the column shows.", .protobuf_tag = 4},
        {"format", &hfd_schema_text, "The format of the values, as in OpenAPI.", .protobuf_tag = 3},
        {"jsonPath", &hfd_schema_text, "The path of the value in an object.", .protobuf_tag = 6,
         .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, "The heading of the column.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"priority", &hfd_schema_int32,
         "Columns with a priority above 0 are shown only if there is space.", .protobuf_tag = 5},
        {"type", &hfd_schema_text, "The type of the values, as in OpenAPI.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema column =
        {HFD_STRUCT(HFD_API_EXTENSIONS "CustomResourceColumnDefinition", column_fields),
         .description = "A column in the table of a custom resource."};

static const struct hfd_schema_field selectable_fields[] = {
        {"jsonPath", &hfd_schema_text, "The path of the field: a text, an integer or a boolean.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema selectable = {HFD_STRUCT(HFD_API_EXTENSIONS "SelectableField",
                                                        selectable_fields),
                                             .description =
                                                     "A field that field selectors may name."};

/* labelSelectorPath is a pointer: without a selector there is a Scale, but no autoscaler can use
 * it. */
static const struct hfd_schema_field scale_fields[] = {
        {"labelSelectorPath", &hfd_schema_text, "The path of the label selector as a text.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"specReplicasPath", &hfd_schema_text, "The path of the wanted number of replicas.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"statusReplicasPath", &hfd_schema_text, "The path of the observed number of replicas.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema scale =
        {HFD_STRUCT(HFD_API_EXTENSIONS "CustomResourceSubresourceScale", scale_fields),
         .description = "Where an object has the values of its scale."};

/* An empty struct in Go, so there is no table of fields: that the object is there enables the
 * subresource. */
static const struct hfd_schema status_subresource =
        {.type = HFD_SCHEMA_STRUCT,
         .definition = HFD_API_EXTENSIONS "CustomResourceSubresourceStatus",
         .description = "The status is written by its own path."};

static const struct hfd_schema_field subresources_fields[] = {
        {"scale", &scale, "The objects have the path /scale.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"status", &status_subresource, "The objects have the path /status.", .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema subresources =
        {HFD_STRUCT(HFD_API_EXTENSIONS "CustomResourceSubresources", subresources_fields),
         .description = "The parts of an object that have their own path."};

/* Kubernetes calls this struct a list of the methods of validation; a schema is the only method. */
static const struct hfd_schema_field validation_fields[] = {
        {"openAPIV3Schema", &hfd_json_schema_props, "The schema of the objects.", .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema validation = {HFD_STRUCT(HFD_API_EXTENSIONS
                                                        "CustomResourceValidation",
                                                        validation_fields),
                                             .description = "What objects of a version are."};

/* Kubernetes' marker for the list of versions is +listType=atomic, so one manager has all of them.
 * Exactly one has `storage`: objects are written in it. */
static const struct hfd_schema_field version_fields[] = {
        {"additionalPrinterColumns", HFD_LIST_OF(&column),
         "The columns of the table after the name; the age if there are none.", .protobuf_tag = 6},
        {"deprecated", &hfd_schema_boolean, "Whether answers of this version have a warning.",
         .protobuf_tag = 7},
        {"deprecationWarning", &hfd_schema_text, "The warning, in place of the usual one.",
         .protobuf_tag = 8, .flags = HFD_FIELD_POINTER},
        {"name", &hfd_schema_text, "The name of the version, such as v1beta1.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"schema", &validation, "The schema of the objects of this version.", .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
        {"selectableFields", HFD_LIST_OF(&selectable), "The fields that field selectors may name.",
         .protobuf_tag = 9},
        {"served", &hfd_schema_boolean, "Whether the version is served.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"storage", &hfd_schema_boolean,
         "Whether objects are stored in this version, as in exactly one.", .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
        {"subresources", &subresources, "The parts of an object that have their own path.",
         .protobuf_tag = 5, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema version = {HFD_STRUCT(HFD_API_EXTENSIONS
                                                     "CustomResourceDefinitionVersion",
                                                     version_fields),
                                          .description = "A version of a custom resource."};

/* ---- conversion ---- */

/* The fields of this and of the next struct are those of an admission webhook. Go has them once in
 * each package, and so has OpenAPI: the definitions have other names. */
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
static const struct hfd_schema service = {HFD_STRUCT(HFD_API_EXTENSIONS "ServiceReference",
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
static const struct hfd_schema client = {HFD_STRUCT(HFD_API_EXTENSIONS "WebhookClientConfig",
                                                    client_fields),
                                         .description = "How a webhook is called."};

static const struct hfd_schema_field webhook_fields[] = {
        {"clientConfig", &client, "How the webhook is called.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
        {"conversionReviewVersions", &hfd_schema_list_of_texts,
         "The versions of ConversionReview that the webhook knows, best first.", .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema webhook = {HFD_STRUCT(HFD_API_EXTENSIONS "WebhookConversion",
                                                     webhook_fields),
                                          .description = "A webhook that converts objects."};

static const struct hfd_schema_field conversion_fields[] = {
        {"strategy", HFD_NAMED_TEXT(HFD_API_EXTENSIONS "ConversionStrategyType"),
         "None: only apiVersion is changed; or Webhook.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"webhook", &webhook, "The webhook of the strategy Webhook.", .protobuf_tag = 2,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema conversion = {HFD_STRUCT(HFD_API_EXTENSIONS
                                                        "CustomResourceConversion",
                                                        conversion_fields),
                                             .description = "How objects become another version."};

/* ---- spec and status ---- */

/* The same struct is in the spec and in the status: as requested, and as accepted. */
static const struct hfd_schema_field names_fields[] = {
        {"categories", &hfd_schema_list_of_texts, "Names for several kinds, such as all.",
         .protobuf_tag = 6},
        {"kind", &hfd_schema_text, "The kind of the objects, in CamelCase.", .protobuf_tag = 4,
         .flags = HFD_FIELD_REQUIRED},
        {"listKind", &hfd_schema_text, "The kind of lists; the kind and `List` by default.",
         .protobuf_tag = 5},
        {"plural", &hfd_schema_text, "The name of the resource in paths.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"shortNames", &hfd_schema_list_of_texts, "Short names for clients.", .protobuf_tag = 3},
        {"singular", &hfd_schema_text, "The name of one object; the kind in lower case by default.",
         .protobuf_tag = 2},
};
static const struct hfd_schema names = {HFD_STRUCT(HFD_API_EXTENSIONS
                                                   "CustomResourceDefinitionNames",
                                                   names_fields),
                                        .description = "The names of a custom resource."};

/* The protobuf numbers that are missing here were those of fields in v1beta1 that each version now
 * has for itself. preserveUnknownFields is left over from v1beta1: the rules refuse true, unless
 * the stored definition already has it. */
static const struct hfd_schema_field spec_fields[] = {
        {"conversion", &conversion, "How objects become another version.", .protobuf_tag = 9,
         .flags = HFD_FIELD_POINTER},
        {"group", &hfd_schema_text, "The name of the group.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"names", &names, "The names of the resource and the kind.", .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
        {"preserveUnknownFields", &hfd_schema_boolean, "Must be false.", .protobuf_tag = 10},
        {"scope", HFD_NAMED_TEXT(HFD_API_EXTENSIONS "ResourceScope"), "Cluster or Namespaced.",
         .protobuf_tag = 4, .flags = HFD_FIELD_REQUIRED},
        {"versions", HFD_LIST_OF(&version), "The versions of the resource.", .protobuf_tag = 7,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema spec = {HFD_STRUCT(HFD_API_EXTENSIONS "CustomResourceDefinitionSpec",
                                                  spec_fields),
                                       .description = "How the custom resource is served."};

/* Older than metav1.Condition, and not as strict: only type and status are required. */
static const struct hfd_schema_field condition_fields[] = {
        {"lastTransitionTime", &hfd_schema_time, "When the status last changed.",
         .protobuf_tag = 3},
        {"message", &hfd_schema_text, "Details for a human reader.", .protobuf_tag = 5},
        {"observedGeneration", &hfd_schema_int64, "The generation that the condition is of.",
         .protobuf_tag = 6},
        {"reason", &hfd_schema_text, "Why the status last changed, in one word.",
         .protobuf_tag = 4},
        {"status", HFD_NAMED_TEXT(HFD_API_EXTENSIONS "ConditionStatus"), "True, False or Unknown.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", HFD_NAMED_TEXT(HFD_API_EXTENSIONS "CustomResourceDefinitionConditionType"),
         "The type of the condition, such as Established, NamesAccepted or Terminating.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema condition =
        {HFD_STRUCT(HFD_API_EXTENSIONS "CustomResourceDefinitionCondition", condition_fields),
         .description = "One aspect of the state of a custom resource."};
static const char *const by_type[] = {"type", NULL};

/* Go has no omitempty for the two lists, so clients expect them even if they are empty. */
static const struct hfd_schema_field status_fields[] = {
        {"acceptedNames", &names, "The names by which the resource is served.", .protobuf_tag = 2},
        {"conditions", HFD_LIST_OF(&condition, .list_type = HFD_LIST_MAP, .list_keys = by_type),
         "Aspects of the state of the custom resource.", .protobuf_tag = 1,
         .flags = HFD_FIELD_KEEPS_EMPTY},
        {"observedGeneration", &hfd_schema_int64, "The generation that the status is of.",
         .protobuf_tag = 4},
        {"storedVersions", &hfd_schema_list_of_texts,
         "The versions in which objects were ever stored.", .protobuf_tag = 3,
         .flags = HFD_FIELD_KEEPS_EMPTY},
};
static const struct hfd_schema status = {HFD_STRUCT(HFD_API_EXTENSIONS
                                                    "CustomResourceDefinitionStatus",
                                                    status_fields),
                                         .description = "The state of a custom resource."};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS("Standard object's metadata More info: " HFD_CONVENTIONS "#metadata"),
        {"spec", &spec, "How the custom resource is served.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"status", &status, "Whether and how it is served now.", .protobuf_tag = 3},
};
const struct hfd_schema hfd_definition_schema =
        {HFD_STRUCT(HFD_API_EXTENSIONS "CustomResourceDefinition", fields),
         .description = "CustomResourceDefinition adds a resource to the API. Its name is the "
                        "plural, a dot and the group."};
