/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch of the REST client: one long GET whose answer is a stream of JSON lines, {"type": ...,
 * "object": ...}.
 *
 * A watch belongs to the engine's thread from its submission to its end. It ends by the first of:
 * the server ending the stream (0, watch again), an ERROR event or an error code (what its Status
 * says; 410 is HF_E_GONE), a line that is no event, a line above the limit, cancellation, a broken
 * connection, the deadline.
 *
 * A connection may go silent without being closed. So the server is asked to end the watch after a
 * random 300-600 seconds (random, so that the watches of a restarted server do not all come back at
 * once), and the request has a deadline a little later; the header block has the client's ordinary
 * timeout.
 */
#include "client/rest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/http/engine.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "client/bearer.h"
#include "client/json_span.h"
#include "client/resource_path.h"
#include "client/status.h"

#define MAX_LINE         ((size_t)8 << 20)
#define MAX_ERROR_BODY   ((size_t)64 << 10)
#define MAX_URL          ((size_t)16 << 10)
#define MIN_TIMEOUT_S    300u
#define SPREAD_TIMEOUT_S 300u
#define DEADLINE_SLACK_S 15

struct rest_watch {
        struct hf__rest *rest;
        enum hf_lane lane;
        unsigned timeout_s;
        struct hf__token *token; /* a reference; of the last try; NULL = none */
        bool renewed;            /* there was another try with another token */
        hf_event_fn on_event;
        hf_watch_end_fn on_end;
        void *ctx;
        int code; /* of the header block; 0 = not there yet */
        struct hf__strbuf
                line; /* the line that is not complete yet; the body, when code is an error */
        int error;    /* set: the watch ends by our own decision, and this is why */
        struct hf_status status; /* its words */
        char what[];             /* "GET https://..." */
};

static int fail(struct rest_watch *watch, int error, const char *words) {
        watch->error = hf_fail(&watch->status, error, "%.300s: %s", watch->what, words);
        return error;
}

/* ---- lines ---- */

static int event_type(struct hf__span type) {
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

static bool is_error(struct hf__span type) {
        return type.n == 7 && memcmp(type.data, "\"ERROR\"", 7) == 0;
}

static int error_event(struct rest_watch *watch, struct hf__span object) {
        const struct hf__status_context context = {.what = watch->what};

        /* 200 is the stream's code; the Status carries its own. */
        watch->error = hf__status_from_reply(200, object.data, object.n, &context, &watch->status);
        return watch->error;
}

static int take_line(struct rest_watch *watch, const char *data, size_t n) {
        struct hf__span line = {data, n}, type, object, metadata;
        struct hf__json *json = NULL;

        while (line.n > 0 && (line.data[line.n - 1] == '\r' || line.data[line.n - 1] == ' '))
                line.n--;
        if (line.n == 0)
                return 0;
        if (!hf__span_member(line, "type", &type) || !hf__span_member(line, "object", &object))
                return fail(watch, -EPROTO, "the stream has a line that is not a watch event");
        if (is_error(type))
                return error_event(watch, object);
        int known = event_type(type);
        if (known < 0)
                return fail(watch, -EPROTO, "the stream has an event of unknown type");
        if (!hf__span_member(object, "metadata", &metadata))
                return fail(watch, -EPROTO, "the stream has an object without metadata");
        int r = hf__json_parse(metadata.data, metadata.n, &json, NULL);
        if (r != 0)
                return fail(watch, r < 0 ? r : -EPROTO,
                            "the stream has an object whose metadata is not JSON");
        const struct hf_event event = {
                .type = (enum hf_event_type)known,
                .object = object.data,
                .n_object = object.n,
                .resource_version = hf__json_string(json, "resourceVersion"),
        };
        if (event.resource_version)
                watch->on_event(watch->ctx, &event);
        else
                (void)fail(watch, -EPROTO, "the stream has an object without a resourceVersion");
        (void)hf__json_free(json);
        return watch->error;
}

static int take_data(struct rest_watch *watch, const char *data, size_t n) {
        while (n > 0) {
                const char *newline = memchr(data, '\n', n);
                size_t piece = newline ? (size_t)(newline - data) : n;
                int r = 0;

                if (newline && watch->line.n == 0) { /* the usual case: a whole line, no copy */
                        r = take_line(watch, data, piece);
                } else {
                        hf__strbuf_add(&watch->line, data, piece);
                        if (watch->line.error)
                                return fail(watch, watch->line.error,
                                            "the stream has a line above 8 MiB");
                        if (newline) {
                                r = take_line(watch, watch->line.data, watch->line.n);
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

/* ---- the engine's callbacks ---- */

static int watch_head(void *ctx, int code) {
        struct rest_watch *watch = ctx;
        watch->code = code;
        return 0;
}

static int watch_data(void *ctx, const void *data, size_t n) {
        struct rest_watch *watch = ctx;

        if (watch->code == 200)
                return take_data(watch, data, n);
        if (watch->line.n < MAX_ERROR_BODY) { /* the beginning of an error page is enough */
                size_t space = MAX_ERROR_BODY - watch->line.n;
                hf__strbuf_add(&watch->line, data, n < space ? n : space);
        }
        return 0;
}

static int watch_submit(struct rest_watch *watch, uint64_t again, uint64_t *ret_id);

/* True: the token was replaced meanwhile, and the watch is tried again under its id. */
static bool another_try(struct rest_watch *watch, const struct hf__http_result *result) {
        if (result->outcome != 0 || result->code != 401 || watch->renewed || !watch->token ||
            !hf__bearer_refused(watch->rest->bearer, watch->token))
                return false;
        watch->renewed = true;
        hf__strbuf_reset(&watch->line);
        watch->code = 0;
        if (watch_submit(watch, result->id, NULL) == 0)
                return true;
        watch->code = result->code;
        return false;
}

static void watch_free(struct rest_watch *watch) {
        if (!watch)
                return;
        (void)hf__token_unref(watch->token);
        hf__strbuf_done(&watch->line);
        free(watch);
}

static void watch_done(void *ctx, const struct hf__http_result *result) {
        struct rest_watch *watch = ctx; /* owned; this is its end, unless there is another try */

        if (watch->error == 0 && another_try(watch, result))
                return;
        if (watch->error == 0 && result->outcome == 0 && result->code == 200) {
                if (watch->line.n > 0) /* servers end their last line; one cut short is an error */
                        (void)take_line(watch, watch->line.data, watch->line.n);
        } else if (watch->error == 0 && result->outcome == 0) {
                const struct hf__status_context context = {.retry_after_s = result->retry_after_s,
                                                           .what = watch->what};
                watch->error = hf__status_from_reply(result->code, watch->line.data, watch->line.n,
                                                     &context, &watch->status);
        } else if (watch->error == 0) {
                watch->error = hf__rest_failure(result, watch->what, &watch->status);
        }
        watch->on_end(watch->ctx, watch->error, &watch->status);
        watch_free(watch);
}

/* ---- starting ---- */

static unsigned random_timeout_s(void) {
        uint32_t random = 0;
        if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
                random = SPREAD_TIMEOUT_S / 2;
        return MIN_TIMEOUT_S + random % (SPREAD_TIMEOUT_S + 1);
}

/* again: the id that it has; 0 = this is the first try. */
static int watch_submit(struct rest_watch *watch, uint64_t again, uint64_t *ret_id) {
        struct hf__rest *rest = watch->rest;
        const char *headers[HF__REST_N_HEADERS];
        struct hf__http_request request;

        (void)hf__token_unref(watch->token);
        watch->token = hf__bearer_get(rest->bearer);
        hf__rest_prepare(rest, watch->lane, watch->token, headers, &request);
        request.url = watch->what + strlen("GET ");
        request.deadline = hf_now(hf_host_clock(rest->base.host)) +
                           (hf_nsec)(watch->timeout_s + DEADLINE_SLACK_S) * HF_NSEC_PER_SEC;
        request.head_timeout = rest->timeout;
        request.on_head = watch_head;
        request.on_data = watch_data;
        request.on_done = watch_done;
        request.ctx = watch;
        return again ? hf__http_submit_again(rest->engine, &request, again)
                     : hf__http_submit(rest->engine, &request, ret_id);
}

int hf__rest_watch(struct hf_client *client, const struct hf_watch_spec *spec, hf_event_fn on_event,
                   hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        struct hf__rest *rest = (struct hf__rest *)client;
        struct hf__strbuf what = {.max = MAX_URL};
        struct rest_watch *watch = NULL;
        unsigned timeout_s = random_timeout_s();

        hf__strbuf_printf(&what, "GET %s", rest->server);
        hf__watch_path(&what, spec, timeout_s);
        int r = what.error > 0 ? -EINVAL : what.error;
        if (r == 0 && !(watch = malloc(sizeof *watch + what.n + 1)))
                r = -ENOMEM;
        if (r == 0) {
                *watch = (struct rest_watch){.rest = rest,
                                             .lane = spec->lane,
                                             .timeout_s = timeout_s,
                                             .on_event = on_event,
                                             .on_end = on_end,
                                             .ctx = ctx,
                                             .line = {.max = MAX_LINE}};
                memcpy(watch->what, what.data, what.n + 1);
        }
        hf__strbuf_done(&what);
        if (r == 0)
                r = watch_submit(watch, 0, ret_id);
        if (r != 0)
                watch_free(watch);
        return r;
}
