/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Validates the openAPIV3Schema of a version, with its rules. What that takes is added to the
 * effort of the definition (schema/compile/effort.h). The effort must be within its limits before a
 * call. If it exceeds one afterwards, a cause says so. path: of the schema in the definition. Pure.
 * Thread: owner only.
 */
struct hf__json;
struct hfd_causes;
struct hfd_schema_effort;

/* For a schema that is new or has changed: adds a cause for each mistake in its structure and, if
 * there is none, for the mistakes in its rules. */
void hfd_custom_props_check(const struct hf__json *props, const char *path,
                            struct hfd_schema_effort *effort, struct hfd_causes *causes);
/* For a schema that an update does not change: only adds its effort. The limits are for all schemas
 * of a definition together, so adding one schema in each update does not evade them. */
void hfd_custom_props_count(const struct hf__json *props, const char *path,
                            struct hfd_schema_effort *effort, struct hfd_causes *causes);
