/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests of custom kinds: schemas and objects as JSON text, in which ' stands for ". Every
 * function fails the test if it cannot do its work. */
#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/custom/schema/custom_schema.h"

/* The caller frees the value. NULL stays NULL. */
struct hf__json *json_of(const char *text);
/* The caller frees the schema. */
struct hfd_custom_schema *schema_of(const char *props);
/* A schema whose root has one field, spec. */
struct hfd_custom_schema *schema_of_spec(const char *spec);
/* Fails unless json is equal to the text. */
void expect_json(const struct hf__json *json, const char *text);
/* Fails unless the causes are these lines: "field: text" each, and "" if there are none. The order
 * does not matter. */
void expect_causes(const struct hfd_causes *causes, const char *lines);
/* Compiles a schema with this spec, and validates an object with this spec, and old (NULL = a
 * create). */
void expect_validation(const char *schema, const char *spec, const char *old, const char *lines);
