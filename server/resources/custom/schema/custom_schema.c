/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes and frees compiled schemas, and validates objects by them.
 *
 * Invariant: after hfd_custom_schema_new nothing of a schema changes, so that threads share it
 * without a lock.
 */
#include "server/resources/custom/schema/custom_schema.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/custom/schema/check/correlation.h"
#include "server/resources/custom/schema/check/embedded.h"
#include "server/resources/custom/schema/check/list_types.h"
#include "server/resources/custom/schema/check/value_check.h"
#include "server/resources/custom/schema/compile/compile.h"
#include "server/resources/custom/schema/formed_props.h"

/* About how many bytes a value occupies: an item of cJSON, and what the allocator adds to the item
 * and its texts. */
#define VALUE_SIZE 96

static size_t count_values(const struct hf__json *json) {
        size_t n = 1;

        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m))
                n += count_values(m);
        return n;
}

static int compile_schema(struct hfd_schema_compiler *compiler, const struct hf__json *props,
                          const char *definition) {
        struct hfd_custom_schema *schema = compiler->schema;

        if (props && compiler->error == 0)
                schema->root = hfd_compile_node(compiler, props, false);
        if (compiler->error == 0)
                schema->fields = hfd_compile_root_fields(compiler, props, definition);
        /* - 1: the array of the values, which every schema has, is not counted. */
        schema->memory = sizeof *schema + compiler->keeper.memory +
                         (count_values(schema->values) - 1) * VALUE_SIZE;
        return compiler->error;
}

/* effort NULL: there are no limits. */
static int new_schema(const struct hf__json *props, const char *definition,
                      struct hfd_schema_effort *effort, struct hfd_custom_schema **ret_schema) {
        struct hfd_schema_compiler compiler = {.schema = calloc(1, sizeof *compiler.schema),
                                               .effort = effort};
        struct hfd_custom_schema *schema = compiler.schema;
        int r = -ENOMEM;

        if (!schema)
                return -ENOMEM;
        if (props && !hfd_schema_props_are_formed(props))
                hfd_compile_fail(&compiler, HF_E_INVALID);
        hfd_keeper_init(&compiler.keeper);
        schema->values = hf__json_array();
        if (schema->values)
                r = compile_schema(&compiler, props, definition);
        hfd_compile_patterns_done(&compiler);
        hfd_compile_values_done(&compiler);
        schema->blocks = compiler.keeper.blocks;
        hfd_keeper_done(&compiler.keeper);
        if (r != 0)
                schema = hfd_custom_schema_free(schema);
        *ret_schema = schema;
        return r;
}

int hfd_custom_schema_new(const struct hf__json *props, struct hfd_custom_schema **ret_schema) {
        return new_schema(props, NULL, NULL, ret_schema);
}

int hfd_custom_schema_new_named(const struct hf__json *props, const char *definition,
                                struct hfd_custom_schema **ret_schema) {
        return new_schema(props, definition, NULL, ret_schema);
}

int hfd_custom_schema_new_limited(const struct hf__json *props, struct hfd_schema_effort *effort,
                                  struct hfd_custom_schema **ret_schema) {
        assert(effort);
        return new_schema(props, NULL, effort, ret_schema);
}

struct hfd_custom_schema *hfd_custom_schema_free(struct hfd_custom_schema *schema) {
        if (!schema)
                return NULL;
        hf__json_free(schema->values);
        hfd_kept_blocks_free(schema->blocks);
        free(schema);
        return NULL;
}

const struct hfd_schema *hfd_custom_schema_fields(const struct hfd_custom_schema *schema) {
        return schema->fields;
}

size_t hfd_custom_schema_memory(const struct hfd_custom_schema *schema) { return schema->memory; }

static bool is_status_or_metadata(const char *key) {
        return strcmp(key, "metadata") == 0 || strcmp(key, "status") == 0;
}

/* Whether the objects are equal apart from their metadata and status. */
static bool is_rest_equal(struct hfd_causes *causes, const struct hf__json *object,
                          const struct hf__json *old) {
        struct hf__json_index index;
        size_t n = 0, n_old = 0;
        bool equal = hfd_causes_check(causes, hf__json_index_init(&index, old, NULL));

        for (const struct hf__json *m = hf__json_first(object); m && equal; m = hf__json_next(m)) {
                if (is_status_or_metadata(hf__json_key(m)))
                        continue;
                const struct hf__json_index_entry *entry =
                        hf__json_index_find(&index, hf__json_key(m));
                equal = entry && hfd_causes_equal(causes, m, entry->item);
                n++;
        }
        hf__json_index_done(&index);
        for (const struct hf__json *m = hf__json_first(old); m; m = hf__json_next(m))
                n_old += is_status_or_metadata(hf__json_key(m)) ? 0 : 1;
        return equal && n == n_old;
}

/* If the status changes, checks it again, alone, with a limit of work for its own texts: the check
 * of the whole object may have used up its work before it searched the texts of the status. */
static void check_status(const struct hfd_custom_schema *schema, const struct hf__json *object,
                         const struct hf__json *old, struct hfd_causes *causes) {
        const struct hfd_place root = {0}, place = {.up = &root, .key = "status"};
        const struct hf__json *status = hf__json_get(object, "status"),
                              *old_status = hf__json_get(old, "status");
        struct hfd_checked checked = {.value = status, .place = &place, .records = true};
        const struct hfd_custom_node *node = hfd_custom_member(schema->root, "status");
        struct hfd_check check;

        if (!status || !node || hfd_causes_equal(causes, status, old_status))
                return;
        hfd_check_init(&check, causes, "", status);
        (void)hfd_check_value(&check, node, node, old_status, &checked);
        hfd_check_done(&check, false);
}

/*
 * Called after a check in which searches for patterns were not made, because they need too much
 * work. Returns whether the object is accepted all the same, apart from its status, which the
 * caller then checks alone.
 *
 * The object must differ from the old one only in metadata and status. The old one may have been
 * stored when there was no limit of work. If such an update were refused, nobody could remove the
 * finalizers of the object, and so nobody could delete it.
 *
 * What the root of the schema demands of the whole object is not checked again. If the root has
 * limits such as `required`, the status must not appear or disappear. If it has an anyOf, oneOf,
 * allOf or not, the status must not change at all, because these may depend on anything in it.
 */
static bool is_accepted_but_for_status(const struct hfd_custom_schema *schema,
                                       const struct hf__json *object, const struct hf__json *old,
                                       struct hfd_causes *causes) {
        const struct hfd_custom_node *root = schema->root;

        if (!old || !is_rest_equal(causes, object, old) ||
            (root->n_limits > 0 && !hf__json_get(object, "status") != !hf__json_get(old, "status")))
                return false;
        return root->n_limits == 0 || root->limits[0].kind > HFD_LIMIT_NOT ||
               hfd_causes_equal(causes, hf__json_get(object, "status"),
                                hf__json_get(old, "status"));
}

void hfd_custom_schema_validate(const struct hfd_custom_schema *schema,
                                const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes) {
        const struct hfd_place root = {0};
        struct hfd_checked checked = {.value = object, .place = &root, .records = true};
        const size_t n_before = causes->n;
        struct hfd_check check;

        assert(object && causes);
        if (!schema->root)
                return;
        hfd_check_init(&check, causes, "", object);
        (void)hfd_check_value(&check, schema->root, schema->root, old, &checked);
        const bool accepted =
                check.run.failed > 0 && is_accepted_but_for_status(schema, object, old, causes);
        if (accepted)
                causes->n = n_before; /* they may be wrong: some searches were not made */
        if (schema->has_embedded)
                hfd_check_embedded(&check.report, schema->root, object, &root);
        /* Elements that were already there twice do not prevent other changes. */
        if (schema->has_list_types &&
            (!old || hfd_check_list_types(&check.report, false, schema->root, old, &root)))
                (void)hfd_check_list_types(&check.report, true, schema->root, object, &root);
        hfd_check_done(&check, accepted);
        if (accepted)
                check_status(schema, object, old, causes);
}
