/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles an openAPIV3Schema: nodes from the leaves up and, for each node of the structure, the
 * fields that the rest of the server reads. value_limits.c compiles the value validations.
 *
 * Invariants: what has been kept never changes; a struct is zeroed before it is filled, because
 * equal pieces are found by their bytes. The recursion is as deep as the JSON is nested.
 * Descriptions are not compiled: they would be most of a schema, no write needs them, and the
 * definition has them (hfd_custom_version_props).
 */
#include "server/resources/custom/schema/compile/compile.h"

#include <assert.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "server/schema/common.h"

static const struct hfd_schema_field fields_of_resources[] = {HFD_FIELD_API_VERSION, HFD_FIELD_KIND,
                                                              HFD_FIELD_METADATA};

/* The `definition` (schema.h) is NULL: OpenAPI shows a custom kind by the schema in its
 * CustomResourceDefinition, and so needs no definition of this type. */
static const struct hfd_schema int_or_string = {.type = HFD_SCHEMA_INT_OR_STRING};

void hfd_compile_fail(struct hfd_schema_compiler *compiler, int error) {
        assert(error != 0);
        if (compiler->error == 0)
                compiler->error = error;
}

const void *hfd_compile_keep(struct hfd_schema_compiler *compiler, const void *piece, size_t n) {
        const void *kept = hfd_keep(&compiler->keeper, piece, n);

        if (!kept)
                hfd_compile_fail(compiler, -ENOMEM);
        return kept;
}

const char *hfd_compile_text(struct hfd_schema_compiler *compiler, const char *text) {
        const char *kept = hfd_keep_text(&compiler->keeper, text);

        if (text && !kept)
                hfd_compile_fail(compiler, -ENOMEM);
        return kept;
}

/* A value that is kept. Its JSON text finds it in compiler->values. */
struct kept_value {
        const char *text;
        struct hf__json *value;
};

/* For tsearch: values by their texts. */
static int compare_values(const void *a, const void *b) {
        const struct kept_value *x = a, *y = b;

        return strcmp(x->text, y->text);
}

/* Values with the same JSON text are kept once: many fields have the default false, or the same
 * enum. Takes over the value: the schema owns it, or it is freed if an equal one is kept already.
 * text: the value as JSON. NULL: compiler->error is set. */
static const struct hf__json *keep_value(struct hfd_schema_compiler *compiler,
                                         struct hf__json *value, const char *text) {
        const struct kept_value wanted = {.text = text};
        void *found = tfind(&wanted, &compiler->values, compare_values);
        struct kept_value *kept;

        if (found) {
                hf__json_free(value);
                return (*(struct kept_value **)found)->value;
        }
        kept = hf__arena_alloc(&compiler->keeper.scratch, sizeof *kept);
        if (kept) {
                kept->text = hf__arena_text(&compiler->keeper.scratch, text, strlen(text));
                kept->value = value;
        }
        if (hf__json_append(compiler->schema->values, value) != 0 || !kept || !kept->text ||
            !tsearch(kept, &compiler->values, compare_values)) {
                hfd_compile_fail(compiler, -ENOMEM);
                return NULL;
        }
        return value;
}

const struct hf__json *hfd_compile_value(struct hfd_schema_compiler *compiler,
                                         struct hf__json *value) {
        struct hf__strbuf text = {0};
        const struct hf__json *kept = NULL;

        hf__json_print(value, &text);
        if (value && text.error == 0) {
                kept = keep_value(compiler, value, text.data);
        } else {
                hf__json_free(value);
                hfd_compile_fail(compiler, -ENOMEM);
        }
        hf__strbuf_done(&text);
        return kept;
}

void hfd_compile_values_done(struct hfd_schema_compiler *compiler) {
        while (compiler->values)
                (void)tdelete(*(struct kept_value **)compiler->values, &compiler->values,
                              compare_values);
}

/* ---- the fields for the rest of the server ---- */

/* The names of keys sorted, with a NULL at the end. NULL: compiler->error is set. */
static const char *const *keep_list_keys(struct hfd_schema_compiler *compiler,
                                         const struct hf__json *keys) {
        size_t n = 0;
        const char **names = calloc(hf__json_count(keys) + 1, sizeof *names);
        const char *const *kept = NULL;

        if (!names) {
                hfd_compile_fail(compiler, -ENOMEM);
                return NULL;
        }
        for (const struct hf__json *m = hf__json_first(keys); m && compiler->error == 0;
             m = hf__json_next(m))
                if (hf__json_is_string(m))
                        names[n++] = hfd_compile_text(compiler, hf__json_text(m));
        if (n == 0)
                hfd_compile_fail(compiler, HF_E_INVALID);
        if (compiler->error == 0) {
                qsort(names, n, sizeof *names, hf__text_compare);
                kept = hfd_compile_keep(compiler, names, (n + 1) * sizeof *names);
        }
        free(names);
        return kept;
}

/* Whether the name is that of a field which all resources have. */
static bool is_of_resources(const char *name) {
        return strcmp(name, "apiVersion") == 0 || strcmp(name, "kind") == 0 ||
               strcmp(name, "metadata") == 0;
}

static int compare_fields(const void *a, const void *b) {
        const struct hfd_schema_field *x = a, *y = b;

        return strcmp(x->name, y->name);
}

/* Sets the fields of a STRUCT. An embedded resource, and the root, has those of all resources,
 * which replace what the schema says about them: metadata has the form of ObjectMeta whatever the
 * definition declares. */
static void fill_struct(struct hfd_schema_compiler *compiler, const struct hfd_custom_node *node,
                        const struct hf__json *props, struct hfd_schema *schema) {
        const struct hf__json *properties = hf__json_get(props, "properties");
        const size_t n_common = sizeof fields_of_resources / sizeof fields_of_resources[0];
        size_t n = 0;
        struct hfd_schema_field *fields = calloc(node->n_properties + n_common, sizeof fields[0]);

        if (!fields) {
                hfd_compile_fail(compiler, -ENOMEM);
                return;
        }
        for (const struct hf__json *m = hf__json_first(properties); m; m = hf__json_next(m)) {
                const struct hfd_custom_property *property =
                        hfd_custom_property(node, hf__json_key(m));
                if (!property || n == node->n_properties ||
                    (node->embedded && is_of_resources(property->name)))
                        continue;
                fields[n].name = property->name;
                fields[n].schema = property->node->fields;
                /* If the field is a key of a list of type map, apply takes the default as the key
                 * of an element that lacks the key. */
                if (property->node->default_value) {
                        fields[n].key_value = property->node->default_value;
                        fields[n].flags = HFD_FIELD_KEY_VALUE;
                }
                n++;
        }
        if (node->embedded)
                for (size_t i = 0; i < n_common; i++)
                        fields[n++] = fields_of_resources[i];
        qsort(fields, n, sizeof fields[0], compare_fields);
        schema->n_fields = n;
        /* Marks the required fields for OpenAPI. That an object has them is checked by
         * HFD_LIMIT_REQUIRED (value_limits.c), not by this flag. Until the fields are kept,
         * schema->fields is the draft, because hfd_schema_field searches there. */
        const struct hf__json *required = hf__json_get(props, "required");
        for (const struct hf__json *m = hf__json_first(required); m; m = hf__json_next(m)) {
                schema->fields = fields;
                const struct hfd_schema_field *field =
                        hf__json_is_string(m) && schema->type == HFD_SCHEMA_STRUCT
                                ? hfd_schema_field(schema, hf__json_text(m))
                                : NULL;
                if (field)
                        fields[field - fields].flags |= HFD_FIELD_REQUIRED;
        }
        schema->fields = NULL;
        if (n > 0 && compiler->error == 0)
                schema->fields = hfd_compile_keep(compiler, fields, n * sizeof fields[0]);
        free(fields);
}

/* An object without properties is a map if additionalProperties is true or a schema, and it is no
 * embedded resource. Every other object is a struct, which may keep unknown members. */
static void fill_object(struct hfd_schema_compiler *compiler, const struct hfd_custom_node *node,
                        const struct hf__json *props, struct hfd_schema *schema) {
        const char *map_type = hf__json_string(props, "x-kubernetes-map-type");

        schema->atomic = map_type && strcmp(map_type, "atomic") == 0;
        schema->preserve_unknown = node->preserve || node->additional == HFD_CUSTOM_ADDITIONAL_ANY;
        if (node->additional >= HFD_CUSTOM_ADDITIONAL_ANY && node->n_properties == 0 &&
            !node->embedded) {
                schema->type = HFD_SCHEMA_MAP;
                schema->preserve_unknown = false;
                schema->items = node->values ? node->values->fields : &hfd_schema_any;
                return;
        }
        schema->type = HFD_SCHEMA_STRUCT;
        fill_struct(compiler, node, props, schema);
}

/* The schema of the value of a node, as the rest of the server knows schemas. The schemas of the
 * node's children exist already. NULL: compiler->error is set. */
static const struct hfd_schema *make_fields(struct hfd_schema_compiler *compiler,
                                            const struct hfd_custom_node *node,
                                            const struct hf__json *props) {
        const char *format = hf__json_string(props, "format");
        struct hfd_schema schema;

        if (node->int_or_string)
                return &int_or_string;
        memset(&schema, 0, sizeof schema);
        switch ((enum hfd_custom_type)node->type) {
        case HFD_CUSTOM_NONE: return &hfd_schema_any;
        case HFD_CUSTOM_STRING: return &hfd_schema_text;
        case HFD_CUSTOM_BOOLEAN: return &hfd_schema_boolean;
        case HFD_CUSTOM_NUMBER: return &hfd_schema_number;
        /* An integer without a format has 64 bits, as in Go. */
        case HFD_CUSTOM_INTEGER:
                return format && strcmp(format, "int32") == 0 ? &hfd_schema_int32
                                                              : &hfd_schema_int64;
        case HFD_CUSTOM_ARRAY:
                schema.type = HFD_SCHEMA_LIST;
                schema.items = node->items ? node->items->fields : &hfd_schema_any;
                schema.list_type = (enum hfd_schema_list_type)node->list_type;
                if (node->list_type == HFD_LIST_MAP)
                        schema.list_keys =
                                keep_list_keys(compiler,
                                               hf__json_get(props, "x-kubernetes-list-map-keys"));
                break;
        case HFD_CUSTOM_OBJECT: fill_object(compiler, node, props, &schema); break;
        }
        return compiler->error == 0 ? hfd_compile_keep(compiler, &schema, sizeof schema) : NULL;
}

/* ---- nodes ---- */

static int compare_properties(const void *a, const void *b) {
        const struct hfd_custom_property *x = a, *y = b;

        return strcmp(x->name, y->name);
}

/* Each member of each object is looked up here several times, so this function does without
 * bsearch, which would call one more function for each comparison. */
const struct hfd_custom_property *hfd_custom_property(const struct hfd_custom_node *node,
                                                      const char *name) {
        size_t begin = 0, end = node ? node->n_properties : 0;

        while (begin < end) {
                const size_t middle = begin + (end - begin) / 2;
                const int order = strcmp(name, node->properties[middle].name);
                if (order == 0)
                        return &node->properties[middle];
                if (order < 0)
                        end = middle;
                else
                        begin = middle + 1;
        }
        return NULL;
}

/* Lists the properties that have a default, so that an object costs nothing for the others. */
static void fill_defaults(struct hfd_schema_compiler *compiler,
                          const struct hfd_custom_property *properties, size_t n,
                          struct hfd_custom_node *node) {
        uint32_t *indices = calloc(n, sizeof *indices), k = 0;

        if (!indices) {
                hfd_compile_fail(compiler, -ENOMEM);
                return;
        }
        for (size_t i = 0; i < n; i++)
                if (properties[i].node->default_value)
                        indices[k++] = (uint32_t)i;
        node->n_defaults = k;
        if (k > 0)
                node->defaults = hfd_compile_keep(compiler, indices, k * sizeof *indices);
        free(indices);
}

/* Compiles the properties into node. The list has one more place, because calloc of nothing may
 * return NULL. */
static void fill_properties(struct hfd_schema_compiler *compiler, const struct hf__json *properties,
                            bool is_validation, struct hfd_custom_node *node) {
        size_t n = 0;
        struct hfd_custom_property *list = calloc(hf__json_count(properties) + 1, sizeof list[0]);

        if (!list) {
                hfd_compile_fail(compiler, -ENOMEM);
                return;
        }
        for (const struct hf__json *m = hf__json_first(properties); m && compiler->error == 0;
             m = hf__json_next(m), n++) {
                list[n].name = hfd_compile_text(compiler, hf__json_key(m));
                list[n].node = hfd_compile_node(compiler, m, is_validation);
        }
        if (compiler->error == 0 && n > 0) {
                qsort(list, n, sizeof list[0], compare_properties);
                node->n_properties = (uint32_t)n;
                node->properties = hfd_compile_keep(compiler, list, n * sizeof list[0]);
                fill_defaults(compiler, list, n, node);
        }
        free(list);
}

/* Compiles the children of a node: properties, items and additionalProperties. Null counts as
 * absent. Other types were refused before (formed_props.h), except that items may be an array,
 * which is an error here. */
static void fill_children(struct hfd_schema_compiler *compiler, const struct hf__json *props,
                          bool is_validation, struct hfd_custom_node *node) {
        const struct hf__json *properties = hf__json_get(props, "properties"),
                              *items = hf__json_get(props, "items"),
                              *values = hf__json_get(props, "additionalProperties");

        if (hf__json_first(properties)) {
                if (!hf__json_is_object(properties))
                        hfd_compile_fail(compiler, HF_E_INVALID);
                else
                        fill_properties(compiler, properties, is_validation, node);
        }
        if (items && !hf__json_is_null(items))
                node->items = hfd_compile_node(compiler, items, is_validation);
        if (hf__json_is_object(values)) {
                node->additional = HFD_CUSTOM_ADDITIONAL_SCHEMA;
                node->values = hfd_compile_node(compiler, values, is_validation);
        } else if (hf__json_is_bool(values)) {
                node->additional = hf__json_is_true(values) ? HFD_CUSTOM_ADDITIONAL_ANY
                                                            : HFD_CUSTOM_ADDITIONAL_FORBIDDEN;
        }
}

/* Sets what single keywords say about the node. An unknown type, such as "null", is an error. */
static void fill_type(struct hfd_schema_compiler *compiler, const struct hf__json *props,
                      struct hfd_custom_node *node) {
        static const char *const names[] =
                {[HFD_CUSTOM_NONE] = "",           [HFD_CUSTOM_OBJECT] = "object",
                 [HFD_CUSTOM_ARRAY] = "array",     [HFD_CUSTOM_STRING] = "string",
                 [HFD_CUSTOM_INTEGER] = "integer", [HFD_CUSTOM_NUMBER] = "number",
                 [HFD_CUSTOM_BOOLEAN] = "boolean"};
        const char *type = hf__json_string(props, "type"),
                   *list_type = hf__json_string(props, "x-kubernetes-list-type");

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (type && strcmp(type, names[i]) == 0)
                        node->type = (unsigned char)i;
        if (type && *type && node->type == HFD_CUSTOM_NONE)
                hfd_compile_fail(compiler, HF_E_INVALID);
        if (list_type && strcmp(list_type, "map") == 0)
                node->list_type = HFD_LIST_MAP;
        else if (list_type && strcmp(list_type, "set") == 0)
                node->list_type = HFD_LIST_SET;
        node->nullable = hf__json_bool(props, "nullable", false);
        node->int_or_string = hf__json_bool(props, "x-kubernetes-int-or-string", false);
        node->preserve = hf__json_bool(props, "x-kubernetes-preserve-unknown-fields", false);
        node->embedded = hf__json_bool(props, "x-kubernetes-embedded-resource", false);
        if (node->embedded)
                compiler->schema->has_embedded = true;
        if (node->list_type != HFD_LIST_ATOMIC)
                compiler->schema->has_list_types = true;
}

const struct hfd_custom_node *hfd_compile_node(struct hfd_schema_compiler *compiler,
                                               const struct hf__json *props, bool is_validation) {
        struct hfd_custom_node node;

        memset(&node, 0, sizeof node);
        if (!hf__json_is_object(props))
                hfd_compile_fail(compiler, HF_E_INVALID);
        if (compiler->error != 0)
                return NULL;
        /* The order matters: limits depend on the type, and the fields on the children. */
        fill_type(compiler, props, &node);
        fill_children(compiler, props, is_validation, &node);
        if (compiler->error == 0)
                hfd_compile_limits(compiler, props, &node);
        if (compiler->error != 0)
                return NULL;
        if (!is_validation) {
                const struct hf__json *value = hf__json_get(props, "default");
                if (value && !hf__json_is_null(value)) {
                        struct hf__json *copy = hf__json_dup(value);
                        /* A default is pruned once here, and not each time that it is copied into
                         * an object. */
                        if (copy && hfd_custom_prune_default(&node, copy) != 0)
                                hfd_compile_fail(compiler, -ENOMEM);
                        node.default_value = hfd_compile_value(compiler, copy);
                }
                node.fields = make_fields(compiler, &node, props);
        }
        return compiler->error == 0 ? hfd_compile_keep(compiler, &node, sizeof node) : NULL;
}

/* Without a schema, the root keeps all members. */
const struct hfd_schema *hfd_compile_root_fields(struct hfd_schema_compiler *compiler,
                                                 const struct hf__json *props,
                                                 const char *definition) {
        struct hfd_custom_node node;
        struct hfd_schema schema;

        memset(&schema, 0, sizeof schema);
        memset(&node, 0, sizeof node);
        if (compiler->schema->root)
                node = *compiler->schema->root;
        else
                node.preserve = true;
        /* The root has the fields of all resources, like an embedded resource. Only this copy is
         * marked as embedded: the checks of embedded resources must not take the root itself for
         * one, because its metadata is checked by the rules for all kinds. */
        node.embedded = true;
        fill_object(compiler, &node, props, &schema);
        schema.definition = hfd_compile_text(compiler, definition);
        return compiler->error == 0 ? hfd_compile_keep(compiler, &schema, sizeof schema) : NULL;
}
