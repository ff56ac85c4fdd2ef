/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the types of those keywords of a JSONSchemaProps that are used, and the schemas in them.
 * The rules and the compilation walk only a schema that has passed, and rely on most of these
 * types. The recursion is as deep as the JSON is nested.
 *
 * The keywords that are not in the table may have any value: default and example may by their
 * nature, and the others are not supported (structure/keywords.c refuses `definitions`, `$ref` and
 * the like when a CustomResourceDefinition is written) or only shown.
 */
#include "server/resources/custom/schema/formed_props.h"

#include <stddef.h>
#include <string.h>

#include "base/json.h"

enum form { TEXT, FLAG, NUMBER, TEXTS, LIST, SCHEMA, SCHEMAS, NAMED_SCHEMAS, ITEMS, VALUES };

static const struct {
        const char *key;
        enum form form;
} keywords[] = {
        {"type", TEXT},
        {"format", TEXT},
        {"title", TEXT},
        {"description", TEXT},
        {"pattern", TEXT},
        {"x-kubernetes-list-type", TEXT},
        {"x-kubernetes-map-type", TEXT},
        {"nullable", FLAG},
        {"uniqueItems", FLAG},
        {"exclusiveMinimum", FLAG},
        {"exclusiveMaximum", FLAG},
        {"x-kubernetes-preserve-unknown-fields", FLAG},
        {"x-kubernetes-embedded-resource", FLAG},
        {"x-kubernetes-int-or-string", FLAG},
        {"minimum", NUMBER},
        {"maximum", NUMBER},
        {"multipleOf", NUMBER},
        {"minLength", NUMBER},
        {"maxLength", NUMBER},
        {"minItems", NUMBER},
        {"maxItems", NUMBER},
        {"minProperties", NUMBER},
        {"maxProperties", NUMBER},
        {"required", TEXTS},
        {"x-kubernetes-list-map-keys", TEXTS},
        {"enum", LIST},
        {"x-kubernetes-validations", LIST},
        {"not", SCHEMA},
        {"allOf", SCHEMAS},
        {"anyOf", SCHEMAS},
        {"oneOf", SCHEMAS},
        {"properties", NAMED_SCHEMAS},
        {"items", ITEMS},
        {"additionalProperties", VALUES},
};

static bool are_texts(const struct hf__json *list) {
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m))
                if (!hf__json_is_string(m))
                        return false;
        return hf__json_is_array(list);
}

static bool are_schemas(const struct hf__json *container) {
        for (const struct hf__json *m = hf__json_first(container); m; m = hf__json_next(m))
                if (!hfd_schema_props_are_formed(m))
                        return false;
        return true;
}

static bool has_form(const struct hf__json *value, enum form form) {
        switch (form) {
        case TEXT: return hf__json_is_string(value);
        case FLAG: return hf__json_is_bool(value);
        case NUMBER: return hf__json_is_number(value);
        case TEXTS: return are_texts(value);
        case LIST: return hf__json_is_array(value);
        case SCHEMA: return hfd_schema_props_are_formed(value);
        case SCHEMAS: return hf__json_is_array(value) && are_schemas(value);
        case NAMED_SCHEMAS: return hf__json_is_object(value) && are_schemas(value);
        case ITEMS:
                return hf__json_is_array(value) ? are_schemas(value)
                                                : hfd_schema_props_are_formed(value);
        case VALUES: return hf__json_is_bool(value) || hfd_schema_props_are_formed(value);
        }
        return false;
}

bool hfd_schema_props_are_formed(const struct hf__json *props) {
        if (!hf__json_is_object(props))
                return false;
        for (const struct hf__json *m = hf__json_first(props); m; m = hf__json_next(m))
                for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
                        if (strcmp(hf__json_key(m), keywords[i].key) == 0 && !hf__json_is_null(m) &&
                            !has_form(m, keywords[i].form))
                                return false;
        return true;
}
