/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the value of a part in that of the part above it.
 *
 * Invariant: a value is passed on with the declaration (declared.h) by which it was made. If the
 * rules of a part have another declaration, the part makes a value of its own (hfd_rule_run_node).
 */
#include "server/resources/custom/rules/part_values.h"

#include <stdint.h>
#include <string.h>

#include "server/resources/custom/rules/values/declared.h"

/* The member of an object. A field that is null, or that a closed object (struct hfd_declared)
 * leaves out, is missing. */
static bool find_field(const struct hfd_declared_field *field, struct hf__cel_value object,
                       struct hf__cel_value *ret_value) {
        const char *key = field->escaped ? field->escaped : field->name;

        return object.kind == HF__CEL_MAP &&
               hf__cel_map_find(object.as.map, hf__cel_string(key, strlen(key)), ret_value);
}

/* The value at a position of a list or a map. Both have one value for each element or member of the
 * JSON, in the same order. */
static bool find_at(struct hf__cel_value container, size_t at, struct hf__cel_value *ret_value) {
        if (container.kind == HF__CEL_LIST && at < container.as.list->n)
                *ret_value = hf__cel_list_at(container.as.list, at);
        else if (container.kind == HF__CEL_MAP && at < container.as.map->n)
                *ret_value = hf__cel_map_at(container.as.map, at).value;
        else
                return false;
        return true;
}

struct hfd_part_values hfd_part_values_below(const struct hfd_part_values *above, const char *name,
                                             size_t at, size_t old_at) {
        const struct hfd_declared *declared = above->declared;
        struct hfd_part_values below = {.declared = NULL};

        if (!declared)
                return below;
        if (declared->kind == HFD_DECLARED_OBJECT) {
                const struct hfd_declared_field *field =
                        name ? hfd_declared_field(declared, name) : NULL;

                if (!field || !field->declared)
                        return below;
                below.declared = field->declared;
                below.has_self = above->has_self && find_field(field, above->self, &below.self);
                below.has_old = above->has_old && old_at != SIZE_MAX &&
                                find_field(field, above->old, &below.old);
                return below;
        }
        below.declared = declared->element;
        below.has_self = above->has_self && find_at(above->self, at, &below.self);
        below.has_old = above->has_old && find_at(above->old, old_at, &below.old);
        return below;
}
