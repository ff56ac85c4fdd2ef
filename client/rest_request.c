/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of the REST client: one request, or several tries of it, and one answer.
 *
 * A call is a struct of its own from the moment it is submitted until the engine reports its end,
 * on the engine's thread. It has all that another try needs, and another try goes under the same
 * id, so that cancelling finds it at any time.
 *
 * There is another try
 *      - at once, when the server said 401 and the token was meanwhile replaced. Who is not known
 * is not served: nothing was done.
 *      - when the server asked for it: 429, or an error of its own, with a Retry-After that ends
 * before the call's deadline; up to 10 times. A write only upon 429 and 503, where the server says
 * that it did not take the request. Not upon 504, where it has waited for us already. Not in the
 * lane of the leases: the elector paces itself, and must know at once. A write that waits here is
 * one under way to its sender: cancelling ends it, and its deadline (the end of the leader's
 * validity) stands.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/http/engine.h"
#include "base/strbuf.h"
#include "client/bearer.h"
#include "client/resource_path.h"
#include "client/rest.h"
#include "client/status.h"

#define MAX_OBJECT ((size_t)8 << 20)
#define MAX_LIST   ((size_t)256 << 20)
#define MAX_URL    ((size_t)16 << 10)
#define MAX_WAITS  10u

struct rest_call {
        struct hf__rest *rest;
        hf_response_fn done;
        void *ctx;
        enum hf_verb verb;
        enum hf_lane lane;
        hf_nsec deadline;
        struct hf__token *token;  /* a reference; of the last try; NULL = none */
        bool renewed;             /* there was another try with another token */
        unsigned n_waits;         /* tries after a Retry-After */
        char fence[HF_FENCE_MAX]; /* as sent; "" = none */
        size_t n_body;
        const char *body; /* behind what */
        char what[];      /* "PUT https://...", for messages; the URL is what follows the method */
};

static const char *method_of(enum hf_verb verb) {
        switch (verb) {
        case HF_VERB_GET:
        case HF_VERB_LIST: return "GET";
        case HF_VERB_CREATE: return "POST";
        case HF_VERB_UPDATE: return "PUT";
        case HF_VERB_DELETE:
        case HF_VERB_DELETE_COLLECTION: return "DELETE";
        }
        return NULL;
}

static bool is_write(enum hf_verb verb) { return verb != HF_VERB_GET && verb != HF_VERB_LIST; }

static void call_free(struct rest_call *request) {
        if (!request)
                return;
        (void)hf__token_unref(request->token);
        free(request);
}

/* ---- trying ---- */

static void call_done(void *ctx, const struct hf__http_result *result);

/* again: the id that it has; 0 = this is the first try. */
static int try_call(struct rest_call *request, hf_nsec not_before, uint64_t again,
                    uint64_t *ret_id) {
        struct hf__rest *rest = request->rest;
        const char *headers[HF__REST_N_HEADERS];
        struct hf__http_request http_request;
        char fence_line[sizeof HF_FENCE_HEADER + 2 + HF_FENCE_MAX];

        (void)hf__token_unref(request->token);
        request->token = hf__bearer_get(rest->bearer);
        hf__rest_prepare(rest, request->lane, request->token, headers, &http_request);
        http_request.method = method_of(request->verb);
        http_request.url = request->what + strlen(http_request.method) + 1;
        if (request->n_body > 0) {
                headers[http_request.n_headers++] = "Content-Type: application/json";
                http_request.body = request->body;
                http_request.n_body = request->n_body;
        }
        if (request->fence[0]) {
                (void)snprintf(fence_line, sizeof fence_line, "%s: %s", HF_FENCE_HEADER,
                               request->fence);
                headers[http_request.n_headers++] = fence_line;
        }
        http_request.deadline = request->deadline;
        http_request.not_before = not_before;
        bool lists = request->verb == HF_VERB_LIST || request->verb == HF_VERB_DELETE_COLLECTION;
        http_request.max_body = lists ? MAX_LIST : MAX_OBJECT;
        http_request.on_done = call_done;
        http_request.ctx = request;
        return again ? hf__http_submit_again(rest->engine, &http_request, again)
                     : hf__http_submit(rest->engine, &http_request, ret_id);
}

/* The boot time of the try that the answer allows: 0 = at once, HF_NSEC_NEVER = none. Takes account
 * of it. */
static hf_nsec next_try(struct rest_call *request, const struct hf__http_result *result) {
        if (result->code == 401) {
                if (request->renewed || !request->token ||
                    !hf__bearer_refused(request->rest->bearer, request->token))
                        return HF_NSEC_NEVER;
                request->renewed = true;
                return 0;
        }
        bool allowed = result->code == 429 || result->code == 503 ||
                       (result->code >= 500 && result->code != 504 && !is_write(request->verb));
        if (!allowed || result->retry_after_s == 0 || request->lane == HF_LANE_LEASE ||
            request->n_waits == MAX_WAITS)
                return HF_NSEC_NEVER;
        hf_nsec at = hf_now(hf_host_clock(request->rest->base.host)) +
                     (hf_nsec)result->retry_after_s * HF_NSEC_PER_SEC;
        if (at >= request->deadline)
                return HF_NSEC_NEVER;
        request->n_waits++;
        return at;
}

static void call_done(void *ctx, const struct hf__http_result *result) {
        struct rest_call *request = ctx; /* owned; this is its end, unless there is another try */
        struct hf_response reply = {.body = result->body,
                                    .n_body = result->body ? result->n_body : 0};

        reply.fence_echoed = request->fence[0] && result->fence_echo &&
                             strcmp(result->fence_echo, request->fence) == 0;
        if (result->outcome != 0) {
                reply.error = hf__rest_failure(result, request->what, &reply.status);
        } else if (result->code < 200 || result->code >= 300) {
                hf_nsec at = next_try(request, result);
                if (at != HF_NSEC_NEVER && try_call(request, at, result->id, NULL) == 0)
                        return;
                const struct hf__status_context context = {
                        .is_write = is_write(request->verb),
                        .retry_after_s = result->retry_after_s,
                        .what = request->what,
                };
                reply.error = hf__status_from_reply(result->code, reply.body, reply.n_body,
                                                    &context, &reply.status);
        }
        request->done(request->ctx, &reply);
        call_free(request);
}

/* ---- starting ---- */

static int put_what(const struct hf__rest *rest, const struct hf_request *request,
                    struct hf__strbuf *out) {
        struct hf_request addressed = *request;

        if (request->verb == HF_VERB_CREATE || request->verb == HF_VERB_LIST ||
            request->verb == HF_VERB_DELETE_COLLECTION)
                addressed.name = NULL;
        hf__strbuf_printf(out, "%s %s", method_of(request->verb), rest->server);
        hf__resource_path(out, &addressed);
        return out->error ? (out->error < 0 ? out->error : -EINVAL) : 0;
}

static int call_new(struct hf__rest *rest, const struct hf_request *from,
                    struct rest_call **ret_call) {
        struct hf__strbuf what = {.max = MAX_URL};
        struct rest_call *request = NULL;

        int r = put_what(rest, from, &what);
        if (r == 0 && !(request = malloc(sizeof *request + what.n + 1 + from->n_body)))
                r = -ENOMEM;
        if (r == 0) {
                *request = (struct rest_call){.rest = rest,
                                              .verb = from->verb,
                                              .lane = from->lane,
                                              .n_body = from->n_body};
                memcpy(request->what, what.data, what.n + 1);
                request->body = from->n_body > 0 ? memcpy(request->what + what.n + 1, from->body,
                                                          from->n_body)
                                                 : NULL;
                request->deadline =
                        from->deadline ? from->deadline
                                       : hf_now(hf_host_clock(rest->base.host)) + rest->timeout;
                if (from->fence && is_write(from->verb)) {
                        int n = hf_fence_format(from->fence, request->fence, sizeof request->fence);
                        r = n < 0 ? -EINVAL : 0; /* an unfenced write in its place would be worse */
                }
        }
        hf__strbuf_done(&what);
        if (r == 0)
                *ret_call = request;
        else
                call_free(request);
        return r;
}

int hf__rest_request(struct hf_client *client, const struct hf_request *from, hf_response_fn done,
                     void *ctx, uint64_t *ret_id) {
        struct rest_call *request;

        int r = call_new((struct hf__rest *)client, from, &request);
        if (r != 0)
                return r;
        request->done = done;
        request->ctx = ctx;
        r = try_call(request, 0, 0, ret_id);
        if (r != 0)
                call_free(request);
        return r;
}
