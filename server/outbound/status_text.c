/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the texts for status codes (status_text.h).
 *
 * Invariant: the texts are those of client-go for a response whose body is no Status. The body is
 * another server's, so only printable text of it is shown, and at most SHOWN_MAX bytes.
 */
#include "server/outbound/status_text.h"

#include <stdbool.h>
#include <string.h>

#define SHOWN_MAX 2048

static const struct {
        int code;
        const char *text;
} texts[] = {
        {400, "the server rejected our request for an unknown reason"},
        {401, "the server has asked for the client to provide credentials"},
        {404, "the server could not find the requested resource"},
        {405, "the server does not allow this method on the requested resource"},
        {409, "the server reported a conflict"},
        {413, "the server responded with the status code 413 but did not return more information"},
        {415, "the server responded with the status code 415 but did not return more information"},
        {422, "the server rejected our request due to an error in our request"},
        {429, "the server has received too many requests and has asked us to try again later"},
        {503, "the server is currently unable to handle the request"},
        {504, "the server was unable to return a response in the time allotted, but may still be "
              "processing the request"},
};

/* The characters of ASCII that Go's strings.TrimSpace removes. */
static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Whether the body is text that a person can read. client-go asks the header Content-Type, which is
 * not known here. So a body without control characters counts as text, unless it looks like the
 * JSON of an object. */
static bool is_text(const char *body, size_t n) {
        for (size_t i = 0; i < n; i++)
                if ((unsigned char)body[i] < ' ' && !memchr("\t\r\n", body[i], 3))
                        return false;
        return n > 0 && body[0] != '{';
}

/* Appends the body in quotes, without the white space around it. The escapes are those of JSON;
 * client-go's, those of Go, are the same for most texts. */
static void put_body(struct hf__strbuf *text, const char *body, size_t n) {
        while (n > 0 && is_space(body[n - 1]))
                n--;
        for (; n > 0 && is_space(*body); n--)
                body++;
        if (n > SHOWN_MAX)
                n = SHOWN_MAX;
        if (is_text(body, n))
                hf__strbuf_json(text, body, n);
        else
                hf__strbuf_puts(text, "\"unknown\"");
}

void hfd_outbound_status_text(int code, const void *body, size_t n_body, struct hf__strbuf *text) {
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
                if (texts[i].code == code) {
                        hf__strbuf_puts(text, texts[i].text);
                        return;
                }
        if (code < 500) {
                hf__strbuf_printf(text,
                                  "the server responded with the status code %d but did not "
                                  "return more information",
                                  code);
                return;
        }
        hf__strbuf_puts(text, "an error on the server (");
        put_body(text, body, n_body);
        hf__strbuf_puts(text, ") has prevented the request from succeeding");
}
