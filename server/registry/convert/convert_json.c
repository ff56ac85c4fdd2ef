/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts one parsed object by the webhook of its kind, for admission plug-ins that want another
 * version than that of the request.
 *
 * Invariant: the result has a resourceVersion only if the source has one, though an object always
 * has a revision.
 */
#include "server/registry/convert/convert_json.h"

#include <stdlib.h>

#include "base/json.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/response.h"

/* One conversion, until done is called. */
struct work {
        struct hfd_object *object; /* owned; before and after the conversion */
        bool has_revision;
        hfd_forms_converted *done;
        void *ctx;
};

/* Calls done once, and frees the work before it. Neither a result nor a failure: out of memory. */
static void end_work(struct work *work, struct hf__json *result,
                     const struct hfd_response *failure) {
        struct hfd_response no_memory = {0};
        struct work copy = *work;

        hfd_object_unref(work->object);
        free(work);
        if (!result && !failure) {
                hfd_response_no_memory(&no_memory);
                failure = &no_memory;
        }
        copy.done(copy.ctx, result, failure);
        hfd_response_done(&no_memory);
}

static void on_converted(void *ctx, const struct hfd_response *failure) {
        struct work *work = ctx;
        struct hf__json *result = failure ? NULL : hfd_object_parse(work->object);

        if (result && !work->has_revision)
                hf__json_remove(result, "metadata.resourceVersion");
        end_work(work, result, failure);
}

/* Makes an object from the source. NULL = out of memory. */
static struct hfd_object *make_object(const struct hfd_convert_json *convert, bool *ret_revision) {
        const char *text = hf__json_string(convert->source, "metadata.resourceVersion");
        struct hf__buf *bytes = hfd_object_encode(convert->from, convert->source);
        struct hfd_object *object = NULL;

        *ret_revision = text != NULL;
        if (bytes)
                object = hfd_object_new(convert->from, convert->path,
                                        text ? strtoull(text, NULL, 10) : 0, bytes);
        hf__buf_unref(bytes);
        return object;
}

void hfd_convert_json(struct hfd_registry *registry, const struct hfd_convert_json *convert) {
        struct hfd_response no_memory = {0};
        struct work *work = calloc(1, sizeof *work);

        if (!work) {
                hfd_response_no_memory(&no_memory);
                convert->done(convert->ctx, NULL, &no_memory);
                hfd_response_done(&no_memory);
                return;
        }
        work->done = convert->done;
        work->ctx = convert->ctx;
        work->object = make_object(convert, &work->has_revision);
        if (!work->object) {
                end_work(work, NULL, NULL);
                return;
        }
        const struct hfd_convert job = {.row = convert->to,
                                        .objects = &work->object,
                                        .n = 1,
                                        .deadline = convert->deadline,
                                        .owner = convert->owner,
                                        .done = on_converted,
                                        .ctx = work};
        if (hfd_convert_start(registry, &job))
                on_converted(work, NULL);
}
