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
        {422, "the server rejected our request due to an error in our request"},
        {429, "the server has received too many requests and has asked us to try again later"},
        {503, "the server is currently unable to handle the request"},
        {504, "the server was unable to return a response in the time allotted, but may still be "
              "processing the request"},
};

/* The characters of ASCII that Go's strings.TrimSpace removes. */
static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Whether the body is text that a person can read. client-go asks the header Content-Type, which is
 * not known here. So a body whose only control characters are line breaks and tabs counts as text,
 * unless it looks like the JSON of an object. An empty body, which has no type, is text. */
static bool is_text(const char *body, size_t n) {
        for (size_t i = 0; i < n; i++)
                if ((unsigned char)body[i] < ' ' && !memchr("\t\r\n", body[i], 3))
                        return false;
        return n == 0 || body[0] != '{';
}

/* What is shown of a body: its text without the white space around it, or "unknown". Like
 * client-go, it is cut first. */
static void trim_body(const char **body, size_t *n) {
        if (*n > SHOWN_MAX)
                *n = SHOWN_MAX;
        while (*n > 0 && is_space((*body)[*n - 1]))
                (*n)--;
        for (; *n > 0 && is_space(**body); (*n)--)
                (*body)++;
        if (is_text(*body, *n))
                return;
        *body = "unknown";
        *n = strlen(*body);
}

/* A refusal that only the server can explain: client-go shows the body as the whole text. */
static bool is_explained_by_body(int code) { return code == 403 || code == 406 || code == 415; }

/* Appends the body as it is, but each line break or tab as a space, because a log line may show the
 * text. Without a body that is text, client-go has a text of its own for 406. */
static void put_explanation(struct hf__strbuf *text, int code, const char *body, size_t n) {
        if (code == 406 &&
            (n == 0 || (n == strlen("unknown") && memcmp(body, "unknown", n) == 0))) {
                hf__strbuf_puts(text, "the server was unable to respond with a content type that "
                                      "the client supports");
                return;
        }
        for (size_t i = 0; i < n; i++)
                hf__strbuf_putc(text, is_space(body[i]) ? ' ' : body[i]);
}

void hfd_outbound_status_text(int code, const void *body, size_t n_body, struct hf__strbuf *text) {
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
                if (texts[i].code == code) {
                        hf__strbuf_puts(text, texts[i].text);
                        return;
                }
        const char *shown = body;
        size_t n = n_body;
        trim_body(&shown, &n);
        if (is_explained_by_body(code)) {
                put_explanation(text, code, shown, n);
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
        /* JSON's escapes. client-go uses Go's (%q), which are the same for most texts. */
        hf__strbuf_json(text, shown, n);
        hf__strbuf_puts(text, ") has prevented the request from succeeding");
}
