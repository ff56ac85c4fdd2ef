/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds defaults, and removes the nulls that stand for absent fields.
 *
 * Invariants: a default that was added is filled in turn, as any other value; the values added to
 * one object are counted and limited. The recursion is as deep as the JSON and the schema are
 * nested.
 */
#include <assert.h>
#include <errno.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/custom/schema/compile/node.h"
#include "server/resources/custom/schema/custom_schema.h"

#define FEW 8 /* defaults of an object that are looked up without an index */

static int fill_defaults(const struct hfd_custom_node *node, struct hf__json *value,
                         size_t *n_added);

static size_t count_values(const struct hf__json *json) {
        size_t n = 1;

        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m))
                n += count_values(m);
        return n;
}

/* A copy of the default of node. 0, -ENOMEM or HF_E_TOO_LARGE. */
static int copy_default(const struct hfd_custom_node *node, size_t *n_added,
                        struct hf__json **ret_value) {
        *n_added += count_values(node->default_value);
        if (*n_added > HFD_CUSTOM_DEFAULTS_MAX)
                return HF_E_TOO_LARGE;
        *ret_value = hf__json_dup(node->default_value);
        return *ret_value ? 0 : -ENOMEM;
}

/* As in Kubernetes, null stands for an absent field unless the schema allows null as a value. */
static bool is_absent_null(const struct hfd_custom_node *node, const struct hf__json *value) {
        return node && !node->nullable && hf__json_is_null(value);
}

static int add_default(const struct hfd_custom_property *property, struct hf__json *object,
                       size_t *n_added) {
        assert(property->node);
        struct hf__json *value;
        int r = copy_default(property->node, n_added, &value);

        return r == 0 ? hf__json_add(object, property->name, value) : r;
}

/* Adds the defaults of the fields that object does not have. */
static int add_defaults(const struct hfd_custom_node *node, struct hf__json *object,
                        size_t *n_added) {
        struct hf__json_index index = {0};
        const bool few = node->n_defaults <= FEW;
        int r = few ? 0 : hf__json_index_init(&index, object, NULL);

        assert(node->n_defaults <= node->n_properties);
        for (uint32_t i = 0; r == 0 && i < node->n_defaults; i++) {
                const struct hfd_custom_property *property = &node->properties[node->defaults[i]];
                if (!(few ? (const void *)hf__json_get(object, property->name)
                          : hf__json_index_find(&index, property->name)))
                        r = add_default(property, object, n_added);
        }
        if (!few)
                hf__json_index_done(&index);
        return r;
}

/* Puts the default in the place of a null. Without a default a member is removed, and an element
 * stays null, so that the others keep their places. *value: what is there now; NULL = nothing. */
static int fill_null(const struct hfd_custom_node *node, struct hf__json *container,
                     struct hf__json **value, size_t *n_added) {
        struct hf__json *copy;

        if (!node->default_value) {
                if (hf__json_is_object(container)) {
                        hf__json_free(hf__json_detach(container, *value));
                        *value = NULL;
                }
                return 0;
        }
        int r = copy_default(node, n_added, &copy);
        if (r == 0)
                r = hf__json_replace(container, *value, copy);
        if (r == 0)
                *value = copy;
        return r;
}

/* Fills one member or element. */
static int fill_child(const struct hfd_custom_node *node, struct hf__json *container,
                      struct hf__json *value, size_t *n_added) {
        int r = 0;

        if (is_absent_null(node, value))
                r = fill_null(node, container, &value, n_added);
        return r == 0 && node && value ? fill_defaults(node, value, n_added) : r;
}

static int fill_defaults(const struct hfd_custom_node *node, struct hf__json *value,
                         size_t *n_added) {
        const bool is_array = hf__json_is_array(value);
        struct hf__json *next;
        int r = 0;

        if (hf__json_is_object(value))
                r = add_defaults(node, value, n_added);
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
                r = fill_child(below, value, m, n_added);
        }
        return r;
}

int hfd_custom_schema_default(const struct hfd_custom_schema *schema, struct hf__json *object) {
        size_t n_added = 0;

        return schema->root ? fill_defaults(schema->root, object, &n_added) : 0;
}
