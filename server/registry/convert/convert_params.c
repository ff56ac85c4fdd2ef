/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts the params of a policy by the webhook of their kind. Conversions that the table of
 * shared conversions knows are taken from it; the others are made, and added to it.
 *
 * Invariant: done may free the request, so nothing that the request owns is used after done was
 * called. That includes the array of sources.
 */
#include "server/registry/convert/convert_params.h"

#include <stdlib.h>

#include "server/registry/base/shared_table.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/response.h"

struct work {
        struct hfd_registry *registry;
        struct hfd_convert_params convert;
        struct hfd_object *objects[]; /* owned references; before and after the conversion */
};

static void on_converted(void *ctx, const struct hfd_response *failure) {
        struct work *work = ctx;
        const struct hfd_convert_params *convert = &work->convert;

        /* A source that needed no conversion is still in its place. */
        for (size_t i = 0; !failure && i < convert->n; i++)
                if (work->objects[i] != convert->sources[i])
                        hfd_shared_remember(&work->registry->shared, convert->sources[i],
                                            convert->to, work->objects[i]);
        const size_t n = convert->n;
        const struct hfd_resource *to = convert->to;
        convert->done(convert->ctx, failure ? NULL : work->objects, failure);
        for (size_t i = 0; i < n; i++)
                hfd_object_unref(work->objects[i]);
        hfd_resource_unref(to);
        free(work);
}

void hfd_convert_params(struct hfd_registry *registry, const struct hfd_convert_params *convert) {
        struct work *work = calloc(1, sizeof *work + convert->n * sizeof work->objects[0]);
        struct hfd_response no_memory = {0};

        if (!work) {
                hfd_response_no_memory(&no_memory);
                convert->done(convert->ctx, NULL, &no_memory);
                hfd_response_done(&no_memory);
                return;
        }
        work->registry = registry;
        work->convert = *convert;
        (void)hfd_resource_ref(convert->to);
        for (size_t i = 0; i < convert->n; i++) {
                struct hfd_object *known =
                        hfd_shared_recall(&registry->shared, convert->sources[i], convert->to);
                work->objects[i] = known ? known : hfd_object_ref(convert->sources[i]);
        }
        const struct hfd_convert job = {.row = convert->to,
                                        .objects = work->objects,
                                        .n = convert->n,
                                        .deadline = convert->deadline,
                                        .owner = convert->owner,
                                        .done = on_converted,
                                        .ctx = work};
        if (hfd_convert_start(registry, &job))
                on_converted(work, NULL);
}
