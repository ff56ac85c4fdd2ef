/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser of URLs. It finds the mistakes that occur in practice. Go refuses some more (such as a
 * wrong IPv6 address), which are accepted here.
 *
 * Invariants: every part lies within the text, mostly without a NUL after it. An absent part has no
 * bytes. The errors are Go's, because kube-apiserver's causes contain them.
 */
#include "server/resources/strategies/admission/webhook_url.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "server/resources/causes.h"

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Writes the error of Go's url.Parse. Returns false. */
static bool refuse_url(const char *text, const char *why, char error[HFD_URL_ERROR_MAX]) {
        char quoted[300];

        hfd_quote(text, quoted, sizeof quoted);
        (void)snprintf(error, HFD_URL_ERROR_MAX, "parse %s: %s", quoted, why);
        return false;
}

/* Bytes of the scheme, before the colon. 0 = there is none. */
static size_t scheme_length(const char *text) {
        size_t n = 0;

        while (is_letter(text[n]) ||
               (n > 0 && (hf__is_digit(text[n]) || (text[n] && strchr("+-.", text[n])))))
                n++;
        return text[n] == ':' ? n : 0;
}

/* Returns the first bad escape among n bytes; NULL = none. */
static const char *bad_escape(const char *text, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (text[i] == '%' && (i + 2 >= n || hf__hex_digit(text[i + 1]) < 0 ||
                                       hf__hex_digit(text[i + 2]) < 0))
                        return text + i;
        return NULL;
}

/* text: the whole URL, which the error shows. False: the part has a wrong escape. */
static bool check_escapes(const char *text, const struct hfd_url_part *part,
                          char error[HFD_URL_ERROR_MAX]) {
        const char *bad = bad_escape(part->at, part->n);
        char why[60];

        if (!bad)
                return true;
        size_t rest = part->n - (size_t)(bad - part->at);
        (void)snprintf(why, sizeof why, "invalid URL escape \"%.*s\"", (int)(rest < 3 ? rest : 3),
                       bad);
        return refuse_url(text, why, error);
}

/* Checks the host with its port. A colon in brackets belongs to an IPv6 address, not to the port.
 */
static bool check_host(const char *text, const struct hfd_url_part *host,
                       char error[HFD_URL_ERROR_MAX]) {
        char why[160];
        size_t colon = host->n;

        for (size_t i = 0; i < host->n; i++) {
                if (strchr(" <>\"\\^`{|}", host->at[i])) {
                        (void)snprintf(why, sizeof why, "invalid character \"%s%c\" in host name",
                                       host->at[i] == '"' || host->at[i] == '\\' ? "\\" : "",
                                       host->at[i]);
                        return refuse_url(text, why, error);
                }
                if (host->at[i] == ':')
                        colon = i;
                else if (host->at[i] == ']')
                        colon = host->n;
        }
        for (size_t i = colon + 1; i < host->n; i++)
                if (!hf__is_digit(host->at[i])) {
                        (void)snprintf(why, sizeof why, "invalid port \"%.*s\" after host",
                                       (int)(host->n - colon < 100 ? host->n - colon : 100),
                                       host->at + colon);
                        return refuse_url(text, why, error);
                }
        return true;
}

/* Parses the authority, "USER@HOST:PORT", and checks the path after it. at: after the two slashes;
 * end: the end of the path. The last '@' ends the user, because a password may contain others. */
static bool parse_authority(const char *text, const char *at, const char *end, struct hfd_url *url,
                            char error[HFD_URL_ERROR_MAX]) {
        const char *slash = memchr(at, '/', (size_t)(end - at)), *last = slash ? slash : end;
        struct hfd_url_part path = {last, (size_t)(end - last)};

        for (const char *c = last; c > at; c--)
                if (c[-1] == '@') {
                        url->has_user = true;
                        url->user = (struct hfd_url_part){at, (size_t)(c - 1 - at)};
                        at = c;
                        break;
                }
        url->host = (struct hfd_url_part){at, (size_t)(last - at)};
        return check_host(text, &url->host, error) && check_escapes(text, &path, error);
}

bool hfd_url_parse(const char *text, struct hfd_url *ret_url, char error[HFD_URL_ERROR_MAX]) {
        const char *end = text + strcspn(text, "#"), *at = text;

        *ret_url = (struct hfd_url){0};
        for (const char *c = text; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        return refuse_url(text, "net/url: invalid control character in URL", error);
        if (*text == ':')
                return refuse_url(text, "missing protocol scheme", error);
        if (*end)
                ret_url->fragment = (struct hfd_url_part){end + 1, strlen(end + 1)};
        ret_url->scheme = (struct hfd_url_part){text, scheme_length(text)};
        if (ret_url->scheme.n > 0)
                at += ret_url->scheme.n + 1;
        const char *query = memchr(at, '?', (size_t)(end - at));
        if (query) {
                ret_url->query = (struct hfd_url_part){query + 1, (size_t)(end - query - 1)};
                end = query;
        }
        if (end - at >= 2 && at[0] == '/' && at[1] == '/')
                return parse_authority(text, at + 2, end, ret_url, error);
        size_t n_segment = (size_t)(end - at);
        const char *slash = memchr(at, '/', n_segment);
        if (slash)
                n_segment = (size_t)(slash - at);
        if (ret_url->scheme.n == 0 && memchr(at, ':', n_segment))
                return refuse_url(text, "first path segment in URL cannot contain colon", error);
        const struct hfd_url_part path = {at, (size_t)(end - at)};
        /* After a scheme Go would check only a path that begins with a slash. Callers refuse such a
         * URL in any case, because it has no host. */
        return ret_url->scheme.n > 0 || check_escapes(text, &path, error);
}
