/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The values of request and namespaceObject. Thread: owner only. */
#include "cel/values/value.h"

struct hf__arena;
struct hf__json;
struct hfd_expression_input;

/*
 * The variable `request`, with the fields of the AdmissionRequest that a webhook gets. Lives as
 * long as the arena and the input; the same holds for the other function. If memory is exhausted,
 * the arena has failed.
 */
struct hf__cel_value hfd_request_value(struct hf__arena *arena,
                                       const struct hfd_expression_input *input);
/* The variable `namespaceObject`. json NULL: its value is null. */
struct hf__cel_value hfd_namespace_value(struct hf__arena *arena, const struct hf__json *json);
