/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The compiled schema of one version of custom resources; immutable. Pure. Thread: any. */
#include <stddef.h>

struct hf__json;
struct hfd_causes;
struct hfd_custom_schema;
struct hfd_schema;
struct hfd_strict;

int hfd_custom_schema_new(const struct hf__json *props, struct hfd_custom_schema **ret);
struct hfd_custom_schema *hfd_custom_schema_free(struct hfd_custom_schema *schema);
const struct hfd_schema *hfd_custom_schema_fields(const struct hfd_custom_schema *schema);
int hfd_custom_schema_prune(const struct hfd_custom_schema *schema, struct hf__json *object,
                            struct hfd_strict *strict);
int hfd_custom_schema_default(const struct hfd_custom_schema *schema, struct hf__json *object);
void hfd_custom_schema_validate(const struct hfd_custom_schema *schema,
                                const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes);
