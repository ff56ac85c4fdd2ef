/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request of the REST client: one or more tries, and one response. rest.h documents its
 * ownership.
 *
 * A request is retried here in three cases:
 *      - At once at another server, if it has failed at this one: rest_servers.c has the rules.
 *      - At once after a 401, but only once, if the token has since been replaced. The server
 *        rejected the request before it did anything, because authentication failed.
 *      - After the delay in the response's Retry-After, up to MAX_RETRIES times, if the delay ends
 *        before the request's deadline. A read is retried after 429 and any 5xx except 504: the
 *        server has already waited before it sent that. A write is retried only after 429, and
 *        after a 503 in which holdfastd says that it did not process the write (status.h). Requests
 *        for Leases (HF_LANE_LEASE) do not wait for a Retry-After: the elector has a schedule for
 *        its retries, and must see a failure at once.
 *
 * The engine itself sends a GET again if a reused connection turns out to be dead.
 *
 * Invariant: a write is never sent again if the server may have applied it. To its caller, a write
 * that waits for a retry is still under way: it can be canceled, and its deadline applies. (A
 * leader's write has a deadline that is not after the time until which the leader may act.)
 */
#include "client/rest_request.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/host.h"
#include "base/http/engine.h"
#include "base/strbuf.h"
#include "client/bearer.h"
#include "client/resource_path.h"
#include "client/rest.h"
#include "client/status.h"

/* Limits on the body of a response, so that a faulty server cannot use up our memory. */
#define MAX_OBJECT  ((size_t)8 << 20)
#define MAX_LIST    ((size_t)256 << 20)
#define MAX_RETRIES 10u

struct rest_request {
        /* immutable */
        struct hf__rest *rest; /* borrowed */
        hf_response_fn done;
        void *ctx;
        enum hf_verb verb;
        enum hf_lane lane;
        enum hf_patch patch;
        hf_nsec deadline; /* boot time */
        /* In the same allocation, after `what`. The fence is as sent; "" = none. */
        const char *path, *body, *fence;
        size_t n_body;
        /* the engine's thread only, once the request is submitted */
        struct hf__rest_route route;
        struct hf__token *token; /* owned reference; sent with the last try; NULL = none */
        bool token_replaced;     /* already retried with a new token */
        unsigned n_retries;      /* retries after a Retry-After */
        /* "PUT https://...", used in messages; also holds the URL. It changes with the server. */
        char what[];
};

static const char *method_of(enum hf_verb verb) {
        switch (verb) {
        case HF_VERB_GET:
        case HF_VERB_LIST: return "GET";
        case HF_VERB_CREATE: return "POST";
        case HF_VERB_UPDATE: return "PUT";
        case HF_VERB_DELETE:
        case HF_VERB_DELETE_COLLECTION: return "DELETE";
        case HF_VERB_PATCH: return "PATCH";
        }
        return NULL;
}

static const char *content_type_of(enum hf_verb verb, enum hf_patch patch) {
        if (verb != HF_VERB_PATCH)
                return "Content-Type: application/json";
        switch (patch) {
        case HF_PATCH_MERGE: return "Content-Type: application/merge-patch+json";
        case HF_PATCH_JSON: return "Content-Type: application/json-patch+json";
        case HF_PATCH_STRATEGIC: return "Content-Type: application/strategic-merge-patch+json";
        case HF_PATCH_APPLY: return "Content-Type: application/apply-patch+yaml"; /* JSON is YAML */
        }
        return NULL;
}

static bool is_write(enum hf_verb verb) { return verb != HF_VERB_GET && verb != HF_VERB_LIST; }

/* Whether the response is a list, which may be large. */
static bool returns_list(enum hf_verb verb) {
        return verb == HF_VERB_LIST || verb == HF_VERB_DELETE_COLLECTION;
}

static void request_free(struct rest_request *request) {
        if (!request)
                return;
        (void)hf__token_unref(request->token);
        free(request);
}

/* ---- trying ---- */

static hf_nsec time_left(const struct rest_request *request) {
        return request->deadline - hf_now(hf_host_clock(request->rest->base.host));
}

/* The time from the start of a try to the deadline. The try starts at `not_before`, or now if that
 * has passed. */
static hf_nsec time_left_at(const struct rest_request *request, hf_nsec not_before) {
        hf_nsec left = time_left(request), left_then = request->deadline - not_before;

        return left_then < left ? left_then : left;
}

static void request_ended(void *ctx, const struct hf__http_result *result);

/* Submits a try with the newest token. previous_id: 0 for the first try; otherwise the request's
 * id, which a retry keeps. On failure the caller still owns the request. */
static int submit_try(struct rest_request *request, hf_nsec not_before, uint64_t previous_id,
                      uint64_t *ret_id) {
        struct hf__rest *rest = request->rest;
        const char *headers[HF__REST_N_HEADERS];
        struct hf__http_request http_request;
        char fence_line[sizeof HF_FENCE_HEADER + 2 + HF_FENCE_MAX];

        (void)hf__token_unref(request->token);
        request->token = hf__bearer_get(rest->bearer);
        hf__rest_init_request(rest, request->lane, request->token, headers, &http_request);
        http_request.method = method_of(request->verb);
        hf__rest_route_print(&request->route, &rest->servers, http_request.method, request->path,
                             request->what);
        http_request.url = request->what + strlen(http_request.method) + 1;
        if (request->n_body > 0) {
                headers[http_request.n_headers++] = content_type_of(request->verb, request->patch);
                http_request.body = request->body;
                http_request.n_body = request->n_body;
        }
        if (request->fence[0]) {
                (void)snprintf(fence_line, sizeof fence_line, "%s: %s", HF_FENCE_HEADER,
                               request->fence);
                headers[http_request.n_headers++] = fence_line;
        }
        assert(http_request.n_headers <= HF__REST_N_HEADERS);
        http_request.keeps_body = true; /* until request_ended */
        http_request.deadline = request->deadline;
        http_request.not_before = not_before;
        http_request.connect_timeout =
                hf__rest_route_connect_timeout(&request->route, &rest->servers,
                                               time_left_at(request, not_before));
        http_request.max_body = returns_list(request->verb) ? MAX_LIST : MAX_OBJECT;
        http_request.on_done = request_ended;
        http_request.ctx = request;
        return previous_id ? hf__http_submit_again(rest->engine, &http_request, previous_id)
                           : hf__http_submit(rest->engine, &http_request, ret_id);
}

/* Whether the request may be sent again after this response. error: the result of
 * hf__status_from_response. */
static bool retry_is_safe(const struct rest_request *request, int code, int error) {
        if (code == 429)
                return true;
        return code >= 500 && code != 504 &&
               (!is_write(request->verb) || error == HF_E_UNAVAILABLE);
}

/* Returns the boot time of the next try after this response: 0 to retry at once, HF_NSEC_NEVER not
 * to retry. Counts the retry. */
static hf_nsec next_try_at(struct rest_request *request, const struct hf__http_result *result,
                           int error) {
        if (result->code == 401) {
                if (request->token_replaced || !request->token ||
                    !hf__bearer_renew(request->rest->bearer, request->token))
                        return HF_NSEC_NEVER;
                request->token_replaced = true;
                return 0;
        }
        if (!retry_is_safe(request, result->code, error) || result->retry_after_s == 0 ||
            request->lane == HF_LANE_LEASE || request->n_retries == MAX_RETRIES)
                return HF_NSEC_NEVER;
        hf_nsec at = hf_now(hf_host_clock(request->rest->base.host)) +
                     (hf_nsec)result->retry_after_s * HF_NSEC_PER_SEC;
        if (at >= request->deadline)
                return HF_NSEC_NEVER;
        request->n_retries++;
        hf__rest_route_begin(&request->route, &request->rest->servers);
        return at;
}

/* After a failure: sends the request to a server that it has not tried, if that is safe. If the try
 * cannot be submitted, the route and the messages of the request still name the failed server. */
static bool try_next_server(struct rest_request *request, const struct hf__http_result *result) {
        struct hf__rest_servers *servers = &request->rest->servers;
        const struct hf__rest_route failed = request->route;

        if (!hf__rest_route_failed(&request->route, servers, result, is_write(request->verb),
                                   request->lane, time_left(request)) ||
            !hf__rest_route_next(&request->route, servers))
                return false;
        if (submit_try(request, 0, result->id, NULL) == 0)
                return true;
        request->route = failed;
        hf__rest_route_print(&request->route, servers, method_of(request->verb), request->path,
                             request->what);
        return false;
}

/* Called on the engine's thread when a try has ended. Frees the request unless it is retried. */
static void request_ended(void *ctx, const struct hf__http_result *result) {
        struct rest_request *request = ctx;
        struct hf_response response = {.size = sizeof response,
                                       .body = result->body,
                                       .n_body = result->body ? result->n_body : 0,
                                       /* earlier tries of a write were refused or not sent, so
                                          this one decides */
                                       .not_sent = result->not_sent};

        response.fence_echoed = request->fence[0] && result->fence_echo &&
                                strcmp(result->fence_echo, request->fence) == 0;
        bool failed = result->outcome != 0 || result->code < 200 || result->code >= 300;
        if (failed && try_next_server(request, result))
                return;
        if (result->outcome != 0) {
                response.error = hf__rest_fail(result, request->what, &response.status);
        } else if (failed) {
                const struct hf__status_context context = {
                        .is_write = is_write(request->verb),
                        .in_parts = request->verb == HF_VERB_DELETE_COLLECTION,
                        .retry_after_s = result->retry_after_s,
                        .what = request->what,
                };
                response.error =
                        hf__status_from_response(result->code, response.body, response.n_body,
                                                 &context, &response.status);
                hf_nsec at = next_try_at(request, result, response.error);
                if (at != HF_NSEC_NEVER && submit_try(request, at, result->id, NULL) == 0)
                        return;
        }
        request->done(request->ctx, &response);
        request_free(request);
}

/* ---- starting ---- */

/* Appends "/path?query". 0, -ENOMEM, or -EINVAL: it is too long. */
static int append_path(const struct hf_request *request, struct hf__strbuf *out) {
        struct hf_request addressed = *request;

        if (request->verb == HF_VERB_CREATE || returns_list(request->verb))
                addressed.name = NULL; /* these verbs use the path of the collection */
        hf__resource_path(out, &addressed);
        return out->error > 0 ? -EINVAL : out->error;
}

/* Prints the fence of a write, or "" if the request is a read or has no fence. -EINVAL if the fence
 * is not valid: the caller must not send the write without it. */
static int print_fence(const struct hf_request *from, char fence[HF_FENCE_MAX]) {
        fence[0] = '\0';
        if (!from->fence || !is_write(from->verb))
                return 0;
        return hf_fence_format(from->fence, fence, HF_FENCE_MAX) < 0 ? -EINVAL : 0;
}

HF__CLEANUP_DEFINE(request_cleanup, struct rest_request *, request_free)

static int request_new(struct hf__rest *rest, const struct hf_request *from,
                       struct rest_request **ret_request) {
        HF__CLEANUP(hf__strbuf_done) struct hf__strbuf path = {.max = HF__REST_MAX_URL};
        char fence[HF_FENCE_MAX];

        if (!content_type_of(from->verb, from->patch))
                return -EINVAL;
        int r = append_path(from, &path);
        if (r == 0)
                r = print_fence(from, fence);
        if (r != 0)
                return r;
        size_t n_fence = strlen(fence) + 1;
        size_t n_what = strlen(method_of(from->verb)) + 1 + rest->servers.max_url + path.n + 1;
        HF__CLEANUP(request_cleanup)
        struct rest_request *request =
                malloc(sizeof *request + n_what + path.n + 1 + n_fence + from->n_body);
        if (!request)
                return -ENOMEM;
        *request = (struct rest_request){.rest = rest,
                                         .verb = from->verb,
                                         .lane = from->lane,
                                         .patch = from->patch,
                                         .n_body = from->n_body};
        char *end = request->what + n_what;
        request->path = end;
        end = mempcpy(end, path.data, path.n + 1);
        request->fence = end;
        end = mempcpy(end, fence, n_fence);
        if (from->n_body > 0)
                request->body = memcpy(end, from->body, from->n_body);
        request->deadline = from->deadline;
        if (request->deadline == 0)
                request->deadline =
                        hf__nsec_after(hf_now(hf_host_clock(rest->base.host)), rest->timeout);
        *ret_request = HF__TAKE(request);
        return 0;
}

int hf__rest_request(struct hf_client *client, const struct hf_request *from, hf_response_fn done,
                     void *ctx, uint64_t *ret_id) {
        struct rest_request *request = NULL;

        int r = request_new((struct hf__rest *)client, from, &request);
        if (r != 0)
                return r;
        request->done = done;
        request->ctx = ctx;
        hf__rest_route_begin(&request->route, &request->rest->servers);
        r = submit_try(request, 0, 0, ret_id); /* on success the engine owns the request */
        if (r != 0)
                request_free(request);
        return r;
}
