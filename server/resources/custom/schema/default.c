/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds defaults, and removes the nulls that stand for absent fields.
 *
 * Invariants: a default that was added is filled in turn, as any other value; the values added to
 * one object, and the bytes of their texts, are counted and limited. The recursion is as deep as
 * the JSON and the schema are nested.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/custom/schema/compile/node.h"
#include "server/resources/custom/schema/custom_schema.h"

#define FEW 8 /* defaults of an object that are looked up without an index */

/* What was added to the object. */
struct added {
        size_t values;
        size_t bytes; /* of texts and keys */
};

static int fill_defaults(const struct hfd_custom_node *node, struct hf__json *value,
                         struct added *added);

static void count_value(const struct hf__json *json, struct added *added) {
        added->values++;
        if (hf__json_is_string(json))
                added->bytes += strlen(hf__json_text(json));
        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m)) {
                if (hf__json_is_object(json))
                        added->bytes += strlen(hf__json_key(m));
                count_value(m, added);
        }
}

/* A copy of the default of node. 0, -ENOMEM or HF_E_TOO_LARGE. */
static int copy_default(const struct hfd_custom_node *node, struct added *added,
                        struct hf__json **ret_value) {
        count_value(node->default_value, added);
        if (added->values > HFD_CUSTOM_DEFAULTS_MAX || added->bytes > HFD_CUSTOM_DEFAULT_BYTES_MAX)
                return HF_E_TOO_LARGE;
        *ret_value = hf__json_dup(node->default_value);
        return *ret_value ? 0 : -ENOMEM;
}

/* As in Kubernetes, null stands for an absent field unless the schema allows null as a value. */
static bool is_absent_null(const struct hfd_custom_node *node, const struct hf__json *value) {
        return node && !node->nullable && hf__json_is_null(value);
}

static int add_default(const struct hfd_custom_property *property, struct hf__json *object,
                       struct added *added) {
        assert(property->node);
        struct hf__json *value;
        int r;

        added->bytes += strlen(property->name);
        r = copy_default(property->node, added, &value);
        return r == 0 ? hf__json_add(object, property->name, value) : r;
}

/* Adds the defaults of the fields that object does not have. */
static int add_defaults(const struct hfd_custom_node *node, struct hf__json *object,
                        struct added *added) {
        struct hf__json_index index = {0};
        const bool few = node->n_defaults <= FEW;
        int r = few ? 0 : hf__json_index_init(&index, object, NULL);

        assert(node->n_defaults <= node->n_properties);
        for (uint32_t i = 0; r == 0 && i < node->n_defaults; i++) {
                const struct hfd_custom_property *property = &node->properties[node->defaults[i]];
                if (!(few ? (const void *)hf__json_get(object, property->name)
                          : hf__json_index_find(&index, property->name)))
                        r = add_default(property, object, added);
        }
        if (!few)
                hf__json_index_done(&index);
        return r;
}

/* Puts the default in the place of a null. Without a default a member is removed, and an element
 * stays null, so that the others keep their places. *value: the null; then what is in its place,
 * NULL if the member was removed. */
static int fill_null(const struct hfd_custom_node *node, struct hf__json *container,
                     struct hf__json **value, struct added *added) {
        struct hf__json *copy;

        if (!node->default_value) {
                if (hf__json_is_object(container)) {
                        hf__json_free(hf__json_detach(container, *value));
                        *value = NULL;
                }
                return 0;
        }
        int r = copy_default(node, added, &copy);
        if (r == 0)
                r = hf__json_replace(container, *value, copy);
        if (r == 0)
                *value = copy;
        return r;
}

/* Fills one member or element. */
static int fill_child(const struct hfd_custom_node *node, struct hf__json *container,
                      struct hf__json *value, struct added *added) {
        int r = 0;

        if (is_absent_null(node, value))
                r = fill_null(node, container, &value, added);
        return r == 0 && node && value ? fill_defaults(node, value, added) : r;
}

static int fill_defaults(const struct hfd_custom_node *node, struct hf__json *value,
                         struct added *added) {
        const bool is_array = hf__json_is_array(value);
        struct hf__json *next;
        int r = 0;

        if (hf__json_is_object(value))
                r = add_defaults(node, value, added);
        else if (!is_array)
                return 0;
        for (struct hf__json *m = hf__json_first(value); m && r == 0; m = next) {
                const struct hfd_custom_node *below = node->items;
                next = hf__json_next(m);
                if (!is_array) {
                        const struct hfd_custom_property *property =
                                hfd_custom_property(node, hf__json_key(m));
                        below = property ? property->node : node->values;
                }
                r = fill_child(below, value, m, added);
        }
        return r;
}

int hfd_custom_schema_default(const struct hfd_custom_schema *schema, struct hf__json *object) {
        struct added added = {0};

        return schema->root ? fill_defaults(schema->root, object, &added) : 0;
}
