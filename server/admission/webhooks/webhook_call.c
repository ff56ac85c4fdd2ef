/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of a webhook: sends the review, and turns the response into an outcome.
 *
 * Invariants: a call that is sent counts in the load of its webhook from begin to done, and no
 * webhook has more than max_calls. If its client leaves, call->waker fires and cancels the call. It
 * may fire before the ID of the outbound request is known. So on_client_left sets client_left and
 * then reads outbound_id, and the thread that sends sets outbound_id and then reads client_left: at
 * least one of them cancels. That needs sequentially consistent atomics.
 */
#include "server/admission/webhooks/webhook_call.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/departure.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/admission/turn.h"
#include "server/admission/webhooks/webhook_metrics.h"
#include "server/outbound/outbound.h"
#include "server/outbound/status_text.h"

static hf_nsec now(const struct hfd_webhook_call *call) {
        return hf_now(hf_host_clock(call->webhooks->host));
}

static const char *type_of(const struct hfd_webhook_call *call) {
        return call->webhooks->mutating ? "admit" : "validating";
}

/* ---- results ---- */

/* Ends the call with its outcome. code: for the metrics (hfd_webhook_metrics_called). done comes
 * last, because from then on the owner has the call. */
static void finish_call(struct hfd_webhook_call *call, enum hfd_webhook_outcome outcome, int code) {
        if (call->counted) {
                size_t before = atomic_fetch_sub_explicit(&call->hook->load->n_calls, 1,
                                                          memory_order_relaxed);
                assert(before > 0);
                (void)before;
        }
        call->counted = false;
        if (call->watches_client)
                hf_cancel_remove_waker(&call->waker);
        call->outcome = outcome;
        call->code = code;
        call->done(call);
}

/* Ends the call with a failure about which the failurePolicy decides. It does not decide about
 * those of fail_no_memory, because the webhook has no part in them. */
static void fail_call(struct hfd_webhook_call *call, int code, const char *why) {
        hfd_refusal_failed(&call->refusal, call->hook->name, why);
        finish_call(call, HFD_WEBHOOK_FAILED, code);
}

/* A limit that Kubernetes does not have is exceeded, so no failurePolicy decides. */
static void limit_call(struct hfd_webhook_call *call, const char *why) {
        hfd_refusal_failed(&call->refusal, call->hook->name, why);
        finish_call(call, HFD_WEBHOOK_LIMITED, 503);
}

static void fail_no_memory(struct hfd_webhook_call *call) {
        hfd_response_no_memory(&call->refusal);
        finish_call(call, HFD_WEBHOOK_INTERNAL, 0);
}

/* The webhook has sent a code that is not 200 to 206, the codes that client-go takes for success.
 */
static void fail_by_code(struct hfd_webhook_call *call, const struct hfd_outbound_result *result) {
        struct hf__strbuf why = {0};

        hf__strbuf_puts(&why, "failed to call webhook: ");
        hfd_outbound_status_text(result->code, result->body, result->n_body, &why);
        if (why.error != 0)
                fail_no_memory(call);
        else
                fail_call(call, result->code, why.data);
        hf__strbuf_done(&why);
}

static void on_response(struct hfd_webhook_call *call, const struct hfd_outbound_result *result) {
        char why[HFD_ADMISSION_REVIEW_WHY_MAX];

        if (result->code < 200 || result->code > 206) {
                fail_by_code(call, result);
                return;
        }
        int r = hfd_admission_review_read(result->body, result->n_body, call->uid,
                                          call->webhooks->mutating, &call->review, why);
        if (r == HF_E_INVALID) {
                fail_call(call, 503, why);
        } else if (r != 0) {
                fail_no_memory(call);
        } else if (call->review.allowed) {
                finish_call(call, HFD_WEBHOOK_ALLOWED, 200);
        } else {
                hfd_refusal_denied(&call->refusal, call->hook->name, call->review.status);
                finish_call(call, HFD_WEBHOOK_REJECTED, call->refusal.code);
        }
}

/* Thread: see hfd_outbound_done. */
static void on_result(void *ctx, const struct hfd_outbound_result *result) {
        struct hfd_webhook_call *call = ctx;
        char why[700];

        if (result->end == HFD_OUTBOUND_ANSWERED) {
                on_response(call, result);
                return;
        }
        if (result->end == HFD_OUTBOUND_NO_MEMORY) {
                fail_no_memory(call);
                return;
        }
        (void)snprintf(why, sizeof why, "failed to call webhook: %.660s", result->text);
        if (result->end == HFD_OUTBOUND_TOO_LARGE)
                limit_call(call, why);
        else
                fail_call(call, 503, why);
}

int hfd_webhook_call_see(struct hfd_webhook_call *call) {
        struct hfd_admission *a = call->a;

        if (!a->of.old || call->as == a->of.resource || a->of.kind != a->of.resource)
                return 0;
        return hfd_admission_form(a, a->of.resource, call->as, a->of.old, &call->old);
}

/* ---- matchConditions ---- */

static const struct hf__json *old_of(const struct hfd_webhook_call *call) {
        return call->old ? call->old : call->a->of.old;
}

struct hfd_webhook_effort hfd_webhook_effort(const struct hfd_work_task *task) {
        return (struct hfd_webhook_effort){.allowance.left = HFD_ADMISSION_INLINE_COST,
                                           .task = task,
                                           .turn_left = HFD_ADMISSION_TURN_COST};
}

/* A turn on the pool, for may_go_on. */
struct turn {
        const struct hfd_webhook_call *call;
        const struct hfd_work_task *task;
};

static int may_go_on(const void *ctx) {
        const struct turn *turn = ctx;
        const struct hfd_webhook_call *call = turn->call;

        return hfd_admission_turn_may_go_on(call->webhooks->host, call->webhooks->config.pool,
                                            turn->task, call->a);
}

/* Evaluates the matchConditions, with what is left of the effort. *ret_ended: see struct
 * hfd_expression_run. */
static enum hfd_match evaluate_conditions(struct hfd_webhook_call *call,
                                          struct hfd_webhook_effort *effort, int *ret_ended,
                                          struct hf__strbuf *reterr_message) {
        const struct hfd_admission_attributes *of = &call->a->of;
        const bool is_part = of->kind != of->resource,
                   is_converted = call->object != call->a->object || call->old;
        const struct hfd_expression_input input = {.of = of,
                                                   .resource = call->as,
                                                   .kind = is_part ? of->kind : call->as,
                                                   .object = call->object,
                                                   .old = old_of(call),
                                                   .options = of->options,
                                                   .objects = is_converted ? NULL : call->values};
        const struct turn turn = {.call = call, .task = effort->task};
        struct hfd_expression_run run;

        hfd_expression_run_init(&run, call->hook->expressions, &input, HFD_MATCH_BUDGET);
        run.work = &call->work;
        /* In a turn no allowance interrupts a condition: turns end between conditions. */
        if (effort->task) {
                run.may_go_on = may_go_on;
                run.may_ctx = &turn;
        } else {
                run.allowance = &effort->allowance;
        }
        enum hfd_match match =
                hfd_match_conditions_go_on(call->hook->conditions, &run, &call->progress,
                                           &effort->turn_left, NULL, reterr_message);
        *ret_ended = run.ended;
        hfd_expression_run_done(&run);
        return match;
}

/* Evaluates the matchConditions. ERROR without a response: allowance.spent is set, so the rest must
 * be done in the next turn. A condition that cannot be evaluated counts as a failure of the
 * webhook, about which the failurePolicy decides. */
static enum hfd_matcher_result check_conditions(struct hfd_webhook_call *call,
                                                struct hfd_webhook_effort *effort,
                                                struct hfd_response *response) {
        const struct hfd_admission_attributes *of = &call->a->of;
        struct hf__strbuf why = {0};
        int ended;
        enum hfd_match match = evaluate_conditions(call, effort, &ended, &why);
        bool is_ended = match == HFD_MATCH_ENDED,
             fails = is_ended || (match == HFD_MATCH_ERROR && !call->hook->ignores_failures);

        effort->allowance.spent |= match == HFD_MATCH_MORE;
        bool spent = effort->allowance.spent;
        if (fails && !spent && is_ended && ended != HF_E_TOO_MANY)
                hfd_admission_turn_refuse(ended, response);
        else if (fails && !spent)
                hfd_response_forbidden(response, of->resource, of->name, why.n > 0 ? why.data : "",
                                       NULL);
        hf__strbuf_done(&why);
        if (fails || spent)
                return HFD_MATCHER_ERROR;
        return match == HFD_MATCH_YES ? HFD_MATCHER_YES : HFD_MATCHER_NO;
}

enum hfd_matcher_result hfd_webhook_call_conditions(struct hfd_webhook_call *call,
                                                    struct hfd_webhook_effort *effort,
                                                    struct hfd_response *response) {
        int r = 0;

        if (!call->hook->conditions)
                return HFD_MATCHER_YES;
        if (effort->task)
                r = hfd_admission_turn_may_go_on(call->webhooks->host, call->webhooks->config.pool,
                                                 effort->task, call->a);
        if (r == 0)
                return check_conditions(call, effort, response);
        hfd_admission_turn_refuse(r, response);
        return HFD_MATCHER_ERROR;
}

/* ---- clients that leave ---- */

static bool has_client_left(const struct hfd_webhook_call *call) {
        struct hf__departure *departure = call->a->of.departure;

        return departure && atomic_load(&departure->gone);
}

static void on_client_left(void *ctx) {
        struct hfd_webhook_call *call = ctx;

        atomic_store(&call->client_left, true);
        uint64_t id = atomic_load(&call->outbound_id);
        if (id != 0)
                hfd_outbound_cancel(call->webhooks->config.outbound, id);
}

/*
 * From now on the call is canceled when its client leaves. Runs before the review is sent: once it
 * is sent, the call may end at any moment, and finish_call must then find the waker. 0 or -ENOMEM.
 */
static int watch_client(struct hfd_webhook_call *call) {
        struct hf__departure *departure = call->a->of.departure;
        struct hf_cancel *token = departure ? hf__departure_token(departure) : NULL;

        if (!departure)
                return 0;
        if (!token)
                return -ENOMEM;
        assert(!call->watches_client);
        call->watches_client = true;
        hf_cancel_add_waker(token, &call->waker, on_client_left, call);
        return 0;
}

/* The review was sent, and the call may have ended already. */
static void set_outbound_id(struct hfd_webhook_call *call, uint64_t id) {
        assert(id != 0); /* 0 = not known yet */
        atomic_store(&call->outbound_id, id);
        if (atomic_load(&call->client_left))
                hfd_outbound_cancel(call->webhooks->config.outbound, id);
}

/* ---- the call ---- */

static int print_review(struct hfd_webhook_call *call, struct hf__strbuf *out) {
        const struct hfd_admission_attributes *of = &call->a->of;

        hfd_admission_review_print(out, call->uid, of, call->as, call->object, old_of(call),
                                   of->options);
        return out->error;
}

/* Sends the review. 0: on_result is called once, perhaps before this returns; -ENOMEM; another
 * error of hfd_meta_make_uid; or one of hfd_outbound_post_json. */
static int send_review(struct hfd_webhook_call *call) {
        const struct hfd_webhook *hook = call->hook;
        hf_nsec limit = hook->timeout_s * HF_NSEC_PER_SEC;
        struct hf__strbuf body = {0}, url = {0};
        uint64_t id = 0;
        int r = hfd_meta_make_uid(call->uid);

        if (call->a->of.deadline - call->began < limit)
                limit = call->a->of.deadline - call->began;
        /* As in Kubernetes, the webhook is told its time in whole seconds, rounded up. */
        hf__strbuf_printf(&url, "%s?timeout=%llds", hook->url,
                          (long long)((limit + HF_NSEC_PER_SEC - 1) / HF_NSEC_PER_SEC));
        if (r == 0)
                r = print_review(call, &body);
        if (r == 0)
                r = url.error;
        const struct hfd_outbound_request request = {.method = "POST",
                                                     .url = url.data,
                                                     .connect_to = hook->connect_to,
                                                     .ca_pem = hook->ca_pem,
                                                     .body = body.data,
                                                     .n_body = body.n,
                                                     .deadline = call->began + limit,
                                                     .may_repeat = true,
                                                     .done = on_result,
                                                     .ctx = call};
        if (r == 0)
                r = watch_client(call);
        if (r == 0)
                r = hfd_outbound_post_json(call->webhooks->config.outbound, &request, &id);
        if (r == 0)
                set_outbound_id(call, id);
        hf__strbuf_done(&body);
        hf__strbuf_done(&url);
        return r;
}

static void refuse_busy(struct hfd_webhook_call *call) {
        hfd_refusal_busy(&call->refusal, call->hook->name);
        finish_call(call, HFD_WEBHOOK_LIMITED, 429);
}

/* Counts the call in the load of the webhook. False: the webhook has max_calls already. The counter
 * hands over no other memory, so relaxed order is enough. */
static bool take_place(struct hfd_webhook_call *call) {
        assert(!call->counted);
        struct hfd_webhook_load *load = call->hook->load;
        size_t n = atomic_fetch_add_explicit(&load->n_calls, 1, memory_order_relaxed);

        call->counted = n < call->webhooks->config.max_calls;
        if (!call->counted)
                atomic_fetch_sub_explicit(&load->n_calls, 1, memory_order_relaxed);
        return call->counted;
}

/* The order of the checks is that of kube-apiserver, which has no limit of calls. A call that fails
 * one of them is not sent, and does not count in the load. */
void hfd_webhook_call_begin(struct hfd_webhook_call *call) {
        assert(call->done && call->a && call->as);
        const struct hfd_webhook *hook = call->hook;

        call->began = now(call);
        if (call->a->of.dry_run && !hook->allows_dry_run) {
                hfd_refusal_dry_run(&call->refusal, hook->name);
                finish_call(call, HFD_WEBHOOK_REJECTED, 400);
                return;
        }
        if (!hook->knows_v1) {
                fail_call(call, 400,
                          "could not create admission objects: webhook does not accept known "
                          "AdmissionReview versions (v1)");
                return;
        }
        if (!hook->url) {
                fail_call(call, 500, "could not get REST client: the webhook has no address");
                return;
        }
        if (call->began >= call->a->of.deadline || has_client_left(call)) {
                hfd_refusal_timeout(&call->refusal);
                finish_call(call, HFD_WEBHOOK_INTERNAL, 0);
                return;
        }
        if (!take_place(call)) {
                refuse_busy(call);
                return;
        }
        int r = send_review(call);
        if (r == 0)
                return; /* on_result will be called, or was */
        if (r == HF_E_TOO_MANY)
                refuse_busy(call);
        else if (r == HF_E_CLOSED)
                fail_call(call, 503, "failed to call webhook: context canceled");
        else if (r == HF_E_INVALID) /* the store has what the validation would refuse */
                fail_call(call, 500, "could not get REST client: the URL is not one of https");
        else
                fail_no_memory(call);
}

/* A mutating run calls this after each call, and at its end for the last one again, so what is
 * freed becomes NULL or empty. */
void hfd_webhook_call_done(struct hfd_webhook_call *call) {
        assert(!call->counted); /* it has finished, or never began */
        call->old = hf__json_free(call->old);
        hfd_match_progress_done(&call->progress);
        hfd_admission_review_response_done(&call->review);
        hfd_response_done(&call->refusal);
}

/* ---- after the response ---- */

void hfd_webhook_call_note(const struct hfd_webhook_call *call) {
        struct hfd_admission_notes *notes = call->a->notes;
        char key[700];

        for (const struct hf__json *m = hf__json_first(call->review.warnings); m;
             m = hf__json_next(m))
                hfd_admission_warn(notes, hf__json_text(m));
        for (const struct hf__json *m = hf__json_first(call->review.annotations); m;
             m = hf__json_next(m)) {
                (void)snprintf(key, sizeof key, "%.300s/%.380s", call->hook->name, hf__json_key(m));
                hfd_admission_annotate(notes, key, hf__json_text(m));
        }
}

bool hfd_webhook_call_refuses(struct hfd_webhook_call *call) {
        static const char *const errors[] = {[HFD_WEBHOOK_REJECTED] = "no_error",
                                             [HFD_WEBHOOK_FAILED] = "calling_webhook_error",
                                             [HFD_WEBHOOK_LIMITED] = "calling_webhook_error",
                                             [HFD_WEBHOOK_INTERNAL] = "apiserver_internal_error"};
        const struct hfd_webhooks *webhooks = call->webhooks;
        enum hfd_admission_operation operation = call->a->of.operation;
        const char *name = call->hook->name;
        bool ignored = call->outcome == HFD_WEBHOOK_FAILED && call->hook->ignores_failures,
             refuses = call->outcome != HFD_WEBHOOK_ALLOWED && !ignored;

        hfd_webhook_metrics_called(webhooks->host, name, type_of(call), operation, refuses,
                                   call->code, now(call) - call->began);
        if (refuses)
                hfd_webhook_metrics_rejected(webhooks->host, name, type_of(call), operation,
                                             errors[call->outcome], call->code);
        if (ignored)
                hfd_webhook_metrics_failed_open(webhooks->host, name, type_of(call));
        /* The webhook may have used up the time of the whole request, or nobody waits for it. */
        if (ignored && (now(call) >= call->a->of.deadline || has_client_left(call))) {
                hfd_response_done(&call->refusal);
                call->refusal = (struct hfd_response){0};
                hfd_refusal_timeout(&call->refusal);
                return true;
        }
        if ((call->outcome == HFD_WEBHOOK_FAILED || call->outcome == HFD_WEBHOOK_LIMITED) &&
            !has_client_left(call))
                hf_log(&webhooks->host->log, HF_LOG_WARNING, "admission",
                       "failed calling webhook, failing %s: %s", ignored ? "open" : "closed",
                       call->refusal.status.message);
        return refuses;
}
