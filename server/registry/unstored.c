/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission of the objects in requests that store nothing: reviews and TokenRequests. The phase
 * mutate runs first, then validate, and then `done` gets the object.
 *
 * Invariant: while a phase runs, the admission has the object; afterwards it belongs to the
 * caller's done.
 */
#include "server/registry/unstored.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "server/registry/convert/convert_params.h"

/* One such admission, from hfd_unstored_admit until done is called. */
struct unstored {
        struct hfd_admission a;
        struct hfd_registry *registry;
        struct hfd_request *request; /* borrowed until done */
        void (*done)(struct hfd_request *request, struct hf__json *object,
                     const struct hfd_response *refusal);
};

enum hfd_admit hfd_unstored_is_asked(const struct hfd_registry *registry,
                                     const struct hfd_request *request,
                                     struct hfd_response *response) {
        enum hfd_admit admit = hfd_admit_request(registry, request, response);

        if (admit != HFD_ADMIT_ASK)
                return admit;
        const struct hfd_admission_attributes of =
                hfd_admit_attributes(request, HFD_ADMIT_CREATE, request->name, NULL);
        return hfd_admission_wanted(registry->admission, &of) ? HFD_ADMIT_ASK : HFD_ADMIT_SKIP;
}

/* Does nothing to an object that a plug-in has changed: the handler that gets it from done decodes
 * and checks it. */
static bool settle_admission(struct hfd_admission *a, struct hfd_response *response) {
        return true;
}

/* For admission: converts the params of a policy by the webhook of their kind. What the request
 * writes needs no webhook: its kind has one version. */
static void convert_params(void *ctx, const struct hfd_resource *to,
                           struct hfd_object *const *sources, size_t n, hfd_objects_converted *done,
                           void *done_ctx) {
        const struct unstored *it = ctx;
        const struct hfd_convert_params convert = {.to = to,
                                                   .sources = sources,
                                                   .n = n,
                                                   .deadline = it->request->deadline,
                                                   .owner = it->request->owner,
                                                   .done = done,
                                                   .ctx = done_ctx};

        hfd_convert_params(it->registry, &convert);
}

static struct hf__json *make_options(const struct hfd_admission *a) {
        const struct unstored *it = a->ctx;

        return hfd_admit_options(it->request, HFD_ADMIT_CREATE, NULL);
}

/* Frees `it`, and then calls done, which may free the request. */
static void end_admission(struct unstored *it, const struct hfd_response *refusal) {
        struct hfd_request *request = it->request;
        struct hf__json *object = it->a.object;
        void (*done)(struct hfd_request *, struct hf__json *, const struct hfd_response *) =
                it->done;

        assert(it->done);
        it->a.object = NULL;
        hfd_admission_done(&it->a);
        free(it);
        if (refusal)
                object = hf__json_free(object);
        done(request, object, refusal);
}

static void on_validated(struct hfd_admission *a, const struct hfd_response *refusal) {
        end_admission(a->ctx, refusal);
}

static void on_mutated(struct hfd_admission *a, const struct hfd_response *refusal) {
        struct unstored *it = a->ctx;

        if (refusal) {
                end_admission(it, refusal);
                return;
        }
        a->done = on_validated;
        hfd_admission_validate(it->registry->admission, a);
}

/* Clients may leave the type out, but webhooks and policies see it. 0 or -ENOMEM. */
static int name_type(const struct hfd_resource *resource, struct hf__json *object) {
        char version[HFD_API_VERSION_MAX];

        hfd_resource_api_version(resource, version);
        int r = hf__json_set_string(object, "kind", resource->kind);
        return r == 0 ? hf__json_set_string(object, "apiVersion", version) : r;
}

void hfd_unstored_admit(struct hfd_registry *registry, struct hfd_request *request,
                        struct hf__json *object,
                        void (*done)(struct hfd_request *request, struct hf__json *object,
                                     const struct hfd_response *refusal)) {
        struct unstored *it = calloc(1, sizeof *it);

        if (!it || name_type(request->resource, object) != 0) {
                struct hfd_response response = {0};
                hfd_response_no_memory(&response);
                free(it);
                hf__json_free(object);
                done(request, NULL, &response);
                hfd_response_done(&response);
                return;
        }
        hfd_admit_extend_deadline(request);
        *it = (struct unstored){.registry = registry, .request = request, .done = done};
        it->a = (struct hfd_admission){.object = object,
                                       .notes = &request->notes,
                                       .settle = settle_admission,
                                       .convert_objects = convert_params,
                                       .make_options = make_options,
                                       .done = on_mutated,
                                       .ctx = it};
        it->a.of = hfd_admit_attributes(request, HFD_ADMIT_CREATE, request->name, NULL);
        hfd_admission_mutate(registry->admission, &it->a);
}
