/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of structural schemas, in the order in which Kubernetes applies them: the structure,
 * the keywords, and, only if the structure is right, the defaults.
 *
 * Invariant: a schema without a cause can be compiled.
 */
#include "server/resources/custom/schema/structural.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "server/resources/custom/schema/compile/effort.h"
#include "server/resources/custom/schema/compile/node.h"
#include "server/resources/custom/schema/custom_schema.h"
#include "server/resources/custom/schema/formed_props.h"
#include "server/resources/custom/schema/structure/structure.h"

/* Sorts the causes from `first` on by field and text, as Kubernetes does with those of the
 * structure. There are few. */
static void sort_causes(struct hfd_causes *causes, size_t first) {
        for (size_t i = first; i + 1 < causes->n; i++)
                for (size_t k = i; k + 1 > first; k--) {
                        struct hfd_cause *a = &causes->items[k], *b = &causes->items[k + 1];
                        int order = strcmp(a->field, b->field);
                        if (order < 0 || (order == 0 && strcmp(a->text, b->text) <= 0))
                                break;
                        const struct hfd_cause moved = *a;
                        *a = *b;
                        *b = moved;
                }
}

/* Compiles the schema, and checks the defaults in it. If it cannot be compiled although there is no
 * cause yet, it gets a cause that says so. */
static void check_compiled(struct hfd_structure *structure, const struct hf__json *props,
                           struct hfd_schema_effort *effort,
                           const struct hfd_structure_path *path) {
        struct hfd_custom_schema *schema = NULL;
        int r = hfd_custom_schema_new_limited(props, effort, &schema);

        if (hfd_causes_check(structure->causes, r))
                hfd_structure_check_defaults(structure, props, schema->root, path);
        else if (r == HF_E_TOO_LARGE)
                hfd_structure_forbid(structure, path, NULL, hfd_schema_effort_problem(effort));
        else if (r != -ENOMEM && structure->causes->n == 0)
                hfd_structure_refuse_text(structure, path, NULL, "",
                                          "the schema cannot be compiled");
        hfd_custom_schema_free(schema);
}

void hfd_structural_validate(const struct hf__json *props, const char *path,
                             struct hfd_schema_effort *effort, struct hfd_causes *causes) {
        assert(path && effort && causes);
        const struct hfd_structure_path root = {.child = path};
        const size_t n_before = causes->n;
        struct hfd_structure structure;

        if (!props || hf__json_is_null(props))
                return;
        hfd_structure_init(&structure, causes);
        structure.effort = effort;
        if (!hfd_schema_props_are_formed(props)) {
                hfd_structure_refuse_text(&structure, &root, NULL, "", "must be a JSON schema");
                return;
        }
        hfd_structure_check_invariants(&structure, props, &root);
        hfd_structure_check_completeness(&structure, props, &root);
        sort_causes(causes, n_before);
        const bool is_structural = causes->n == n_before;
        hfd_structure_check_keywords(&structure, props, &root);
        if (is_structural)
                check_compiled(&structure, props, effort, &root);
        hfd_structure_done(&structure);
}
