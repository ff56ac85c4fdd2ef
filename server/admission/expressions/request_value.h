/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The values of request and namespaceObject. Thread: owner only. */
#include "cel/values/value.h"

struct hf__arena;
struct hf__json;
struct hfd_expression_input;

/*
 * The variable `request`, with the fields of the AdmissionRequest that a webhook gets, except
 * object and oldObject. The uid is empty. The value lives as long as the arena and the input. If
 * memory is exhausted, arena->failed is set and the value must not be used.
 */
struct hf__cel_value hfd_request_value(struct hf__arena *arena,
                                       const struct hfd_expression_input *input);
/* The same for the variable `namespaceObject`, made of json, which must live as long as the value.
 * json NULL: the value is null. */
struct hf__cel_value hfd_namespace_value(struct hf__arena *arena, const struct hf__json *json);
