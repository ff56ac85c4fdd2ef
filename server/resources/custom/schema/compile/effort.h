/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What it takes to compile the schemas of a definition, all its versions together, and the limits
 * of that. Only a definition that is validated has limits: one that is stored was accepted once,
 * perhaps by an older server, and losing its schema would cost more than compiling it.
 *
 * Owner: the validation of one definition. Zero at first. Thread: owner only.
 */
#include <stddef.h>
#include <stdint.h>

/* Bytes that compiled patterns may add to the memory of the schemas: a short pattern may have a
 * large program. A plain character takes 24 bytes, and some 60 more when it occurs for the first
 * time. */
#define HFD_SCHEMA_PROGRAMS_MAX ((size_t)8 << 20)

/* Steps of work that compiling patterns and rules may take: some 0.1 s. The limits of a single
 * pattern or rule are not enough, because a definition may have thousands of them. Real definitions
 * take less than a hundredth of this. */
#define HFD_SCHEMA_WORK_MAX UINT64_C(10000000)

struct hfd_schema_effort {
        size_t n_bytes; /* of compiled patterns */
        uint64_t work;  /* of all compilations; a validation compiles a new pattern twice */
};

/* Multiplies what was counted, for `times` versions that share a schema which was counted once. */
void hfd_schema_effort_multiply(struct hfd_schema_effort *effort, size_t times);
/* Which limit is exceeded, as a cause says it; NULL: none. */
const char *hfd_schema_effort_problem(const struct hfd_schema_effort *effort);
