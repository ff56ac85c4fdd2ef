/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One call of a webhook, and private parts of the plug-ins of this folder. Thread: owner of the
 * call; its result comes on a thread of server/outbound, or within hfd_webhook_call_begin.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <holdfast/cancel.h>

#include "server/admission/expressions/expression_objects.h"
#include "server/admission/expressions/expression_run.h"
#include "server/admission/expressions/match_conditions.h"
#include "server/admission/webhooks/admission_review.h"
#include "server/admission/webhooks/refusal.h"
#include "server/admission/webhooks/webhook.h"
#include "server/admission/webhooks/webhooks.h"
#include "server/resources/meta.h"

struct hfd_webhooks {
        /* Immutable. */
        const struct hf_host *host; /* borrowed */
        struct hfd_webhooks_config config;
        bool mutating;
        atomic_bool any; /* the index has webhooks; changes with the index */
        pthread_mutex_t mu;
        struct hfd_webhook_index *index; /* owned reference; guarded by mu; NULL = none yet */
};

void hfd_webhooks_mutate(void *ctx, struct hfd_admission *a);
void hfd_webhooks_validate(void *ctx, struct hfd_admission *a);

enum hfd_webhook_outcome {
        HFD_WEBHOOK_ALLOWED,  /* `review` of the call is set */
        HFD_WEBHOOK_REJECTED, /* the webhook has refused, or does not support dry run */
        HFD_WEBHOOK_FAILED,   /* the call has failed; the failurePolicy decides */
        /* A limit that Kubernetes does not have: too many calls are under way, or the response is
         * too large. The request fails whatever the failurePolicy is, so that neither a flood of
         * requests nor a large object lets a write escape the webhook. */
        HFD_WEBHOOK_LIMITED,
        /* The request fails whatever the failurePolicy is: memory ran out; the server could not
         * make a UID for the review; the deadline had passed, or the client had left, before the
         * review was sent; or the webhook's patch cannot be applied, or makes an object that is not
         * valid. */
        HFD_WEBHOOK_INTERNAL
};

struct hfd_webhook_call {
        /* Filled by the caller, and borrowed until hfd_webhook_call_done; `object` only until
         * `done` is called. */
        struct hfd_webhooks *webhooks;
        const struct hfd_webhook *hook;
        struct hfd_admission *a;       /* calls that run at the same time do not change it */
        const struct hfd_resource *as; /* the resource, in the version that the rules name */
        const struct hf__json *object; /* in the version of `as`; NULL = none */
        /* The values of the admission's own objects, for the matchConditions. All webhooks of
         * one run of a plug-in share them. The caller forgets them before it begins a call: the
         * call may change the objects, or take long. */
        struct hfd_expression_objects *values;
        /* Owned; set by hfd_webhook_call_see. NULL = the old object as it is. */
        struct hf__json *old;
        struct hfd_match_progress progress; /* of the matchConditions */
        struct hfd_expression_work work;    /* the same */
        void (*done)(struct hfd_webhook_call *call);
        /* The result. Whoever owns the call frees it by hfd_webhook_call_done. */
        enum hfd_webhook_outcome outcome;
        struct hfd_admission_review_response review; /* if a valid response came */
        struct hfd_response refusal;                 /* unless outcome is ALLOWED */
        int code;                                    /* as hfd_webhook_metrics_called */
        /* Private. */
        char uid[HFD_UID_MAX];
        hf_nsec began;
        bool counted;
        struct hf_cancel_waker waker; /* fires when the client leaves; ends the call */
        bool watches_client;          /* the waker is added */
        atomic_bool client_left;      /* as the waker has seen it */
        _Atomic uint64_t outbound_id; /* 0 = not known yet */
};
/*
 * Brings the old object into the form of `as`, unless it is of another kind than the resource (a
 * Scale). 0, -ENOMEM, or HF_E_INVALID or -EAGAIN as hfd_admission_form.
 */
int hfd_webhook_call_see(struct hfd_webhook_call *call);
/* Begins the call, after hfd_webhook_call_see. done is called once, perhaps before this returns, so
 * done must not free the call before this has returned. */
void hfd_webhook_call_begin(struct hfd_webhook_call *call);
/* Frees what the call owns, once it has ended or if it never began. Idempotent. */
void hfd_webhook_call_done(struct hfd_webhook_call *call);
/* What the evaluation of matchConditions may still use, in a turn on the pool or on another thread.
 * All webhooks that are checked in one go share it. */
struct hfd_webhook_effort {
        /* In a turn it limits no condition; `spent` then says that the turn is over and conditions
         * are left. */
        struct hfd_expression_allowance allowance;
        const struct hfd_work_task *task; /* the turn on the pool (turn.h); NULL = none */
        uint64_t turn_left;               /* what the turn may still use; at 0 the turn ends */
};
/* The effort of a turn, or of another thread (task NULL). */
struct hfd_webhook_effort hfd_webhook_effort(const struct hfd_work_task *task);
/*
 * Whether the matchConditions of call->hook are true for the request that the call describes. If
 * they cannot be evaluated, the failurePolicy decides: Ignore is HFD_MATCHER_NO, Fail is
 * HFD_MATCHER_ERROR. Whatever the failurePolicy is, HFD_MATCHER_ERROR also means that a limit that
 * Kubernetes does not have is exceeded, that memory ran out, that the request is over, or that the
 * server stops. response is the error. Exception: if effort->allowance.spent is set, the result is
 * HFD_MATCHER_ERROR without a response, and the caller continues with the same call in a turn; the
 * call keeps its progress.
 */
enum hfd_matcher_result hfd_webhook_call_conditions(struct hfd_webhook_call *call,
                                                    struct hfd_webhook_effort *effort,
                                                    struct hfd_response *response);
/* Adds the warnings and annotations of the webhook's response to the notes of the admission. Calls
 * that run at the same time share the notes: the caller holds a lock then. */
void hfd_webhook_call_note(const struct hfd_webhook_call *call);
/*
 * Counts the call in the metrics; call it once. Logs a failure of the webhook, unless the client
 * has left, or the failure is ignored but the request has timed out. True: the request ends with
 * call->refusal. False: the request goes on, because the webhook has allowed it, or the failure is
 * ignored.
 */
bool hfd_webhook_call_refuses(struct hfd_webhook_call *call);
