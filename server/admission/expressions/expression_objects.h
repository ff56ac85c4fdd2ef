/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The values of `object` and `oldObject`, which all expressions about one request share: a large
 * object takes long to convert, and many policies and webhooks may ask about it. The first run that
 * reads a value makes it (expression_run.h).
 *
 * Owner: the caller, who does not move the struct. Thread: owner only; it may move from thread to
 * thread. Blocks: never.
 */
#include "base/arena.h"
#include "cel/values/value.h"

struct hf__json;

struct hfd_expression_objects {
        struct hf__arena arena;
        /* Borrowed: the object and the old object whose values are made. NULL: not yet. */
        const struct hf__json *of[2];
        struct hf__cel_value values[2];
};

void hfd_expression_objects_init(struct hfd_expression_objects *objects);
/* Frees the values, so that others can be made. Call it before an object that was in an input with
 * these values changes or is freed, and at the end. No run may evaluate with them any more. */
void hfd_expression_objects_forget(struct hfd_expression_objects *objects);
