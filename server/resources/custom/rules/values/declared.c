/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes declarations from OpenAPI schemas. props: a schema as JSON (JSONSchemaProps), as in a
 * CustomResourceDefinition. The functions call themselves for inner schemas, whose depth the parser
 * of JSON limits.
 *
 * Invariants: the largest sizes are those that Kubernetes assumes, because they decide which rules
 * a definition may have: the cost of a rule is estimated from them. Each object type has a name of
 * its own, because types are compared by name. NULL means that memory ran out if d->arena->failed;
 * otherwise expressions do not see such a part.
 */
#include "server/resources/custom/rules/values/declared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "cel/values/type.h"
#include "server/resources/custom/rules/values/rule_name.h"

/* The largest request in bytes. A value without a limit in the schema is at most as large. */
#define REQUEST_MAX   ((int64_t)3 * 1024 * 1024)
#define NAME_MAX_SIZE 253 /* characters of metadata.name; generateName may have one less */

static const struct hfd_declared *declare_type(struct hfd_declaring *d,
                                               const struct hf__json *props, bool root);

/* Reads a limit of the schema; a negative one counts as 0. */
static bool read_limit(const struct hf__json *props, const char *name, int64_t *ret_limit) {
        if (!hf__json_i64(props, name, ret_limit))
                return false;
        if (*ret_limit < 0)
                *ret_limit = 0;
        return true;
}

/* Characters may have four bytes, and the estimates count bytes. */
static int64_t four_times(int64_t n) { return n > INT64_MAX / 4 ? INT64_MAX : 4 * n; }

/* kind: how values are made; type_kind: the kind of their CEL type; max_size: of the type, in
 * bytes, elements or members. */
static struct hfd_declared *new_declared(struct hfd_declaring *d, enum hfd_declared_kind kind,
                                         enum hf__cel_kind type_kind, int64_t min_size,
                                         int64_t max_size) {
        struct hfd_declared *declared = hf__arena_alloc(d->arena, sizeof *declared);
        struct hf__cel_type *type = hf__arena_alloc(d->arena, sizeof *type);

        if (!declared || !type)
                return NULL;
        *type = (struct hf__cel_type){.kind = type_kind,
                                      .weight = 1,
                                      .max_size = (uint64_t)max_size};
        *declared =
                (struct hfd_declared){.kind = (uint8_t)kind, .type = type, .min_size = min_size};
        return declared;
}

/* The type of a declaration that is not finished. Only here it is not const. */
static struct hf__cel_type *type_of(struct hfd_declared *declared) {
        return (struct hf__cel_type *)(void *)declared->type;
}

/* The bytes of the longest text among the values of an enum. */
static int64_t longest_value(const struct hf__json *values) {
        int64_t longest = 0;

        for (const struct hf__json *v = hf__json_first(values); v; v = hf__json_next(v))
                if (hf__json_is_string(v) && (int64_t)strlen(hf__json_text(v)) > longest)
                        longest = (int64_t)strlen(hf__json_text(v));
        return longest;
}

/* A text with the format byte, duration, date or date-time becomes a value of another type. The
 * sizes are Kubernetes' estimates. The least sizes, and all sizes of times and durations, are those
 * of the JSON with its quotes; the other largest sizes are those of the text alone. */
static struct hfd_declared *declare_string(struct hfd_declaring *d, const struct hf__json *props) {
        int64_t max = REQUEST_MAX - 2;
        int64_t length;

        if (hf__json_has_text(props, "format", "byte")) {
                read_limit(props, "maxLength", &max);
                return new_declared(d, HFD_DECLARED_BYTES, HF__CEL_BYTES, 2, max);
        }
        if (hf__json_has_text(props, "format", "duration"))
                return new_declared(d, HFD_DECLARED_DURATION, HF__CEL_DURATION, 3, 32);
        if (hf__json_has_text(props, "format", "date"))
                return new_declared(d, HFD_DECLARED_DATE, HF__CEL_TIMESTAMP, 12, 12);
        if (hf__json_has_text(props, "format", "date-time"))
                return new_declared(d, HFD_DECLARED_DATE_TIME, HF__CEL_TIMESTAMP, 21, 32);
        if (read_limit(props, "maxLength", &length))
                max = four_times(length);
        else if (hf__json_first(hf__json_get(props, "enum")))
                max = longest_value(hf__json_get(props, "enum"));
        return new_declared(d, HFD_DECLARED_STRING, HF__CEL_STRING, 2, max);
}

static struct hfd_declared *declare_int_or_string(struct hfd_declaring *d,
                                                  const struct hf__json *props) {
        int64_t max;

        if (read_limit(props, "maxLength", &max))
                max = four_times(max);
        else
                max = REQUEST_MAX - 2;
        return new_declared(d, HFD_DECLARED_INT_OR_STRING, HF__CEL_DYN, 1, max);
}

/* Sets the keys of a list that is a map (x-kubernetes-list-map-keys). A name that cannot be escaped
 * stays as it is. False: out of memory. */
static bool set_keys(struct hfd_declaring *d, struct hfd_declared *list,
                     const struct hf__json *names) {
        size_t n = hf__json_count(names);

        list->keys = hf__arena_alloc(d->arena, n * sizeof *list->keys);
        if (!list->keys)
                return false;
        for (const struct hf__json *k = hf__json_first(names); k; k = hf__json_next(k)) {
                const char *name = hf__json_is_string(k) ? hf__json_text(k) : "";
                const char *escaped = hfd_rule_name(d->arena, name);

                list->keys[list->n_keys++] =
                        escaped ? escaped : hf__arena_text(d->arena, name, strlen(name));
        }
        return !d->arena->failed;
}

/* Without maxItems, a list has as many elements as fit in a request: each with a comma, and the
 * list with two brackets. */
static struct hfd_declared *declare_list(struct hfd_declaring *d, const struct hf__json *props) {
        const struct hf__json *items = hf__json_get(props, "items");
        const struct hfd_declared *element =
                items ? declare_type(d, items,
                                     hf__json_bool(items, "x-kubernetes-embedded-resource", false))
                      : NULL;
        struct hfd_declared *list;
        int64_t max;

        if (!element)
                return NULL;
        if (!read_limit(props, "maxItems", &max))
                max = (REQUEST_MAX - 2) / (element->min_size + 1);
        list = new_declared(d, HFD_DECLARED_LIST, HF__CEL_LIST, 2, max);
        if (!list)
                return NULL;
        list->element = element;
        type_of(list)->n_params = 1;
        type_of(list)->params[0] = element->type;
        type_of(list)->weight = 1 + element->type->weight;
        list->set = hf__json_has_text(props, "x-kubernetes-list-type", "set");
        if (hf__json_has_text(props, "x-kubernetes-list-type", "map") &&
            !set_keys(d, list, hf__json_get(props, "x-kubernetes-list-map-keys")))
                return NULL;
        return list;
}

/* Without maxProperties, a map has as many members as fit in a request: each needs six bytes for
 * the quotes, a key of two bytes, a colon and a comma. */
static struct hfd_declared *declare_map(struct hfd_declaring *d, const struct hf__json *props,
                                        const struct hf__json *values) {
        const struct hfd_declared *element =
                declare_type(d, values,
                             hf__json_bool(values, "x-kubernetes-embedded-resource", false));
        struct hfd_declared *map;
        int64_t max;

        if (!element)
                return NULL;
        if (!read_limit(props, "maxProperties", &max))
                max = (REQUEST_MAX - 2) / (element->min_size + 6);
        map = new_declared(d, HFD_DECLARED_MAP, HF__CEL_MAP, 2, max);
        if (!map)
                return NULL;
        map->element = element;
        type_of(map)->n_params = 2;
        type_of(map)->params[0] = hf__cel_type_of(HF__CEL_STRING);
        type_of(map)->params[1] = element->type;
        type_of(map)->weight = 2 + element->type->weight;
        return map;
}

/* ---- objects ---- */

static int compare_fields(const void *a, const void *b) {
        const struct hfd_declared_field *one = a;
        const struct hfd_declared_field *other = b;

        return strcmp(one->name, other->name);
}

static struct hfd_declared_field *find_field(const struct hfd_declared *object, const char *name) {
        const struct hfd_declared_field key = {.name = name};

        if (object->n_fields == 0)
                return NULL;
        return bsearch(&key, object->fields, object->n_fields, sizeof key, compare_fields);
}

const struct hfd_declared_field *hfd_declared_field(const struct hfd_declared *declared,
                                                    const char *name) {
        return find_field(declared, name);
}

/* Appends a field; there is room for it. false: out of memory. */
static bool add_field(struct hfd_declaring *d, struct hfd_declared *object, const char *name,
                      const struct hfd_declared *declared) {
        struct hfd_declared_field *field = &object->fields[object->n_fields++];

        *field = (struct hfd_declared_field){.name = hf__arena_text(d->arena, name, strlen(name)),
                                             .escaped = hfd_rule_name(d->arena, name),
                                             .reserved = hfd_rule_name_is_reserved(name),
                                             .declared = declared};
        return !d->arena->failed;
}

/* For qsort: the fields of a CEL type by their names. */
static int compare_types(const void *a, const void *b) {
        const struct hf__cel_field *one = a;
        const struct hf__cel_field *other = b;

        return strcmp(one->name, other->name);
}

/* Sorts the fields of an object, and makes its CEL type from those that expressions can name. A
 * reserved name has two fields there: escaped, and as it is. False: out of memory. */
static bool finish_object(struct hfd_declaring *d, struct hfd_declared *object) {
        struct hf__cel_field *fields =
                hf__arena_alloc(d->arena, 2 * object->n_fields * sizeof *fields);
        char name[32];
        int n = snprintf(name, sizeof name, "selfType%u", d->n_types++);
        size_t n_types = 0;

        type_of(object)->name = hf__arena_text(d->arena, name, (size_t)n);
        if (!fields || !object->type->name)
                return false;
        if (object->n_fields > 0)
                qsort(object->fields, object->n_fields, sizeof *object->fields, compare_fields);
        for (size_t i = 0; i < object->n_fields; i++) {
                const struct hfd_declared_field *f = &object->fields[i];

                if (!f->declared || !f->escaped)
                        continue;
                fields[n_types++] = (struct hf__cel_field){f->escaped, f->declared->type};
                if (f->reserved)
                        fields[n_types++] = (struct hf__cel_field){f->name, f->declared->type};
        }
        if (n_types > 0)
                qsort(fields, n_types, sizeof *fields, compare_types);
        type_of(object)->fields = fields;
        type_of(object)->n_fields = n_types;
        type_of(object)->sorted = true;
        return true;
}

/* An object with room for n_fields. */
static struct hfd_declared *new_object(struct hfd_declaring *d, size_t n_fields) {
        struct hfd_declared *object = new_declared(d, HFD_DECLARED_OBJECT, HF__CEL_OBJECT, 2, 0);

        if (!object)
                return NULL;
        object->fields = hf__arena_alloc(d->arena, n_fields * sizeof *object->fields);
        return object->fields ? object : NULL;
}

static bool add_string(struct hfd_declaring *d, struct hfd_declared *object, const char *name,
                       int64_t max) {
        const struct hfd_declared *string =
                new_declared(d, HFD_DECLARED_STRING, HF__CEL_STRING, 2, max);

        return string && add_field(d, object, name, string);
}

/* The maxLength at a path of the schema, if it is less than max and not negative; otherwise max. */
static int64_t capped_size(const struct hf__json *metadata, const char *path, int64_t max) {
        int64_t length;

        return hf__json_i64(metadata, path, &length) && length < max && length >= 0 ? length : max;
}

/* Adds the fields that every resource has: apiVersion, kind, and of metadata only the names. False:
 * out of memory. */
static bool add_meta(struct hfd_declaring *d, struct hfd_declared *object,
                     const struct hf__json *properties) {
        const struct hf__json *schema = hf__json_get(properties, "metadata");
        struct hfd_declared *metadata = new_object(d, 2);
        int64_t name = capped_size(schema, "properties.name.maxLength", NAME_MAX_SIZE);
        int64_t generated =
                capped_size(schema, "properties.generateName.maxLength", NAME_MAX_SIZE - 1);

        return metadata && add_string(d, metadata, "name", 4 * name) &&
               add_string(d, metadata, "generateName", 4 * generated) &&
               finish_object(d, metadata) && add_field(d, object, "metadata", metadata) &&
               add_string(d, object, "apiVersion", REQUEST_MAX - 2) &&
               add_string(d, object, "kind", REQUEST_MAX - 2);
}

/* Whether the schema itself declares all that add_meta would add. */
static bool has_meta(const struct hf__json *properties) {
        return hf__json_has_text(properties, "kind.type", "string") &&
               hf__json_has_text(properties, "apiVersion.type", "string") &&
               hf__json_has_text(properties, "metadata.type", "object") &&
               hf__json_has_text(properties, "metadata.properties.name.type", "string") &&
               hf__json_has_text(properties, "metadata.properties.generateName.type", "string");
}

static bool is_meta(const char *name) {
        return strcmp(name, "apiVersion") == 0 || strcmp(name, "kind") == 0 ||
               strcmp(name, "metadata") == 0;
}

/* Sets `required` of the fields, and min_size of the object: the shortest JSON has all required
 * fields that have no default. As in Kubernetes, fields of an unknown type do not count. */
static void measure_object(struct hfd_declared *object, const struct hf__json *props) {
        const struct hf__json *properties = hf__json_get(props, "properties");

        for (const struct hf__json *m = hf__json_first(hf__json_get(props, "required")); m;
             m = hf__json_next(m)) {
                struct hfd_declared_field *field =
                        hf__json_is_string(m) ? find_field(object, hf__json_text(m)) : NULL;

                if (field)
                        field->required = true;
        }
        for (const struct hf__json *p = hf__json_first(properties); p; p = hf__json_next(p)) {
                struct hfd_declared_field *field = find_field(object, hf__json_key(p));

                if (field && hf__json_get(p, "default"))
                        field->required = false;
        }
        /* Each field has two quotes, a colon and a comma. */
        for (size_t i = 0; i < object->n_fields; i++)
                if (object->fields[i].required && object->fields[i].declared)
                        object->min_size += (int64_t)strlen(object->fields[i].name) + 4 +
                                            object->fields[i].declared->min_size;
}

/* root: a whole or embedded resource, which also has the three fields of add_meta. */
static struct hfd_declared *declare_object(struct hfd_declaring *d, const struct hf__json *props,
                                           bool root) {
        const struct hf__json *properties = hf__json_get(props, "properties");
        /* 3: the fields of add_meta, which the schema may lack. */
        struct hfd_declared *object = new_object(d, hf__json_count(properties) + 3);
        bool meta = root && !has_meta(properties);

        if (!object || (meta && !add_meta(d, object, properties)))
                return NULL;
        for (const struct hf__json *p = hf__json_first(properties); p; p = hf__json_next(p)) {
                const struct hfd_declared *declared;

                if (meta && is_meta(hf__json_key(p)))
                        continue;
                declared = declare_type(d, p,
                                        hf__json_bool(p, "x-kubernetes-embedded-resource", false));
                if (d->arena->failed || !add_field(d, object, hf__json_key(p), declared))
                        return NULL;
        }
        if (!finish_object(d, object))
                return NULL;
        measure_object(object, props);
        return object;
}

static const struct hfd_declared *declare_type(struct hfd_declaring *d,
                                               const struct hf__json *props, bool root) {
        const struct hf__json *values = hf__json_get(props, "additionalProperties");
        const char *type = hf__json_string(props, "type");
        struct hfd_declared *declared = NULL;

        if (hf__json_bool(props, "x-kubernetes-int-or-string", false))
                declared = declare_int_or_string(d, props);
        else if (!type)
                return NULL;
        else if (strcmp(type, "array") == 0)
                declared = declare_list(d, props);
        else if (strcmp(type, "object") == 0 && hf__json_is_object(values))
                declared = declare_map(d, props, values);
        else if (strcmp(type, "object") == 0)
                declared = declare_object(d, props, root);
        else if (strcmp(type, "string") == 0)
                declared = declare_string(d, props);
        else if (strcmp(type, "boolean") == 0)
                declared = new_declared(d, HFD_DECLARED_BOOL, HF__CEL_BOOL, 4, 0);
        else if (strcmp(type, "number") == 0)
                declared = new_declared(d, HFD_DECLARED_DOUBLE, HF__CEL_DOUBLE, 1, 0);
        else if (strcmp(type, "integer") == 0)
                declared = new_declared(d, HFD_DECLARED_INT, HF__CEL_INT, 1, 0);
        if (declared)
                declared->nullable = hf__json_bool(props, "nullable", false);
        return declared;
}

const struct hfd_declared *hfd_declare(struct hfd_declaring *declaring,
                                       const struct hf__json *props, enum hfd_declare_as as) {
        const struct hfd_declared *declared =
                declare_type(declaring, props, as != HFD_DECLARE_PART);
        const struct hfd_declared_field *metadata =
                declared && as == HFD_DECLARE_RESOURCE ? find_field(declared, "metadata") : NULL;

        if (metadata && metadata->declared)
                ((struct hfd_declared *)(void *)metadata->declared)->closed = true;
        return declared;
}
