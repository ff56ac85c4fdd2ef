/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The values of `authorizer`: expressions ask the server's authorizer. Thread: owner only. */
#include "cel/authorizer.h"

struct hf__arena;
struct hfd_expression_input;

/* authorizer: the caller's, for the time of the values; it is filled here. */
struct hf__cel_value hfd_rights_value(struct hf__arena *arena,
                                      struct hf__cel_authorizer *authorizer,
                                      const struct hfd_expression_input *input);
/* For the resource of the request. */
struct hf__cel_value hfd_rights_resource_value(struct hf__arena *arena,
                                               struct hf__cel_authorizer *authorizer,
                                               const struct hfd_expression_input *input);
