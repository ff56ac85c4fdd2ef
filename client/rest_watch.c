/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch of the REST client: one long GET whose response is a stream of JSON lines, {"type": ...,
 * "object": ...}. rest.h documents ownership and threads.
 *
 * A watch ends when the server ends the stream after a whole line (on_end gets 0: watch again),
 * sends an ERROR event or an HTTP error (the error is taken from its Status; 410 is HF_E_GONE), or
 * sends a line that is not a watch event, is cut short or is longer than MAX_LINE. It also ends
 * when it is canceled, when the connection breaks, when memory is exhausted, and at its deadline.
 * Before the stream has begun, the request is sent again after a 401 if there is a newer token, and
 * a server that does not serve is replaced by the next one.
 *
 * A connection may stop working without being closed. Therefore the client asks the server to end
 * the watch after 300 to 600 seconds, and gives the request a slightly later deadline. The time is
 * random, so that after a restart of the server the watches do not all end at once. The response
 * header must arrive within the client's ordinary timeout.
 *
 * Invariants: on_event is called with one event at a time and in order; on_end is called once,
 * after the last event. Once `error` is set, no more events are delivered.
 */
#include "client/rest_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/http/engine.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "client/bearer.h"
#include "client/json_span.h"
#include "client/resource_path.h"
#include "client/rest.h"
#include "client/status.h"

#define MAX_LINE         ((size_t)8 << 20)
#define MAX_ERROR_BODY   ((size_t)64 << 10)
#define MIN_TIMEOUT_S    300u
#define SPREAD_TIMEOUT_S 300u
#define DEADLINE_SLACK_S 15

struct rest_watch {
        /* immutable */
        struct hf__rest *rest; /* borrowed */
        enum hf_lane lane;
        unsigned timeout_s;
        hf_event_fn on_event;
        hf_watch_end_fn on_end;
        void *ctx;
        const char *path; /* in the same allocation, after `what` */
        /* the engine's thread, once it is submitted */
        struct hf__rest_route route;
        struct hf__token *token; /* owned reference; sent with the last try; NULL = none */
        bool token_replaced;     /* already retried with a new token */
        int code;                /* HTTP status; 0 = no response header yet */
        /* With code 200, the incomplete last line. With another code, the beginning of the error
         * body. */
        struct hf__strbuf line;
        int error;               /* not 0: the watch ends, for this reason */
        struct hf_status status; /* describes `error` */
        /* "GET https://...", used in messages; also holds the URL. It changes with the server. */
        char what[];
};

static int fail_watch(struct rest_watch *watch, int error, const char *reason) {
        watch->error = hf_fail(&watch->status, error, "%.300s: %s", watch->what, reason);
        return error;
}

/* ---- lines ---- */

/* Returns an enum hf_event_type, or -1. `type` is a JSON string with its quotes. */
static int parse_event_type(struct hf__span type) {
        static const struct {
                const char *text;
                enum hf_event_type type;
        } types[] = {
                {"\"ADDED\"", HF_EVENT_ADDED},
                {"\"MODIFIED\"", HF_EVENT_MODIFIED},
                {"\"DELETED\"", HF_EVENT_DELETED},
                {"\"BOOKMARK\"", HF_EVENT_BOOKMARK},
        };
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
                if (type.n == strlen(types[i].text) &&
                    memcmp(type.data, types[i].text, type.n) == 0)
                        return (int)types[i].type;
        return -1;
}

static bool is_error_event(struct hf__span type) {
        return type.n == 7 && memcmp(type.data, "\"ERROR\"", 7) == 0;
}

/* The object of an ERROR event is a Status, which has the real error code; the HTTP status of the
 * stream is always 200. */
static int handle_error_event(struct rest_watch *watch, struct hf__span object) {
        const struct hf__status_context context = {.what = watch->what};

        watch->error =
                hf__status_from_response(200, object.data, object.n, &context, &watch->status);
        return watch->error;
}

/* Delivers the event of one line, or sets watch->error, which ends the watch. Skips a blank line.
 * Parses only the metadata of the object, and delivers the object as the server sent it. */
static int handle_line(struct rest_watch *watch, const char *data, size_t n) {
        struct hf__span line = {data, n}, type, object, metadata;
        struct hf__json *json = NULL;

        while (line.n > 0 && (line.data[line.n - 1] == '\r' || line.data[line.n - 1] == ' '))
                line.n--;
        if (line.n == 0)
                return 0;
        if (!hf__span_member(line, "type", &type) || !hf__span_member(line, "object", &object))
                return fail_watch(watch, -EPROTO,
                                  "the stream has a line that is not a watch event");
        if (is_error_event(type))
                return handle_error_event(watch, object);
        int known_type = parse_event_type(type);
        if (known_type < 0)
                return fail_watch(watch, -EPROTO, "the stream has an event of unknown type");
        if (!hf__span_member(object, "metadata", &metadata))
                return fail_watch(watch, -EPROTO, "the stream has an object without metadata");
        int r = hf__json_parse(metadata.data, metadata.n, &json, NULL);
        if (r != 0)
                return fail_watch(watch, r < 0 ? r : -EPROTO,
                                  "the stream has an object whose metadata is not JSON");
        const struct hf_event event = {
                .type = (enum hf_event_type)known_type,
                .object = object.data,
                .n_object = object.n,
                .resource_version = hf__json_string(json, "resourceVersion"),
        };
        if (event.resource_version)
                watch->on_event(watch->ctx, &event);
        else
                (void)fail_watch(watch, -EPROTO,
                                 "the stream has an object without a resourceVersion");
        (void)hf__json_free(json);
        return watch->error;
}

/* Processes a piece of the stream, which may contain any number of line ends. */
static int handle_stream(struct rest_watch *watch, const char *data, size_t n) {
        while (n > 0) {
                const char *newline = memchr(data, '\n', n);
                size_t piece = newline ? (size_t)(newline - data) : n;
                int r = 0;

                if (newline && watch->line.n == 0) {
                        /* the usual case, which needs no copy */
                        r = handle_line(watch, data, piece);
                } else {
                        hf__strbuf_add(&watch->line, data, piece);
                        if (watch->line.error == HF_E_TOO_LARGE)
                                return fail_watch(watch, watch->line.error,
                                                  "the stream has a line of more than 8 MiB");
                        if (watch->line.error != 0)
                                return fail_watch(watch, watch->line.error,
                                                  hf_strerror(watch->line.error));
                        if (newline) {
                                r = handle_line(watch, watch->line.data, watch->line.n);
                                hf__strbuf_reset(&watch->line);
                        }
                }
                if (r != 0)
                        return r;
                piece += newline ? 1 : 0;
                data += piece;
                n -= piece;
        }
        return 0;
}

/* ---- the engine's callbacks; thread: the engine's ---- */

static int on_head(void *ctx, int code) {
        struct rest_watch *watch = ctx;

        watch->code = code;
        return 0;
}

static int on_data(void *ctx, const void *data, size_t n) {
        struct rest_watch *watch = ctx;

        if (watch->code == 200)
                return handle_stream(watch, data, n);
        if (watch->line.n < MAX_ERROR_BODY) { /* the beginning of an error page is enough */
                size_t space = MAX_ERROR_BODY - watch->line.n;
                hf__strbuf_add(&watch->line, data, n < space ? n : space);
        }
        return 0;
}

static int submit_try(struct rest_watch *watch, uint64_t previous_id, uint64_t *ret_id);

/* Submits another try with the same id. If that fails, the watch still has the response. */
static bool retry_watch(struct rest_watch *watch, const struct hf__http_result *result) {
        if (submit_try(watch, result->id, NULL) != 0)
                return false;
        /* The callbacks of the new try run on this thread, so none of them has run yet. */
        hf__strbuf_reset(&watch->line);
        watch->code = 0;
        return true;
}

/* After a 401. Returns true if the token was replaced in the meantime and the watch was submitted
 * again with the same id. */
static bool retry_with_new_token(struct rest_watch *watch, const struct hf__http_result *result) {
        if (result->outcome != 0 || result->code != 401 || watch->token_replaced || !watch->token ||
            !hf__bearer_renew(watch->rest->bearer, watch->token))
                return false;
        watch->token_replaced = true;
        return retry_watch(watch, result);
}

/* Called after a try, unless `error` is set or the watch was sent again with a new token. If the
 * try failed in a way that allows it (rest_servers.c), sends the watch to a server that it has not
 * tried. Does not do so if a stream has begun: then the watch ends, and the user must watch again
 * from the last version seen. If the new try cannot be submitted, the route and the messages of the
 * watch still name the failed server. */
static bool retry_at_next_server(struct rest_watch *watch, const struct hf__http_result *result) {
        struct hf__rest_servers *servers = &watch->rest->servers;
        const struct hf__rest_route failed = watch->route;
        bool began = watch->code == 200;

        /* `left` is 1: there is always time, because each try of a watch has a new deadline. */
        if (!hf__rest_route_failed(&watch->route, servers, result, false, watch->lane, 1) ||
            began || !hf__rest_route_next(&watch->route, servers))
                return false;
        if (retry_watch(watch, result))
                return true;
        watch->route = failed;
        hf__rest_route_print(&watch->route, servers, "GET", watch->path, watch->what);
        return false;
}

static void watch_free(struct rest_watch *watch) {
        if (!watch)
                return;
        (void)hf__token_unref(watch->token);
        hf__strbuf_done(&watch->line);
        free(watch);
}

/* A try has ended. Frees the watch unless it is retried. */
static void on_done(void *ctx, const struct hf__http_result *result) {
        struct rest_watch *watch = ctx;

        if (watch->error == 0 &&
            (retry_with_new_token(watch, result) || retry_at_next_server(watch, result)))
                return;
        if (watch->error == 0 && result->outcome == 0 && result->code == 200) {
                /* API servers end every line with a newline. A line without one was cut short, even
                 * if what arrived looks complete. */
                if (watch->line.n > 0)
                        (void)fail_watch(watch, -EPROTO, "the stream ended within a line");
        } else if (watch->error == 0 && result->outcome == 0) {
                const struct hf__status_context context = {.retry_after_s = result->retry_after_s,
                                                           .what = watch->what};
                watch->error = hf__status_from_response(result->code, watch->line.data,
                                                        watch->line.n, &context, &watch->status);
        } else if (watch->error == 0) {
                watch->error = hf__rest_fail(result, watch->what, &watch->status);
        }
        watch->on_end(watch->ctx, watch->error, &watch->status);
        watch_free(watch);
}

/* ---- starting ---- */

/* Without random bytes, uses the middle of the range: the spread is not a matter of safety. */
static unsigned random_timeout_s(void) {
        uint32_t random = SPREAD_TIMEOUT_S / 2;

        (void)!getrandom(&random, sizeof random, GRND_NONBLOCK);
        return MIN_TIMEOUT_S + random % (SPREAD_TIMEOUT_S + 1);
}

/* Submits a try with the newest token. previous_id: 0 for the first try; otherwise the id of the
 * watch, which a retry keeps. On failure the caller still owns the watch. */
static int submit_try(struct rest_watch *watch, uint64_t previous_id, uint64_t *ret_id) {
        struct hf__rest *rest = watch->rest;
        const char *headers[HF__REST_N_HEADERS];
        struct hf__http_request request;

        (void)hf__token_unref(watch->token);
        watch->token = hf__bearer_get(rest->bearer);
        hf__rest_init_request(rest, watch->lane, watch->token, headers, &request);
        hf__rest_route_print(&watch->route, &rest->servers, "GET", watch->path, watch->what);
        request.url = watch->what + strlen("GET ");
        request.deadline = hf_now(hf_host_clock(rest->base.host)) +
                           (hf_nsec)(watch->timeout_s + DEADLINE_SLACK_S) * HF_NSEC_PER_SEC;
        request.head_timeout = rest->timeout;
        request.connect_timeout =
                hf__rest_route_connect_timeout(&watch->route, &rest->servers, rest->timeout);
        request.on_head = on_head;
        request.on_data = on_data;
        request.on_done = on_done;
        request.ctx = watch;
        return previous_id ? hf__http_submit_again(rest->engine, &request, previous_id)
                           : hf__http_submit(rest->engine, &request, ret_id);
}

int hf__rest_watch(struct hf_client *client, const struct hf_watch_spec *spec, hf_event_fn on_event,
                   hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        struct hf__rest *rest = (struct hf__rest *)client;
        HF__CLEANUP(hf__strbuf_done) struct hf__strbuf path = {.max = HF__REST_MAX_URL};
        unsigned timeout_s = random_timeout_s();

        hf__watch_path(&path, spec, timeout_s);
        if (path.error != 0)
                return path.error > 0 ? -EINVAL : path.error;
        size_t n_what = strlen("GET ") + rest->servers.max_url + path.n + 1;
        struct rest_watch *watch = malloc(sizeof *watch + n_what + path.n + 1);
        if (!watch)
                return -ENOMEM;
        *watch = (struct rest_watch){.rest = rest,
                                     .lane = spec->lane,
                                     .timeout_s = timeout_s,
                                     .on_event = on_event,
                                     .on_end = on_end,
                                     .ctx = ctx,
                                     .line = {.max = MAX_LINE}};
        char *own_path = watch->what + n_what;
        watch->path = memcpy(own_path, path.data, path.n + 1);
        hf__rest_route_begin(&watch->route, &rest->servers);
        int r = submit_try(watch, 0, ret_id); /* on success the engine owns the watch */
        if (r != 0)
                watch_free(watch);
        return r;
}
