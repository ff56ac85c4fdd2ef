/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses HTTP/1.1 requests with llhttp, after a stricter check of its own.
 *
 * States: HEAD (bytes are collected until the empty line), BODY (bytes go to llhttp as they
 * arrive), and back to HEAD.
 *
 * llhttp gets the head only when it is complete, so that one place limits its size and llhttp
 * reports each header in one piece. scan_head checks every byte before: a NUL, a line feed without
 * a carriage return, a carriage return without a line feed, or a line that begins with white space
 * (obs-fold) gets a 400 response, and the connection is closed. on_head checks the parsed head:
 * Host exactly once (HTTP/1.0: at most once), Content-Length never together with Transfer-Encoding
 * and never twice, Transfer-Encoding only as one "chunked" and not with HTTP/1.0.
 *
 * Invariant: input that HTTP implementations are known to interpret differently is refused, never
 * repaired. Attackers use such differences to smuggle requests past a proxy.
 *
 * Trailers are dropped. FRAMING_ALLOWANCE limits them and chunk extensions.
 */
#include "server/http/protocol/h1_parser.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <llhttp.h>

#include "base/strbuf.h"

/* A chunked body may have this many bytes that are not data, and FRAMING_PER_BYTE more for each
 * byte of data. A chunk with one byte of data needs five more. */
#define FRAMING_ALLOWANCE 16384
#define FRAMING_PER_BYTE  8
#define MAX_SKIPPED       8 /* bytes of empty lines that are skipped before a request */

struct hfd_h1_parser {
        llhttp_t llhttp;
        llhttp_settings_t settings;
        size_t max_header_bytes, max_body;
        struct hf__strbuf head;           /* owned; collects a head that arrives in pieces */
        struct hfd_http_request *request; /* borrowed during a feed */
        const char *name; /* the header whose value follows; points into the head; NULL = none */
        size_t n_name;
        size_t framing; /* bytes of the body that were not data */
        unsigned n_hosts, n_lengths, n_encodings;
        int code; /* HTTP status of the first failure; 0 = none. Never reset, so BAD is final */
        bool head_seen, in_body, done, keep_alive, http10, bad_encoding;
        char previous;      /* last byte of the head so far; 0 = none yet */
        unsigned line_ends; /* consecutive line ends at the end of the head so far */
        unsigned n_skipped; /* bytes of empty lines before the head */
};

/* ---- llhttp's callbacks: HPE_USER stops llhttp ---- */

/* Records the first failure only. */
static int fail_parse(struct hfd_h1_parser *p, int code) {
        assert(code >= 400);
        if (p->code == 0)
                p->code = code;
        return HPE_USER;
}

static int fail_result(struct hfd_h1_parser *p, int r) {
        switch (r) {
        case HF_E_TOO_LARGE: return fail_parse(p, 431);
        case HF_E_INVALID: return fail_parse(p, 400);
        default: return fail_parse(p, 500);
        }
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

static bool has_name(const struct hfd_h1_parser *p, const char *name) {
        return p->n_name == strlen(name) && strncasecmp(p->name, name, p->n_name) == 0;
}

static int on_value(llhttp_t *llhttp, const char *at, size_t n) {
        struct hfd_h1_parser *p = llhttp->data;
        int r;

        if (p->in_body)
                return 0; /* a trailer */
        /* A value without a name, or the second piece of a value. */
        if (!p->name)
                return fail_parse(p, 400);
        while (n > 0 && (at[n - 1] == ' ' || at[n - 1] == '\t'))
                n--;
        while (n > 0 && (*at == ' ' || *at == '\t')) {
                at++;
                n--;
        }
        if (has_name(p, "host"))
                p->n_hosts++;
        if (has_name(p, "content-length"))
                p->n_lengths++;
        if (has_name(p, "transfer-encoding")) {
                p->n_encodings++;
                p->bad_encoding |= n != 7 || strncasecmp(at, "chunked", 7) != 0;
        }
        r = hfd_http_request_add_header(p->request, p->name, p->n_name, at, n);
        p->name = NULL;
        return r != 0 ? fail_result(p, r) : 0;
}

/* Called when the head is complete, for the checks that need all of it. */
static int on_head(llhttp_t *llhttp) {
        struct hfd_h1_parser *p = llhttp->data;
        const char *method = llhttp_method_name(llhttp_get_method(llhttp));

        p->head_seen = true;
        if (llhttp_get_http_major(llhttp) != 1 || llhttp_get_http_minor(llhttp) > 1)
                return fail_parse(p, 505);
        p->http10 = llhttp_get_http_minor(llhttp) == 0;
        if (p->n_hosts > 1 || (p->n_hosts == 0 && !p->http10))
                return fail_parse(p, 400);
        if (p->n_lengths > 1 || (p->n_lengths > 0 && p->n_encodings > 0) || p->n_encodings > 1 ||
            (p->n_encodings > 0 && p->http10))
                return fail_parse(p, 400);
        if (p->bad_encoding)
                return fail_parse(p, 501);
        if (llhttp_get_method(llhttp) == HTTP_CONNECT || !p->request->target)
                return fail_parse(p, 400);
        if (p->n_lengths > 0 && llhttp->content_length > p->max_body)
                return fail_parse(p, 413);
        p->request->protocol = p->http10 ? "HTTP/1.0" : "HTTP/1.1";
        llhttp->upgrade = 0; /* upgrades are not supported: this is a plain request */
        if (hfd_http_request_set_method(p->request, method, strlen(method)) != 0 ||
            hfd_http_request_join_headers(p->request) != 0)
                return fail_parse(p, 500);
        return 0;
}

static int on_body(llhttp_t *llhttp, const char *at, size_t n) {
        struct hfd_h1_parser *p = llhttp->data;
        int r = hfd_http_request_add_body(p->request, at, n, p->max_body);

        if (r == 0)
                return 0;
        return fail_parse(p, r == HF_E_TOO_LARGE ? 413 : 500);
}

static int on_complete(llhttp_t *llhttp) {
        struct hfd_h1_parser *p = llhttp->data;

        p->done = true;
        p->keep_alive = llhttp_should_keep_alive(llhttp);
        return HPE_PAUSED; /* the next request waits for this one's response */
}

/* ---- the parser ---- */

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

/* Back to HEAD: ready for the next request. Does not reset keep_alive and http10, which the
 * connection reads after DONE. */
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

/* Checks bytes of the head and looks for the empty line. Returns how many bytes of data belong to
 * the head if it ends in data, 0 if it does not end yet, or -1 if it must be refused. */
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

/* Passes a complete head or a part of a body to llhttp. Returns the number of bytes used. */
static size_t run_llhttp(struct hfd_h1_parser *p, const char *data, size_t n) {
        llhttp_errno_t error = llhttp_execute(&p->llhttp, data, n);

        if (error == HPE_OK)
                return n;
        if (error == HPE_PAUSED && p->done) {
                const char *end = llhttp_get_error_pos(&p->llhttp);

                llhttp_resume(&p->llhttp);
                return end ? (size_t)(end - data) : n;
        }
        fail_parse(p, error == HPE_INVALID_VERSION ? 505 : 400);
        return n;
}

/* Returns the event for the parser's state after a feed. After a complete request, also resets the
 * parser for the next one. */
static enum hfd_h1_event feed_event(struct hfd_h1_parser *p, int *ret_code) {
        if (p->code != 0) {
                *ret_code = p->code;
                return HFD_H1_BAD;
        }
        if (p->done) {
                rewind_parser(p);
                return HFD_H1_DONE;
        }
        return p->in_body ? HFD_H1_HEAD : HFD_H1_MORE;
}

/* Skips a few empty lines before a request, as RFC 9112 2.2 recommends. Input may be split
 * anywhere within them. Returns the number of bytes skipped. */
static size_t skip_empty_lines(struct hfd_h1_parser *p, const char *data, size_t n) {
        size_t skipped = 0;

        while (p->head.n == 0 && skipped < n && p->n_skipped < MAX_SKIPPED &&
               data[skipped] == (p->n_skipped % 2 == 1 ? '\n' : '\r')) {
                skipped++;
                p->n_skipped++;
        }
        if (skipped < n && p->n_skipped % 2 == 1)
                fail_parse(p, 400); /* a carriage return alone */
        return skipped;
}

/* Parses the complete head. HEAD -> BODY, or back to HEAD when the request has no body. */
static void parse_head(struct hfd_h1_parser *p, const char *data, size_t n) {
        size_t parsed;

        assert(!p->in_body);
        parsed = run_llhttp(p, data, n);
        if (p->code == 0 && (parsed != n || !p->head_seen))
                fail_parse(p, 400);
        p->in_body = !p->done;
}

static enum hfd_h1_event feed_head(struct hfd_h1_parser *p, const char *data, size_t n,
                                   size_t *ret_used, int *ret_code) {
        size_t skipped = skip_empty_lines(p, data, n), part;
        ssize_t end;

        data += skipped;
        n -= skipped;
        end = scan_head(p, data, n);
        part = end > 0 ? (size_t)end : n;
        *ret_used = skipped + part;
        if (end < 0)
                fail_parse(p, 400);
        else if (p->head.n + part > p->max_header_bytes)
                fail_parse(p, 431);
        if (p->code != 0 || part == 0)
                return feed_event(p, ret_code);
        /* A head that arrives in one piece is parsed in place, without a copy. */
        if (end == 0 || p->head.n > 0) {
                hf__strbuf_add(&p->head, data, part);
                if (p->head.error)
                        fail_parse(p, 500);
                if (p->head.error || end == 0)
                        return feed_event(p, ret_code);
                data = p->head.data;
                part = p->head.n;
        }
        parse_head(p, data, part);
        hf__strbuf_done(&p->head);
        return feed_event(p, ret_code);
}

enum hfd_h1_event hfd_h1_parser_feed(struct hfd_h1_parser *p, struct hfd_http_request *request,
                                     const char *data, size_t n, size_t *ret_used, int *ret_code) {
        enum hfd_h1_event event;
        size_t before = request->body.n, used;

        assert(!request->dispatched);
        p->request = request;
        *ret_used = 0;
        if (p->code != 0) {
                *ret_code = p->code;
                return HFD_H1_BAD;
        }
        if (!p->in_body)
                return feed_head(p, data, n, ret_used, ret_code);
        used = run_llhttp(p, data, n);
        p->framing += used - (request->body.n - before);
        if (p->code == 0 && p->framing > FRAMING_ALLOWANCE + FRAMING_PER_BYTE * request->body.n)
                fail_parse(p, 413);
        *ret_used = used;
        event = feed_event(p, ret_code);
        /* HFD_H1_HEAD was already reported, when the head became complete. */
        return event == HFD_H1_HEAD ? HFD_H1_MORE : event;
}

size_t hfd_h1_parser_memory(const struct hfd_h1_parser *p) { return p->head.n; }
bool hfd_h1_parser_in_head(const struct hfd_h1_parser *p) { return !p->in_body; }
bool hfd_h1_parser_keep_alive(const struct hfd_h1_parser *p) { return p->keep_alive; }
bool hfd_h1_parser_http10(const struct hfd_h1_parser *p) { return p->http10; }
