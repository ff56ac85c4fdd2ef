/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls all validating webhooks of a request at the same time, and waits for all calls. The first
 * refusal that has arrived is the response, as in Kubernetes.
 *
 * Invariants: once the webhooks are chosen, `pending` counts the calls that have not ended, and the
 * loop that begins them. The thread that makes it 0 ends the run, and no other thread touches the
 * run after that. Which webhooks are called is known before the first call begins, so if their
 * matchConditions turn out to be expensive, the choice goes on in turns on a pool of threads
 * (turn.h). If the conversion webhook of the kind must convert an object to the version that an
 * admission webhook sees, the choice goes on after the conversion.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/thread.h"
#include "server/admission/turn.h"
#include "server/admission/webhooks/webhook_call.h"

struct run {
        struct hfd_admission *a;
        struct hfd_webhooks *webhooks;
        struct hfd_webhook_index *index; /* owned reference */
        pthread_mutex_t mu;
        /* Guarded by mu, together with a->notes. */
        size_t pending;
        struct hfd_response refusal; /* owned; code 0 = none */
        /* While the webhooks are chosen; one thread at a time does that. */
        struct hfd_expression_objects values; /* for their matchConditions */
        struct hfd_request_labels labels;     /* for their selectors */
        size_t at;                            /* the webhook of the index that is looked at */
        bool is_described; /* items[n] is for this webhook, whose conditions are next */
        size_t n;          /* webhooks that are called; immutable while calls run */
        struct item {
                struct hfd_webhook_call call; /* first member: on_called casts it back */
                struct run *run;
                size_t i;
                struct hf__json *converted; /* owned; NULL = the object as it is */
        } items[];
};

static void end_run(struct run *run) {
        struct hfd_admission *a = run->a;
        struct hfd_response refusal = run->refusal;

        if (run->is_described)
                run->n++; /* so that the item of the webhook at run->at is freed, too */
        for (size_t i = 0; i < run->n; i++) {
                hfd_webhook_call_done(&run->items[i].call);
                hf__json_free(run->items[i].converted);
        }
        hfd_expression_objects_done(&run->values);
        hfd_request_labels_done(&run->labels);
        hfd_webhook_index_unref(run->index);
        pthread_mutex_destroy(&run->mu);
        free(run);
        if (refusal.code != 0)
                hfd_admission_refuse(a, &refusal);
        else
                hfd_admission_next(a);
}

/* Keeps the first refusal. Consumes response. */
static void refuse_locked(struct run *run, struct hfd_response *response) {
        hf__mutex_assert_held(&run->mu);
        if (run->refusal.code != 0)
                hfd_response_done(response);
        else
                run->refusal = *response;
        *response = (struct hfd_response){0};
}

static void drop_pending(struct run *run) {
        pthread_mutex_lock(&run->mu);
        assert(run->pending > 0);
        bool last = --run->pending == 0;
        pthread_mutex_unlock(&run->mu);
        if (last)
                end_run(run);
}

static void on_called(struct hfd_webhook_call *call) {
        struct item *item = (struct item *)call;
        struct run *run = item->run;
        bool refuses = hfd_webhook_call_refuses(call);
        char key[100];

        pthread_mutex_lock(&run->mu);
        hfd_webhook_call_note(call);
        if (refuses) {
                refuse_locked(run, &call->refusal);
        } else if (call->outcome == HFD_WEBHOOK_FAILED) {
                (void)snprintf(key, sizeof key,
                               "failed-open.validating.webhook.admission.k8s.io/round_0_index_%zu",
                               item->i);
                hfd_admission_annotate(run->a->notes, key, call->hook->name);
        }
        pthread_mutex_unlock(&run->mu);
        drop_pending(run);
}

static void drop_item(struct item *item) {
        item->converted = hf__json_free(item->converted);
        hfd_webhook_call_done(&item->call);
}

/* Fills the objects of a call in the form that its webhook sees. False: response is the error, or a
 * conversion is wanted. */
static bool set_objects(struct item *item, struct hfd_response *response) {
        struct hfd_webhook_call *call = &item->call;
        struct hfd_admission *a = call->a;
        const struct hfd_admission_attributes *of = &a->of;
        int r = 0;

        call->object = a->object;
        if (call->as != of->resource && of->kind == of->resource && call->object) {
                r = hfd_admission_form(a, of->resource, call->as, call->object, &item->converted);
                call->object = item->converted;
        }
        if (r == 0)
                r = hfd_webhook_call_see(call);
        if (r == 0)
                return true;
        drop_item(item);
        if (r == -ENOMEM)
                hfd_response_no_memory(response);
        else if (r != -EAGAIN)
                hfd_refusal_conversion(response, hfd_forms_failure(a->forms),
                                       "unable to convert the object to the version of a "
                                       "webhook's rules");
        return false;
}

/* Describes the call of the webhook at run->at, if its rules and selectors match the request.
 * False: response is the error, or a conversion is wanted. */
static bool describe_call(struct run *run, struct hfd_response *response) {
        struct hfd_webhooks *webhooks = run->webhooks;
        const struct hfd_webhook *hook = run->index->items[run->at];
        struct hfd_admission *a = run->a;
        struct item *item = &run->items[run->n];
        const struct hfd_resource *as;
        enum hfd_matcher_result match =
                hfd_matcher_match(&hook->matcher, &a->of, a->object, webhooks->config.cacher,
                                  &run->labels, &as, response);

        if (match != HFD_MATCHER_YES)
                return match == HFD_MATCHER_NO;
        *item = (struct item){.run = run, .i = run->n};
        item->call = (struct hfd_webhook_call){.webhooks = webhooks,
                                               .hook = hook,
                                               .a = a,
                                               .as = as,
                                               .values = &run->values,
                                               .done = on_called};
        run->is_described = set_objects(item, response);
        return run->is_described;
}

/* Adds the webhooks that apply to the request. False: response is the error, unless
 * effort->allowance is spent or a conversion is wanted; then call this again to go on. */
static bool select_hooks(struct run *run, struct hfd_webhook_effort *effort,
                         struct hfd_response *response) {
        for (; run->index && run->at < run->index->n; run->at++) {
                struct item *item = &run->items[run->n];
                if (!run->is_described && !describe_call(run, response))
                        return false;
                if (!run->is_described)
                        continue;
                enum hfd_matcher_result match =
                        hfd_webhook_call_conditions(&item->call, effort, response);
                if (effort->allowance.spent)
                        return false;
                run->is_described = false;
                if (match == HFD_MATCHER_YES)
                        run->n++;
                else
                        drop_item(item);
                if (match == HFD_MATCHER_ERROR)
                        return false;
        }
        return true;
}

/* ---- the start ---- */

static void run_turn(void *ctx, const struct hfd_work_task *task);
static void resume_run(void *ctx);

/* The webhooks could not be chosen. If effort->allowance is spent, the choice goes on in a turn on
 * the pool; if a conversion is wanted, the choice goes on after it; otherwise response is the
 * error. True: the conversion is known, and the caller goes on. */
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
        run->refusal = *response;
        end_run(run);
        return false;
}

/* Chooses the webhooks and calls them. task: the turn on the pool; NULL = another thread. */
static void start_calls(struct run *run, const struct hfd_work_task *task) {
        struct hfd_webhook_effort effort = hfd_webhook_effort(task);
        struct hfd_response response = {0};

        while (!select_hooks(run, &effort, &response))
                if (!stop_or_wait(run, &effort, &response))
                        return;
        hfd_expression_objects_forget(&run->values); /* the calls may take long */
        hfd_request_labels_done(&run->labels);
        run->pending += run->n; /* without the lock: no call has begun */
        for (size_t i = 0, n_calls = run->n; i < n_calls; i++)
                hfd_webhook_call_begin(&run->items[i].call);
        drop_pending(run);
}

static void run_turn(void *ctx, const struct hfd_work_task *task) { start_calls(ctx, task); }

static void resume_run(void *ctx) { start_calls(ctx, NULL); }

void hfd_webhooks_validate(void *ctx, struct hfd_admission *a) {
        struct hfd_webhooks *webhooks = ctx;
        struct hfd_webhook_index *index = hfd_webhooks_index(webhooks);
        size_t n = index ? index->n : 0;
        struct hfd_response response = {0};
        struct run *run = calloc(1, sizeof *run + n * sizeof run->items[0]);

        if (!run || !hfd_admission_options(a) || hf__mutex_init(&run->mu) != 0) {
                free(run);
                hfd_webhook_index_unref(index);
                hfd_response_no_memory(&response);
                hfd_admission_refuse(a, &response);
                return;
        }
        hfd_expression_objects_init(&run->values);
        run->a = a;
        run->webhooks = webhooks;
        run->index = index;
        run->pending = 1;
        start_calls(run, NULL);
}
