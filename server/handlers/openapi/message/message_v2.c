/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of OpenAPI v2 as protobuf: gnostic's openapi.v2.Document, as far as the documents
 * and the schemas of custom resources have such members. Clients that ask for it are old: kubectl
 * 1.20 needs it for every create, to validate the object, and for `kubectl explain`. `kubectl
 * apply` takes the patch strategy and the merge key of each list from it, to compute patches.
 *
 * A row has the name of a member in JSON, its number in protobuf, and its form or its message.
 * message.h explains the other members of the structs.
 *
 * Invariant: the name of a field is that of the member of the JSON form, except in a oneof
 * (message.h); its number is that of OpenAPIv2.proto, which never changes.
 */
#include "server/handlers/openapi/message/message.h"

static const struct hfd_message schema; /* a schema contains schemas */

/* ---- schemas ---- */

static const struct hfd_message properties = {.pairs = 1, .values = &schema};

/* gnostic's TypeItem and ItemsItem contain lists, and JSON has one value. With a oneof of one
 * row the whole value becomes the element of that list. */
static const struct hfd_message_field type_fields[] = {{"value", 1, HFD_FORM_TEXT}};
static const struct hfd_message type = {HFD_MESSAGE_FIELDS(type_fields), .is_oneof = true};

static const struct hfd_message_field items_fields[] = {{"schema", 1, .message = &schema}};
static const struct hfd_message items = {HFD_MESSAGE_FIELDS(items_fields), .is_oneof = true};

static const struct hfd_message_field additional_fields[] = {
        {"boolean", 2, HFD_FORM_BOOLEAN, .when = HFD_WHEN_BOOLEAN},
        {"schema", 1, .message = &schema},
};
static const struct hfd_message additional_properties = {HFD_MESSAGE_FIELDS(additional_fields),
                                                         .is_oneof = true};

static const struct hfd_message_field external_docs_fields[] = {
        {"description", 1, HFD_FORM_TEXT},
        {"url", 2, HFD_FORM_TEXT},
};
static const struct hfd_message external_docs = {HFD_MESSAGE_FIELDS(external_docs_fields),
                                                 .extensions = 3};

static const struct hfd_message_field schema_fields[] = {
        {"$ref", 1, HFD_FORM_TEXT},
        {"format", 2, HFD_FORM_TEXT},
        {"title", 3, HFD_FORM_TEXT},
        {"description", 4, HFD_FORM_TEXT},
        {"default", 5, HFD_FORM_YAML},
        {"multipleOf", 6, HFD_FORM_NUMBER},
        {"maximum", 7, HFD_FORM_NUMBER},
        {"exclusiveMaximum", 8, HFD_FORM_BOOLEAN},
        {"minimum", 9, HFD_FORM_NUMBER},
        {"exclusiveMinimum", 10, HFD_FORM_BOOLEAN},
        {"maxLength", 11, HFD_FORM_INTEGER},
        {"minLength", 12, HFD_FORM_INTEGER},
        {"pattern", 13, HFD_FORM_TEXT},
        {"maxItems", 14, HFD_FORM_INTEGER},
        {"minItems", 15, HFD_FORM_INTEGER},
        {"uniqueItems", 16, HFD_FORM_BOOLEAN},
        {"maxProperties", 17, HFD_FORM_INTEGER},
        {"minProperties", 18, HFD_FORM_INTEGER},
        {"required", 19, HFD_FORM_TEXT},
        {"enum", 20, HFD_FORM_YAMLS},
        {"additionalProperties", 21, .message = &additional_properties},
        {"type", 22, .message = &type},
        {"items", 23, .message = &items},
        {"properties", 25, .message = &properties},
        {"externalDocs", 29, .message = &external_docs},
        {"example", 30, HFD_FORM_YAML},
};
static const struct hfd_message schema = {HFD_MESSAGE_FIELDS(schema_fields), .extensions = 31};

/* ---- operations ---- */

static const struct hfd_message_field body_fields[] = {
        {"description", 1, HFD_FORM_TEXT}, {"name", 2, HFD_FORM_TEXT},
        {"in", 3, HFD_FORM_TEXT},          {"required", 4, HFD_FORM_BOOLEAN},
        {"schema", 5, .message = &schema},
};
static const struct hfd_message body = {HFD_MESSAGE_FIELDS(body_fields), .extensions = 6};

static const struct hfd_message_field query_fields[] = {
        {"required", 1, HFD_FORM_BOOLEAN}, {"in", 2, HFD_FORM_TEXT},
        {"description", 3, HFD_FORM_TEXT}, {"name", 4, HFD_FORM_TEXT},
        {"type", 6, HFD_FORM_TEXT},
};
static const struct hfd_message query = {HFD_MESSAGE_FIELDS(query_fields), .extensions = 23};

static const struct hfd_message_field path_parameter_fields[] = {
        {"required", 1, HFD_FORM_BOOLEAN}, {"in", 2, HFD_FORM_TEXT},
        {"description", 3, HFD_FORM_TEXT}, {"name", 4, HFD_FORM_TEXT},
        {"type", 5, HFD_FORM_TEXT},
};
static const struct hfd_message path_parameter = {HFD_MESSAGE_FIELDS(path_parameter_fields),
                                                  .extensions = 22};

/* gnostic nests the kinds of parameters: one in the body, or one that is not; the latter is in the
 * query or in the path. The member `in` says which. */
static const struct hfd_message_field other_parameter_fields[] = {
        {"query", 3, .message = &query, .when = HFD_WHEN_IN},
        {"path", 4, .message = &path_parameter, .when = HFD_WHEN_IN},
};
static const struct hfd_message other_parameter = {HFD_MESSAGE_FIELDS(other_parameter_fields),
                                                   .is_oneof = true};
static const struct hfd_message_field parameter_fields[] = {
        {"body", 1, .message = &body, .when = HFD_WHEN_IN},
        {"other", 2, .message = &other_parameter},
};
static const struct hfd_message parameter = {HFD_MESSAGE_FIELDS(parameter_fields),
                                             .is_oneof = true};
static const struct hfd_message_field parameter_or_reference_fields[] = {
        {"parameter", 1, .message = &parameter},
};
static const struct hfd_message parameter_or_reference = {HFD_MESSAGE_FIELDS(
                                                                  parameter_or_reference_fields),
                                                          .is_oneof = true};

static const struct hfd_message_field response_schema_fields[] = {
        {"schema", 1, .message = &schema},
};
static const struct hfd_message response_schema = {HFD_MESSAGE_FIELDS(response_schema_fields),
                                                   .is_oneof = true};
static const struct hfd_message_field response_fields[] = {
        {"description", 1, HFD_FORM_TEXT},
        {"schema", 2, .message = &response_schema},
};
static const struct hfd_message response = {HFD_MESSAGE_FIELDS(response_fields), .extensions = 5};
static const struct hfd_message_field response_or_reference_fields[] = {
        {"response", 1, .message = &response},
};
static const struct hfd_message response_or_reference = {HFD_MESSAGE_FIELDS(
                                                                 response_or_reference_fields),
                                                         .is_oneof = true};
static const struct hfd_message responses = {.pairs = 1, .values = &response_or_reference};

static const struct hfd_message_field operation_fields[] = {
        {"tags", 1, HFD_FORM_TEXT},
        {"summary", 2, HFD_FORM_TEXT},
        {"description", 3, HFD_FORM_TEXT},
        {"operationId", 5, HFD_FORM_TEXT},
        {"produces", 6, HFD_FORM_TEXT},
        {"consumes", 7, HFD_FORM_TEXT},
        {"parameters", 8, .message = &parameter_or_reference},
        {"responses", 9, .message = &responses},
        {"deprecated", 11, HFD_FORM_BOOLEAN},
};
static const struct hfd_message operation = {HFD_MESSAGE_FIELDS(operation_fields),
                                             .extensions = 13};

static const struct hfd_message_field path_fields[] = {
        {"get", 2, .message = &operation},   {"put", 3, .message = &operation},
        {"post", 4, .message = &operation},  {"delete", 5, .message = &operation},
        {"patch", 8, .message = &operation}, {"parameters", 9, .message = &parameter_or_reference},
};
static const struct hfd_message path = {HFD_MESSAGE_FIELDS(path_fields), .extensions = 10};
static const struct hfd_message paths = {.pairs = 2, .values = &path};

/* ---- the document ---- */

static const struct hfd_message_field info_fields[] = {
        {"title", 1, HFD_FORM_TEXT},
        {"version", 2, HFD_FORM_TEXT},
        {"description", 3, HFD_FORM_TEXT},
};
static const struct hfd_message info = {HFD_MESSAGE_FIELDS(info_fields)};

static const struct hfd_message_field document_fields[] = {
        {"swagger", 1, HFD_FORM_TEXT},
        {"info", 2, .message = &info},
        {"paths", 8, .message = &paths, .split = true},
        {"definitions", 9, .message = &properties, .split = true},
};
const struct hfd_message hfd_message_v2 = {HFD_MESSAGE_FIELDS(document_fields)};
