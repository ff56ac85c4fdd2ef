/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the response to a request for a resource, with the headers that Kubernetes' clients read.
 * The body is sent without a copy, unless the client wants it indented.
 */
#include "server/handlers/rest/rest_request.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/handlers/negotiation.h"

#define FENCE_HEADER "holdfast-fence" /* HF_FENCE_HEADER, in lower case */
#define WARNINGS_MAX 8
#define WARNING_MAX  320 /* bytes of one header, with the NUL */

/* Makes an indented copy. NULL (out of memory): the caller sends the body unchanged. */
static struct hf__buf *make_pretty(const struct hf__buf *body) {
        struct hf__json *json = NULL;
        struct hf__strbuf s = {0};
        struct hf__buf *buf = NULL;

        if (hf__json_parse(body->data, body->n, &json, NULL) == 0) {
                hf__json_print_pretty(json, &s);
                hf__strbuf_putc(&s, '\n');
                buf = hf__strbuf_to_buf(&s);
        }
        hf__json_free(json);
        hf__strbuf_done(&s);
        return buf;
}

/* The value of a Warning header (RFC 7234) for the n bytes of line; cut if it is too long. */
static void format_warning(const char *line, size_t n, char text[WARNING_MAX]) {
        size_t at = (size_t)snprintf(text, WARNING_MAX, "299 - \"");

        for (size_t i = 0; i < n && at < WARNING_MAX - 3; i++) {
                if (line[i] == '"')
                        text[at++] = '\\';
                text[at++] = line[i];
        }
        text[at++] = '"';
        text[at] = '\0';
}

/* Adds a Warning header for each line, up to WARNINGS_MAX. lines may be NULL. Returns how many. */
static size_t add_warnings(const char *lines, char text[WARNINGS_MAX][WARNING_MAX],
                           struct hfd_header *headers) {
        size_t n = 0;

        for (const char *line = lines; line && *line && n < WARNINGS_MAX; n++) {
                size_t n_line = strcspn(line, "\n");
                format_warning(line, n_line, text[n]);
                headers[n] = (struct hfd_header){"warning", text[n]};
                line += n_line;
                if (*line == '\n')
                        line++;
        }
        return n;
}

void hfd_rest_respond(struct hfd_http_request *http_request, const struct hfd_response *response,
                      const char *unknown_fields) {
        struct hfd_header headers[3 + WARNINGS_MAX];
        char warnings[WARNINGS_MAX][WARNING_MAX], retry_after[16];
        const char *fence = hfd_http_request_header(http_request, FENCE_HEADER),
                   *agent = hfd_http_request_header(http_request, "user-agent");
        struct hf__buf *pretty = NULL;
        size_t n = 0;

        assert(response->code != 0);
        if (response->body && response->body->n <= HFD_REST_PRETTY_MAX &&
            hfd_negotiate_pretty(hfd_http_request_query(http_request), agent))
                pretty = make_pretty(response->body);
        headers[n++] = (struct hfd_header){"cache-control", "no-cache, private"};
        if (response->status.retry_after_s > 0) {
                (void)snprintf(retry_after, sizeof retry_after, "%u",
                               response->status.retry_after_s);
                headers[n++] = (struct hfd_header){"retry-after", retry_after};
        }
        /* The client takes the repeated header as proof that the write was fenced. */
        if (response->fence_compared && fence)
                headers[n++] = (struct hfd_header){FENCE_HEADER, fence};
        n += add_warnings(unknown_fields, warnings, headers + n);
        hfd_http_request_reply(http_request, response->code, "application/json", headers, n,
                               pretty ? pretty : response->body);
        hf__buf_unref(pretty);
}

void hfd_rest_free(struct hfd_rest_request *rest) {
        hfd_options_done(&rest->request.options);
        hf__strbuf_done(&rest->translated);
        free(rest->fence);
        hfd_http_request_unref(rest->http_request);
        free(rest);
}
