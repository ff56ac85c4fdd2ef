/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of JSONSchemaProps: a JSON schema, as a CustomResourceDefinition contains
 * it.
 *
 * A row of a table is a field: its name in JSON, the schema of the value, a description for
 * `kubectl explain`, its number in protobuf (protobuf_tag), and flags (schema.h).
 *
 * Invariants: names, types and numbers are those of k8s.io/apiextensions-apiserver and never
 * change. Rows are sorted by name (strcmp), because look-ups bisect a table. The schema contains
 * itself only through the STRUCT, which has a definition, so a walk that visits each definition
 * once ends.
 */
#include "server/resources/strategies/definition/definition_schema.h"

/* A value, such as a default, whose type depends on the schema that is described. The Go struct
 * keeps its text as it came, so nothing below it is pruned. */
static const struct hfd_schema json = {.type = HFD_SCHEMA_ANY,
                                       .definition = HFD_API_EXTENSIONS "JSON",
                                       .description = "Any JSON value."};
static const struct hfd_schema props_or_array = {.type = HFD_SCHEMA_EITHER,
                                                 .items = &hfd_json_schema_props,
                                                 .other = HFD_LIST_OF(&hfd_json_schema_props),
                                                 .definition = HFD_API_EXTENSIONS
                                                 "JSONSchemaPropsOrArray",
                                                 .description = "A schema or a list of schemas."};
static const struct hfd_schema props_or_bool =
        {.type = HFD_SCHEMA_EITHER,
         .items = &hfd_json_schema_props,
         .other = &hfd_schema_boolean,
         .definition = HFD_API_EXTENSIONS "JSONSchemaPropsOrBool",
         .description = "A schema, or whether any value is allowed."};
static const struct hfd_schema props_or_names =
        {.type = HFD_SCHEMA_EITHER,
         .items = &hfd_json_schema_props,
         .other = &hfd_schema_list_of_texts,
         .definition = HFD_API_EXTENSIONS "JSONSchemaPropsOrStringArray",
         .description = "A schema or a list of names of properties."};
static const struct hfd_schema map_of_props = {.type = HFD_SCHEMA_MAP,
                                               .items = &hfd_json_schema_props};
static const struct hfd_schema definitions_schema = {.type = HFD_SCHEMA_MAP,
                                                     .items = &hfd_json_schema_props,
                                                     .definition = HFD_API_EXTENSIONS
                                                     "JSONSchemaDefinitions"};
static const struct hfd_schema dependencies_schema = {.type = HFD_SCHEMA_MAP,
                                                      .items = &props_or_names,
                                                      .definition = HFD_API_EXTENSIONS
                                                      "JSONSchemaDependencies"};

static const struct hfd_schema_field docs_fields[] = {
        {"description", &hfd_schema_text, "What is documented there.", .protobuf_tag = 1},
        {"url", &hfd_schema_text, "Where the documentation is.", .protobuf_tag = 2},
};
static const struct hfd_schema docs = {HFD_STRUCT(HFD_API_EXTENSIONS "ExternalDocumentation",
                                                  docs_fields),
                                       .description = "Refers to documentation."};

static const struct hfd_schema_field rule_fields[] = {
        {"fieldPath", &hfd_schema_text, "The field that the message names, such as .test.a.",
         .protobuf_tag = 5},
        {"message", &hfd_schema_text, "What is said of a value that breaks the rule.",
         .protobuf_tag = 2},
        {"messageExpression", &hfd_schema_text,
         "An expression whose result is the message; it precedes `message`.", .protobuf_tag = 3},
        {"optionalOldSelf", &hfd_schema_boolean,
         "Whether the rule is also evaluated when there is no old value.", .protobuf_tag = 6,
         .flags = HFD_FIELD_POINTER},
        {"reason", HFD_NAMED_TEXT(HFD_API_EXTENSIONS "FieldValueErrorReason"),
         "The reason in the answer: FieldValueInvalid by default.", .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
        {"rule", &hfd_schema_text, "An expression in CEL, which is true of a good value.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema rule = {HFD_STRUCT(HFD_API_EXTENSIONS "ValidationRule", rule_fields),
                                       .description = "A rule of a value, in CEL."};
static const char *const by_rule[] = {"rule", NULL};

/* "Not supported" fields are in the Go struct, so a client may send them. The schema keeps them,
 * for the rules to refuse (custom/schema/structure/keywords.c). */
static const struct hfd_schema_field fields[] = {
        {"$ref", &hfd_schema_text, "Not supported.", .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"$schema", HFD_NAMED_TEXT(HFD_API_EXTENSIONS "JSONSchemaURL"),
         "The URL of the version of JSON schema.", .protobuf_tag = 2},
        {"additionalItems", &props_or_bool, "Not supported.", .protobuf_tag = 33,
         .flags = HFD_FIELD_POINTER},
        {"additionalProperties", &props_or_bool, "The schema of the values of a map.",
         .protobuf_tag = 30, .flags = HFD_FIELD_POINTER},
        {"allOf", HFD_LIST_OF(&hfd_json_schema_props), "Schemas that are all valid.",
         .protobuf_tag = 25},
        {"anyOf", HFD_LIST_OF(&hfd_json_schema_props), "Schemas of which one at least is valid.",
         .protobuf_tag = 27},
        {"default", &json, "The value of the field if it is absent.", .protobuf_tag = 8,
         .flags = HFD_FIELD_POINTER},
        {"definitions", &definitions_schema, "Not supported.", .protobuf_tag = 34},
        {"dependencies", &dependencies_schema, "Not supported.", .protobuf_tag = 32},
        {"description", &hfd_schema_text, "What the value means.", .protobuf_tag = 4},
        {"enum", HFD_LIST_OF(&json), "All valid values.", .protobuf_tag = 20},
        {"example", &json, "An example of a value.", .protobuf_tag = 36,
         .flags = HFD_FIELD_POINTER},
        {"exclusiveMaximum", &hfd_schema_boolean, "Whether the maximum itself is invalid.",
         .protobuf_tag = 10},
        {"exclusiveMinimum", &hfd_schema_boolean, "Whether the minimum itself is invalid.",
         .protobuf_tag = 12},
        {"externalDocs", &docs, "Further documentation.", .protobuf_tag = 35,
         .flags = HFD_FIELD_POINTER},
        {"format", &hfd_schema_text, "The format of a text or number, such as date-time.",
         .protobuf_tag = 6},
        {"id", &hfd_schema_text, "Not supported.", .protobuf_tag = 1},
        {"items", &props_or_array, "The schema of the elements of a list.", .protobuf_tag = 24,
         .flags = HFD_FIELD_POINTER},
        {"maxItems", &hfd_schema_int64, "The most elements that a list may have.",
         .protobuf_tag = 16, .flags = HFD_FIELD_POINTER},
        {"maxLength", &hfd_schema_int64, "The most characters that a text may have.",
         .protobuf_tag = 13, .flags = HFD_FIELD_POINTER},
        {"maxProperties", &hfd_schema_int64, "The most members that an object may have.",
         .protobuf_tag = 21, .flags = HFD_FIELD_POINTER},
        {"maximum", &hfd_schema_number, "The greatest valid number.", .protobuf_tag = 9,
         .flags = HFD_FIELD_POINTER},
        {"minItems", &hfd_schema_int64, "The fewest elements that a list may have.",
         .protobuf_tag = 17, .flags = HFD_FIELD_POINTER},
        {"minLength", &hfd_schema_int64, "The fewest characters that a text may have.",
         .protobuf_tag = 14, .flags = HFD_FIELD_POINTER},
        {"minProperties", &hfd_schema_int64, "The fewest members that an object may have.",
         .protobuf_tag = 22, .flags = HFD_FIELD_POINTER},
        {"minimum", &hfd_schema_number, "The smallest valid number.", .protobuf_tag = 11,
         .flags = HFD_FIELD_POINTER},
        {"multipleOf", &hfd_schema_number, "Valid numbers are multiples of this one.",
         .protobuf_tag = 19, .flags = HFD_FIELD_POINTER},
        {"not", &hfd_json_schema_props, "A schema that is not valid.", .protobuf_tag = 28,
         .flags = HFD_FIELD_POINTER},
        {"nullable", &hfd_schema_boolean, "Whether null is a valid value.", .protobuf_tag = 37},
        {"oneOf", HFD_LIST_OF(&hfd_json_schema_props), "Schemas of which exactly one is valid.",
         .protobuf_tag = 26},
        {"pattern", &hfd_schema_text, "A regular expression that a text matches.",
         .protobuf_tag = 15},
        {"patternProperties", &map_of_props, "Not supported.", .protobuf_tag = 31},
        {"properties", &map_of_props, "The schemas of the members of an object.",
         .protobuf_tag = 29},
        {"required", &hfd_schema_list_of_texts, "The members that an object must have.",
         .protobuf_tag = 23},
        {"title", &hfd_schema_text, "A name of the schema.", .protobuf_tag = 7},
        {"type", &hfd_schema_text,
         "The type of the value: object, array, string, integer, number or boolean.",
         .protobuf_tag = 5},
        {"uniqueItems", &hfd_schema_boolean, "Not supported: true is refused.", .protobuf_tag = 18},
        {"x-kubernetes-embedded-resource", &hfd_schema_boolean,
         "Whether the value is a whole object with apiVersion, kind and metadata.",
         .protobuf_tag = 39},
        {"x-kubernetes-int-or-string", &hfd_schema_boolean,
         "Whether the value is an integer or a text.", .protobuf_tag = 40},
        {"x-kubernetes-list-map-keys", &hfd_schema_list_of_texts,
         "The fields that identify an element of a list of type map.", .protobuf_tag = 41},
        {"x-kubernetes-list-type", &hfd_schema_text, "The type of a list: atomic, set or map.",
         .protobuf_tag = 42, .flags = HFD_FIELD_POINTER},
        {"x-kubernetes-map-type", &hfd_schema_text, "The type of an object: granular or atomic.",
         .protobuf_tag = 43, .flags = HFD_FIELD_POINTER},
        {"x-kubernetes-preserve-unknown-fields", &hfd_schema_boolean,
         "Whether members are kept that the schema does not have.", .protobuf_tag = 38,
         .flags = HFD_FIELD_POINTER},
        {"x-kubernetes-validations",
         HFD_LIST_OF(&rule, .list_type = HFD_LIST_MAP, .list_keys = by_rule,
                     .definition = HFD_API_EXTENSIONS "ValidationRules"),
         "Rules of the value, in CEL.", .merge_key = "rule", .protobuf_tag = 44,
         .flags = HFD_FIELD_MERGE},
};
const struct hfd_schema hfd_json_schema_props = {HFD_STRUCT(HFD_API_EXTENSIONS "JSONSchemaProps",
                                                            fields),
                                                 .description = "A JSON schema."};
