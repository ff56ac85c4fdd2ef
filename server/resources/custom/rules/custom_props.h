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

/* Adds a cause for each mistake in a schema that is new or has changed. */
void hfd_custom_props_check(const struct hf__json *props, const char *path,
                            struct hfd_schema_effort *effort, struct hfd_causes *causes);
/* Only counts what a schema takes that an update leaves as it was: the limits are for all schemas
 * together, so that no series of updates passes them. */
void hfd_custom_props_count(const struct hf__json *props, const char *path,
                            struct hfd_schema_effort *effort, struct hfd_causes *causes);
