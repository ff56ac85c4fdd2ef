/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls the mutating webhooks of a request, one after the other, in the order of their
 * configurations. Each webhook sees the object with the changes of those before it.
 *
 *      next hook that applies -> call -> patch -> hfd_admission_settle -> next hook ...
 *
 * struct run is the state of the plug-in in an admission. It outlives the first round of calls, so
 * the second round (reinvocation.h) has the same index and knows which webhooks were called.
 *
 * Invariant: calls may end before the function that begins them returns. `step` makes this a loop
 * and not a recursion, which would be as deep as the list is long. If matchConditions turn out to
 * be expensive, the run goes on in turns on a pool of threads (turn.h), with the same webhook and
 * the progress of its conditions. If the conversion webhook of the kind must first convert an
 * object to the version that an admission webhook sees, or a changed object back, the run goes on
 * after the conversion (hfd_admission_form).
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/admission/turn.h"
#include "server/admission/webhooks/reinvocation.h"
#include "server/admission/webhooks/webhook_call.h"
#include "server/patch/json_patch.h"

struct run {
        struct hfd_webhook_call call; /* first member: on_called casts it back */
        struct hfd_admission *a;
        struct hfd_webhooks *webhooks;
        struct hfd_webhook_index *index; /* owned reference */
        struct hfd_reinvocation reinvocation;
        size_t i;                   /* the webhook that is called, or the next one */
        bool is_described;          /* `call` is for the webhook i, whose conditions are next */
        struct hf__json *converted; /* owned; the object in the form of call.as; NULL = as it is */
        struct hfd_expression_objects values; /* of the object as it is now, for matchConditions */
        struct hfd_request_labels labels;     /* the same, for selectors */
        struct hf__json *left;                /* owned; the object as the first round has left it */
        /*
         * The loop and on_called both exchange `step`; whichever of them comes second goes on with
         * the run. Each exchange releases and acquires memory (it is sequentially consistent), so
         * whoever comes second sees the result of the call and all else in the run.
         */
        atomic_int step;
};
enum { STEP_CALLING = 0, STEP_ANSWERED = 1, STEP_WAITING = 2 };

static void run_free(void *data) {
        struct run *run = data;

        hfd_webhook_call_done(&run->call);
        hfd_webhook_index_unref(run->index);
        hfd_reinvocation_done(&run->reinvocation);
        hfd_expression_objects_done(&run->values);
        hfd_request_labels_done(&run->labels);
        hf__json_free(run->converted);
        hf__json_free(run->left);
        free(run);
}

/* NULL: out of memory. */
static struct run *run_new(struct hfd_webhooks *webhooks, struct hfd_admission *a) {
        struct run *run = calloc(1, sizeof *run);

        if (!run)
                return NULL;
        hfd_expression_objects_init(&run->values);
        run->a = a;
        run->webhooks = webhooks;
        run->index = hfd_webhooks_index(webhooks);
        if (hfd_reinvocation_init(&run->reinvocation, run->index ? run->index->n : 0) != 0) {
                run_free(run);
                return NULL;
        }
        return run;
}

/* ---- audit annotations ---- */

static void annotate_audit(const struct run *run, const char *prefix, const char *value) {
        char key[120];

        (void)snprintf(key, sizeof key, "%sround_%d_index_%zu", prefix, run->a->reinvoked ? 1 : 0,
                       run->i);
        hfd_admission_annotate(run->a->notes, key, value);
}

static void annotate_call(const struct run *run, bool changed) {
        const struct hfd_webhook *hook = run->call.hook;
        struct hf__strbuf value = {0};

        hf__strbuf_puts(&value, "{\"configuration\":");
        hf__strbuf_json(&value, hook->configuration, strlen(hook->configuration));
        hf__strbuf_puts(&value, ",\"webhook\":");
        hf__strbuf_json(&value, hook->name, strlen(hook->name));
        size_t head = value.n;
        hf__strbuf_printf(&value, ",\"mutated\":%s}", changed ? "true" : "false");
        if (value.error == 0)
                annotate_audit(run, "mutation.webhook.admission.k8s.io/", value.data);
        if (run->call.review.patch && value.error == 0) {
                value.n = head;
                value.data[head] = '\0';
                hf__strbuf_puts(&value, ",\"patch\":");
                hf__json_print(run->call.review.patch, &value);
                hf__strbuf_puts(&value, ",\"patchType\":\"JSONPatch\"}");
                if (value.error == 0)
                        annotate_audit(run, "patch.webhook.admission.k8s.io/", value.data);
        }
        hf__strbuf_done(&value);
}

/* ---- the patch ---- */

static void refuse_patch(int r, const char *why, struct hfd_response *response) {
        if (r == -ENOMEM)
                hfd_response_no_memory(response);
        else
                hfd_refusal_internal(response, why);
}

static void refuse_form(const struct run *run, int r, struct hfd_response *response) {
        if (r == -ENOMEM)
                hfd_response_no_memory(response);
        else
                hfd_refusal_conversion(response, hfd_forms_failure(run->a->forms),
                                       "unable to convert the object to the version of a "
                                       "webhook's rules");
}

/* Brings the changed object back into the version of the request. *object is freed and replaced.
 * False: *object is NULL, and response is the error, or a conversion is wanted. */
static bool convert_object_back(struct run *run, struct hf__json **object,
                                struct hfd_response *response) {
        struct hf__json *back;
        int r = hfd_admission_form(run->a, run->call.as, run->a->of.resource, *object, &back);

        hf__json_free(*object);
        *object = back;
        if (r != 0 && r != -EAGAIN)
                refuse_form(run, r, response);
        return r == 0;
}

/* Applies the webhook's patch to the object. False: response is the error; or a conversion is
 * wanted, and nothing has changed yet. */
static bool apply_patch(struct run *run, bool *ret_changed, struct hfd_response *response) {
        const struct hf__json *patch = run->call.review.patch, *seen = run->call.object;
        struct hfd_admission *a = run->a;
        struct hfd_patch_outcome outcome = {0};
        struct hf__json *patched;
        char why[500];

        *ret_changed = false;
        if (!hf__json_first(patch))
                return true;
        if (!a->object) {
                (void)snprintf(why, sizeof why,
                               "admission webhook \"%.300s\" attempted to modify the object, which "
                               "is not supported for this operation",
                               run->call.hook->name);
                hfd_refusal_internal(response, why);
                return false;
        }
        if (hf__json_count(patch) > HFD_PATCH_OPS_MAX) {
                hfd_refusal_internal(response, "the patch of a webhook has too many operations");
                return false;
        }
        patched = hf__json_dup(seen);
        int r = patched ? hfd_json_patch_apply(&patched, patch, &outcome) : -ENOMEM;
        if (r == 0 && !hf__json_is_object(patched))
                r = hfd_patch_refuse(&outcome, "the patch of a webhook makes no object");
        if (r == 0)
                *ret_changed = !hf__json_equal(patched, seen);
        if (r == 0 && *ret_changed && run->converted &&
            !convert_object_back(run, &patched, response))
                return false;
        if (r != 0 || !*ret_changed) {
                hf__json_free(patched);
                if (r != 0)
                        refuse_patch(r, outcome.why, response);
                return r == 0;
        }
        hf__json_free(a->object);
        a->object = patched;
        return hfd_admission_settle(a, response);
}

/* ---- the loop ---- */

static void continue_run(struct run *run, const struct hfd_work_task *task);
static void resume_response(void *ctx);

/* Handles the result of the call. False: the admission has ended, or the run goes on later. */
static bool handle_response(struct run *run) {
        struct hfd_webhook_call *call = &run->call;
        struct hfd_admission *a = run->a;
        struct hfd_response response = {0};
        bool changed = false, bad;

        while ((bad = call->outcome == HFD_WEBHOOK_ALLOWED &&
                      !apply_patch(run, &changed, &response)) &&
               hfd_forms_is_wanted(a->forms))
                if (!hfd_admission_fetch_form(a, resume_response, run))
                        return false;
        hfd_webhook_call_note(call);
        if (bad) {
                call->outcome = HFD_WEBHOOK_INTERNAL;
                call->code = 0;
                hfd_response_done(&call->refusal);
                call->refusal = response;
        }
        annotate_call(run, changed);
        bool refuses = hfd_webhook_call_refuses(call);
        if (!refuses && call->outcome == HFD_WEBHOOK_FAILED)
                annotate_audit(run, "failed-open.mutation.webhook.admission.k8s.io/",
                               call->hook->name);
        assert(run->i < run->index->n);
        hfd_reinvocation_called(&run->reinvocation, run->i, call->hook->is_reinvocable, changed);
        if (changed)
                hfd_admission_reinvoke(a);
        response = call->refusal;
        call->refusal = (struct hfd_response){0};
        hfd_webhook_call_done(call);
        run->converted = hf__json_free(run->converted);
        run->i++;
        if (refuses)
                hfd_admission_refuse(a, &response);
        else
                hfd_response_done(&response);
        return !refuses;
}

static void resume_response(void *ctx) {
        if (handle_response(ctx))
                continue_run(ctx, NULL);
}

static void on_called(struct hfd_webhook_call *call) {
        struct run *run = (struct run *)call;

        if (atomic_exchange(&run->step, STEP_ANSWERED) == STEP_WAITING && handle_response(run))
                continue_run(run, NULL);
}

/* Describes the call of the webhook at run->i, if its rules and selectors match the request and, in
 * the second round, if it is due; otherwise is_described stays false. False: response is the error,
 * or a conversion is wanted. */
static bool describe_call(struct run *run, struct hfd_response *response) {
        assert(run->index && run->i < run->index->n && !run->is_described && !run->converted);
        const struct hfd_webhook *hook = run->index->items[run->i];
        struct hfd_admission *a = run->a;
        const struct hfd_resource *as;

        enum hfd_matcher_result match =
                hfd_matcher_match(&hook->matcher, &a->of, a->object, run->webhooks->config.cacher,
                                  &run->labels, &as, response);
        if (match != HFD_MATCHER_YES ||
            (a->reinvoked && !hfd_reinvocation_is_due(&run->reinvocation, run->i)))
                return match != HFD_MATCHER_ERROR;
        int r = hfd_admission_options(a) ? 0 : -ENOMEM;
        if (r == 0 && as != a->of.resource && a->of.kind == a->of.resource && a->object)
                r = hfd_admission_form(a, a->of.resource, as, a->object, &run->converted);
        hfd_webhook_call_done(&run->call);
        run->call = (struct hfd_webhook_call){.webhooks = run->webhooks,
                                              .hook = hook,
                                              .a = a,
                                              .as = as,
                                              .object = run->converted ? run->converted : a->object,
                                              .values = &run->values,
                                              .done = on_called};
        if (r == 0)
                r = hfd_webhook_call_see(&run->call);
        run->is_described = r == 0;
        if (r == 0)
                return true;
        run->converted = hf__json_free(run->converted);
        if (r != -EAGAIN)
                refuse_form(run, r, response);
        return false;
}

/* Prepares the call of the webhook at run->i, if it applies. False: response is the error, or
 * effort->allowance is spent, or a conversion is wanted. */
static bool prepare_call(struct run *run, struct hfd_webhook_effort *effort, bool *ret_applies,
                         struct hfd_response *response) {
        if (!run->is_described && !describe_call(run, response))
                return false;
        if (!run->is_described)
                return true;
        enum hfd_matcher_result match = hfd_webhook_call_conditions(&run->call, effort, response);
        *ret_applies = match == HFD_MATCHER_YES;
        if (effort->allowance.spent)
                return false;
        run->is_described = false;
        if (!*ret_applies)
                run->converted = hf__json_free(run->converted);
        return match != HFD_MATCHER_ERROR;
}

/* The end of a round. The first round remembers the object, if a later change would make a webhook
 * due in the second one. If there is no memory for that, such a change is not noticed. */
static void end_round(struct run *run) {
        struct hfd_admission *a = run->a;

        run->i = 0;
        hfd_expression_objects_forget(&run->values); /* others may change the object */
        hfd_request_labels_forget(&run->labels);
        if (!a->reinvoked && a->object && hfd_reinvocation_has_earlier(&run->reinvocation)) {
                hf__json_free(run->left);
                run->left = hf__json_dup(a->object);
        }
        hfd_admission_next(a);
}

static void run_turn(void *ctx, const struct hfd_work_task *task) { continue_run(ctx, task); }

static void resume_run(void *ctx) { continue_run(ctx, NULL); }

/* A webhook could not be prepared. If effort->allowance is spent, the run goes on in a turn on the
 * pool; if a conversion is wanted, the run goes on after it; otherwise response is the error. True:
 * the conversion is known, and the caller goes on. */
static bool stop_or_wait(struct run *run, const struct hfd_webhook_effort *effort,
                         struct hfd_response *response) {
        int r = 0;

        if (hfd_forms_is_wanted(run->a->forms))
                return hfd_admission_fetch_form(run->a, resume_run, run);
        if (effort->allowance.spent) {
                r = hfd_admission_take_turn(run->webhooks->config.pool, run->a, run_turn, run);
                if (r == 0)
                        return false;
                hfd_admission_turn_refuse(r, response);
        }
        hfd_admission_refuse(run->a, response);
        return false;
}

/* Calls webhook after webhook, until it must wait for one or the run ends. task: the turn on the
 * pool; NULL = this is another thread. */
static void continue_run(struct run *run, const struct hfd_work_task *task) {
        struct hfd_webhook_effort effort = hfd_webhook_effort(task);
        struct hfd_response response = {0};
        size_t n = run->index ? run->index->n : 0;

        while (run->i < n) {
                bool applies = false;
                if (!prepare_call(run, &effort, &applies, &response)) {
                        if (!stop_or_wait(run, &effort, &response))
                                return;
                        continue;
                }
                if (!applies) {
                        run->i++;
                        continue;
                }
                hfd_expression_objects_forget(&run->values); /* the call may change the object */
                hfd_request_labels_forget(&run->labels);
                atomic_store(&run->step, STEP_CALLING);
                hfd_webhook_call_begin(&run->call);
                if (atomic_exchange(&run->step, STEP_WAITING) == STEP_CALLING)
                        return; /* on_called goes on, perhaps already on another thread */
                if (!handle_response(run))
                        return;
        }
        end_round(run);
}

void hfd_webhooks_mutate(void *ctx, struct hfd_admission *a) {
        struct hfd_admission_state *state = hfd_admission_state(a);
        struct hfd_response response = {0};
        struct run *run = state->data;

        if (!run) {
                run = run_new(ctx, a);
                if (!run) {
                        hfd_response_no_memory(&response);
                        hfd_admission_refuse(a, &response);
                        return;
                }
                state->data = run;
                state->free = run_free;
        }
        if (a->reinvoked && run->left && !hf__json_equal(run->left, a->object))
                hfd_reinvocation_object_changed(&run->reinvocation);
        run->i = 0;
        continue_run(run, NULL);
}
