/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that a structural schema has each keyword only where it may be. Its structure is what
 * properties, items and additionalProperties lead to; its value validations are the schemas below
 * allOf, anyOf, oneOf and not.
 *
 * Invariants: types, descriptions, defaults and extensions (x-kubernetes-...) are allowed in the
 * structure only, so that the schema of a value does not depend on the value. The one exception is
 * the form of is_int_or_string. The texts of the causes are those of kube-apiserver; structural.c
 * sorts the causes.
 */
#include <string.h>

#include "base/json.h"
#include "server/resources/custom/schema/structure/structure.h"

/* Where a schema of the structure is: at the root, below items, or below another keyword. */
enum level { AT_ROOT, AT_ITEM, AT_FIELD };

static void check_validation(struct hfd_structure *structure, const struct hf__json *props,
                             bool skips_any_of, const struct hfd_structure_path *path);

/* ---- value validations ---- */

/* Whether anyOf is [{"type":"integer"},{"type":"string"}]. Kubernetes allows this form, with types
 * in a value validation, as the long way to write x-kubernetes-int-or-string. */
static bool is_int_or_string(const struct hf__json *props) {
        const struct hf__json *list = hf__json_get(props, "anyOf"), *a = hf__json_first(list),
                              *b = a ? hf__json_next(a) : NULL;

        return hf__json_is_array(list) && b && !hf__json_next(b) && hf__json_count(a) == 1 &&
               hf__json_count(b) == 1 && hf__json_has_text(a, "type", "integer") &&
               hf__json_has_text(b, "type", "string");
}

/* Checks the schemas in a list. skips_first_any_of: the anyOf of the first one is not checked. */
static void check_list(struct hfd_structure *structure, const struct hf__json *props,
                       const char *key, bool skips_first_any_of,
                       const struct hfd_structure_path *path) {
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(props, key)); m;
             m = hf__json_next(m), i++) {
                const struct hfd_structure_path step = hfd_step_index(path, key, i);
                check_validation(structure, m, skips_first_any_of && i == 0, &step);
        }
}

/* Checks the value validations that props contain. skips_any_of: the anyOf is left out, because it
 * has the form of is_int_or_string. skips_first_any_of: the same for the first schema of allOf. */
static void check_validations(struct hfd_structure *structure, const struct hf__json *props,
                              bool skips_any_of, bool skips_first_any_of,
                              const struct hfd_structure_path *path) {
        if (!skips_any_of)
                check_list(structure, props, "anyOf", false, path);
        check_list(structure, props, "allOf", skips_first_any_of, path);
        check_list(structure, props, "oneOf", false, path);
        if (hfd_structure_has(props, "not")) {
                const struct hfd_structure_path step = hfd_step(path, "not");
                check_validation(structure, hf__json_get(props, "not"), false, &step);
        }
        hfd_structure_check_pattern(structure, props, path);
}

/* Adds a cause for each keyword that a value validation must not have. As in Kubernetes, a flag
 * that is false counts as absent, and so does `additionalProperties: false`. */
static void forbid_keywords(struct hfd_structure *structure, const struct hf__json *props,
                            const struct hfd_structure_path *path) {
        static const struct {
                const char *key;
                enum { TEXT, FLAG, LIST, ANY } kind;
                const char *detail;
        } keywords[] = {
                {"type", TEXT, "must be empty to be structural"},
                {"additionalProperties", FLAG, "must be undefined to be structural"},
                {"default", ANY, "must be undefined to be structural"},
                {"title", TEXT, "must be empty to be structural"},
                {"description", TEXT, "must be empty to be structural"},
                {"nullable", FLAG, "must be false to be structural"},
                {"x-kubernetes-preserve-unknown-fields", FLAG, "must be false to be structural"},
                {"x-kubernetes-embedded-resource", FLAG, "must be false to be structural"},
                {"x-kubernetes-int-or-string", FLAG, "must be false to be structural"},
                {"x-kubernetes-list-map-keys", LIST, "must be empty to be structural"},
                {"x-kubernetes-list-type", ANY, "must be undefined to be structural"},
                {"x-kubernetes-map-type", ANY, "must be undefined to be structural"},
                {"x-kubernetes-validations", LIST, "must be empty to be structural"},
        };

        for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
                const char *key = keywords[i].key;
                bool found = false;
                switch (keywords[i].kind) {
                case TEXT: found = *hfd_structure_text(props, key) != '\0'; break;
                case FLAG:
                        found = hfd_structure_flag(props, key) ||
                                hf__json_is_object(hf__json_get(props, key));
                        break;
                case LIST: found = hfd_structure_is_filled(props, key); break;
                case ANY: found = hfd_structure_has(props, key); break;
                }
                if (found)
                        hfd_structure_forbid(structure, path, key, keywords[i].detail);
        }
}

/* Checks a value validation and everything below it. */
static void check_validation(struct hfd_structure *structure, const struct hf__json *props,
                             bool skips_any_of, const struct hfd_structure_path *path) {
        const struct hf__json *properties = hf__json_get(props, "properties");

        check_validations(structure, props, skips_any_of, false, path);
        if (hf__json_is_object(hf__json_get(props, "items"))) {
                const struct hfd_structure_path step = hfd_step(path, "items");
                check_validation(structure, hf__json_get(props, "items"), false, &step);
        }
        for (const struct hf__json *m = hf__json_first(properties); m; m = hf__json_next(m)) {
                const struct hfd_structure_path step =
                        hfd_step_key(path, "properties", hf__json_key(m));
                check_validation(structure, m, false, &step);
        }
        forbid_keywords(structure, props, path);
        if (hfd_structure_member(structure, properties, "metadata")) {
                const struct hfd_structure_path step = hfd_step_key(path, "properties", "metadata");
                hfd_structure_forbid(structure, &step, NULL,
                                     "must not be specified in a nested context");
        }
}

/* ---- the structure ---- */

/* Whether the schema of metadata at the root has more than a type, a default, and rules for name
 * and generateName. Every resource has the same metadata, so a definition cannot change it. */
static bool restricts_more_than_names(const struct hf__json *metadata) {
        for (const struct hf__json *m = hf__json_first(metadata); m; m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                if (strcmp(key, "type") == 0 || strcmp(key, "default") == 0 ||
                    hfd_structure_is_zero(m))
                        continue;
                if (strcmp(key, "properties") != 0)
                        return true;
                for (const struct hf__json *p = hf__json_first(m); p; p = hf__json_next(p))
                        if (strcmp(hf__json_key(p), "name") != 0 &&
                            strcmp(hf__json_key(p), "generateName") != 0)
                                return true;
        }
        return false;
}

/* is_resource: the schema is that of a whole or embedded resource. */
static void check_meta_fields(struct hfd_structure *structure, const struct hf__json *props,
                              enum level level, bool is_resource,
                              const struct hfd_structure_path *path) {
        static const char *const texts[] = {"kind", "apiVersion"};
        const struct hf__json *properties = hf__json_get(props, "properties"), *metadata;

        for (size_t i = 0; i < sizeof texts / sizeof texts[0] && is_resource; i++) {
                const struct hf__json *text = hfd_structure_member(structure, properties, texts[i]);
                const struct hfd_structure_path step = hfd_step_key(path, "properties", texts[i]);
                if (text && strcmp(hfd_structure_text(text, "type"), "string") != 0)
                        hfd_structure_refuse_text(structure, &step, "type",
                                                  hfd_structure_text(text, "type"),
                                                  "must be string");
        }
        metadata = hfd_structure_member(structure, properties, "metadata");
        if (!metadata)
                return;
        const struct hfd_structure_path step = hfd_step_key(path, "properties", "metadata");
        if (is_resource && strcmp(hfd_structure_text(metadata, "type"), "object") != 0)
                hfd_structure_refuse_text(structure, &step, "type",
                                          hfd_structure_text(metadata, "type"), "must be object");
        if (level == AT_ROOT && restricts_more_than_names(metadata))
                hfd_structure_forbid(structure, &step, NULL,
                                     "must not specify anything other than name and generateName, "
                                     "but metadata is implicitly specified");
}

static void check_type(struct hfd_structure *structure, const struct hf__json *props,
                       enum level level, const struct hfd_structure_path *path) {
        static const char *const missing[] =
                {[AT_ROOT] = "must not be empty at the root",
                 [AT_ITEM] = "must not be empty for specified array items",
                 [AT_FIELD] = "must not be empty for specified object fields"};
        static const char embedded[] = "must be object if x-kubernetes-embedded-resource is true";
        const char *type = hfd_structure_text(props, "type");

        if (hfd_structure_flag(props, "x-kubernetes-embedded-resource")) {
                if (!*type)
                        hfd_structure_require(structure, path, "type", embedded);
                else if (strcmp(type, "object") != 0)
                        hfd_structure_refuse_text(structure, path, "type", type, embedded);
                if (hfd_structure_has(props, "additionalProperties"))
                        hfd_structure_forbid(structure, path, "additionalProperties",
                                             "must not be used if x-kubernetes-embedded-resource "
                                             "is set");
        } else if (!*type && !hfd_structure_flag(props, "x-kubernetes-int-or-string") &&
                   !hfd_structure_flag(props, "x-kubernetes-preserve-unknown-fields")) {
                hfd_structure_require(structure, path, "type", missing[level]);
        }
        if (level == AT_ROOT && *type && strcmp(type, "object") != 0)
                hfd_structure_refuse_text(structure, path, "type", type,
                                          "must be object at the root");
}

/* With x-kubernetes-int-or-string a value has no fields, so extensions for fields are refused. */
static void check_extensions(struct hfd_structure *structure, const struct hf__json *props,
                             const struct hfd_structure_path *path) {
        static const char *const others[] = {"x-kubernetes-preserve-unknown-fields",
                                             "x-kubernetes-embedded-resource"};

        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
                if (hfd_structure_flag(props, "x-kubernetes-int-or-string") &&
                    hfd_structure_flag(props, others[i]))
                        hfd_structure_refuse(structure, path, others[i],
                                             hf__json_get(props, others[i]),
                                             "must be false if x-kubernetes-int-or-string is true");
}

/* Checks a schema of the structure and everything below it. */
static void check_structure(struct hfd_structure *structure, const struct hf__json *props,
                            enum level level, const struct hfd_structure_path *path) {
        const struct hf__json *items = hf__json_get(props, "items"),
                              *properties = hf__json_get(props, "properties"),
                              *values = hf__json_get(props, "additionalProperties");
        const bool is_embedded = hfd_structure_flag(props, "x-kubernetes-embedded-resource");

        if (strcmp(hfd_structure_text(props, "type"), "array") == 0 &&
            !hfd_structure_has(props, "items"))
                hfd_structure_require(structure, path, "items", "must be specified");
        if (hf__json_is_object(items)) {
                const struct hfd_structure_path step = hfd_step(path, "items");
                check_structure(structure, items, AT_ITEM, &step);
        }
        for (const struct hf__json *m = hf__json_first(properties); m; m = hf__json_next(m)) {
                const struct hfd_structure_path step =
                        hfd_step_key(path, "properties", hf__json_key(m));
                check_structure(structure, m, AT_FIELD, &step);
        }
        if (hfd_structure_has(props, "additionalProperties") && level == AT_ROOT)
                hfd_structure_forbid(structure, path, "additionalProperties",
                                     "must not be used at the root");
        if (hf__json_is_object(values)) {
                const struct hfd_structure_path step = hfd_step(path, "additionalProperties");
                check_structure(structure, values, AT_FIELD, &step);
        }
        check_extensions(structure, props, path);
        check_validations(structure, props, is_int_or_string(props),
                          is_int_or_string(hf__json_first(hf__json_get(props, "allOf"))), path);
        check_type(structure, props, level, path);
        check_meta_fields(structure, props, level, level == AT_ROOT || is_embedded, path);
        if (is_embedded && !hfd_structure_flag(props, "x-kubernetes-preserve-unknown-fields") &&
            !hf__json_first(properties))
                hfd_structure_require(structure, path, "properties",
                                      "must not be empty if x-kubernetes-embedded-resource is true "
                                      "without x-kubernetes-preserve-unknown-fields");
}

void hfd_structure_check_invariants(struct hfd_structure *structure, const struct hf__json *props,
                                    const struct hfd_structure_path *path) {
        check_structure(structure, props, AT_ROOT, path);
}
