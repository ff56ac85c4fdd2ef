/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes URLs as Go's net/url does.
 *
 * Invariants: all that this file accepts, refuses and escapes is what Go 1.26 does, so the order of
 * the checks and the words of the reasons are Go's. Only the reasons why an address in brackets is
 * malformed have fewer details. Each function takes time in proportion to the text.
 */
#include "server/resources/custom/rules/values/url_text.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/quote.h"
#include "base/text.h"

#define DETAIL_MAX 150 /* bytes of a part of the text in a reason, in quotes and with the NUL */

/* The parts of a URL differ in the characters that they can contain without an escape. */
enum place { IN_HOST, IN_ZONE, IN_USER, IN_PATH, IN_FRAGMENT };

struct parser {
        struct hfd_url_text *url;
        char *reason; /* HFD_URL_REASON_MAX bytes */
};

static bool begins_with(struct hfd_url_part part, const char *start) {
        size_t n = strlen(start);

        return part.n >= n && memcmp(part.at, start, n) == 0;
}

/* The first n bytes of a part. */
static struct hfd_url_part head(struct hfd_url_part part, size_t n) {
        part.n = n;
        return part;
}

/* The part without its first n bytes. */
static struct hfd_url_part tail(struct hfd_url_part part, size_t n) {
        return n > 0 ? (struct hfd_url_part){part.at + n, part.n - n} : part;
}

size_t hfd_url_part_find(struct hfd_url_part part, char c) {
        const char *found = part.n > 0 ? memchr(part.at, c, part.n) : NULL;

        return found ? (size_t)(found - part.at) : part.n;
}

/* As hfd_url_part_find, but for the last c. */
static size_t find_last(struct hfd_url_part part, char c) {
        const char *found = part.n > 0 ? memrchr(part.at, c, part.n) : NULL;

        return found ? (size_t)(found - part.at) : part.n;
}

static bool is_alphanumeric(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || hf__is_digit(c);
}

/* Whether Go writes the character without an escape. */
static bool is_plain(char c, enum place place) {
        static const char *const plain[] = {
                [IN_HOST] = "-_.~!$&'()*+,;=:[]<>\"",
                [IN_ZONE] = "-_.~!$&'()*+,;=:[]<>\"",
                [IN_USER] = "-_.~$&+,;=",
                [IN_PATH] = "-_.~$&+,/:;=@",
                [IN_FRAGMENT] = "-_.~$&+,/:;=?@!()*",
        };

        return is_alphanumeric(c) || (c != 0 && strchr(plain[place], c));
}

/* Sets the reason. Always returns false, which a caller can return. */
static bool refuse(struct parser *p, const char *reason) {
        (void)snprintf(p->reason, HFD_URL_REASON_MAX, "%s", reason);
        return false;
}

/* The same for a reason that shows a part of the text in quotes. */
static bool refuse_part(struct parser *p, const char *before, struct hfd_url_part part,
                        const char *after) {
        char quoted[DETAIL_MAX];

        hf__quote_bytes(part.at, part.n, quoted, sizeof quoted);
        (void)snprintf(p->reason, HFD_URL_REASON_MAX, "%s%s%s", before, quoted, after);
        return false;
}

static bool is_escape(struct hfd_url_part part, size_t i) {
        return part.n - i >= 3 && hf__hex_digit(part.at[i + 1]) >= 0 &&
               hf__hex_digit(part.at[i + 2]) >= 0;
}

static char escaped_byte(const char *escape) {
        return (char)(hf__hex_digit(escape[1]) * 16 + hf__hex_digit(escape[2]));
}

/* Whether the place can have an escape for this byte. In a host only bytes beyond ASCII are
 * escaped, and the % itself, which begins the zone of an address. In a zone, the % and spaces can
 * be escaped, and the characters that need no escape in a host. */
static bool may_escape(char byte, enum place place) {
        if (byte == '%' || (place != IN_HOST && place != IN_ZONE))
                return true;
        if (place == IN_HOST)
                return (unsigned char)byte >= 0x80;
        return byte == ' ' || is_plain(byte, IN_HOST);
}

/* Checks the escapes of a part, and the characters of a host. */
static bool check_part(struct parser *p, struct hfd_url_part part, enum place place) {
        bool host = place == IN_HOST || place == IN_ZONE;

        for (size_t i = 0; i < part.n; i++) {
                char c = part.at[i];

                if (c == '%') {
                        size_t shown = part.n - i < 3 ? part.n - i : 3;

                        if (!is_escape(part, i) || !may_escape(escaped_byte(part.at + i), place))
                                return refuse_part(p, "invalid URL escape ",
                                                   head(tail(part, i), shown), "");
                        i += 2;
                } else if (host && (unsigned char)c < 0x80 && !is_plain(c, place)) {
                        return refuse_part(p, "invalid character ", head(tail(part, i), 1),
                                           " in host name");
                }
        }
        return true;
}

/* "", or a colon and any number of digits, even none. */
static bool is_port(struct hfd_url_part part) {
        if (part.n > 0 && part.at[0] != ':')
                return false;
        for (size_t i = 1; i < part.n; i++)
                if (!hf__is_digit(part.at[i]))
                        return false;
        return true;
}

/* The index of "%25", the escaped % that begins the zone of an address; part.n: there is no zone.
 */
static size_t find_zone(struct hfd_url_part part) {
        const char *found = part.n > 0 ? memmem(part.at, part.n, "%25", 3) : NULL;

        return found ? (size_t)(found - part.at) : part.n;
}

/* Whether the part is an address of this family. */
static bool is_address(int family, struct hfd_url_part part) {
        char text[INET6_ADDRSTRLEN + 1] = "";
        struct in6_addr address;

        if (part.n == 0 || part.n >= sizeof text)
                return false;
        memcpy(text, part.at, part.n);
        return inet_pton(family, text, &address) == 1;
}

/* Checks a host that begins with a bracket: an address of IPv6, perhaps with a zone, in brackets,
 * and perhaps a port. */
static bool check_bracketed(struct parser *p, struct hfd_url_part host) {
        size_t close = find_last(host, ']');
        struct hfd_url_part name = tail(host, 1);
        size_t zone;

        if (close == host.n)
                return refuse(p, "missing ']' in host");
        if (!is_port(tail(host, close + 1)))
                return refuse_part(p, "invalid port ", tail(host, close + 1), " after host");
        name.n = close - 1;
        zone = find_zone(name);
        if (!check_part(p, head(name, zone), IN_HOST) || !check_part(p, tail(name, zone), IN_ZONE))
                return false;
        if (zone == name.n && is_address(AF_INET, name))
                return refuse(p, "invalid IP-literal");
        /* A zone that is there has at least a character after its %. */
        if (!is_address(AF_INET6, head(name, zone)) || name.n - zone == 3)
                return refuse_part(p, "invalid host: ParseAddr(", name, "): unable to parse IP");
        return true;
}

static bool is_http(struct hfd_url_part scheme) {
        return (scheme.n == 4 && strncasecmp(scheme.at, "http", 4) == 0) ||
               (scheme.n == 5 && strncasecmp(scheme.at, "https", 5) == 0);
}

static bool check_host(struct parser *p, struct hfd_url_part host) {
        size_t bracket = find_last(host, '[');
        size_t colon = hfd_url_part_find(host, ':');

        if (bracket < host.n)
                return bracket == 0 ? check_bracketed(p, host) : refuse(p, "invalid IP-literal");
        /* Other schemes may have a list of hosts with ports. */
        if (!is_http(p->url->scheme))
                colon = find_last(host, ':');
        if (!is_port(tail(host, colon)))
                return refuse_part(p, "invalid port ", tail(host, colon), " after host");
        return check_part(p, host, IN_HOST);
}

static bool is_user(struct hfd_url_part part) {
        for (size_t i = 0; i < part.n; i++)
                if (!is_alphanumeric(part.at[i]) &&
                    (part.at[i] == 0 || !strchr("-._:~!$&'()*+,;=%@", part.at[i])))
                        return false;
        return true;
}

/* Reads the user and the host after "//". */
static bool parse_authority(struct parser *p, struct hfd_url_part authority) {
        struct hfd_url_text *url = p->url;
        size_t at = find_last(authority, '@');
        struct hfd_url_part user = head(authority, at < authority.n ? at : 0);
        size_t colon = hfd_url_part_find(user, ':');

        url->has_user = at < authority.n;
        url->host = url->has_user ? tail(authority, at + 1) : authority;
        if (!check_host(p, url->host))
                return false;
        if (!is_user(user))
                return refuse(p, "net/url: invalid userinfo");
        url->has_password = colon < user.n;
        url->user = head(user, colon);
        url->password = tail(user, url->has_password ? colon + 1 : colon);
        return check_part(p, url->user, IN_USER) && check_part(p, url->password, IN_USER);
}

/* Moves the scheme from the beginning of *rest to the URL, and drops the colon. A text without a
 * valid scheme stays as it is. False: the text begins with a colon. */
static bool take_scheme(struct parser *p, struct hfd_url_part *rest) {
        size_t n = 0;

        while (n < rest->n && (is_alphanumeric(rest->at[n]) || strchr("+-.", rest->at[n])))
                n++;
        if (n == rest->n || rest->at[n] != ':')
                return true;
        if (n == 0)
                return refuse(p, "missing protocol scheme");
        if (is_alphanumeric(rest->at[0]) && !hf__is_digit(rest->at[0])) {
                p->url->scheme = head(*rest, n);
                *rest = tail(*rest, n + 1);
        }
        return true;
}

/* request: as Go's ParseRequestURI does. Otherwise as Go's Parse does with a text that
 * ParseRequestURI accepts; the caller has cut the fragment off. */
static bool parse(struct parser *p, struct hfd_url_part rest, bool request) {
        struct hfd_url_text *url = p->url;
        size_t n;

        *url = (struct hfd_url_text){0};
        /* The loop refuses NULs, too, which strchr would find in the lists of characters. */
        for (size_t i = 0; i < rest.n; i++)
                if ((unsigned char)rest.at[i] < ' ' || rest.at[i] == 0x7f)
                        return refuse(p, "net/url: invalid control character in URL");
        if (rest.n == 0)
                return refuse(p, "empty url");
        url->path = rest;
        if (rest.n == 1 && *rest.at == '*')
                return true;
        if (!take_scheme(p, &rest))
                return false;
        n = hfd_url_part_find(rest, '?');
        url->has_query = n < rest.n;
        if (url->has_query)
                url->query = tail(rest, n + 1);
        rest.n = n;
        url->path = head(rest, 0);
        if (!begins_with(rest, "/")) {
                url->opaque = rest;
                return url->scheme.n > 0 || refuse(p, "invalid URI for request");
        }
        if (begins_with(rest, "//") &&
            (url->scheme.n > 0 || (!request && !begins_with(rest, "///")))) {
                struct hfd_url_part authority = tail(rest, 2);

                n = hfd_url_part_find(authority, '/');
                rest = tail(authority, n);
                if (!parse_authority(p, head(authority, n)))
                        return false;
        } else {
                url->omits_host = url->scheme.n > 0;
        }
        url->path = rest;
        return check_part(p, rest, IN_PATH);
}

bool hfd_url_text_parse_request(const char *text, size_t n, struct hfd_url_text *ret,
                                char reason[static HFD_URL_REASON_MAX]) {
        struct parser p = {.url = ret, .reason = reason};

        return parse(&p, (struct hfd_url_part){text, n}, true);
}

bool hfd_url_text_parse(const char *text, size_t n, struct hfd_url_text *ret, size_t *ret_n,
                        char reason[static HFD_URL_REASON_MAX]) {
        struct parser p = {.url = ret, .reason = reason};
        struct hfd_url_part whole = {text, n};

        *ret_n = hfd_url_part_find(whole, '#');
        if (!parse(&p, head(whole, *ret_n), false))
                return false;
        ret->fragment = tail(whole, *ret_n < n ? *ret_n + 1 : n);
        *ret_n = n;
        return check_part(&p, ret->fragment, IN_FRAGMENT);
}

size_t hfd_url_part_unescape(struct hfd_url_part part, bool plus, char *out) {
        size_t n = 0;

        for (size_t i = 0; i < part.n; i++) {
                out[n] = plus && part.at[i] == '+' ? ' ' : part.at[i];
                if (part.at[i] == '%') {
                        if (!is_escape(part, i))
                                return SIZE_MAX;
                        out[n] = escaped_byte(part.at + i);
                        i += 2;
                }
                n++;
        }
        return n;
}

/* The functions put_ write at `out`, and return the place after what they have written. */
static char *put_text(char *out, const char *text, size_t n) {
        if (n > 0)
                memcpy(out, text, n);
        return out + n;
}

/* Writes a part with exactly the escapes that Go would choose. */
static char *put_escaped(char *out, struct hfd_url_part part, enum place place) {
        static const char digits[] = "0123456789ABCDEF";

        for (size_t i = 0; i < part.n; i++) {
                char c = part.at[i];

                if (c == '%') {
                        c = escaped_byte(part.at + i);
                        i += 2;
                }
                if (is_plain(c, place)) {
                        *out++ = c;
                } else {
                        *out++ = '%';
                        *out++ = digits[(unsigned char)c >> 4];
                        *out++ = digits[(unsigned char)c & 15];
                }
        }
        return out;
}

/* The same, but keeps the escapes as they are unless one is missing. */
static char *put_as_written(char *out, struct hfd_url_part part, enum place place) {
        for (size_t i = 0; i < part.n; i++)
                if (!is_plain(part.at[i], place) && !strchr("!'()*[]%$&+,;=:@", part.at[i]))
                        return put_escaped(out, part, place);
        return put_text(out, part.at, part.n);
}

/* Writes the part between the scheme and the path. */
static char *put_authority(char *out, const struct hfd_url_text *url) {
        if (!url->has_user && url->host.n == 0 &&
            (url->scheme.n == 0 || url->omits_host || url->path.n == 0))
                return out;
        out = put_text(out, "//", 2);
        if (url->has_user) {
                out = put_escaped(out, url->user, IN_USER);
                if (url->has_password) {
                        *out++ = ':';
                        out = put_escaped(out, url->password, IN_USER);
                }
                *out++ = '@';
        }
        return put_escaped(out, url->host, IN_HOST);
}

void hfd_url_text_write(const struct hfd_url_text *url, char *out, struct hfd_url_form *ret) {
        char *at = out;

        for (size_t i = 0; i < url->scheme.n; i++) {
                char c = url->scheme.at[i];

                *at++ = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
        }
        ret->scheme = (struct hfd_url_part){out, url->scheme.n};
        if (url->scheme.n > 0)
                *at++ = ':';
        at = url->opaque.n > 0 ? put_text(at, url->opaque.at, url->opaque.n)
                               : put_authority(at, url);
        ret->path = (struct hfd_url_part){at, 0};
        if (url->path.n == 1 && *url->path.at == '*')
                *at++ = '*';
        else
                at = put_as_written(at, url->path, IN_PATH);
        ret->path.n = (size_t)(at - ret->path.at);
        if (url->has_query) {
                *at++ = '?';
                at = put_text(at, url->query.at, url->query.n);
        }
        if (url->fragment.n > 0) {
                *at++ = '#';
                at = put_as_written(at, url->fragment, IN_FRAGMENT);
        }
        ret->whole = (struct hfd_url_part){out, (size_t)(at - out)};
}

void hfd_url_host_split(struct hfd_url_part host, struct hfd_url_part *ret_name,
                        struct hfd_url_part *ret_port) {
        size_t colon = find_last(host, ':');

        if (!is_port(tail(host, colon)))
                colon = host.n;
        *ret_port = tail(host, colon < host.n ? colon + 1 : colon);
        *ret_name = head(host, colon);
        if (colon >= 2 && host.at[0] == '[' && host.at[colon - 1] == ']')
                *ret_name = head(tail(host, 1), colon - 2);
}
