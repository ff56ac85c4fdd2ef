/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the defaults in the schema of a CustomResourceDefinition: each must be valid according to
 * the schema that it is in, and must have no fields that this schema does not have. As in
 * Kubernetes, defaults below additionalProperties are not checked.
 *
 * Invariant: `node` is compiled from `props`. The compiler removes unknown fields from each
 * default. So if the default in props differs from that of node, it has unknown fields.
 */
#include "base/json.h"
#include "server/resources/custom/schema/check/embedded.h"
#include "server/resources/custom/schema/check/value_check.h"
#include "server/resources/custom/schema/structure/structure.h"

/* Checks one default. value: the default in the definition. As in Kubernetes, unknown fields and
 * mistakes in embedded resources are reported first, and if there are any, the value is not checked
 * further. */
static void check_default(struct hfd_structure *structure, const struct hf__json *value,
                          const struct hfd_custom_node *node,
                          const struct hfd_structure_path *path) {
        const struct hfd_place root = {0};
        struct hfd_checked checked = {.value = value, .place = &root, .records = true};
        char prefix[HFD_STRUCTURE_PATH_MAX];
        const size_t n_before = structure->causes->n;
        struct hfd_check check;

        if (!hfd_causes_equal(structure->causes, value, node->default_value))
                hfd_structure_refuse(structure, path, "default", value,
                                     "must not have unknown fields");
        hfd_structure_path_print(path, "default", prefix);
        hfd_check_init(&check, structure->causes, prefix, value);
        hfd_check_embedded(&check.report, node, value, &root);
        if (structure->causes->n == n_before)
                (void)hfd_check_value(&check, node, NULL, NULL, &checked);
        hfd_check_done(&check, false);
}

void hfd_structure_check_defaults(struct hfd_structure *structure, const struct hf__json *props,
                                  const struct hfd_custom_node *node,
                                  const struct hfd_structure_path *path) {
        const struct hf__json *properties = hf__json_get(props, "properties");

        if (node->default_value)
                check_default(structure, hf__json_get(props, "default"), node, path);
        if (node->items) {
                const struct hfd_structure_path step = hfd_step(path, "items");
                hfd_structure_check_defaults(structure, hf__json_get(props, "items"), node->items,
                                             &step);
        }
        for (const struct hf__json *m = hf__json_first(properties); m; m = hf__json_next(m)) {
                const struct hfd_custom_property *property =
                        hfd_custom_property(node, hf__json_key(m));
                const struct hfd_structure_path step =
                        hfd_step_key(path, "properties", hf__json_key(m));
                if (property)
                        hfd_structure_check_defaults(structure, m, property->node, &step);
        }
}
