/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The values of `authorizer`: expressions ask the server's authorizer. Thread: owner only. */
#include "cel/values/authorizer.h"

struct hf__arena;
struct hfd_expression_input;

/* authorizer: filled here; the caller keeps it and input alive as long as the values. */
struct hf__cel_value hfd_rights_value(struct hf__arena *arena,
                                      struct hf__cel_authorizer *authorizer,
                                      const struct hfd_expression_input *input);
/* The same for authorizer.requestResource. */
struct hf__cel_value hfd_rights_resource_value(struct hf__arena *arena,
                                               struct hf__cel_authorizer *authorizer,
                                               const struct hfd_expression_input *input);
