/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of formats of the network: URIs, e-mail addresses, names of hosts, addresses.
 *
 * Invariants: a check accepts what Go's parsers accept, because Kubernetes uses them. Known
 * differences: comments, groups and inner spaces in e-mail addresses are not understood; in
 * names of hosts every character outside of ASCII counts as a letter; what is in brackets, as the
 * host of a URI or the domain of an e-mail address, is not looked at; in IPv6 a group has at most
 * four digits, and an IPv4 address within it no leading zeros; the address of a CIDR is shorter
 * than ADDRESS_MAX. Each check takes linear time, because clients choose the texts.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "server/resources/custom/schema/formats/formats.h"

#define ADDRESS_MAX 64 /* bytes of an IP address, with the NUL */

/* ---- addresses ---- */

/* Four numbers up to 255 with dots between them. As in older versions of Go, which Kubernetes
 * imitates for stored objects, a number may begin with zeros. */
static bool is_dotted_quad(const char *text) {
        for (int i = 0; i < 4; i++) {
                unsigned value = 0;
                size_t n = 0;
                for (; isdigit((unsigned char)text[n]) && value <= 255; n++)
                        value = 10 * value + (unsigned)(text[n] - '0');
                if (n == 0 || value > 255 || text[n] != (i < 3 ? '.' : '\0'))
                        return false;
                text += n + 1;
        }
        return true;
}

static bool is_colon_address(const char *text) {
        struct in6_addr address;

        return strchr(text, ':') && inet_pton(AF_INET6, text, &address) == 1;
}

/* Go also counts an IPv4 address within IPv6, "::ffff:10.0.0.1", as one. */
bool hfd_is_ipv4(const char *text) {
        return is_dotted_quad(text) || (strchr(text, '.') && is_colon_address(text));
}

bool hfd_is_ipv6(const char *text) { return is_colon_address(text); }

bool hfd_is_cidr(const char *text) {
        const char *slash = strchr(text, '/');
        char address[ADDRESS_MAX];
        unsigned bits = 0;

        if (!slash || (size_t)(slash - text) >= sizeof address || !slash[1])
                return false;
        memcpy(address, text, (size_t)(slash - text));
        address[slash - text] = '\0';
        for (const char *c = slash + 1; *c; c++) {
                if (!isdigit((unsigned char)*c) || bits > 128)
                        return false;
                bits = 10 * bits + (unsigned)(*c - '0');
        }
        return is_dotted_quad(address) ? bits <= 32 : bits <= 128 && is_colon_address(address);
}

/* The text consists of groups of n hexadecimal digits with separators between them. Returns the
 * number of groups; 0: the text has another form. */
static size_t count_groups(const char *text, size_t n, char separator) {
        size_t n_groups = 0;

        for (;;) {
                for (size_t i = 0; i < n; i++)
                        if (!isxdigit((unsigned char)text[i]))
                                return 0;
                n_groups++;
                text += n;
                if (!*text)
                        return n_groups;
                if (*text++ != separator)
                        return 0;
        }
}

bool hfd_is_mac(const char *text) {
        size_t n = count_groups(text, 2, ':');

        if (n == 0)
                n = count_groups(text, 2, '-');
        if (n == 0)
                n = 2 * count_groups(text, 4, '.');
        return n == 6 || n == 8 || n == 20;
}

/* ---- names of hosts ---- */

/* Whether the byte belongs to a character outside of ASCII; whether it continues one (UTF-8). */
static bool is_high(char c) { return ((unsigned char)c & 0x80) != 0; }
static bool is_continuation(char c) { return ((unsigned char)c & 0xc0) == 0x80; }
/* A letter, a digit or a symbol. */
static bool is_host_character(char c) {
        return isalnum((unsigned char)c) || is_high(c) || (c && strchr("$+<=>^`|~", c));
}

/* Whether the text is one label: a character, perhaps a dash, and up to 62 characters. */
static bool is_single_label(const char *text) {
        size_t n = 0;

        if (!is_host_character(*text))
                return false;
        do
                text++;
        while (is_continuation(*text));
        if (*text == '-')
                text++;
        for (; is_host_character(*text); text++)
                n += is_continuation(*text) ? 0 : 1;
        return *text == '\0' && n <= 62;
}

/* Whether the text consists of labels with a dot after each, and a top-level domain of letters. */
static bool is_dotted_name(const char *text) {
        const char *last = strrchr(text, '.');
        size_t n = 0;

        if (!last)
                return false;
        for (const char *c = last + 1; *c; c++) {
                if (!isalpha((unsigned char)*c) && !is_high(*c))
                        return false;
                n += is_continuation(*c) ? 0 : 1;
        }
        if (n < 2 || n > 63)
                return false;
        for (const char *c = text; c <= last; c++) {
                const bool is_first = c == text || c[-1] == '.';
                if (*c == '.' ? is_first || c[-1] == '-'
                              : !is_host_character(*c) && (is_first || *c != '-'))
                        return false;
        }
        return true;
}

bool hfd_is_internet_host(const char *text) {
        if (strlen(text) > 255 || (!is_single_label(text) && !is_dotted_name(text)))
                return false;
        for (const char *part = text; part; part = strchr(part, '.')) {
                part += part != text;
                if (strcspn(part, ".") > 63)
                        return false;
        }
        return true;
}

/* ---- URIs ---- */

/* Whether each % among n bytes is followed by two hexadecimal digits. */
static bool is_escaped(const char *text, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (text[i] == '%' && (i + 2 >= n || !isxdigit((unsigned char)text[i + 1]) ||
                                       !isxdigit((unsigned char)text[i + 2])))
                        return false;
        return true;
}

/* Whether n bytes are empty, or a colon and digits. */
static bool is_port(const char *text, size_t n) {
        if (n == 0)
                return true;
        return *text == ':' && strspn(text + 1, "0123456789") >= n - 1;
}

/* Whether n bytes are a host with or without a port. A colon in brackets belongs to an IPv6
 * address, which is not checked. */
static bool is_uri_host(const char *text, size_t n) {
        const char *bracket, *colon = NULL;

        if (n > 0 && *text == '[') {
                bracket = memchr(text, ']', n);
                return bracket && is_port(bracket + 1, n - (size_t)(bracket + 1 - text));
        }
        for (size_t i = 0; i < n; i++) {
                if (text[i] == ':')
                        colon = text + i;
                if (isalnum((unsigned char)text[i]) || is_high(text[i]) ||
                    strchr("-_.~!$&'()*+,;=:[]<>\"", text[i]))
                        continue;
                /* In a host only bytes outside of ASCII, and the % itself, may be escaped. Only
                 * this escape is looked at, because looking at the rest each time would take
                 * quadratic time. */
                if (text[i] != '%' || !is_escaped(text + i, n - i < 3 ? n - i : 3) ||
                    (strchr("01234567", text[i + 1]) && strncmp(text + i, "%25", 3) != 0))
                        return false;
        }
        return !colon || is_port(colon, n - (size_t)(colon - text));
}

/* Whether n bytes are "USER@HOST:PORT"; USER@ and :PORT are optional. The last '@' ends USER. */
static bool is_authority(const char *text, size_t n) {
        size_t n_user = n;

        while (n_user > 0 && text[n_user - 1] != '@')
                n_user--;
        for (size_t i = 0; i + 1 < n_user; i++)
                if (!isalnum((unsigned char)text[i]) && !strchr("-._:~!$&'()*+,;=%@", text[i]))
                        return false;
        return (n_user == 0 || is_escaped(text, n_user - 1)) &&
               is_uri_host(text + n_user, n - n_user);
}

/* The length of the scheme, without its colon. 0 = there is none. */
static size_t scheme_length(const char *text) {
        size_t n = 0;

        if (!isalpha((unsigned char)*text))
                return 0;
        while (isalnum((unsigned char)text[n]) || (text[n] && strchr("+-.", text[n])))
                n++;
        return text[n] == ':' ? n : 0;
}

/* An absolute URI, an absolute path, or "*". */
bool hfd_is_request_uri(const char *text) {
        size_t n_scheme = scheme_length(text);

        for (const char *c = text; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        return false;
        if (strcmp(text, "*") == 0)
                return true;
        if (n_scheme > 0)
                text += n_scheme + 1;
        if (*text != '/')
                return n_scheme > 0;
        if (n_scheme > 0 && text[1] == '/') {
                size_t n = strcspn(text + 2, "/?");
                if (!is_authority(text + 2, n))
                        return false;
                text += 2 + n;
        }
        return is_escaped(text, strcspn(text, "?"));
}

/* ---- e-mail ---- */

static bool is_atom_character(char c) {
        return isalnum((unsigned char)c) || is_high(c) || (c && strchr("!#$%&'*+-/=?^_`{|}~", c));
}

/* Skips atoms (RFC 5322) with single dots between them. Like the next two functions, this one
 * returns the end of the part that it skips; NULL: the text has another form. */
static const char *skip_dot_atom(const char *text) {
        const char *start = text;

        for (;;) {
                if (!is_atom_character(*text))
                        return NULL;
                while (is_atom_character(*text))
                        text++;
                if (*text != '.')
                        return text > start ? text : NULL;
                text++;
        }
}

/* Skips a text in quotes. A text that ends before the second quote has another form. */
static const char *skip_quoted(const char *text) {
        for (text++; *text != '"'; text++) {
                if (*text == '\\')
                        text++;
                if ((unsigned char)*text < ' ' && *text != '\t')
                        return NULL;
        }
        return text + 1;
}

/* Skips local@domain. The domain may be an address in brackets. */
static const char *skip_address(const char *text) {
        text = *text == '"' ? skip_quoted(text) : skip_dot_atom(text);
        if (!text || *text++ != '@')
                return NULL;
        if (*text != '[')
                return skip_dot_atom(text);
        text += strcspn(text, "]");
        return *text ? text + 1 : NULL;
}

/* "local@domain" or "Some Name <local@domain>". */
bool hfd_is_email(const char *text) {
        static const char space[] = " \t";
        const char *end;

        text += strspn(text, space);
        end = skip_address(text);
        if (!end) {
                while (text && *text && *text != '<') {
                        if (*text == '"')
                                text = skip_quoted(text);
                        else if (is_atom_character(*text) || *text == '.')
                                text++;
                        else
                                return false;
                        if (text)
                                text += strspn(text, space);
                }
                end = text && *text == '<' ? skip_address(text + 1) : NULL;
                if (!end || *end++ != '>')
                        return false;
        }
        return end[strspn(end, space)] == '\0';
}
