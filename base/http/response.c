/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes back of one request: curl calls with header lines, then with the body's pieces.
 *
 * The answer may be cut into header blocks: 1xx answers, the answer's own, and trailers, which have
 * no status line. gRPC's status is in the trailers, or in the answer's own block when there is no
 * body. block_code is the status of the block that is coming in, head_done says that the answer's
 * own is complete; of 1xx answers nothing is kept. A callback that wants no more, and a body beyond
 * its limit, leave the verdict and fail the transfer; the first verdict stays.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/http/engine_private.h"

#define LARGE_PIECE                                                                                \
        ((size_t)CURL_MAX_WRITE_SIZE /                                                             \
         2) /* curl's buffer was full: the rest of it may have been headers */

static void keep(struct hf__exchange *x, int outcome) {
        if (!x->verdict)
                x->verdict = outcome;
}

/* If the line is "name: value", its value without the space around it. */
static bool header_is(const char *line, size_t n, const char *name, const char **ret_value,
                      size_t *ret_n) {
        size_t n_name = strlen(name);

        if (n <= n_name || line[n_name] != ':' || strncasecmp(line, name, n_name) != 0)
                return false;
        for (line += n_name + 1, n -= n_name + 1; n > 0 && (*line == ' ' || *line == '\t'); line++)
                n--;
        while (n > 0 && strchr("\r\n \t", line[n - 1]))
                n--;
        *ret_value = line;
        *ret_n = n;
        return true;
}

static int hex_digit(char c) {
        return c >= '0' && c <= '9'                 ? c - '0'
               : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                    : -1;
}

/* gRPC's messages are percent-encoded. */
static void percent_decode(char *text) {
        char *to = text;

        for (; *text; text++)
                if (*text == '%' && hex_digit(text[1]) >= 0 && hex_digit(text[2]) >= 0) {
                        *to++ = (char)(hex_digit(text[1]) << 4 | hex_digit(text[2]));
                        text += 2;
                } else {
                        *to++ = *text;
                }
        *to = '\0';
}

/* Digits only; 0 for anything else (a date). */
static uint32_t parse_seconds(const char *value, size_t n) {
        uint32_t seconds = 0;

        for (size_t i = 0; i < n; i++) {
                if (value[i] < '0' || value[i] > '9' || seconds > 100000000)
                        return 0;
                seconds = seconds * 10 + (uint32_t)(value[i] - '0');
        }
        return seconds;
}

static bool keep_text(char **text, const char *value, size_t n) {
        free(*text);
        *text = strndup(value, n);
        return *text != NULL;
}

static bool note_header(struct hf__exchange *x, const char *line, size_t n) {
        const char *value;
        size_t n_value;

        switch (line[0] | 32) {
        case 'g':
                if (header_is(line, n, "grpc-status", &value, &n_value)) {
                        x->grpc_status = n_value ? (int)parse_seconds(value, n_value) : -1;
                } else if (header_is(line, n, "grpc-message", &value, &n_value)) {
                        if (!keep_text(&x->grpc_message, value, n_value))
                                return false;
                        percent_decode(x->grpc_message);
                }
                return true;
        case 'r':
                if (header_is(line, n, "retry-after", &value, &n_value))
                        x->retry_after_s = parse_seconds(value, n_value);
                return true;
        case 'h':
                return !header_is(line, n, "holdfast-fence", &value, &n_value) ||
                       keep_text(&x->fence_echo, value, n_value);
        default: return true;
        }
}

/* "HTTP/1.1 200 OK", "HTTP/2 200" */
static int status_code(const char *line, size_t n) {
        const char *space = memchr(line, ' ', n);
        int code = 0;

        if (space)
                for (const char *p = space + 1;
                     p < line + n && p < space + 4 && *p >= '0' && *p <= '9'; p++)
                        code = code * 10 + (*p - '0');
        return code;
}

size_t hf__response_on_header(char *line, size_t size, size_t n, void *ctx) {
        struct hf__exchange *x = ctx;

        x->pool->n_moved++;
        if (!x->head_done && n > 5 && memcmp(line, "HTTP/", 5) == 0) {
                x->block_code = status_code(line, n);
                if (n > 7 && line[5] == '1')
                        hf__lanes_cannot_share(x->pool);
                return n;
        }
        if (n > 0 && (line[0] == '\r' || line[0] == '\n')) {
                if (x->head_done || x->block_code < 200)
                        return n; /* the end of a 1xx answer, or of the trailers */
                x->head_done = true;
                x->code = x->block_code;
                if (x->head_deadline != HF_NSEC_NEVER)
                        hf__exchange_set_due(x);
                if (x->request.on_head && x->request.on_head(x->request.ctx, x->code) != 0) {
                        keep(x, HF_E_CANCELED);
                        return 0;
                }
                return n;
        }
        if (n > 0 && x->block_code >= 200 && !note_header(x, line, n))
                return 0; /* no memory: the answer is lost, so its outcome is unknown */
        return n;
}

size_t hf__response_on_body(char *data, size_t size, size_t n, void *ctx) {
        struct hf__exchange *x = ctx;

        x->pool->n_moved++;
        if (n >= LARGE_PIECE)
                x->pool->kick_at = x->engine->now; /* see http_engine_lane.c */
        if (x->request.on_data) {
                if (x->request.on_data(x->request.ctx, data, n) == 0)
                        return n;
                keep(x, HF_E_CANCELED);
                return CURL_WRITEFUNC_ERROR;
        }
        hf__strbuf_add(&x->body, data, n);
        if (!x->body.error)
                return n;
        keep(x, x->body.error);
        return CURL_WRITEFUNC_ERROR;
}
