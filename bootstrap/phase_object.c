/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests for the object of the current step of a phase in a term.
 *
 * Invariant: run->seen holds the result of the last successful request. After a failure the caller
 * discards all known state, because the server may have applied the write.
 */
#include "bootstrap/phase_object.h"
#include "bootstrap/step_body.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

/* Strict: a mistake in a manifest, such as a misspelt field, fails instead of being dropped. */
#define WRITE_QUERY HF__FIELD_MANAGER "&fieldValidation=Strict"

/* The request for a step's object, without a body. The name of a create is in its body. */
static struct hf_request request_for(const struct hf__step *step, enum hf_verb verb) {
        assert(step);
        return (struct hf_request){.size = sizeof(struct hf_request),
                                   .verb = verb,
                                   .resource = {step->kind->group, step->kind->version,
                                                step->kind->plural},
                                   .ns = step->ns,
                                   .name = verb == HF_VERB_CREATE ? NULL : step->name,
                                   .query = verb == HF_VERB_GET ? NULL : WRITE_QUERY};
}

static int start_write(struct hf__phase_run *run, struct hf_request *request,
                       const struct hf__strbuf *body, struct hf__pending_request **ret_pending,
                       struct hf_status *why) {
        request->body = body->data;
        request->n_body = body->n;
        return hf__pending_request_start(hf_term_client(run->term), request,
                                         hf_term_abort(run->term), ret_pending, why);
}

/* Waits for the response to a write. On success sets seen.state to `state` and seen.result to the
 * hash of the response's content. */
static int end_write(struct hf__phase_run *run, struct hf__pending_request *pending,
                     enum hf__seen_state state, struct hf_status *why) {
        struct hf__content_seen written;
        char *text = NULL;
        size_t n = 0;
        int r = hf__pending_request_wait(pending, hf_term_abort(run->term), &text, &n, why);

        if (r == 0)
                r = hf__content_inspect(text, n, &written);
        free(text);
        if (r != 0)
                return r;
        hf__phase_run_forget_object(run);
        run->seen.state = state;
        memcpy(run->seen.result, written.present, sizeof run->seen.result);
        return 0;
}

int hf__phase_object_start_create(struct hf__phase_run *run, const struct hf__step *step,
                                  struct hf__pending_request **ret_pending, struct hf_status *why) {
        struct hf_request request = request_for(step, HF_VERB_CREATE);
        struct hf__strbuf body = {0};
        int r = hf__step_body_new(step, &body);

        if (r == 0)
                r = start_write(run, &request, &body, ret_pending, why);
        hf__strbuf_done(&body);
        return r;
}

int hf__phase_object_end_create(struct hf__phase_run *run, struct hf__pending_request *pending,
                                struct hf_status *why) {
        int r = end_write(run, pending, HF__SEEN_CREATED, why);

        if (r != HF_E_EXISTS)
                return r;
        /* The next action is to read the object. It may be our own, from a create whose response
         * was lost. */
        run->seen.state = HF__SEEN_EXISTS;
        return 0;
}

int hf__phase_object_create(struct hf__phase_run *run, struct hf_status *why) {
        struct hf__pending_request *pending;
        int r = hf__phase_object_start_create(run, run->step, &pending, why);

        return r == 0 ? hf__phase_object_end_create(run, pending, why) : r;
}

int hf__phase_object_read(struct hf__phase_run *run, struct hf_status *why) {
        struct hf_request request = request_for(run->step, HF_VERB_GET);
        struct hf__content_seen seen = {0};
        char *text = NULL;
        size_t n = 0;
        int r = hf_client_do(hf_term_client(run->term), &request, hf_term_abort(run->term), &text,
                             &n, why);

        hf__phase_run_forget_object(run);
        if (r == HF_E_NOT_FOUND) {
                run->seen.state = HF__SEEN_ABSENT;
                return 0;
        }
        if (r == 0)
                r = hf__content_inspect(text, n, &seen);
        if (r != 0) {
                free(text);
                return r;
        }
        run->seen.state = HF__SEEN_PRESENT;
        memcpy(run->seen.stamp, seen.stamp, sizeof run->seen.stamp);
        memcpy(run->seen.present, seen.present, sizeof run->seen.present);
        run->present = text; /* takes ownership */
        run->n_present = n;
        return 0;
}

int hf__phase_object_replace(struct hf__phase_run *run, bool dry_run, struct hf_status *why) {
        struct hf_request request = request_for(run->step, HF_VERB_UPDATE);
        struct hf__strbuf body = {0};
        struct hf__pending_request *pending;

        assert(run->seen.state == HF__SEEN_PRESENT && run->present);
        int r = hf__step_body_replacement(run->step, run->present, run->n_present, &body);
        if (dry_run)
                request.query = WRITE_QUERY "&dryRun=All";
        if (r == 0)
                r = start_write(run, &request, &body, &pending, why);
        hf__strbuf_done(&body);
        if (r != 0)
                return r;
        return end_write(run, pending, dry_run ? HF__SEEN_DRY_RUN : HF__SEEN_REPLACED, why);
}
