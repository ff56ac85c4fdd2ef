/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the texts of IP addresses (address.h).
 *
 * Invariant: the same texts are refused as by Go's netip.ParseAddr, with the same messages, in
 * which only long texts are cut. Mistakes are looked for in the same order, because users see the
 * message of the first mistake.
 */
#include "cel/functions/address.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"

#define SHOWN_MAX 160 /* bytes of a quoted text in a message, with the NUL */

/* A text that is read, and where the message goes. */
struct reader {
        const char *text;
        size_t n;
        char *why;
};

/* Writes the message about a mistake, followed by the text from `at` to `end`, as Go does. If `at`
 * is NULL or the text is empty, none follows. Returns false. */
static bool fail_at(const struct reader *r, const char *message, const char *at, const char *end) {
        char text[SHOWN_MAX], rest[SHOWN_MAX];

        hf__quote_bytes(r->text, r->n, text, sizeof text);
        if (at && at < end) {
                hf__quote_bytes(at, (size_t)(end - at), rest, sizeof rest);
                (void)snprintf(r->why, HF__CEL_ADDRESS_WHY_MAX, "ParseAddr(%s): %s (at %s)", text,
                               message, rest);
        } else {
                (void)snprintf(r->why, HF__CEL_ADDRESS_WHY_MAX, "ParseAddr(%s): %s", text, message);
        }
        return false;
}

static bool fail(const struct reader *r, const char *message) {
        return fail_at(r, message, NULL, NULL);
}

/* Reads the four bytes of an IPv4 address between two places of the text. */
static bool read_ipv4(const struct reader *r, const char *from, const char *end,
                      unsigned char bytes[4]) {
        unsigned value = 0, n_digits = 0, n_bytes = 0;

        for (const char *at = from; at < end; at++) {
                if (*at >= '0' && *at <= '9') {
                        if (n_digits == 1 && value == 0)
                                return fail(r, "IPv4 field has octet with leading zero");
                        value = value * 10 + (unsigned)(*at - '0');
                        n_digits++;
                        if (value > 255)
                                return fail(r, "IPv4 field has value >255");
                } else if (*at != '.') {
                        return fail_at(r, "unexpected character", at, end);
                } else if (at == from || at == end - 1 || at[-1] == '.') {
                        return fail_at(r, "IPv4 field must have at least one digit", at, end);
                } else if (n_bytes == 3) {
                        return fail(r, "IPv4 address too long");
                } else {
                        bytes[n_bytes++] = (unsigned char)value;
                        value = n_digits = 0;
                }
        }
        if (n_bytes < 3)
                return fail(r, "IPv4 address too short");
        bytes[3] = (unsigned char)value;
        return true;
}

/* -1: it is no digit. */
static int hex_digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* An IPv6 address that is being read: bytes so far, and where among them "::" is. */
struct groups {
        const char *at, *end; /* what is left of the text */
        unsigned char *bytes;
        int n;
        int ellipsis; /* -1: there was none */
};

/* Reads one group of hexadecimal digits, or the IPv4 address at the end. False: a mistake. */
static bool read_group(const struct reader *r, struct groups *g) {
        const char *at = g->at;
        uint32_t value = 0;

        for (; at < g->end && hex_digit(*at) >= 0; at++) {
                value = value << 4 | (uint32_t)hex_digit(*at);
                if (at - g->at > 3)
                        return fail_at(r, "each group must have 4 or less digits", g->at, g->end);
        }
        if (at == g->at)
                return fail_at(r, "each colon-separated field must have at least one digit", g->at,
                               g->end);
        if (at < g->end && *at == '.') {
                if (g->ellipsis < 0 && g->n != 12)
                        return fail_at(r,
                                       "embedded IPv4 address must replace the final 2 fields of "
                                       "the address",
                                       g->at, g->end);
                if (g->n + 4 > 16)
                        return fail_at(r,
                                       "too many hex fields to fit an embedded IPv4 at the end of "
                                       "the address",
                                       g->at, g->end);
                if (!read_ipv4(r, g->at, g->end, g->bytes + g->n))
                        return false;
                g->n += 4;
                g->at = g->end;
                return true;
        }
        g->bytes[g->n++] = (unsigned char)(value >> 8);
        g->bytes[g->n++] = (unsigned char)value;
        g->at = at;
        return true;
}

/* Reads the colon after a group, which may be the first of "::". False: a mistake. */
static bool read_colon(const struct reader *r, struct groups *g) {
        if (*g->at != ':')
                return fail_at(r, "unexpected character, want colon", g->at, g->end);
        if (g->end - g->at == 1)
                return fail_at(r, "colon must be followed by more characters", g->at, g->end);
        g->at++;
        if (*g->at != ':')
                return true;
        if (g->ellipsis >= 0)
                return fail_at(r, "multiple :: in address", g->at, g->end);
        g->ellipsis = g->n;
        g->at++;
        return true;
}

/* Puts the zeros that "::" stands for in their place. */
static bool expand_groups(const struct reader *r, const struct groups *g) {
        if (g->n == 16)
                return g->ellipsis < 0 ||
                       fail(r, "the :: must expand to at least one field of zeros");
        if (g->ellipsis < 0)
                return fail(r, "address string too short");
        const size_t n_after = (size_t)(g->n - g->ellipsis);
        memmove(g->bytes + 16 - n_after, g->bytes + g->ellipsis, n_after);
        memset(g->bytes + g->ellipsis, 0, 16 - (size_t)g->n);
        return true;
}

static bool read_ipv6(const struct reader *r, struct hf__cel_address *address) {
        const char *zone = memchr(r->text, '%', r->n);
        struct groups g = {.at = r->text, .end = r->text + r->n, .bytes = address->bytes};

        g.ellipsis = -1;
        address->has_zone = zone != NULL;
        if (zone && zone + 1 == g.end)
                return fail(r, "zone must be a non-empty string");
        if (zone)
                g.end = zone;
        if (g.end - g.at >= 2 && g.at[0] == ':' && g.at[1] == ':') {
                g.ellipsis = 0;
                g.at += 2;
                if (g.at == g.end)
                        return true;
        }
        while (g.n < 16) {
                if (!read_group(r, &g))
                        return false;
                if (g.at == g.end)
                        break;
                if (!read_colon(r, &g))
                        return false;
                if (g.at == g.end) /* after "::" */
                        break;
        }
        if (g.at < g.end)
                return fail_at(r, "trailing garbage after address", g.at, g.end);
        return expand_groups(r, &g);
}

bool hf__cel_address_read(const char *text, size_t n, struct hf__cel_address *ret_address,
                          char reterr_why[HF__CEL_ADDRESS_WHY_MAX]) {
        const struct reader r = {.text = text, .n = n, .why = reterr_why};

        *ret_address = (struct hf__cel_address){.n_bytes = 16};
        for (size_t i = 0; i < n; i++) {
                if (text[i] == '.') {
                        ret_address->n_bytes = 4;
                        return read_ipv4(&r, text, text + n, ret_address->bytes);
                }
                if (text[i] == ':')
                        return read_ipv6(&r, ret_address);
                if (text[i] == '%')
                        return fail(&r, "missing IPv6 address");
        }
        return fail(&r, "unable to parse IP");
}
