/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the subresources with bodies of another kind have in common: reading the body, and the
 * requests to the object.
 *
 * Invariants: a part (part.h) is freed once, by hfd_part_finish, which touches it last.
 * So a function that sends a request, or passes the part to the pool, does not touch the part
 * afterwards: it may have ended already. The callback of a request does nothing that takes longer
 * for a larger object: it may be called on a thread that delivers the store's replies.
 */
#include "server/registry/parts/part.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/registry/base/admit.h"
#include "server/registry/base/large_work.h"
#include "server/registry/convert/convert_params.h"
#include "server/registry/list/table.h"
#include "server/registry/write/apply_body.h"
#include "server/registry/write/body.h"
#include "server/schema/decode.h"

#define CONFLICTS_MAX 5 /* conflicts after which a part tries again; as in Kubernetes */

/* The part is freed before the outer request ends, because done may free the memory that the part
 * borrows. The inner request's warnings are for the client of the outer one. */
void hfd_part_finish(struct hfd_part *part, const struct hfd_response *response) {
        struct hfd_request *outer = part->outer;

        hfd_admission_done(&part->admission);
        hfd_admission_notes_merge(&outer->notes, &part->inner.notes);
        hfd_admission_notes_done(&part->inner.notes);
        hf__json_free(part->body);
        hf__json_free(part->scale);
        hf__json_free(part->old_scale);
        hf__buf_unref(part->inner_body);
        hf__buf_unref(part->got);
        free(part);
        outer->done(outer, response);
}

void hfd_part_finish_no_memory(struct hfd_part *part) {
        struct hfd_response response = {0};

        hfd_response_no_memory(&response);
        hfd_part_finish(part, &response);
        hfd_response_done(&response);
}

void hfd_part_finish_json(struct hfd_part *part, int code, struct hf__json *json) {
        struct hfd_response response = {0};
        struct hf__strbuf text = {0};

        if (json && part->outer->format == HFD_AS_TABLE && part->outer->verb == HFD_GET) {
                hfd_response_ok(&response, code,
                                hfd_table_render_json(part->registry, part->outer, json));
        } else {
                if (json)
                        hf__json_print(json, &text);
                hfd_response_ok(&response, code, text.n > 0 ? hf__strbuf_to_buf(&text) : NULL);
        }
        hf__json_free(json);
        hf__strbuf_done(&text);
        hfd_part_finish(part, &response);
        hfd_response_done(&response);
}

void hfd_part_send(struct hfd_part *part, enum hfd_verb verb, const struct hf__json *body,
                   void (*done)(struct hfd_request *inner, const struct hfd_response *response)) {
        struct hf__strbuf text = {0};

        hf__buf_unref(part->inner_body);
        part->inner_body = NULL;
        if (body) {
                hf__json_print(body, &text);
                part->inner_body = hf__strbuf_to_buf(&text);
                hf__strbuf_done(&text);
                if (!part->inner_body) {
                        hfd_part_finish_no_memory(part);
                        return;
                }
        }
        struct hfd_request *inner = &part->inner;
        inner->verb = verb;
        inner->body = body ? part->inner_body->data : NULL;
        inner->n_body = body ? part->inner_body->n : 0;
        inner->done = done;
        inner->on_pool = part->on_pool;
        part->on_pool = false; /* the request may end on another thread */
        part->serve(part->registry, inner);
}

/* ---- large work ---- */

static struct hfd_part *part_of_task(struct hfd_work_task *task) {
        return (struct hfd_part *)((char *)task - offsetof(struct hfd_part, task));
}

/* r: as for hfd_large_work_refuse. */
static void finish_refused(struct hfd_part *part, int r) {
        struct hfd_response response = {0};

        hfd_large_work_refuse(r, &response);
        hfd_part_finish(part, &response);
        hfd_response_done(&response);
}

/* Runs the next step on a thread of the pool. A request that was canceled ends, unless its write
 * was committed: then its client must get the result. */
static enum hfd_work_result run_turn(struct hfd_work_task *task) {
        struct hfd_part *part = part_of_task(task);
        const atomic_bool *abandoned = part->outer->abandoned;
        bool cancelled = hfd_work_is_cancelled(part->registry->work, task) ||
                         (abandoned && atomic_load_explicit(abandoned, memory_order_relaxed));

        part->on_pool = true;
        if (cancelled && !part->is_committed)
                finish_refused(part, HF_E_CANCELED); /* nothing was written */
        else
                part->step(part);
        return HFD_WORK_DONE;
}

void hfd_part_run(struct hfd_part *part, size_t n, void (*step)(struct hfd_part *part)) {
        if (n <= HFD_LARGE_BODY || part->on_pool) {
                step(part);
                return;
        }
        part->step = step;
        /* A step of this same task may not have returned yet. The task may be used anew all the
         * same: the step returns HFD_WORK_DONE, after which the pool does not touch the task. */
        part->task = (struct hfd_work_task){.step = run_turn, .owner = part->outer->owner};
        /* A full pool refuses only the first turn: later, work would be lost. */
        int r = hfd_large_work_submit(part->registry, &part->task, part->n_turns++ == 0);
        if (r == 0)
                return;
        if (part->is_committed)
                step(part);
        else
                finish_refused(part, r);
}

void hfd_part_run_with(struct hfd_part *part, const struct hfd_response *response,
                       void (*step)(struct hfd_part *part)) {
        if (response->status.error != 0 || !response->body) {
                hfd_part_finish(part, response);
                return;
        }
        hf__buf_unref(part->got);
        part->got = hf__buf_ref(response->body);
        part->got_code = response->code;
        hfd_part_run(part, part->got->n + part->outer->n_body, step);
}

struct hf__json *hfd_part_parse_got(struct hfd_part *part) {
        struct hf__json *object = NULL;
        int r = hf__json_parse(part->got->data, part->got->n, &object, NULL);

        part->got = hf__buf_unref(part->got);
        if (r != 0)
                hfd_part_finish_no_memory(part);
        return object;
}

/* ---- admission ---- */

/* Brings an object that a plug-in has changed into the form of the schema. False: response is the
 * failure. */
static bool settle_admission(struct hfd_admission *a, struct hfd_response *response) {
        const struct hfd_part *part = a->ctx;
        const struct hfd_resource *kind = part->outer->resource;
        char reason[400];

        int r = HF_E_INVALID;
        if (hf__json_is_object(a->object))
                r = hfd_schema_decode(kind->schema, a->object, NULL, reason, sizeof reason);
        else
                (void)snprintf(reason, sizeof reason, "the value is not an object after admission");
        if (r == 0)
                return true;
        if (r == -ENOMEM)
                hfd_response_no_memory(response);
        else
                hfd_response_status(response, HF_E_INVALID, 500, "InternalError", reason, NULL);
        return false;
}

static struct hf__json *make_options(const struct hfd_admission *a) {
        const struct hfd_part *part = a->ctx;

        return hfd_admit_options(part->outer, a->of.operation, NULL);
}

static void on_validated(struct hfd_admission *a, const struct hfd_response *refusal) {
        struct hfd_part *part = a->ctx;

        a->object = NULL; /* the part still owns it */
        if (refusal)
                hfd_part_finish(part, refusal);
        else
                hfd_part_run(part, part->outer->n_body, part->admitted);
}

/* A step of its own for hfd_part_run: mutating plug-ins may have waited for a webhook, so
 * on_mutated may run on a thread that must not work for long. */
static void validate_part(struct hfd_part *part) {
        part->on_pool = false; /* the validation may end on another thread */
        part->admission.done = on_validated;
        hfd_admission_validate(part->registry->admission, &part->admission);
}

static void on_mutated(struct hfd_admission *a, const struct hfd_response *refusal) {
        struct hfd_part *part = a->ctx;

        *part->admitted_object = a->object; /* hfd_part_finish frees it, also after a refusal */
        if (refusal)
                hfd_part_finish(part, refusal);
        else
                hfd_part_run(part, part->outer->n_body, validate_part);
}

/* For admission: converts the params of a policy by the webhook of their kind. What the request
 * writes needs no webhook: its kind has one version. */
static void convert_params(void *ctx, const struct hfd_resource *to,
                           struct hfd_object *const *sources, size_t n, hfd_objects_converted *done,
                           void *done_ctx) {
        const struct hfd_part *part = ctx;
        const struct hfd_convert_params convert = {.to = to,
                                                   .sources = sources,
                                                   .n = n,
                                                   .deadline = part->outer->deadline,
                                                   .owner = part->outer->owner,
                                                   .done = done,
                                                   .ctx = done_ctx};

        hfd_convert_params(part->registry, &convert);
}

static struct hfd_admission_attributes attributes_of(const struct hfd_part *part,
                                                     const struct hf__json *old) {
        return hfd_admit_attributes(part->outer, old ? HFD_ADMIT_UPDATE : HFD_ADMIT_CREATE,
                                    part->outer->name, old);
}

bool hfd_part_wants_admission(const struct hfd_part *part, const struct hf__json *old) {
        struct hfd_response response = {0};
        enum hfd_admit admit = hfd_admit_request(part->registry, part->outer, &response);

        hfd_response_done(&response);
        if (admit != HFD_ADMIT_ASK)
                return false;
        const struct hfd_admission_attributes of = attributes_of(part, old);
        return hfd_admission_wanted(part->registry->admission, &of);
}

void hfd_part_admit(struct hfd_part *part, struct hf__json **object, const struct hf__json *old,
                    void (*admitted)(struct hfd_part *part)) {
        struct hfd_admission *a = &part->admission;
        struct hfd_response response = {0};

        hfd_admission_done(a); /* of an earlier attempt */
        enum hfd_admit admit = hfd_admit_request(part->registry, part->outer, &response);
        if (admit == HFD_ADMIT_REFUSE) {
                hfd_part_finish(part, &response);
                hfd_response_done(&response);
                return;
        }
        part->admitted = admitted;
        part->admitted_object = object;
        if (admit == HFD_ADMIT_SKIP) {
                admitted(part);
                return;
        }
        *a = (struct hfd_admission){.notes = &part->outer->notes,
                                    .settle = settle_admission,
                                    .convert_objects = convert_params,
                                    .make_options = make_options,
                                    .done = on_mutated,
                                    .ctx = part};
        a->of = attributes_of(part, old);
        if (!hfd_admission_wanted(part->registry->admission, &a->of)) {
                admitted(part);
                return;
        }
        hfd_admit_extend_deadline(part->outer);
        part->inner.deadline = a->of.deadline = part->outer->deadline;
        a->object = *object;
        *object = NULL;
        part->on_pool = false; /* the mutation may end on another thread */
        hfd_admission_mutate(part->registry->admission, a);
}

bool hfd_part_may_retry(struct hfd_part *part, const struct hfd_response *response) {
        if (response->status.error != HF_E_CONFLICT || part->n_conflicts == CONFLICTS_MAX)
                return false;
        part->n_conflicts++;
        return true;
}

/* Reads the body as that of any other write. False: response is filled. */
static bool read_body(struct hfd_part *part, struct hfd_response *response) {
        struct hfd_write reading = {.request = part->outer};
        bool good = hfd_write_body_read(&reading, response);

        if (good && part->outer->verb == HFD_PATCH && part->outer->patch == HFD_PATCH_APPLY)
                good = hfd_write_apply_body_is_strict(&reading, response);
        part->body = reading.body;
        part->strict_of_body = reading.strict_of_body;
        return good;
}

/* Reads the body, and begins the work of the subresource. */
static void begin_part(struct hfd_part *part) {
        const struct hfd_request *outer = part->outer;
        struct hfd_response response = {0};

        if (outer->verb != HFD_GET && !read_body(part, &response)) {
                hfd_part_finish(part, &response);
                hfd_response_done(&response);
        } else if (outer->subresource == HFD_SUB_SCALE) {
                hfd_scale_serve(part);
        } else if (outer->subresource == HFD_SUB_BINDING) {
                hfd_binding_serve(part);
        } else {
                hfd_eviction_serve(part);
        }
}

void hfd_part_serve(struct hfd_registry *registry, struct hfd_request *request,
                    hfd_part_serve_fn serve) {
        struct hfd_part *part = calloc(1, sizeof *part);
        struct hfd_response response = {0};

        assert(request->part_of && request->part_of != request->resource);
        if (!part) {
                hfd_response_no_memory(&response);
                request->done(request, &response);
                hfd_response_done(&response);
                return;
        }
        part->registry = registry;
        part->serve = serve;
        part->outer = request;
        part->on_pool = request->on_pool;
        part->n_turns = request->on_pool; /* then the pool has accepted the request already */
        /* The inner request borrows what the outer one owns. It does not report unknown or
         * duplicate fields, because the server itself makes its body. */
        part->inner = *request;
        part->inner.resource = part->inner.part_of = request->part_of;
        part->inner.options.strict = (struct hfd_strict){0};
        part->inner.notes = (struct hfd_admission_notes){0};
        part->inner.skips_admission = true; /* hfd_part_admit asks about the outer one */
        part->inner.options.field_validation = HFD_FIELDS_IGNORE;
        part->inner.protobuf = part->inner.takes_list_body = false;
        part->inner.format = HFD_AS_JSON;
        part->inner.subresource = HFD_SUB_NONE;
        /* pass_reads expects a request that is a member of the caller's struct. The outer one is,
         * and the inner one is not. */
        part->inner.read_space = NULL;
        part->inner.pass_reads = NULL;
        hfd_part_run(part, request->n_body, begin_part);
}
