/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks single keywords, wherever they are in a schema: keywords that Kubernetes does not support,
 * types, and places where defaults are forbidden.
 *
 * Invariants: every part of the schema is checked, also below keywords that are wrong themselves,
 * so that a client sees all mistakes at once; but nothing below a keyword that is not supported.
 * The texts of the causes and their order are those of kube-apiserver.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/custom/schema/structure/structure.h"

/* The place of a schema. */
struct place {
        const struct hfd_structure_path *path;
        const char *no_defaults; /* follows "must not be set"; NULL = defaults are allowed */
        bool is_inside_meta;     /* in the apiVersion, kind or metadata of a resource */
        bool is_root;
};

static void check_keywords(struct hfd_structure *structure, const struct hf__json *props,
                           const struct place *place);

static void check_type(struct hfd_structure *structure, const struct hf__json *props,
                       const struct hfd_structure_path *path) {
        static const char *const types[] = {"array",  "boolean", "integer",
                                            "number", "object",  "string"};
        const char *type = hfd_structure_text(props, "type");
        char field[HFD_STRUCTURE_PATH_MAX];

        if (!*type)
                return;
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
                if (strcmp(type, types[i]) == 0)
                        return;
        hfd_structure_path_print(path, "type", field);
        hfd_cause_unsupported_text(structure->causes, field, type,
                                   "\"array\", \"boolean\", \"integer\", \"number\", \"object\", "
                                   "\"string\"");
        if (strcmp(type, "null") == 0)
                hfd_structure_forbid(structure, path, "type",
                                     "type cannot be set to null, use nullable as an alternative");
}

static void check_unsupported(struct hfd_structure *structure, const struct hf__json *props,
                              const struct hfd_structure_path *path) {
        static const struct {
                const char *key;
                bool counts_if_empty; /* Go compares with nil: an empty value is forbidden, too */
                const char *detail;
        } keywords[] = {
                {"id", false, "id is not supported"},
                {"additionalItems", true, "additionalItems is not supported"},
                {"patternProperties", false, "patternProperties is not supported"},
                {"definitions", false, "definitions is not supported"},
                {"dependencies", true, "dependencies is not supported"},
                {"$ref", true, "$ref is not supported"},
        };

        for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
                const char *key = keywords[i].key;
                if (keywords[i].counts_if_empty ? hfd_structure_has(props, key)
                                                : hfd_structure_is_filled(props, key) ||
                                                          *hfd_structure_text(props, key))
                        hfd_structure_forbid(structure, path, key, keywords[i].detail);
        }
        if (hfd_structure_is_filled(props, "items") &&
            hf__json_is_array(hf__json_get(props, "items")))
                hfd_structure_forbid(structure, path, "items",
                                     "items must be a schema object and not an array");
        if (hfd_structure_flag(props, "uniqueItems"))
                hfd_structure_forbid(structure, path, "uniqueItems",
                                     "uniqueItems cannot be set to true since the runtime "
                                     "complexity becomes quadratic");
}

/* Checks the keywords of one schema, without those of the schemas below it. */
static void check_single(struct hfd_structure *structure, const struct hf__json *props,
                         const struct place *place) {
        char detail[160];

        check_type(structure, props, place->path);
        if (place->no_defaults && hfd_structure_has(props, "default")) {
                (void)snprintf(detail, sizeof detail, "must not be set %s", place->no_defaults);
                hfd_structure_forbid(structure, place->path, "default", detail);
        }
        check_unsupported(structure, props, place->path);
        if (place->is_inside_meta && hfd_structure_flag(props, "x-kubernetes-embedded-resource"))
                hfd_structure_forbid(structure, place->path, "x-kubernetes-embedded-resource",
                                     "must not be used inside of resource meta");
}

/* ---- below a schema ---- */

/* Checks additionalProperties: a schema, or true or false. */
static void check_values(struct hfd_structure *structure, const struct hf__json *props,
                         const struct place *place) {
        const struct hf__json *values = hf__json_get(props, "additionalProperties");
        const struct hfd_structure_path step = hfd_step(place->path, "additionalProperties");
        struct place below = *place;

        if (!hfd_structure_has(props, "additionalProperties"))
                return;
        if (hfd_structure_is_filled(props, "properties") && !hf__json_is_true(values))
                hfd_structure_forbid(structure, place->path, "additionalProperties",
                                     "additionalProperties and properties are mutual exclusive");
        below.path = &step;
        below.is_root = false;
        if (place->is_inside_meta)
                below.no_defaults = "inside additionalProperties applying to object metadata";
        if (hf__json_is_object(values))
                check_keywords(structure, values, &below);
}

/* The server itself sets apiVersion, kind and the metadata of an object, so a default for them
 * would never count. Those of an embedded resource may have defaults, except below
 * additionalProperties of its metadata (check_values). */
static void check_properties(struct hfd_structure *structure, const struct hf__json *props,
                             const struct place *place) {
        const struct hf__json *properties = hf__json_get(props, "properties");
        const bool is_resource =
                place->is_root || hfd_structure_flag(props, "x-kubernetes-embedded-resource");
        char reason[40];

        for (const struct hf__json *m = hf__json_first(properties); m; m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                const struct hfd_structure_path step = hfd_step_key(place->path, "properties", key);
                struct place below = *place;
                below.path = &step;
                below.is_root = false;
                if (is_resource && (strcmp(key, "metadata") == 0 || strcmp(key, "kind") == 0 ||
                                    strcmp(key, "apiVersion") == 0)) {
                        below.is_inside_meta = true;
                        (void)snprintf(reason, sizeof reason, "in top-level %s", key);
                        if (place->is_root)
                                below.no_defaults = reason;
                }
                check_keywords(structure, m, &below);
        }
}

/* Checks the schema that is the member `key`, such as items. */
static void check_member(struct hfd_structure *structure, const struct hf__json *props,
                         const char *key, const struct place *place) {
        const struct hfd_structure_path step = hfd_step(place->path, key);
        struct place below = *place;

        below.path = &step;
        below.is_root = false;
        if (hf__json_is_object(hf__json_get(props, key)))
                check_keywords(structure, hf__json_get(props, key), &below);
}

/* Checks the schemas in the list that is the member `key`, such as allOf. */
static void check_elements(struct hfd_structure *structure, const struct hf__json *props,
                           const char *key, const struct place *place) {
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(props, key)); m;
             m = hf__json_next(m), i++) {
                const struct hfd_structure_path step = hfd_step_index(place->path, key, i);
                struct place below = *place;
                below.path = &step;
                below.is_root = false;
                if (hf__json_is_object(m))
                        check_keywords(structure, m, &below);
        }
}

static void check_keywords(struct hfd_structure *structure, const struct hf__json *props,
                           const struct place *place) {
        check_single(structure, props, place);
        check_values(structure, props, place);
        check_properties(structure, props, place);
        check_member(structure, props, "not", place);
        check_elements(structure, props, "allOf", place);
        check_elements(structure, props, "oneOf", place);
        check_elements(structure, props, "anyOf", place);
        if (hf__json_is_array(hf__json_get(props, "items")))
                check_elements(structure, props, "items", place);
        else
                check_member(structure, props, "items", place);
        hfd_structure_check_lists(structure, props, place->path);
}

void hfd_structure_check_keywords(struct hfd_structure *structure, const struct hf__json *props,
                                  const struct hfd_structure_path *path) {
        const struct place place = {.path = path, .is_root = true};

        check_keywords(structure, props, &place);
}
