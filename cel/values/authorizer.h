/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The variable `authorizer`, with which an expression asks whether a user has a right:
 * authorizer.group('').resource('pods').namespace('default').check('create').allowed(). The caller
 * of the evaluation decides (struct hf__cel_authorizer). Thread: owner only.
 */
#include <stdbool.h>

#include "cel/values/value.h"

struct hf__cel_run;
struct hf__cel_authorizer;

/* The right that an expression asks about. The texts are borrowed, end with a NUL, and are "" where
 * they do not apply. In a call of decide they live as long as the evaluation. */
struct hf__cel_right {
        const char *verb;
        const char *path; /* NULL: the right to a resource */
        const char *group, *resource, *subresource, *ns, *name;
        /* A service account, in place of the user of the request. NULL: that user. */
        const char *account_ns, *account_name;
};

struct hf__cel_decision {
        bool allowed;
        const char *reason; /* "", or a text that lives as long as the evaluation */
        const char *error;  /* NULL: none; otherwise a text that lives as long */
};

/* The caller keeps the struct alive as long as the values of an evaluation. decide must not block,
 * and may allocate from the run. A check costs 350,000 (HF__CEL_AUTHORIZATION_COST), so an
 * evaluation with the default limit of 1,000,000 calls decide twice at most. */
struct hf__cel_authorizer {
        struct hf__cel_decision (*decide)(struct hf__cel_run *run, const void *data,
                                          const struct hf__cel_right *right);
        const void *data; /* passed to decide */
};

struct hf__arena;
/*
 * hf__cel_authorizer_value makes the value of `authorizer`. hf__cel_resource_check_value makes that
 * of `authorizer.requestResource`, which already has the group, the resource, the subresource, the
 * namespace and the name of `right`. An error: out of memory. The arena, the authorizer and the
 * texts of `right` must live as long as the values.
 */
struct hf__cel_value hf__cel_authorizer_value(struct hf__arena *arena,
                                              const struct hf__cel_authorizer *authorizer);
struct hf__cel_value hf__cel_resource_check_value(struct hf__arena *arena,
                                                  const struct hf__cel_authorizer *authorizer,
                                                  const struct hf__cel_right *right);

/* The types of these two values. */
extern const struct hf__cel_type hf__cel_authorizer_type;
extern const struct hf__cel_type hf__cel_resource_check_type;
