/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a compiled schema.
 *
 * Invariant: after hfd_custom_schema_new nothing of a schema changes, so that threads share it
 * without a lock.
 */
#include "server/resources/custom/schema/custom_schema.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "server/resources/custom/schema/check/embedded.h"
#include "server/resources/custom/schema/check/list_types.h"
#include "server/resources/custom/schema/check/value_check.h"
#include "server/resources/custom/schema/compile/compile.h"
#include "server/resources/custom/schema/formed_props.h"

/* About what a value occupies: an item of cJSON, and what the allocator adds to it and its texts.
 */
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

void hfd_custom_schema_validate(const struct hfd_custom_schema *schema,
                                const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes) {
        const struct hfd_place root = {0};
        struct hfd_checked checked = {.value = object, .place = &root, .records = true};
        struct hfd_check check;

        assert(object && causes);
        if (!schema->root)
                return;
        hfd_check_init(&check, causes, "", object);
        (void)hfd_check_value(&check, schema->root, schema->root, old, &checked);
        if (schema->has_embedded)
                hfd_check_embedded(&check.report, schema->root, object, &root);
        /* Elements that were already there twice do not prevent other changes. */
        if (schema->has_list_types &&
            (!old || hfd_check_list_types(&check.report, false, schema->root, old, &root)))
                (void)hfd_check_list_types(&check.report, true, schema->root, object, &root);
        hfd_check_done(&check);
}
