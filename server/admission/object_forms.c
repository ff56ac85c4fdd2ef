/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the conversions of stored objects for one request (object_forms.h).
 *
 * Invariants: one batch at most is wanted, the last one. A batch that has failed is not tried
 * again. Batches hold references to their objects and row, so an address names the same object
 * until the request ends.
 */
#include "server/admission/object_forms.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "server/admission/forms.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/objects/object.h"
#include "server/resources/response.h"

struct batch {
        const struct hfd_resource *to; /* a reference */
        /* Owned arrays of owned references. The elements of results are NULL until they are
         * known. */
        struct hfd_object **sources, **results;
        size_t n;
        /* Owned; NULL = it has not failed. If the results are NULL, too, after the call, memory
         * ran out. */
        struct hfd_response *failure;
};

struct hfd_object_forms {
        struct batch list[HFD_OBJECT_FORMS_MAX];
        size_t n;
        bool wanted; /* the last of the list is wanted */
        void (*resume)(void *ctx);
        void *ctx;
};

static struct batch *find_batch(struct hfd_object_forms *forms, const struct hfd_resource *to,
                                struct hfd_object *const *sources, size_t n) {
        for (size_t i = forms->n; i-- > 0;) {
                struct batch *batch = &forms->list[i];
                if (batch->to == to && batch->n == n &&
                    memcmp(batch->sources, sources, n * sizeof *sources) == 0)
                        return batch;
        }
        return NULL;
}

/* -EAGAIN, -ENOMEM, or HF_E_TOO_MANY. */
static int want_batch(struct hfd_object_forms *forms, const struct hfd_resource *to,
                      struct hfd_object *const *sources, size_t n) {
        if (forms->n == HFD_OBJECT_FORMS_MAX)
                return HF_E_TOO_MANY;
        struct batch *batch = &forms->list[forms->n];
        *batch = (struct batch){.sources = calloc(n, sizeof *batch->sources),
                                .results = calloc(n, sizeof *batch->results)};
        if (!batch->sources || !batch->results) {
                free(batch->sources);
                free(batch->results);
                return -ENOMEM;
        }
        for (size_t i = 0; i < n; i++)
                batch->sources[i] = hfd_object_ref(sources[i]);
        batch->n = n;
        batch->to = hfd_resource_ref(to);
        forms->n++;
        forms->wanted = true;
        return -EAGAIN;
}

int hfd_object_forms_find(struct hfd_object_forms **forms, const struct hfd_resource *to,
                          struct hfd_object *const *sources, size_t n,
                          struct hfd_object *const **ret_results,
                          const struct hfd_response **ret_failure) {
        assert(n > 0);
        *ret_failure = NULL;
        if (!*forms)
                *forms = calloc(1, sizeof **forms);
        if (!*forms)
                return -ENOMEM;
        assert(!(*forms)->wanted);
        struct batch *batch = find_batch(*forms, to, sources, n);
        if (!batch)
                return want_batch(*forms, to, sources, n);
        *ret_failure = batch->failure;
        if (batch->failure)
                return hfd_forms_error(batch->failure);
        *ret_results = batch->results;
        return batch->results[0] ? 0 : -ENOMEM;
}

bool hfd_object_forms_is_wanted(const struct hfd_object_forms *forms) {
        return forms && forms->wanted;
}

static void on_converted(void *ctx, struct hfd_object *const *results,
                         const struct hfd_response *failure) {
        struct hfd_object_forms *forms = ctx;
        struct batch *batch = &forms->list[forms->n - 1];

        assert(forms->wanted);
        forms->wanted = false;
        for (size_t i = 0; results && i < batch->n; i++)
                batch->results[i] = hfd_object_ref(results[i]);
        if (!results)
                batch->failure = hfd_response_copy(failure);
        forms->resume(forms->ctx);
}

void hfd_object_forms_fetch(struct hfd_object_forms *forms, hfd_objects_convert *convert,
                            void *convert_ctx, void (*resume)(void *ctx), void *ctx) {
        const struct batch *batch = &forms->list[forms->n - 1];

        assert(forms->wanted);
        forms->resume = resume;
        forms->ctx = ctx;
        if (convert)
                convert(convert_ctx, batch->to, batch->sources, batch->n, on_converted, forms);
        else
                on_converted(forms, NULL, NULL);
}

static void free_batch(struct batch *batch) {
        for (size_t i = 0; i < batch->n; i++) {
                hfd_object_unref(batch->sources[i]);
                hfd_object_unref(batch->results[i]);
        }
        free(batch->sources);
        free(batch->results);
        hfd_response_free(batch->failure);
        hfd_resource_unref(batch->to);
}

struct hfd_object_forms *hfd_object_forms_free(struct hfd_object_forms *forms) {
        if (!forms)
                return NULL;
        for (size_t i = 0; i < forms->n; i++)
                free_batch(&forms->list[i]);
        free(forms);
        return NULL;
}
