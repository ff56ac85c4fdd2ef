/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes a write to admission, and goes on with its decision.
 *
 * Invariants: in `mutate` the object belongs to the admission, and comes back with its decision.
 * Then the members that only the server sets (kept_members) are put back, whatever a plug-in has
 * done to them. As everywhere in the loop (write.h), a refusal of a version that came from the
 * cacher is not final: the newest version is read from the store. If it is the same one, the
 * refusal is the response, and admission does not run again.
 */
#include "server/registry/write/admit.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/registry/base/admit.h"
#include "server/registry/convert/convert_json.h"
#include "server/registry/convert/convert_params.h"
#include "server/registry/write/body.h"
#include "server/registry/write/reply.h"

/* The admission of one attempt, from the first phase that is asked until the last one has allowed
 * the attempt, or until the attempt ends. */
struct hfd_write_admission {
        struct hfd_admission a;
        struct hfd_write *w;
        void (*resume)(struct hfd_write *w);
        /* Owned; the members of metadata that no plug-in changes; NULL = nothing. */
        struct hf__json *kept;
        bool validates_next; /* a delete: validate follows the phase that runs (mutate) */
        /* The object's name; a copy, because plug-ins change the object. A name that is too long to
         * be valid is cut. */
        char name[HF_NAME_MAX + 1];
};

/* The members of metadata that are put back. For an update the first three are enough: the others
 * are computed again afterwards, or validation compares them with those of the old object. */
static const char *const kept_members[] = {"uid", "creationTimestamp", "managedFields",
                                           /* Only for a create: */
                                           "deletionTimestamp", "deletionGracePeriodSeconds",
                                           "generation", "selfLink"};
#define N_KEPT_OF_UPDATE 3
#define N_KEPT           (sizeof kept_members / sizeof kept_members[0])

static size_t n_kept(const struct hfd_write *w) { return w->created ? N_KEPT : N_KEPT_OF_UPDATE; }

void hfd_write_admit_done(struct hfd_write *w) {
        struct hfd_write_admission *admission = w->admission;

        if (!admission)
                return;
        assert(!admission->a.object || admission->a.object == w->object);
        hfd_admission_done(&admission->a);
        hf__json_free(admission->kept);
        free(admission);
        w->admission = NULL;
}

bool hfd_write_admit_has_mutated(const struct hfd_write *w) {
        return w->admission && w->admission->a.mutated;
}

/* ---- decisions ---- */

void hfd_write_admit_forget(struct hfd_write *w) { w->refusal = hfd_response_free(w->refusal); }

bool hfd_write_admit_refused(struct hfd_write *w, const struct hfd_object *current) {
        if (!w->refusal)
                return false;
        if (current && current->revision == w->refused_revision) {
                hfd_write_reply_copy(w, w->refusal);
                return true;
        }
        hfd_write_admit_forget(w);
        return false;
}

/* Responds with the refusal if the version of the object is certain; otherwise reads the newest
 * one, and keeps the refusal for hfd_write_admit_refused. */
static void refuse_write(struct hfd_write *w, const struct hfd_response *refusal) {
        if (!w->current || w->fresh) {
                hfd_write_reply_copy(w, refusal);
                return;
        }
        hfd_write_admit_forget(w);
        w->refusal = hfd_response_copy(refusal);
        if (!w->refusal) {
                hfd_write_reply_no_memory(w);
                return;
        }
        w->stored = hf__buf_unref(w->stored);
        w->refused_revision = w->current->revision;
        hfd_write_refetch(w);
}

/* Restores the metadata that no plug-in may change. 0 or -ENOMEM. */
static int restore_object(struct hfd_write_admission *admission) {
        struct hf__json *meta = hf__json_get(admission->w->object, "metadata");
        int r = 0;

        for (size_t i = 0; r == 0 && i < n_kept(admission->w); i++) {
                struct hf__json *value = hf__json_get(admission->kept, kept_members[i]);
                if (value)
                        r = hf__json_put(meta, kept_members[i],
                                         hf__json_detach(admission->kept, value));
                else
                        hf__json_drop(meta, kept_members[i]);
        }
        return r;
}

/* Completes the objects for admission. They name their type, which clients may leave out. Except in
 * a create, they have a resourceVersion, which is not stored. Their managedFields are parsed,
 * because plug-ins read and compare all members. 0 or -ENOMEM. */
static int complete_objects(struct hfd_write *w) {
        char revision[HF__U64_TEXT_MAX], version[HFD_API_VERSION_MAX];
        int r = hf__json_expand(w->old, "metadata.managedFields");

        if (r == 0)
                r = hf__json_expand(w->object, "metadata.managedFields");
        hfd_resource_api_version(w->request->resource, version);
        if (r == 0 && w->object)
                r = hf__json_set_string(w->object, "kind", w->request->resource->kind);
        if (r == 0 && w->object)
                r = hf__json_set_string(w->object, "apiVersion", version);
        if (r != 0 || !w->old)
                return r;
        (void)hf__u64_text(w->current->revision, revision);
        r = hf__json_set_string(w->old, "metadata.resourceVersion", revision);
        if (r == 0 && w->object)
                r = hf__json_set_string(w->object, "metadata.resourceVersion", revision);
        return r;
}

/* Removes the resourceVersions that complete_objects has added, because they are not stored. */
static void hide_revision(struct hfd_write *w) {
        hf__json_remove(w->old, "metadata.resourceVersion");
        hf__json_remove(w->object, "metadata.resourceVersion");
}

static void on_admitted(struct hfd_admission *a, const struct hfd_response *refusal) {
        struct hfd_write_admission *admission = a->ctx;
        struct hfd_write *w = admission->w;
        void (*resume)(struct hfd_write *) = admission->resume;

        assert(w->awaiting);
        w->awaiting = false;
        if (!a->validating)
                w->object = a->object;
        a->object = NULL;
        hide_revision(w);
        if (refusal) {
                refuse_write(w, refusal);
        } else if (admission->validates_next) {
                admission->validates_next = false;
                if (complete_objects(w) != 0) {
                        hfd_write_reply_no_memory(w);
                        return;
                }
                hfd_write_await(w);
                hfd_admission_validate(w->registry->admission, a);
        } else if (!a->validating && a->mutated && restore_object(admission) != 0) {
                hfd_write_reply_no_memory(w);
        } else {
                resume(w);
        }
}

/* ---- requests to admission ---- */

static bool settle_admission(struct hfd_admission *a, struct hfd_response *response) {
        struct hfd_write_admission *admission = a->ctx;

        return hfd_write_body_settle(admission->w, a->object, response);
}

/* For admission: converts an object by the webhook of its kind. Meanwhile the write waits, as for
 * the rest of admission. */
static void convert_form(void *ctx, const struct hfd_resource *from, const struct hfd_resource *to,
                         const struct hf__json *source, hfd_forms_converted *done, void *done_ctx) {
        const struct hfd_write_admission *admission = ctx;
        const struct hfd_write *w = admission->w;
        const struct hfd_convert_json convert = {.from = from,
                                                 .to = to,
                                                 .path = w->path,
                                                 .source = source,
                                                 .deadline = w->request->deadline,
                                                 .owner = w->request->owner,
                                                 .done = done,
                                                 .ctx = done_ctx};

        hfd_convert_json(w->registry, &convert);
}

/* As convert_form, for the params of a policy. */
static void convert_params(void *ctx, const struct hfd_resource *to,
                           struct hfd_object *const *sources, size_t n, hfd_objects_converted *done,
                           void *done_ctx) {
        const struct hfd_write_admission *admission = ctx;
        const struct hfd_write *w = admission->w;
        const struct hfd_convert_params convert = {.to = to,
                                                   .sources = sources,
                                                   .n = n,
                                                   .deadline = w->request->deadline,
                                                   .owner = w->request->owner,
                                                   .done = done,
                                                   .ctx = done_ctx};

        hfd_convert_params(w->registry, &convert);
}

static struct hf__json *make_options(const struct hfd_admission *a) {
        struct hfd_write_admission *admission = a->ctx;
        const struct hfd_write *w = admission->w;

        return hfd_admit_options(w->request, a->of.operation,
                                 a->of.operation == HFD_ADMIT_DELETE ? w->body : NULL);
}

static struct hfd_admission_attributes attributes_of(const struct hfd_write *w) {
        const struct hfd_request *request = w->request;
        enum hfd_admission_operation operation = w->created ? HFD_ADMIT_CREATE : HFD_ADMIT_UPDATE;
        const char *name = hfd_write_name(w);

        if (request->verb == HFD_DELETE_OBJECT)
                operation = HFD_ADMIT_DELETE;
        if (w->name_generated || request->of_collection)
                name = "";
        return hfd_admit_attributes(request, operation, name, w->old);
}

/* Whether admission must be asked; *ret_of are the attributes. False with *ret_ended: the response
 * was sent. */
static bool is_asked(struct hfd_write *w, struct hfd_admission_attributes *ret_of,
                     bool *ret_ended) {
        struct hfd_response response = {0};
        enum hfd_admit admit = hfd_admit_request(w->registry, w->request, &response);

        *ret_ended = admit == HFD_ADMIT_REFUSE;
        if (admit == HFD_ADMIT_REFUSE)
                hfd_write_reply(w, &response);
        if (admit != HFD_ADMIT_ASK)
                return false;
        *ret_of = attributes_of(w);
        return hfd_admission_wanted(w->registry->admission, ret_of);
}

bool hfd_write_admit_wants(const struct hfd_write *w) {
        struct hfd_response response = {0};
        enum hfd_admit admit = hfd_admit_request(w->registry, w->request, &response);

        hfd_response_done(&response);
        if (admit != HFD_ADMIT_ASK)
                return false;
        const struct hfd_admission_attributes of = attributes_of(w);
        return hfd_admission_wanted(w->registry->admission, &of);
}

/* Makes w->admission, or uses that of the other phase. False: the response was sent. */
static bool make_admission(struct hfd_write *w, struct hfd_admission_attributes *of,
                           void (*resume)(struct hfd_write *w)) {
        struct hfd_write_admission *admission = w->admission;

        if (!admission)
                admission = calloc(1, sizeof *admission);
        if (!admission) {
                hfd_write_reply_no_memory(w);
                return false;
        }
        w->admission = admission;
        if (complete_objects(w) != 0) {
                hfd_write_reply_no_memory(w);
                return false;
        }
        hfd_admit_extend_deadline(w->request);
        of->deadline = w->request->deadline;
        of->options = admission->a.options;
        admission->w = w;
        admission->resume = resume;
        (void)snprintf(admission->name, sizeof admission->name, "%s", of->name);
        if (of->ns == of->name) /* of a Namespace: hfd_admit_attributes uses the name for both */
                of->ns = admission->name;
        of->name = admission->name;
        admission->a.of = *of;
        admission->a.object = w->object;
        admission->a.notes = &w->request->notes;
        admission->a.settle = settle_admission;
        admission->a.convert = convert_form;
        admission->a.convert_objects = convert_params;
        admission->a.make_options = make_options;
        admission->a.done = on_admitted;
        admission->a.ctx = admission;
        return true;
}

/* Keeps the metadata that no plug-in may change. 0 or -ENOMEM. */
static int keep_object(struct hfd_write_admission *admission) {
        const struct hf__json *meta = hf__json_get(admission->w->object, "metadata");
        int r;

        hf__json_free(admission->kept);
        admission->kept = hf__json_object();
        r = admission->kept ? 0 : -ENOMEM;
        for (size_t i = 0; r == 0 && i < n_kept(admission->w); i++) {
                const struct hf__json *value = hf__json_get(meta, kept_members[i]);
                if (value)
                        r = hf__json_put(admission->kept, kept_members[i], hf__json_dup(value));
        }
        return r;
}

bool hfd_write_admit_mutate(struct hfd_write *w, void (*resume)(struct hfd_write *w)) {
        struct hfd_admission_attributes of;
        bool ended;

        assert(w->object && !w->admission && !w->awaiting);
        if (!is_asked(w, &of, &ended))
                return !ended;
        if (!make_admission(w, &of, resume))
                return false;
        if (keep_object(w->admission) != 0) {
                hfd_write_reply_no_memory(w);
                return false;
        }
        struct hfd_admission *a = &w->admission->a;
        w->object = NULL; /* the admission has it until it decides */
        hfd_write_await(w);
        hfd_admission_mutate(w->registry->admission, a);
        return false;
}

bool hfd_write_admit_validate(struct hfd_write *w, void (*resume)(struct hfd_write *w)) {
        struct hfd_admission_attributes of;
        bool ended;

        assert(w->object && !w->awaiting);
        if (!is_asked(w, &of, &ended))
                return !ended;
        if (!make_admission(w, &of, resume))
                return false;
        struct hfd_admission *a = &w->admission->a;
        hfd_write_await(w);
        hfd_admission_validate(w->registry->admission, a);
        return false;
}

bool hfd_write_admit_delete(struct hfd_write *w, void (*resume)(struct hfd_write *w)) {
        struct hfd_admission_attributes of;
        bool ended;

        assert(w->old && !w->object && !w->admission && !w->awaiting);
        if (!is_asked(w, &of, &ended))
                return !ended;
        if (!make_admission(w, &of, resume))
                return false;
        struct hfd_admission *a = &w->admission->a;
        w->admission->validates_next = true;
        hfd_write_await(w);
        hfd_admission_mutate(w->registry->admission, a);
        return false;
}
