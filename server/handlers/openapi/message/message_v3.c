/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of OpenAPI v3 as protobuf: gnostic's openapi.v3.Document, as far as the documents
 * and the schemas of custom resources have such members. kubectl and client-go ask for it.
 *
 * A row has the name of a member in JSON, its number in protobuf, and its form or its message.
 * message.h explains the other members of the structs.
 *
 * Invariant: the name of a field is that of the member of the JSON form, except in a oneof
 * (message.h); its number is that of OpenAPIv3.proto, which never changes.
 */
#include "server/handlers/openapi/message/message.h"

/* A schema contains schemas, so the tables refer to each other in a circle. */
static const struct hfd_message schema, schema_or_reference;

/* ---- schemas ---- */

static const struct hfd_message_field reference_fields[] = {
        {"$ref", 1, HFD_FORM_TEXT},
        {"summary", 2, HFD_FORM_TEXT},
        {"description", 3, HFD_FORM_TEXT},
};
static const struct hfd_message reference = {HFD_MESSAGE_FIELDS(reference_fields)};

/* The reference comes first, because every object fits the second row. */
static const struct hfd_message_field schema_or_reference_fields[] = {
        {"reference", 2, .message = &reference, .when = HFD_WHEN_REFERENCE},
        {"schema", 1, .message = &schema},
};
static const struct hfd_message schema_or_reference = {HFD_MESSAGE_FIELDS(
                                                               schema_or_reference_fields),
                                                       .is_oneof = true};

static const struct hfd_message properties = {.pairs = 1, .values = &schema_or_reference};

/* gnostic's ItemsItem contains a list of schemas, and JSON has one. With a oneof of one row the
 * whole value becomes the element of that list. */
static const struct hfd_message_field items_fields[] = {
        {"schema_or_reference", 1, .message = &schema_or_reference},
};
static const struct hfd_message items = {HFD_MESSAGE_FIELDS(items_fields), .is_oneof = true};

static const struct hfd_message_field additional_fields[] = {
        {"boolean", 2, HFD_FORM_BOOLEAN, .when = HFD_WHEN_BOOLEAN},
        {"schema_or_reference", 1, .message = &schema_or_reference},
};
static const struct hfd_message additional_properties = {HFD_MESSAGE_FIELDS(additional_fields),
                                                         .is_oneof = true};

/* This message has no field for a list or an object, so it is empty for such a default. */
static const struct hfd_message_field default_fields[] = {
        {"number", 1, HFD_FORM_NUMBER, .when = HFD_WHEN_NUMBER},
        {"boolean", 2, HFD_FORM_BOOLEAN, .when = HFD_WHEN_BOOLEAN},
        {"string", 3, HFD_FORM_TEXT, .when = HFD_WHEN_TEXT},
};
static const struct hfd_message default_type = {HFD_MESSAGE_FIELDS(default_fields),
                                                .is_oneof = true};

static const struct hfd_message_field external_docs_fields[] = {
        {"description", 1, HFD_FORM_TEXT},
        {"url", 2, HFD_FORM_TEXT},
};
static const struct hfd_message external_docs = {HFD_MESSAGE_FIELDS(external_docs_fields),
                                                 .extensions = 3};

/* The numbers that are missing are those of discriminator and xml, which no schema of Kubernetes
 * has. Members that begin with x-kubernetes- are extensions. */
static const struct hfd_message_field schema_fields[] = {
        {"nullable", 1, HFD_FORM_BOOLEAN},
        {"readOnly", 3, HFD_FORM_BOOLEAN},
        {"writeOnly", 4, HFD_FORM_BOOLEAN},
        {"externalDocs", 6, .message = &external_docs},
        {"example", 7, HFD_FORM_YAML},
        {"deprecated", 8, HFD_FORM_BOOLEAN},
        {"title", 9, HFD_FORM_TEXT},
        {"multipleOf", 10, HFD_FORM_NUMBER},
        {"maximum", 11, HFD_FORM_NUMBER},
        {"exclusiveMaximum", 12, HFD_FORM_BOOLEAN},
        {"minimum", 13, HFD_FORM_NUMBER},
        {"exclusiveMinimum", 14, HFD_FORM_BOOLEAN},
        {"maxLength", 15, HFD_FORM_INTEGER},
        {"minLength", 16, HFD_FORM_INTEGER},
        {"pattern", 17, HFD_FORM_TEXT},
        {"maxItems", 18, HFD_FORM_INTEGER},
        {"minItems", 19, HFD_FORM_INTEGER},
        {"uniqueItems", 20, HFD_FORM_BOOLEAN},
        {"maxProperties", 21, HFD_FORM_INTEGER},
        {"minProperties", 22, HFD_FORM_INTEGER},
        {"required", 23, HFD_FORM_TEXT},
        {"enum", 24, HFD_FORM_YAMLS},
        {"type", 25, HFD_FORM_TEXT},
        {"allOf", 26, .message = &schema_or_reference},
        {"oneOf", 27, .message = &schema_or_reference},
        {"anyOf", 28, .message = &schema_or_reference},
        {"not", 29, .message = &schema},
        {"items", 30, .message = &items},
        {"properties", 31, .message = &properties},
        {"additionalProperties", 32, .message = &additional_properties},
        {"default", 33, .message = &default_type, .whole = true},
        {"description", 34, HFD_FORM_TEXT},
        {"format", 35, HFD_FORM_TEXT},
};
static const struct hfd_message schema = {HFD_MESSAGE_FIELDS(schema_fields), .extensions = 36};

/* ---- operations ---- */

static const struct hfd_message_field media_type_fields[] = {
        {"schema", 1, .message = &schema_or_reference},
};
static const struct hfd_message media_type = {HFD_MESSAGE_FIELDS(media_type_fields),
                                              .extensions = 5};
static const struct hfd_message media_types = {.pairs = 1, .values = &media_type};

static const struct hfd_message_field parameter_fields[] = {
        {"name", 1, HFD_FORM_TEXT},
        {"in", 2, HFD_FORM_TEXT},
        {"description", 3, HFD_FORM_TEXT},
        {"required", 4, HFD_FORM_BOOLEAN},
        {"schema", 10, .message = &schema_or_reference},
};
static const struct hfd_message parameter = {HFD_MESSAGE_FIELDS(parameter_fields),
                                             .extensions = 14};
/* The documents of paths.c write each parameter, body and response in full where it is used, not as
 * a $ref, so the oneofs below have no row for references. */
static const struct hfd_message_field parameter_or_reference_fields[] = {
        {"parameter", 1, .message = &parameter},
};
static const struct hfd_message parameter_or_reference = {HFD_MESSAGE_FIELDS(
                                                                  parameter_or_reference_fields),
                                                          .is_oneof = true};

static const struct hfd_message_field request_body_fields[] = {
        {"description", 1, HFD_FORM_TEXT},
        {"content", 2, .message = &media_types},
        {"required", 3, HFD_FORM_BOOLEAN},
};
static const struct hfd_message request_body = {HFD_MESSAGE_FIELDS(request_body_fields),
                                                .extensions = 4};
static const struct hfd_message_field request_body_or_reference_fields[] = {
        {"request_body", 1, .message = &request_body},
};
static const struct hfd_message request_body_or_reference =
        {HFD_MESSAGE_FIELDS(request_body_or_reference_fields), .is_oneof = true};

static const struct hfd_message_field response_fields[] = {
        {"description", 1, HFD_FORM_TEXT},
        {"content", 3, .message = &media_types},
};
static const struct hfd_message response = {HFD_MESSAGE_FIELDS(response_fields), .extensions = 5};
static const struct hfd_message_field response_or_reference_fields[] = {
        {"response", 1, .message = &response},
};
static const struct hfd_message response_or_reference = {HFD_MESSAGE_FIELDS(
                                                                 response_or_reference_fields),
                                                         .is_oneof = true};
static const struct hfd_message_field responses_fields[] = {
        {"default", 1, .message = &response_or_reference},
};
static const struct hfd_message responses = {HFD_MESSAGE_FIELDS(responses_fields), .pairs = 2,
                                             .values = &response_or_reference};

static const struct hfd_message_field operation_fields[] = {
        {"tags", 1, HFD_FORM_TEXT},
        {"summary", 2, HFD_FORM_TEXT},
        {"description", 3, HFD_FORM_TEXT},
        {"operationId", 5, HFD_FORM_TEXT},
        {"parameters", 6, .message = &parameter_or_reference},
        {"requestBody", 7, .message = &request_body_or_reference},
        {"responses", 8, .message = &responses},
        {"deprecated", 10, HFD_FORM_BOOLEAN},
};
static const struct hfd_message operation = {HFD_MESSAGE_FIELDS(operation_fields),
                                             .extensions = 13};

static const struct hfd_message_field path_fields[] = {
        {"summary", 2, HFD_FORM_TEXT},
        {"description", 3, HFD_FORM_TEXT},
        {"get", 4, .message = &operation},
        {"put", 5, .message = &operation},
        {"post", 6, .message = &operation},
        {"delete", 7, .message = &operation},
        {"patch", 10, .message = &operation},
        {"parameters", 13, .message = &parameter_or_reference},
};
static const struct hfd_message path = {HFD_MESSAGE_FIELDS(path_fields), .extensions = 14};
static const struct hfd_message paths = {.pairs = 1, .values = &path};

/* ---- the document ---- */

/* Nearly all of a document is in paths and schemas, so these are read member by member. */
static const struct hfd_message_field component_fields[] = {
        {"schemas", 1, .message = &properties, .split = true},
};
static const struct hfd_message components = {HFD_MESSAGE_FIELDS(component_fields)};

static const struct hfd_message_field info_fields[] = {
        {"title", 1, HFD_FORM_TEXT},
        {"description", 2, HFD_FORM_TEXT},
        {"version", 6, HFD_FORM_TEXT},
};
static const struct hfd_message info = {HFD_MESSAGE_FIELDS(info_fields)};

static const struct hfd_message_field document_fields[] = {
        {"openapi", 1, HFD_FORM_TEXT},
        {"info", 2, .message = &info},
        {"paths", 4, .message = &paths, .split = true},
        {"components", 5, .message = &components, .split = true},
};
const struct hfd_message hfd_message_v3 = {HFD_MESSAGE_FIELDS(document_fields)};
