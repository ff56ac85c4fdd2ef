/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The compilation of the schema of a custom resource's version (custom_schema.h), and its state,
 * which the files of this folder share. Thread: owner only. */
#include <stdbool.h>

#include "server/resources/custom/schema/compile/effort.h"
#include "server/resources/custom/schema/compile/keep.h"
#include "server/resources/custom/schema/compile/node.h"

struct hfd_schema_compiler {
        struct hfd_custom_schema *schema;
        struct hfd_keeper keeper;
        void *patterns; /* a tree of <search.h>: struct hfd_custom_pattern by text */
        void *values;   /* the same of the defaults and enums, by JSON text */
        struct hfd_schema_effort *effort; /* borrowed; NULL: a stored schema, without limits */
        int error; /* the first one: -ENOMEM, HF_E_INVALID or HF_E_TOO_LARGE */
};

/* The node of props. is_validation: props are a value validation, so the node gets neither fields
 * nor a default. NULL: compiler->error is set. */
const struct hfd_custom_node *hfd_compile_node(struct hfd_schema_compiler *compiler,
                                               const struct hf__json *props, bool is_validation);
/* The fields of the root. Call it after compiler->schema->root has been set; root and props NULL:
 * the version has no schema. definition: the name of the root in OpenAPI, which is copied; NULL =
 * none. NULL: compiler->error is set. */
const struct hfd_schema *hfd_compile_root_fields(struct hfd_schema_compiler *compiler,
                                                 const struct hf__json *props,
                                                 const char *definition);
/* The compiled pattern, which is made when the schema has it for the first time. In a stored schema
 * (effort NULL) its regex may be NULL. NULL: compiler->error is set. */
const struct hfd_custom_pattern *hfd_compile_pattern(struct hfd_schema_compiler *compiler,
                                                     const char *text);
/* Sets the limits of node, whose type must be set before. If that fails, compiler->error is set. */
void hfd_compile_limits(struct hfd_schema_compiler *compiler, const struct hf__json *props,
                        struct hfd_custom_node *node);
/* Keeps value, and takes it over: if a value with the same JSON text is kept already, value is
 * freed and that one is returned. value NULL counts as out of memory. NULL: compiler->error is set.
 */
const struct hf__json *hfd_compile_value(struct hfd_schema_compiler *compiler,
                                         struct hf__json *value);
/* hfd_keep and hfd_keep_text; if memory runs out, they set compiler->error. */
const void *hfd_compile_keep(struct hfd_schema_compiler *compiler, const void *piece, size_t n);
const char *hfd_compile_text(struct hfd_schema_compiler *compiler, const char *text);
/* Sets compiler->error, unless an earlier error is there. */
void hfd_compile_fail(struct hfd_schema_compiler *compiler, int error);
/* Free the trees, which only the compilation needs. Call them before hfd_keeper_done, because the
 * trees compare texts in the keeper's memory. */
void hfd_compile_patterns_done(struct hfd_schema_compiler *compiler);
void hfd_compile_values_done(struct hfd_schema_compiler *compiler);

/* Compiles a pattern into arena. 0, -ENOMEM, or HF_E_INVALID with a message: the pattern is not
 * valid or too large. *ret_work is set in any case. */
int hfd_custom_pattern_compile(struct hf__arena *arena, const char *text,
                               const struct hf__cel_regex **ret_regex, char *reterr_message,
                               size_t max_message, uint64_t *ret_work);
