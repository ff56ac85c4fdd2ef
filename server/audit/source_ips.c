/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the addresses of a request.
 *
 * Invariant: the array has few addresses, and nothing else. Clients may write anything into the
 * headers, so the number of addresses is limited, and a text that is not an address is left out.
 * Only the address of the connection is certain. If the connection has one, it is the last.
 */
#include "server/audit/source_ips.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

#define ADDRESSES_MAX 32 /* two of them for X-Real-Ip and the connection */

struct addresses {
        char texts[ADDRESSES_MAX][INET6_ADDRSTRLEN];
        size_t n;
};

static bool is_hex(char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Copies the text without the zeros in front of its numbers: Kubernetes' parser accepts any number
 * of them, and reads 010.0.0.1 as 10.0.0.1. False: it is too long for an address. */
static bool copy_address(const char *text, size_t n, char out[INET6_ADDRSTRLEN]) {
        size_t n_out = 0;

        for (size_t i = 0; i < n; i++) {
                bool is_first = n_out == 0 || out[n_out - 1] == '.' || out[n_out - 1] == ':';
                if (is_first && text[i] == '0' && i + 1 < n && is_hex(text[i + 1]))
                        continue;
                if (n_out == INET6_ADDRSTRLEN - 1)
                        return false;
                out[n_out++] = text[i];
        }
        out[n_out] = '\0';
        return true;
}

/* Prints an IPv6 address. inet_ntop ends an address such as ::a00:1 like an IPv4 address, and Go
 * never does. */
static bool print_ipv6(const struct in6_addr *address, char out[INET6_ADDRSTRLEN]) {
        if (!inet_ntop(AF_INET6, address, out, INET6_ADDRSTRLEN))
                return false;
        if (strchr(out, '.'))
                (void)snprintf(out, INET6_ADDRSTRLEN, "::%x:%x",
                               address->s6_addr[12] << 8 | address->s6_addr[13],
                               address->s6_addr[14] << 8 | address->s6_addr[15]);
        return true;
}

/* Writes the address that n bytes of text contain, in the usual form, in which equal addresses are
 * equal texts. Like Go, it writes a mapped IPv4 address (::ffff:10.0.0.1) as the IPv4 address.
 * False: the text is not an address. */
static bool parse_address(const char *text, size_t n, char out[INET6_ADDRSTRLEN]) {
        char copy[INET6_ADDRSTRLEN];
        struct in6_addr address; /* has room for an IPv4 address, too */
        int family = memchr(text, ':', n) ? AF_INET6 : AF_INET;

        if (!copy_address(text, n, copy) || inet_pton(family, copy, &address) != 1)
                return false;
        if (family == AF_INET)
                return inet_ntop(AF_INET, &address, out, INET6_ADDRSTRLEN);
        if (IN6_IS_ADDR_V4MAPPED(&address))
                return inet_ntop(AF_INET, address.s6_addr + 12, out, INET6_ADDRSTRLEN);
        return print_ipv6(&address, out);
}

static bool contains_address(const struct addresses *addresses, const char *text) {
        for (size_t i = 0; i < addresses->n; i++)
                if (strcmp(addresses->texts[i], text) == 0)
                        return true;
        return false;
}

/* The elements are between commas, perhaps with spaces around them. */
static void add_forwarded(struct addresses *addresses, const char *list) {
        for (const char *at = list; *at && addresses->n < ADDRESSES_MAX - 2;) {
                at += strspn(at, ", \t");
                size_t n = strcspn(at, ","), n_text = n;
                while (n_text > 0 && (at[n_text - 1] == ' ' || at[n_text - 1] == '\t'))
                        n_text--;
                if (parse_address(at, n_text, addresses->texts[addresses->n]))
                        addresses->n++;
                at += n;
        }
}

/* The address without the port. */
static bool parse_remote(const char *remote, char out[INET6_ADDRSTRLEN]) {
        if (remote[0] == '[')
                return parse_address(remote + 1, strcspn(remote + 1, "]"), out);
        return parse_address(remote, strcspn(remote, ":"), out);
}

void hfd_audit_source_ips(const char *forwarded, const char *real, const char *remote,
                          struct hf__strbuf *out) {
        struct addresses addresses = {.n = 0};
        char text[INET6_ADDRSTRLEN];

        if (forwarded)
                add_forwarded(&addresses, forwarded);
        if (real && parse_address(real, strlen(real), text) && !contains_address(&addresses, text))
                memcpy(addresses.texts[addresses.n++], text, sizeof text);
        if (parse_remote(remote, text) &&
            (addresses.n == 0 || strcmp(addresses.texts[addresses.n - 1], text) != 0))
                memcpy(addresses.texts[addresses.n++], text, sizeof text);
        for (size_t i = 0; i < addresses.n; i++)
                hf__strbuf_printf(out, "%s\"%s\"", i == 0 ? "[" : ",", addresses.texts[i]);
        hf__strbuf_puts(out, addresses.n > 0 ? "]" : "");
}
