/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The values of `object`, `oldObject` and `namespaceObject`, which all expressions about one
 * request share: a large object takes long to convert, and many policies and webhooks may ask about
 * it. The first run that reads a value makes it (expression_run.h).
 *
 * Owner: the caller, who does not move the struct. Thread: owner only; it may move from thread to
 * thread. Blocks: never.
 */
#include "base/arena.h"
#include "cel/values/value.h"

struct hf__json;

enum hfd_expression_shared {
        HFD_SHARED_OBJECT,
        HFD_SHARED_OLD,
        HFD_SHARED_NAMESPACE,
        HFD_N_SHARED
};

struct hfd_expression_objects {
        struct hf__arena arena;           /* of object and old */
        struct hf__arena namespace_arena; /* of the Namespace, which stays while they change */
        /* Borrowed: what the values were made of. NULL: not made yet. */
        const struct hf__json *of[HFD_N_SHARED];
        struct hf__cel_value values[HFD_N_SHARED];
};

void hfd_expression_objects_init(struct hfd_expression_objects *objects);
/* Frees the values of object and oldObject, so that others can be made. Call it before an object
 * that was in an input with these values changes or is freed. No run may evaluate with them any
 * more. */
void hfd_expression_objects_forget(struct hfd_expression_objects *objects);
/* Frees all values. Idempotent. */
void hfd_expression_objects_done(struct hfd_expression_objects *objects);
