/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the responses of requests that a webhook has refused, or that failed because a webhook
 * could not be asked.
 *
 * Invariants: a webhook cannot make a refusal look like a success: the code is at least 400, and
 * the status is Failure. A message or a reason that a webhook has sent is cut, and details that are
 * too large are dropped, so that they cannot fill the memory of clients and logs. The messages are
 * those of kube-apiserver, which has none for hfd_refusal_busy.
 */
#include "server/admission/webhooks/refusal.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/admission/turn.h"

#define MESSAGE_MAX 4096 /* bytes of a message, with what a webhook has sent */
#define REASON_MAX  1024 /* bytes of a webhook's reason; those of Kubernetes have 30 at most */
#define DETAILS_MAX ((size_t)32 << 10) /* bytes of a Status with a webhook's details */

/* The error for callers in the process; `code` is what HTTP clients get. */
static int error_of(int code) {
        switch (code) {
        case 401: return HF_E_UNAUTHORIZED;
        case 403: return HF_E_FORBIDDEN;
        case 404: return HF_E_NOT_FOUND;
        case 409: return HF_E_CONFLICT;
        case 410: return HF_E_GONE;
        case 413: return HF_E_TOO_LARGE;
        case 429: return HF_E_TOO_MANY;
        case 503: return HF_E_UNAVAILABLE;
        case 504: return HF_E_TIMEOUT;
        default: return HF_E_INVALID;
        }
}

/* Puts the webhook's details into a Status. If they are too large, or memory runs out, they are
 * missing. */
static void add_details(struct hfd_response *response, const struct hf__json *details) {
        struct hf__json *status = NULL;
        struct hf__strbuf out = {.max = DETAILS_MAX};
        struct hf__buf *body = NULL;

        if (!hf__json_is_object(details) || !response->body ||
            hf__json_parse(response->body->data, response->body->n, &status, NULL) != 0)
                return;
        if (hf__json_set(status, "details", hf__json_dup(details)) == 0) {
                hf__json_print(status, &out);
                hf__strbuf_putc(&out, '\n');
                body = hf__strbuf_to_buf(&out);
        }
        if (body) {
                hf__buf_unref(response->body);
                response->body = body;
        }
        hf__strbuf_done(&out);
        hf__json_free(status);
}

/* After how many seconds the client may try again: kube-apiserver sends this number of the details
 * as the header Retry-After, too, and clients wait for that long and repeat the request. 0 = the
 * webhook does not say, or the number is out of range. */
static uint32_t retry_after_of(const struct hf__json *details) {
        int64_t seconds = 0;

        (void)hf__json_i64(details, "retryAfterSeconds", &seconds);
        return seconds > 0 && seconds <= INT32_MAX ? (uint32_t)seconds : 0;
}

/* A code below 400 becomes 400, as in kube-apiserver. So does one above 599, which HTTP does not
 * have. */
void hfd_refusal_denied(struct hfd_response *response, const char *webhook,
                        const struct hf__json *status) {
        const char *message = hf__json_string(status, "message"),
                   *reason = hf__json_string(status, "reason"), *why = message;
        char text[MESSAGE_MAX], cut[REASON_MAX];
        int64_t code = 0;

        (void)hf__json_i64(status, "code", &code);
        if (code < 400 || code > 599)
                code = 400;
        (void)snprintf(cut, sizeof cut, "%s", reason ? reason : "");
        if (!why || !*why)
                why = cut;
        (void)snprintf(text, sizeof text,
                       "admission webhook \"%.300s\" denied the request%s%.3600s", webhook,
                       *why ? ": " : " without explanation", why);
        hfd_response_status(response, error_of((int)code), (int)code, cut, text, NULL);
        add_details(response, hf__json_get(status, "details"));
        response->status.retry_after_s = retry_after_of(hf__json_get(status, "details"));
}

/* As in Go's apierrors.NewInternalError, `why` is also a cause of the Status. */
void hfd_refusal_internal(struct hfd_response *response, const char *why) {
        const struct hfd_details details = {.cause_reason = "", .cause_text = why};
        char text[MESSAGE_MAX];

        (void)snprintf(text, sizeof text, "Internal error occurred: %s", why);
        hfd_response_status(response, HF_E_INVALID, 500, "InternalError", text, &details);
}

/* A failure with another code than 500, such as 429, tells the client what to do. So it becomes the
 * response, which shares its body. */
void hfd_refusal_conversion(struct hfd_response *response, const struct hfd_response *failure,
                            const char *why) {
        if (!failure) {
                hfd_refusal_internal(response, why);
        } else if (failure->code == 500) {
                hfd_refusal_internal(response, failure->status.message);
        } else {
                *response = *failure;
                hf__buf_ref(response->body);
        }
}

void hfd_refusal_failed(struct hfd_response *response, const char *webhook, const char *why) {
        char text[MESSAGE_MAX];

        (void)snprintf(text, sizeof text, "failed calling webhook \"%.300s\": %.3600s", webhook,
                       why);
        hfd_refusal_internal(response, text);
}

void hfd_refusal_dry_run(struct hfd_response *response, const char *webhook) {
        hfd_response_bad_request(response, "admission webhook \"%.300s\" does not support dry run",
                                 webhook);
}

void hfd_refusal_busy(struct hfd_response *response, const char *webhook) {
        const struct hfd_details details = {.retry_after_s = 1};
        char text[500];

        (void)snprintf(text, sizeof text,
                       "too many requests wait for the admission webhook \"%.300s\", please try "
                       "again later",
                       webhook);
        hfd_response_status(response, HF_E_TOO_MANY, 429, "TooManyRequests", text, &details);
}

void hfd_refusal_timeout(struct hfd_response *response) {
        hfd_admission_turn_refuse(HF_E_TIMEOUT, response);
}
