/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks `timeout` for every request but a watch, because the handlers of documents, such as
 * /version, do not read the query.
 *
 * Invariant: behind this filter a `timeout` is a duration, empty, or ignored.
 */
#include "server/filters/timeout.h"

#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/filters/request/query.h"
#include "server/filters/request_context.h"
#include "server/filters/status_response.h"

#define DIGITS "0123456789"

/* Appends a text as Go's package time quotes it. */
static void put_quoted(struct hf__strbuf *out, const char *text, size_t n) {
        hf__strbuf_putc(out, '"');
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)text[i];
                if (c == '"' || c == '\\')
                        hf__strbuf_putc(out, '\\');
                if (c < ' ' || c >= 0x80)
                        hf__strbuf_printf(out, "\\x%02x", c);
                else
                        hf__strbuf_putc(out, (char)c);
        }
        hf__strbuf_putc(out, '"');
}

static bool is_unit(const char *text, size_t n) {
        char duration[8];
        hf_nsec value;

        (void)snprintf(duration, sizeof duration, "1%.*s", (int)n, text);
        return n < sizeof duration - 1 && hf__duration_parse(duration, &value) == 0;
}

/* Appends why Go's time.ParseDuration refuses a text. */
static void put_fault(struct hf__strbuf *out, const char *text) {
        const char *at = text + (*text == '-' || *text == '+'), *fault = "invalid";
        size_t n_unit = 0;

        hf__strbuf_puts(out, "time: ");
        for (;; at += n_unit) {
                size_t n = strspn(at, DIGITS);
                size_t n_fraction = at[n] == '.' ? strspn(at + n + 1, DIGITS) : 0;
                if (n + n_fraction == 0)
                        break;
                at += n + (at[n] == '.') + n_fraction;
                n_unit = strcspn(at, DIGITS ".");
                if (n_unit > 0 && is_unit(at, n_unit))
                        continue;
                fault = n_unit == 0 ? "missing unit in" : "in";
                if (n_unit > 0) {
                        hf__strbuf_puts(out, "unknown unit ");
                        put_quoted(out, at, n_unit);
                        hf__strbuf_putc(out, ' ');
                }
                break;
        }
        hf__strbuf_printf(out, "%s duration ", fault);
        put_quoted(out, text, strlen(text));
}

/* Whether the text is a duration, perhaps a negative one, which counts as absent. */
static bool is_duration(const char *text) {
        hf_nsec timeout;

        if (*text == '-')
                return text[1] != '+' && hf__duration_parse(text + 1, &timeout) == 0;
        return hf__duration_parse(text, &timeout) == 0;
}

bool hfd_timeout_filter(struct hfd_request_context *context) {
        char text[200] = "";

        if (context->info.watch)
                return true;
        int r = hfd_query_get(hfd_http_request_query(context->request), "timeout", text,
                              sizeof text);
        if (r == HF_E_NOT_FOUND)
                return true;
        if (r == 0 && (!*text || is_duration(text)))
                return true;
        struct hf__strbuf message = {0};
        hf__strbuf_puts(&message, "invalid timeout specified in the request URL - ");
        put_fault(&message, r == 0 ? text : ""); /* an unreadable or too long text is not shown */
        hfd_status_response_code(context->request, 400, 0,
                                 message.error == 0 ? message.data : "invalid timeout");
        hf__strbuf_done(&message);
        return false;
}
