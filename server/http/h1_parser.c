/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 requests by llhttp, with a stricter door in front of it.
 *
 * States: HEAD (bytes are collected until the empty line), BODY (bytes go to llhttp as they come),
 * and back to HEAD.
 *
 * The head is collected whole before llhttp sees it, so its size is bounded in one place and each
 * header comes in one piece. While it is collected each byte is looked at: a NUL, a line feed
 * without a carriage return, a lone carriage return, or a line that begins with white space
 * (obs-fold) ends the connection at once; each of them has been read differently by two HTTP
 * implementations, which is how requests are smuggled. After llhttp has parsed it: Host exactly
 * once, Content-Length never with Transfer-Encoding and never twice, Transfer-Encoding nothing but
 * one "chunked".
 *
 * Trailers are dropped; they and chunk extensions are bounded by the framing allowance.
 */
#include "server/http/h1_parser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <llhttp.h>

#include "base/strbuf.h"

#define FRAMING_ALLOWANCE                                                                          \
        16384 /* bytes of a chunked body that are not data: this, and FRAMING_PER_BYTE for each    \
                 that is */
#define FRAMING_PER_BYTE 8
#define MAX_SKIPPED      8 /* bytes of empty lines that are forgiven before a request */

struct hfd_h1_parser {
        llhttp_t llhttp;
        llhttp_settings_t settings;
        size_t max_header_bytes, max_body;
        struct hf__strbuf head;           /* of a head that came in pieces; owned */
        struct hfd_http_request *request; /* borrowed during a feed */
        const char *name;                 /* the header whose value comes next; within the head */
        size_t n_name;
        size_t framing; /* bytes of the body that were not data */
        unsigned n_hosts, n_lengths, n_encodings;
        int code; /* of the failure; 0 = none yet */
        bool head_seen, in_body, done, keep_alive, http10, bad_encoding;
        char previous; /* last byte of the head so far; 0 at its begin */
        unsigned line_ends;
        unsigned n_skipped; /* bytes of empty lines before the head */
};

static int fail(struct hfd_h1_parser *p, int code) {
        if (!p->code)
                p->code = code;
        return HPE_USER;
}

static int fail_result(struct hfd_h1_parser *p, int r) {
        return fail(p, r == HF_E_TOO_LARGE ? 431 : r == HF_E_INVALID ? 400 : 500);
}

static int on_url(llhttp_t *llhttp, const char *at, size_t n) {
        struct hfd_h1_parser *p = llhttp->data;
        int r = hfd_http_request_set_target(p->request, at, n);

        return r != 0 ? fail_result(p, r) : 0;
}

static int on_field(llhttp_t *llhttp, const char *at, size_t n) {
        struct hfd_h1_parser *p = llhttp->data;

        p->name = at;
        p->n_name = n;
        return 0;
}

static bool name_is(const struct hfd_h1_parser *p, const char *name) {
        return p->n_name == strlen(name) && strncasecmp(p->name, name, p->n_name) == 0;
}

static int on_value(llhttp_t *llhttp, const char *at, size_t n) {
        struct hfd_h1_parser *p = llhttp->data;
        int r;

        if (p->in_body)
                return 0; /* a trailer */
        if (!p->name)
                return fail(p, 400);
        while (n > 0 && (at[n - 1] == ' ' || at[n - 1] == '\t'))
                n--;
        while (n > 0 && (*at == ' ' || *at == '\t'))
                at++, n--;
        if (name_is(p, "host"))
                p->n_hosts++;
        if (name_is(p, "content-length"))
                p->n_lengths++;
        if (name_is(p, "transfer-encoding")) {
                p->n_encodings++;
                p->bad_encoding |= n != 7 || strncasecmp(at, "chunked", 7) != 0;
        }
        r = hfd_http_request_add_header(p->request, p->name, p->n_name, at, n);
        p->name = NULL;
        return r != 0 ? fail_result(p, r) : 0;
}

static int on_head(llhttp_t *llhttp) {
        struct hfd_h1_parser *p = llhttp->data;
        const char *method = llhttp_method_name(llhttp_get_method(llhttp));

        p->head_seen = true;
        if (llhttp_get_http_major(llhttp) != 1 || llhttp_get_http_minor(llhttp) > 1)
                return fail(p, 505);
        p->http10 = llhttp_get_http_minor(llhttp) == 0;
        if (p->n_hosts > 1 || (p->n_hosts == 0 && !p->http10))
                return fail(p, 400);
        if (p->n_lengths > 1 || (p->n_lengths && p->n_encodings) || p->n_encodings > 1 ||
            (p->n_encodings && p->http10))
                return fail(p, 400);
        if (p->bad_encoding)
                return fail(p, 501);
        if (llhttp_get_method(llhttp) == HTTP_CONNECT || !p->request->target)
                return fail(p, 400);
        if (p->n_lengths && llhttp->content_length > p->max_body)
                return fail(p, 413);
        p->request->protocol = p->http10 ? "HTTP/1.0" : "HTTP/1.1";
        llhttp->upgrade = 0; /* none is offered; the request is answered as it is */
        return hfd_http_request_set_method(p->request, method, strlen(method)) ? fail(p, 500) : 0;
}

static int on_body(llhttp_t *llhttp, const char *at, size_t n) {
        struct hfd_h1_parser *p = llhttp->data;
        int r = hfd_http_request_add_body(p->request, at, n, p->max_body);

        return r != 0 ? fail(p, r == HF_E_TOO_LARGE ? 413 : 500) : 0;
}

static int on_complete(llhttp_t *llhttp) {
        struct hfd_h1_parser *p = llhttp->data;

        p->done = true;
        p->keep_alive = llhttp_should_keep_alive(llhttp);
        return HPE_PAUSED; /* the next request waits for this one's answer */
}

int hfd_h1_parser_new(size_t max_header_bytes, size_t max_body, struct hfd_h1_parser **ret_parser) {
        struct hfd_h1_parser *p = calloc(1, sizeof *p);

        if (!p)
                return -ENOMEM;
        llhttp_settings_init(&p->settings);
        p->settings.on_url = on_url;
        p->settings.on_header_field = on_field;
        p->settings.on_header_value = on_value;
        p->settings.on_headers_complete = on_head;
        p->settings.on_body = on_body;
        p->settings.on_message_complete = on_complete;
        llhttp_init(&p->llhttp, HTTP_REQUEST, &p->settings);
        p->llhttp.data = p;
        p->max_header_bytes = max_header_bytes;
        p->max_body = max_body;
        *ret_parser = p;
        return 0;
}

struct hfd_h1_parser *hfd_h1_parser_free(struct hfd_h1_parser *p) {
        if (!p)
                return NULL;
        hf__strbuf_done(&p->head);
        free(p);
        return NULL;
}

/* Ready for the next request. */
static void rewind_parser(struct hfd_h1_parser *p) {
        hf__strbuf_done(&p->head);
        llhttp_reset(&p->llhttp);
        p->name = NULL;
        p->framing = 0;
        p->n_hosts = p->n_lengths = p->n_encodings = 0;
        p->head_seen = p->in_body = p->done = p->bad_encoding = false;
        p->previous = 0;
        p->line_ends = p->n_skipped = 0;
}

/* Looks for the empty line. Returns the bytes of data that belong to the head, 0 when it goes on,
 * -1 when it is bad. */
static ssize_t scan_head(struct hfd_h1_parser *p, const char *data, size_t n) {
        for (size_t i = 0; i < n; i++) {
                char c = data[i];

                if (c == '\0' || (c == '\n') != (p->previous == '\r') ||
                    (p->previous == '\n' && (c == ' ' || c == '\t')))
                        return -1;
                if (c == '\n')
                        p->line_ends++;
                else if (c != '\r')
                        p->line_ends = 0;
                p->previous = c;
                if (p->line_ends == 2)
                        return (ssize_t)i + 1;
        }
        return 0;
}

/* Runs llhttp over bytes that are a whole head, or part of a body. Returns how many it used. */
static size_t run(struct hfd_h1_parser *p, const char *data, size_t n) {
        llhttp_errno_t e = llhttp_execute(&p->llhttp, data, n);

        if (e == HPE_OK)
                return n;
        if (e == HPE_PAUSED && p->done) {
                const char *end = llhttp_get_error_pos(&p->llhttp);

                llhttp_resume(&p->llhttp);
                return end ? (size_t)(end - data) : n;
        }
        fail(p, e == HPE_INVALID_VERSION ? 505 : 400);
        return n;
}

static enum hfd_h1_event finish(struct hfd_h1_parser *p, int *ret_code) {
        if (p->code) {
                *ret_code = p->code;
                return HFD_H1_BAD;
        }
        if (p->done) {
                rewind_parser(p);
                return HFD_H1_DONE;
        }
        return p->in_body ? HFD_H1_HEAD : HFD_H1_MORE;
}

static enum hfd_h1_event feed_head(struct hfd_h1_parser *p, const char *data, size_t n,
                                   size_t *ret_used, int *ret_code) {
        size_t skipped = 0, part, parsed;
        ssize_t end;

        /* Empty lines before a request are forgiven, as RFC 9112 2.2 asks; a few of them, wherever
         * reads split them. */
        while (p->head.n == 0 && skipped < n && p->n_skipped < MAX_SKIPPED &&
               data[skipped] == (p->n_skipped % 2 ? '\n' : '\r')) {
                skipped++;
                p->n_skipped++;
        }
        if (skipped < n && p->n_skipped % 2)
                fail(p, 400); /* a carriage return alone */
        data += skipped;
        n -= skipped;
        end = scan_head(p, data, n);
        part = end > 0 ? (size_t)end : n;
        *ret_used = skipped + part;
        if (end < 0)
                fail(p, 400);
        else if (p->head.n + part > p->max_header_bytes)
                fail(p, 431);
        if (p->code || part == 0)
                return finish(p, ret_code);
        if (end == 0 || p->head.n > 0) {
                hf__strbuf_add(&p->head, data, part);
                if (p->head.error)
                        fail(p, 500);
                if (p->head.error || end == 0)
                        return finish(p, ret_code);
                data = p->head.data;
                part = p->head.n;
        }
        parsed = run(p, data, part);
        if (!p->code && (parsed != part || !p->head_seen))
                fail(p, 400);
        p->in_body = !p->done;
        hf__strbuf_done(&p->head);
        return finish(p, ret_code);
}

enum hfd_h1_event hfd_h1_parser_feed(struct hfd_h1_parser *p, struct hfd_http_request *request,
                                     const char *data, size_t n, size_t *ret_used, int *ret_code) {
        enum hfd_h1_event event;
        size_t before = request->n_body, used;

        p->request = request;
        *ret_used = 0;
        if (p->code) {
                *ret_code = p->code;
                return HFD_H1_BAD;
        }
        if (!p->in_body)
                return feed_head(p, data, n, ret_used, ret_code);
        used = run(p, data, n);
        p->framing += used - (request->n_body - before);
        if (!p->code && p->framing > FRAMING_ALLOWANCE + FRAMING_PER_BYTE * request->n_body)
                fail(p, 413);
        *ret_used = used;
        event = finish(p, ret_code);
        return event == HFD_H1_HEAD ? HFD_H1_MORE : event;
}

bool hfd_h1_parser_idle(const struct hfd_h1_parser *p) {
        return !p->in_body && p->head.n == 0 && !p->code;
}
bool hfd_h1_parser_in_head(const struct hfd_h1_parser *p) { return !p->in_body; }
bool hfd_h1_parser_keep_alive(const struct hfd_h1_parser *p) { return p->keep_alive; }
bool hfd_h1_parser_http10(const struct hfd_h1_parser *p) { return p->http10; }
