/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores the response to one request in its exchange (struct hf__exchange). curl passes each header
 * line, then the pieces of the body.
 *
 * A response may have several header blocks: interim ones with 1xx status codes, the final one, and
 * trailers, which have no status line. The exchange's block_code is the status of the block that is
 * being received; the exchange's head_done is set when the final block is complete. Headers of 1xx
 * blocks are ignored.
 *
 * When a callback of the request refuses to go on, or the body exceeds its limit or cannot be
 * stored (-ENOMEM), the exchange's forced_outcome is set, and curl is made to fail the transfer.
 * Invariant: the first forced_outcome is kept, because it is the cause, and curl's error only the
 * consequence.
 */
#include "base/http/http_response.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/http/engine_private.h"
#include "base/http/exchange.h"

/* libcurl may leave received bytes in its buffer after the buffer was full (lane.c). A piece of the
 * body of at least this size may come from a full buffer that also contained headers. */
#define LARGE_PIECE ((size_t)CURL_MAX_WRITE_SIZE / 2)

static void force_outcome(struct hf__exchange *x, int outcome) {
        if (x->forced_outcome == 0)
                x->forced_outcome = outcome;
}

/* Whether the line is the header `name`. If so, *ret_value is its value without surrounding white
 * space. */
static bool match_header(const char *line, size_t n, const char *name, const char **ret_value,
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

/* Parses a number of seconds. Returns 0 for anything else, such as a date, and for a number that
 * might not fit. */
static uint32_t parse_seconds(const char *value, size_t n) {
        uint32_t seconds = 0;

        for (size_t i = 0; i < n; i++) {
                if (value[i] < '0' || value[i] > '9' || seconds > 100000000)
                        return 0;
                seconds = seconds * 10 + (uint32_t)(value[i] - '0');
        }
        return seconds;
}

/* Replaces *text by a copy. false: out of memory. */
static bool replace_text(char **text, const char *value, size_t n) {
        free(*text);
        *text = strndup(value, n);
        return *text != NULL;
}

/* Stores a header if struct hf__http_result has a member for it. false: out of memory. */
static bool store_header(struct hf__exchange *x, const char *line, size_t n) {
        const char *value;
        size_t n_value;

        switch (line[0] | 0x20) { /* names are case insensitive */
        case 'r':
                if (match_header(line, n, "retry-after", &value, &n_value))
                        x->retry_after_s = parse_seconds(value, n_value);
                return true;
        case 'h':
                return !match_header(line, n, "holdfast-fence", &value, &n_value) ||
                       replace_text(&x->fence_echo, value, n_value);
        default: return true;
        }
}

/* The status code in a status line such as "HTTP/1.1 200 OK" or "HTTP/2 200". */
static int parse_status_code(const char *line, size_t n) {
        const char *space = memchr(line, ' ', n);
        int code = 0;

        if (space)
                for (const char *p = space + 1;
                     p < line + n && p < space + 4 && *p >= '0' && *p <= '9'; p++)
                        code = code * 10 + (*p - '0');
        return code;
}

/* Handles the empty line at the end of a header block. false: the transfer must end. */
static bool end_header_block(struct hf__exchange *x) {
        if (x->head_done || x->block_code < 200)
                return true; /* the end of the trailers, or of a 1xx block */
        x->head_done = true;
        x->code = x->block_code;
        if (x->head_deadline != HF_NSEC_NEVER)
                hf__exchange_set_timer(x);
        if (x->request.on_head && x->request.on_head(x->request.ctx, x->code) != 0) {
                force_outcome(x, HF_E_CANCELED);
                return false;
        }
        return true;
}

size_t hf__http_response_on_header(char *line, size_t size, size_t n, void *ctx) {
        struct hf__exchange *x = ctx;

        hf__engine_assert_thread(x->engine);
        x->pool->n_received++;
        if (!x->head_done && n > 5 && memcmp(line, "HTTP/", 5) == 0) {
                x->block_code = parse_status_code(line, n);
                if (n > 7 && line[5] == '1') /* HTTP/1.x: requests cannot share the connection */
                        hf__lanes_lift_limit(x->pool);
                return n;
        }
        if (n > 0 && (line[0] == '\r' || line[0] == '\n'))
                return end_header_block(x) ? n : 0;
        /* If memory is exhausted, curl fails the transfer and the outcome is unknown. */
        if (n > 0 && x->block_code >= 200 && !store_header(x, line, n))
                return 0;
        return n;
}

size_t hf__http_response_on_body(char *data, size_t size, size_t n, void *ctx) {
        struct hf__exchange *x = ctx;

        hf__engine_assert_thread(x->engine);
        x->pool->n_received++;
        if (n >= LARGE_PIECE)
                x->pool->reread_at = x->engine->now;
        if (x->request.on_data) {
                if (x->request.on_data(x->request.ctx, data, n) == 0)
                        return n;
                force_outcome(x, HF_E_CANCELED);
                return CURL_WRITEFUNC_ERROR;
        }
        hf__strbuf_add(&x->body, data, n);
        if (x->body.error == 0)
                return n;
        force_outcome(x, x->body.error);
        return CURL_WRITEFUNC_ERROR;
}
