/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that a schema is complete. Its structure is what properties, items and
 * additionalProperties lead to; its value validations are the schemas below allOf, anyOf, oneOf and
 * not. Every property and every item in a value validation must be in the structure as well, so
 * that each value has a schema by which it is pruned and shown. As in Kubernetes, only the value
 * validations of the root are checked, with all that is below them; those of its properties and
 * items are not.
 *
 * Invariant: the recursion is as deep as the schema. The buffers for the texts of a cause are
 * large, so the function that has them is not inlined into those that recurse.
 */
#include <stdio.h>

#include "base/json.h"
#include "server/resources/custom/schema/structure/structure.h"

/* A value validation, and the part of the structure to which it applies. part NULL: it is missing.
 */
struct pair {
        const struct hf__json *validation, *part;
        const struct hfd_structure_path *validation_path, *part_path;
};

static void check_nested(struct hfd_structure *structure, struct pair pair);

/* Checks the schemas in a list, such as anyOf. They apply to the same part. */
static void check_list(struct hfd_structure *structure, struct pair pair, const char *key) {
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_get(pair.validation, key)); m;
             m = hf__json_next(m), i++) {
                const struct hfd_structure_path step = hfd_step_index(pair.validation_path, key, i);
                check_nested(structure, (struct pair){m, pair.part, &step, pair.part_path});
        }
}

/* Checks the schemas below the keywords of `validation`. */
static void check_keywords(struct hfd_structure *structure, struct pair pair) {
        const struct hf__json *not = hf__json_get(pair.validation, "not");

        if (hf__json_is_object(not )) {
                const struct hfd_structure_path step = hfd_step(pair.validation_path, "not");
                check_nested(structure, (struct pair){not, pair.part, &step, pair.part_path});
        }
        check_list(structure, pair, "allOf");
        check_list(structure, pair, "anyOf");
        check_list(structure, pair, "oneOf");
}

/* Adds the cause that the part is missing. */
__attribute__((noinline)) static void require_part(struct hfd_structure *structure,
                                                   struct pair pair) {
        char path[HFD_STRUCTURE_PATH_MAX], detail[HFD_STRUCTURE_PATH_MAX + 40];

        hfd_structure_path_print(pair.validation_path, NULL, path);
        (void)snprintf(detail, sizeof detail, "because it is defined in %s", path);
        hfd_structure_require(structure, pair.part_path, NULL, detail);
}

static void check_nested(struct hfd_structure *structure, struct pair pair) {
        const struct hf__json *items = hf__json_get(pair.validation, "items"),
                              *properties = hf__json_get(pair.validation, "properties"),
                              *parts = hf__json_get(pair.part, "properties");

        if (!hf__json_is_object(pair.part)) {
                require_part(structure, pair);
                return;
        }
        check_keywords(structure, pair);
        if (hf__json_is_object(items)) {
                const struct hfd_structure_path step = hfd_step(pair.validation_path, "items"),
                                                part_step = hfd_step(pair.part_path, "items");
                check_nested(structure, (struct pair){items, hf__json_get(pair.part, "items"),
                                                      &step, &part_step});
        }
        for (const struct hf__json *m = hf__json_first(properties); m; m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                const struct hfd_structure_path step =
                        hfd_step_key(pair.validation_path, "properties", key);
                const struct hfd_structure_path part_step =
                        hfd_step_key(pair.part_path, "properties", key);
                check_nested(structure,
                             (struct pair){m, hfd_structure_member(structure, parts, key), &step,
                                           &part_step});
        }
}

void hfd_structure_check_completeness(struct hfd_structure *structure, const struct hf__json *props,
                                      const struct hfd_structure_path *path) {
        check_keywords(structure, (struct pair){props, props, path, path});
}
