/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates the schema of a version of a custom resource. This file has the rules for its root;
 * hfd_custom_props_check checks the rest.
 *
 * Invariant: the rows of `root_fields` are in the order of Kubernetes' struct, because
 * check_root_with_status reports only the first mistake, and the message shows the struct.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/custom/rules/custom_props.h"
#include "server/resources/custom/schema/compile/effort.h"
#include "server/resources/strategies/definition/definition_rules.h"

/* ---- defaults ---- */

/* Whether there is a default in a list or map of schemas. */
static bool any_has_default(const struct hf__json *container) {
        for (const struct hf__json *m = hf__json_first(container); m; m = hf__json_next(m))
                if (hf__json_is_object(m) && hfd_definition_has_default(m))
                        return true;
        return false;
}

/* The recursion is as deep as the schema is nested, which HF__JSON_DEPTH_MAX limits. */
bool hfd_definition_has_default(const struct hf__json *props) {
        static const char *const one[] = {"items", "not", "additionalProperties",
                                          "additionalItems"};
        static const char *const many[] = {"items",       "allOf",       "oneOf",
                                           "anyOf",       "properties",  "patternProperties",
                                           "definitions", "dependencies"};

        if (hf__json_get(props, "default"))
                return true;
        for (size_t i = 0; i < sizeof one / sizeof one[0]; i++) {
                const struct hf__json *inner = hf__json_get(props, one[i]);
                if (hf__json_is_object(inner) && hfd_definition_has_default(inner))
                        return true;
        }
        for (size_t i = 0; i < sizeof many / sizeof many[0]; i++) {
                const struct hf__json *inner = hf__json_get(props, many[i]);
                if ((i > 0 || hf__json_is_array(inner)) && any_has_default(inner))
                        return true;
        }
        return false;
}

/* ---- the root ---- */

/* The fields of Kubernetes' Go struct JSONSchemaProps. */
static const struct root_field {
        const char *name; /* in Go */
        const char *key;  /* in JSON */
        const char *zero; /* how an absent field is printed */
        bool with_status; /* may be at the root if the version has the subresource status */
} root_fields[] = {
        {"ID", "id", "\"\"", false},
        {"Schema", "$schema", "\"\"", false},
        {"Ref", "$ref", "null", false},
        {"Description", "description", "\"\"", true},
        {"Type", "type", "\"\"", true},
        {"Nullable", "nullable", "false", false},
        {"Format", "format", "\"\"", true},
        {"Title", "title", "\"\"", true},
        {"Default", "default", "null", false},
        {"Maximum", "maximum", "null", true},
        {"ExclusiveMaximum", "exclusiveMaximum", "false", true},
        {"Minimum", "minimum", "null", true},
        {"ExclusiveMinimum", "exclusiveMinimum", "false", true},
        {"MaxLength", "maxLength", "null", true},
        {"MinLength", "minLength", "null", true},
        {"Pattern", "pattern", "\"\"", true},
        {"MaxItems", "maxItems", "null", true},
        {"MinItems", "minItems", "null", true},
        {"UniqueItems", "uniqueItems", "false", true},
        {"MultipleOf", "multipleOf", "null", true},
        {"Enum", "enum", "null", false},
        {"MaxProperties", "maxProperties", "null", false},
        {"MinProperties", "minProperties", "null", false},
        {"Required", "required", "null", true},
        {"Items", "items", "null", true},
        {"AllOf", "allOf", "null", false},
        {"OneOf", "oneOf", "null", false},
        {"AnyOf", "anyOf", "null", false},
        {"Not", "not", "null", false},
        {"Properties", "properties", "null", true},
        {"AdditionalProperties", "additionalProperties", "null", false},
        {"PatternProperties", "patternProperties", "null", false},
        {"Dependencies", "dependencies", "null", false},
        {"AdditionalItems", "additionalItems", "null", false},
        {"Definitions", "definitions", "null", false},
        {"ExternalDocs", "externalDocs", "null", true},
        {"Example", "example", "null", true},
        {"XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", "null", true},
        {"XEmbeddedResource", "x-kubernetes-embedded-resource", "false", false},
        {"XIntOrString", "x-kubernetes-int-or-string", "false", false},
        {"XListMapKeys", "x-kubernetes-list-map-keys", "null", false},
        {"XListType", "x-kubernetes-list-type", "null", false},
        {"XMapType", "x-kubernetes-map-type", "null", false},
        {"XValidations", "x-kubernetes-validations", "null", true},
};
#define N_ROOT_FIELDS (sizeof root_fields / sizeof root_fields[0])

/* Whether the field differs from its zero value. */
static bool is_set(const struct root_field *field, const struct hf__json *value) {
        if (!value)
                return false;
        if (field->zero[0] == 'f')
                return hf__json_is_true(value);
        return field->zero[0] != '"' || *hf__json_text(value) != '\0';
}

/* Appends the schema as Kubernetes prints its struct. */
static void put_fields(struct hf__strbuf *s, const struct hf__json *props) {
        for (size_t i = 0; i < N_ROOT_FIELDS; i++) {
                const struct hf__json *value = hf__json_get(props, root_fields[i].key);
                hf__strbuf_printf(s, "%s\"%s\":", i > 0 ? "," : "{", root_fields[i].name);
                if (value)
                        hf__json_print(value, s);
                else
                        hf__strbuf_puts(s, root_fields[i].zero);
        }
        hf__strbuf_putc(s, '}');
}

static void refuse_root(const struct hf__json *props, const char *path, struct hfd_causes *causes) {
        struct hf__strbuf shown = {0}, detail = {0};

        put_fields(&shown, props);
        hf__strbuf_puts(&detail, "only [");
        for (size_t i = 0, n = 0; i < N_ROOT_FIELDS; i++)
                if (root_fields[i].with_status)
                        hf__strbuf_printf(&detail, "%s%s", n++ > 0 ? " " : "", root_fields[i].name);
        hf__strbuf_puts(&detail, "] fields are allowed at the root of the schema if the status "
                                 "subresource is enabled");
        hfd_cause_invalid(causes, path, hfd_causes_check(causes, shown.error) ? shown.data : "",
                          hfd_causes_check(causes, detail.error) ? detail.data : "");
        hf__strbuf_done(&shown);
        hf__strbuf_done(&detail);
}

/* With the subresource status, the status is validated separately from the rest, so the root may
 * only have fields that do not concern it. Only the first mistake is reported. */
static void check_root_with_status(const struct hf__json *props, const char *path,
                                   struct hfd_causes *causes) {
        char field[HFD_DEFINITION_PATH_MAX];

        for (size_t i = 0; i < N_ROOT_FIELDS; i++) {
                const struct hf__json *value = hf__json_get(props, root_fields[i].key);
                if (!is_set(&root_fields[i], value))
                        continue;
                if (!root_fields[i].with_status) {
                        refuse_root(props, path, causes);
                        return;
                }
                if (strcmp(root_fields[i].key, "type") != 0 ||
                    strcmp(hf__json_text(value), "object") == 0)
                        continue;
                (void)snprintf(field, sizeof field, "%s.type", path);
                hfd_cause_invalid_text(causes, field, hf__json_text(value),
                                       "only \"object\" is allowed as the type at the root of the "
                                       "schema if the status subresource is enabled");
                return;
        }
}

void hfd_definition_check_props(const struct hf__json *props, const char *path, bool has_status,
                                bool unchanged, struct hfd_schema_effort *effort,
                                struct hfd_causes *causes) {
        char field[HFD_DEFINITION_PATH_MAX];

        if (!props)
                return;
        if (has_status)
                check_root_with_status(props, path, causes);
        if (hf__json_bool(props, "nullable", false)) {
                (void)snprintf(field, sizeof field, "%s.nullable", path);
                hfd_cause_forbidden(causes, field, "nullable cannot be true at the root");
        }
        /* A limit that an earlier version has exceeded was reported there. */
        if (!effort || hfd_schema_effort_problem(effort))
                return;
        if (unchanged)
                hfd_custom_props_count(props, path, effort, causes);
        else
                hfd_custom_props_check(props, path, effort, causes);
}
