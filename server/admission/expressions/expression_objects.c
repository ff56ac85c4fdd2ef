/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the values of a request's objects (expression_objects.h).
 *
 * Invariant: the values borrow from the JSON that they were made of, so they are forgotten before
 * that JSON changes or is freed.
 */
#include "server/admission/expressions/expression_objects.h"

void hfd_expression_objects_init(struct hfd_expression_objects *objects) {
        hf__arena_init(&objects->arena);
        hf__arena_init(&objects->namespace_arena);
        for (size_t i = 0; i < HFD_N_SHARED; i++)
                objects->of[i] = NULL;
}

void hfd_expression_objects_forget(struct hfd_expression_objects *objects) {
        hf__arena_deinit(&objects->arena);
        objects->of[HFD_SHARED_OBJECT] = NULL;
        objects->of[HFD_SHARED_OLD] = NULL;
}

void hfd_expression_objects_done(struct hfd_expression_objects *objects) {
        hfd_expression_objects_forget(objects);
        hf__arena_deinit(&objects->namespace_arena);
        objects->of[HFD_SHARED_NAMESPACE] = NULL;
}
