/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the values of a request's objects (expression_objects.h).
 *
 * Invariant: values borrow from the JSON, so they are forgotten before it.
 */
#include "server/admission/expressions/expression_objects.h"

void hfd_expression_objects_init(struct hfd_expression_objects *objects) {
        hf__arena_init(&objects->arena);
        objects->of[0] = NULL;
        objects->of[1] = NULL;
}

void hfd_expression_objects_forget(struct hfd_expression_objects *objects) {
        hf__arena_deinit(&objects->arena);
        objects->of[0] = NULL;
        objects->of[1] = NULL;
}
