/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules for the extensions that say how apply merges lists and maps: x-kubernetes-list-type,
 * x-kubernetes-list-map-keys and x-kubernetes-map-type.
 *
 * Invariants: in a list of type map, every element has each key, because elements are identified by
 * their keys, and no key has the type object or array. The texts of the causes and their order are
 * those of kube-apiserver.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/custom/schema/structure/structure.h"

#define LIST_TYPE "x-kubernetes-list-type"
#define LIST_KEYS "x-kubernetes-list-map-keys"
#define MAP_TYPE  "x-kubernetes-map-type"

/* Whether the member is this text. */
static bool text_is(const struct hf__json *props, const char *key, const char *text) {
        return strcmp(hfd_structure_text(props, key), text) == 0;
}

/* Adds the cause that the schema has another type than the one that its keyword `key` requires. */
static void require_type(struct hfd_structure *structure, const struct hf__json *props,
                         const char *type, const char *key, const struct hfd_structure_path *path) {
        char detail[80];

        (void)snprintf(detail, sizeof detail, "must be %s if %s is specified", type, key);
        if (!*hfd_structure_text(props, "type"))
                hfd_structure_require(structure, path, "type", detail);
        else
                hfd_structure_refuse_text(structure, path, "type",
                                          hfd_structure_text(props, "type"), detail);
}

static void check_map_type(struct hfd_structure *structure, const struct hf__json *props,
                           const struct hfd_structure_path *path) {
        char field[HFD_STRUCTURE_PATH_MAX];

        if (hfd_structure_has(props, "x-kubernetes-preserve-unknown-fields") &&
            !hfd_structure_flag(props, "x-kubernetes-preserve-unknown-fields"))
                hfd_structure_refuse(structure, path, "x-kubernetes-preserve-unknown-fields",
                                     hf__json_get(props, "x-kubernetes-preserve-unknown-fields"),
                                     "must be true or undefined");
        if (!hfd_structure_has(props, MAP_TYPE))
                return;
        if (!text_is(props, "type", "object"))
                require_type(structure, props, "object", MAP_TYPE, path);
        if (!text_is(props, MAP_TYPE, "atomic") && !text_is(props, MAP_TYPE, "granular")) {
                hfd_structure_path_print(path, MAP_TYPE, field);
                hfd_cause_unsupported_text(structure->causes, field,
                                           hfd_structure_text(props, MAP_TYPE),
                                           "\"atomic\", \"granular\"");
        }
}

/* The elements of a set are compared as a whole, so nothing may merge their parts: an element in
 * which apply changed one field would be another element. */
static void check_set(struct hfd_structure *structure, const struct hf__json *items,
                      const struct hfd_structure_path *items_path) {
        static const char detail[] =
                "must be atomic as item of a list with x-kubernetes-list-type=set";

        if (text_is(items, "type", "array") && hfd_structure_has(items, LIST_TYPE) &&
            !text_is(items, LIST_TYPE, "atomic"))
                hfd_structure_refuse(structure, items_path, LIST_TYPE,
                                     hf__json_get(items, LIST_TYPE), detail);
        /* kube-apiserver's cause shows the list type of the items where it should show their map
         * type, and so does this one. */
        if (text_is(items, "type", "object") && !text_is(items, MAP_TYPE, "atomic"))
                hfd_structure_refuse(structure, items_path, MAP_TYPE,
                                     hf__json_get(items, LIST_TYPE), detail);
}

/* The list type says how apply merges the list; without one it is atomic. Keys make sense only for
 * a map. */
static void check_list_type(struct hfd_structure *structure, const struct hf__json *props,
                            const struct hfd_structure_path *path) {
        const struct hf__json *items = hf__json_get(props, "items");
        const struct hfd_structure_path step = hfd_step(path, "items");
        const char *type = hfd_structure_text(props, LIST_TYPE);
        const bool has_type = hfd_structure_has(props, LIST_TYPE);
        char field[HFD_STRUCTURE_PATH_MAX];

        if (has_type && !text_is(props, "type", "array"))
                require_type(structure, props, "array", LIST_TYPE, path);
        else if (strcmp(type, "set") == 0 && hf__json_is_object(items))
                check_set(structure, items, &step);
        if (has_type && strcmp(type, "atomic") != 0 && strcmp(type, "set") != 0 &&
            strcmp(type, "map") != 0) {
                hfd_structure_path_print(path, LIST_TYPE, field);
                hfd_cause_unsupported_text(structure->causes, field, type,
                                           "\"atomic\", \"set\", \"map\"");
        }
        if (hfd_structure_is_filled(props, LIST_KEYS)) {
                static const char detail[] =
                        "must be map if x-kubernetes-list-map-keys is non-empty";
                if (!has_type)
                        hfd_structure_require(structure, path, LIST_TYPE, detail);
                else if (strcmp(type, "map") != 0)
                        hfd_structure_refuse_text(structure, path, LIST_TYPE, type, detail);
        }
}

/* Each key is a property of the items, not of type object or array, and occurs once. An index finds
 * repeated keys, because a definition may have very many of them. */
static void check_keys(struct hfd_structure *structure, const struct hf__json *props,
                       const struct hfd_structure_path *path,
                       const struct hfd_structure_path *items_path) {
        const struct hf__json *keys = hf__json_get(props, LIST_KEYS),
                              *items = hf__json_get(props, "items"),
                              *properties = hf__json_get(items, "properties");
        struct hf__json_index index;
        bool is_indexed =
                hfd_causes_check(structure->causes, hf__json_index_init(&index, keys, NULL));

        for (const struct hf__json *m = hf__json_first(keys); m; m = hf__json_next(m)) {
                const char *key = hf__json_is_string(m) ? hf__json_text(m) : "";
                const struct hf__json *property = hfd_structure_member(structure, properties, key);
                const struct hfd_structure_path step = hfd_step_key(items_path, "properties", key);
                if (!property)
                        hfd_structure_refuse(structure, path, LIST_KEYS, keys,
                                             "entries must all be names of item properties");
                /* As in kube-apiserver, the cause shows the type of the items, not of the key. */
                else if (text_is(property, "type", "array") || text_is(property, "type", "object"))
                        hfd_structure_refuse_text(structure, &step, "type",
                                                  hfd_structure_text(items, "type"),
                                                  "must be a scalar type if parent array's "
                                                  "x-kubernetes-list-type is map");
                const struct hf__json_index_entry *first =
                        is_indexed ? hf__json_index_find(&index, key) : NULL;
                if (first && first->item != m)
                        hfd_structure_refuse(structure, path, LIST_KEYS, keys,
                                             "must not contain duplicate entries");
        }
        hf__json_index_done(&index);
}

/* Checks that the schema makes every element have all keys: an element without one could not be
 * told from others. */
static void check_presence(struct hfd_structure *structure, const struct hf__json *props,
                           const struct hfd_structure_path *items_path) {
        const struct hf__json *items = hf__json_get(props, "items"),
                              *properties = hf__json_get(items, "properties"),
                              *keys = hf__json_get(props, LIST_KEYS);
        struct hf__json_index required;

        (void)hfd_causes_check(structure->causes,
                               hf__json_index_init(&required, hf__json_get(items, "required"),
                                                   NULL));
        for (const struct hf__json *m = hf__json_first(keys); m; m = hf__json_next(m)) {
                const char *key = hf__json_is_string(m) ? hf__json_text(m) : "";
                const struct hf__json *property = hfd_structure_member(structure, properties, key);
                const struct hfd_structure_path step = hfd_step_key(items_path, "properties", key);
                if (!property)
                        continue;
                if (!hf__json_index_find(&required, key) && !hfd_structure_has(property, "default"))
                        hfd_structure_require(structure, &step, "default",
                                              "this property is in x-kubernetes-list-map-keys, so "
                                              "it must have a default or be a required property");
                if (hfd_structure_flag(property, "nullable"))
                        hfd_structure_forbid(structure, &step, "nullable",
                                             "this property is in x-kubernetes-list-map-keys, so "
                                             "it cannot be nullable");
        }
        hf__json_index_done(&required);
}

/* Checks a list of type map. */
static void check_map(struct hfd_structure *structure, const struct hf__json *props,
                      const struct hfd_structure_path *path,
                      const struct hfd_structure_path *items_path) {
        const struct hf__json *items = hf__json_get(props, "items");

        if (!hfd_structure_is_filled(props, LIST_KEYS))
                hfd_structure_require(structure, path, LIST_KEYS,
                                      "must not be empty if x-kubernetes-list-type is map");
        if (!hfd_structure_has(props, "items"))
                hfd_structure_require(structure, path, "items",
                                      "must have a schema if x-kubernetes-list-type is map");
        if (!hf__json_is_object(items))
                return;
        if (text_is(items, "type", "object"))
                check_keys(structure, props, path, items_path);
        else
                hfd_structure_refuse_text(structure, items_path, "type",
                                          hfd_structure_text(items, "type"),
                                          "must be object if parent array's "
                                          "x-kubernetes-list-type is map");
}

void hfd_structure_check_lists(struct hfd_structure *structure, const struct hf__json *props,
                               const struct hfd_structure_path *path) {
        const struct hf__json *items = hf__json_get(props, "items");
        const struct hfd_structure_path step = hfd_step(path, "items");
        const bool is_map = text_is(props, LIST_TYPE, "map"),
                   is_set = text_is(props, LIST_TYPE, "set");
        char detail[80];

        check_map_type(structure, props, path);
        check_list_type(structure, props, path);
        if (is_map)
                check_map(structure, props, path, &step);
        if (!hf__json_is_object(items) || (!is_map && !is_set))
                return;
        (void)snprintf(detail, sizeof detail, "cannot be nullable when %s is %s", LIST_TYPE,
                       is_map ? "map" : "set");
        if (hfd_structure_flag(items, "nullable"))
                hfd_structure_forbid(structure, &step, "nullable", detail);
        if (is_map)
                check_presence(structure, props, &step);
}
