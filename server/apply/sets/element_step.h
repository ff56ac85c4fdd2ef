/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The step of a path (step.h) that identifies an element of a list: its keys, or its value. Pure.
 * Thread: owner only. */
#include <stddef.h>

struct hf__arena;
struct hf__json;
struct hf__strbuf;
struct hfd_schema;
struct hfd_step;

/*
 * list: a schema of type LIST whose list_type is MAP or SET. position: of the element in its list.
 * The step is in memory of scratch and borrows from element and list.
 *
 * Returns 0; -ENOMEM, and scratch->failed is set; or HF_E_INVALID: the element has no step. In the
 * last case reason, unless it is NULL, gets the position and a message.
 */
int hfd_element_step(struct hf__arena *scratch, const struct hfd_schema *list,
                     const struct hf__json *element, size_t position, struct hfd_step *ret_step,
                     struct hf__strbuf *reason);
