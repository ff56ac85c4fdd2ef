/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IP addresses and ranges of them (CIDR).
 *
 * Invariants: the texts of the causes are those of kube-apiserver, because clients show them and
 * tests compare them. What counts as an address at all is what hfd_is_ipv4, hfd_is_ipv6 and
 * hfd_is_cidr accept, which imitate Go; the functions here only refuse more. Each takes time in
 * proportion to the text.
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/resources/custom/schema/formats/formats.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/addresses.h"

#define CANONICAL_MAX 48 /* bytes of an IPv6 address with "/128", and the NUL */

/* ---- parsing ---- */

/* Parses an IPv4 address. Its numbers may begin with zeros, which inet_pton refuses and Kubernetes
 * accepts in old fields. */
static void parse_dotted_quad(const char *text, unsigned char *address) {
        char *end;

        for (size_t i = 0; i < 4; i++) {
                address[i] = (unsigned char)strtoul(text, &end, 10);
                text = *end ? end + 1 : end;
        }
}

bool hfd_address_parse(const char *text, struct in6_addr *ret_address) {
        if (strchr(text, ':'))
                return inet_pton(AF_INET6, text, ret_address) == 1;
        if (!hfd_is_ipv4(text))
                return false;
        *ret_address = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
        parse_dotted_quad(text, ret_address->s6_addr + 12);
        return true;
}

/* Not every address with an IPv4 address at its end is an IPv4 address: 64:ff9b::192.0.2.1. */
bool hfd_address_is_ipv6(const char *text) {
        struct in6_addr address;

        return hfd_address_parse(text, &address) && !IN6_IS_ADDR_V4MAPPED(&address);
}

bool hfd_cidr_parse(const char *text, struct hfd_cidr *ret_cidr) {
        char address[INET6_ADDRSTRLEN];
        const char *slash = strchr(text, '/');
        size_t n = slash ? (size_t)(slash - text) : 0;

        *ret_cidr = (struct hfd_cidr){.family = strchr(text, ':') ? AF_INET6 : AF_INET};
        if (!hfd_is_cidr(text))
                return false;
        if (ret_cidr->family == AF_INET) {
                parse_dotted_quad(text, ret_cidr->address);
        } else if (n < sizeof address) {
                memcpy(address, text, n);
                address[n] = '\0';
                (void)inet_pton(AF_INET6, address, ret_cidr->address);
        }
        ret_cidr->bits = (unsigned)strtoul(slash + 1, NULL, 10);
        return true;
}

/* ---- forms that programs understand differently ---- */

/* Whether a number of an IPv4 address, or the length of the prefix, begins with a zero that could
 * be left out. text: a CIDR. */
static bool has_leading_zeros(const char *text) {
        const char *bits = strchr(text, '/') + 1;

        if (bits[0] == '0' && bits[1])
                return true;
        for (const char *c = text; !strchr(text, ':') && *c != '/'; c++)
                if (*c == '0' && (c == text || c[-1] == '.') && c[1] != '.' && c[1] != '/')
                        return true;
        return false;
}

static bool is_mapped(const struct hfd_cidr *cidr) {
        static const unsigned char prefix[12] = {[10] = 0xff, [11] = 0xff};

        return cidr->family == AF_INET6 && memcmp(cidr->address, prefix, sizeof prefix) == 0;
}

/* Whether a bit after the prefix is set, so that the address is not the first one of the range. */
static bool has_more_bits(const struct hfd_cidr *cidr) {
        for (unsigned bit = cidr->bits; bit < sizeof cidr->address * 8; bit++)
                if (cidr->address[bit / 8] & (0x80 >> (bit % 8)))
                        return true;
        return false;
}

/* Returns whether there is no cause. */
static bool validate_cidr(const char *text, bool is_cidr, const struct hfd_cidr *cidr,
                          const char *field, struct hfd_causes *causes) {
        const char *why = NULL;

        if (!is_cidr)
                why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        else if (has_leading_zeros(text))
                why = "must not have leading 0s in IP or prefix length";
        else if (is_mapped(cidr))
                why = "must not have an IPv4-mapped IPv6 address";
        else if (has_more_bits(cidr))
                why = "must not have bits set beyond the prefix length";
        if (why)
                hfd_cause_invalid_text(causes, field, text, why);
        return !why;
}

bool hfd_cidr_validate(const char *text, const char *field, struct hfd_cidr *ret_cidr,
                       struct hfd_causes *causes) {
        bool is_cidr = hfd_cidr_parse(text, ret_cidr);

        (void)validate_cidr(text, is_cidr, ret_cidr, field, causes);
        return is_cidr;
}

/* ---- the canonical form ---- */

/* Finds the longest run of groups that are 0, the first one of several: "::" stands for it. A run
 * of one group is written out. Both results are 8 if there is no such run. */
static void find_zeros(const unsigned groups[8], size_t *ret_begin, size_t *ret_end) {
        *ret_begin = *ret_end = 8;
        for (size_t i = 0; i < 8; i++) {
                size_t end = i;
                while (end < 8 && groups[end] == 0)
                        end++;
                if (end - i > 1 && (*ret_begin == 8 || end - i > *ret_end - *ret_begin)) {
                        *ret_begin = i;
                        *ret_end = end;
                }
        }
}

/* inet_ntop writes the last four bytes of some addresses as an IPv4 address. Go does not, except
 * for IPv4-mapped ones, which the callers have refused. */
static void print_ipv6(const unsigned char address[16], char out[CANONICAL_MAX]) {
        unsigned groups[8];
        size_t begin, end, n = 0;

        for (size_t i = 0; i < 8; i++)
                groups[i] = (unsigned)address[2 * i] << 8 | address[2 * i + 1];
        find_zeros(groups, &begin, &end);
        for (size_t i = 0; i < 8; i++) {
                if (i == begin) {
                        n += (size_t)snprintf(out + n, CANONICAL_MAX - n, "::");
                        i = end - 1;
                        continue;
                }
                n += (size_t)snprintf(out + n, CANONICAL_MAX - n, "%s%x",
                                      i > 0 && i != end ? ":" : "", groups[i]);
        }
}

static void require_equal(const char *text, const char *canonical, const char *field,
                          struct hfd_causes *causes) {
        char why[CANONICAL_MAX + 40];

        if (strcmp(text, canonical) == 0)
                return;
        (void)snprintf(why, sizeof why, "must be in canonical form (\"%s\")", canonical);
        hfd_cause_invalid_text(causes, field, text, why);
}

/* An IPv4 address in which no number begins with a zero is canonical. */
bool hfd_cidr_validate_canonical(const char *text, const char *field, struct hfd_cidr *ret_cidr,
                                 struct hfd_causes *causes) {
        char canonical[CANONICAL_MAX];
        bool is_cidr = hfd_cidr_parse(text, ret_cidr);

        if (validate_cidr(text, is_cidr, ret_cidr, field, causes) && ret_cidr->family == AF_INET6) {
                print_ipv6(ret_cidr->address, canonical);
                size_t n = strlen(canonical);
                (void)snprintf(canonical + n, sizeof canonical - n, "/%u", ret_cidr->bits);
                require_equal(text, canonical, field, causes);
        }
        return is_cidr;
}

void hfd_address_validate_canonical(const char *text, const char *field,
                                    struct hfd_causes *causes) {
        char canonical[CANONICAL_MAX];
        struct in6_addr address;
        size_t n = causes->n;

        hfd_address_validate(text, field, causes);
        if (causes->n == n && inet_pton(AF_INET6, text, &address) == 1) {
                print_ipv6(address.s6_addr, canonical);
                require_equal(text, canonical, field, causes);
        }
}

/* ---- addresses that stay on a node or its link ---- */

/* NULL, or why no endpoint can have the address: traffic to it would stay on the node or on its
 * link, or go to a whole group of hosts. */
static const char *find_special_range(const struct in6_addr *address) {
        const uint8_t *ipv4 = address->s6_addr + 12;
        bool is_ipv4 = IN6_IS_ADDR_V4MAPPED(address);

        if (is_ipv4 ? ipv4[0] == 127 : IN6_IS_ADDR_LOOPBACK(address))
                return "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        if (is_ipv4 ? ipv4[0] == 169 && ipv4[1] == 254 : IN6_IS_ADDR_LINKLOCAL(address))
                return "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        /* Flags of multicast addresses do not count: ff02::1 and ff12::1 are both of the link. */
        if (is_ipv4 ? ipv4[0] == 224 && ipv4[1] == 0 && ipv4[2] == 0
                    : IN6_IS_ADDR_MC_LINKLOCAL(address))
                return "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        return NULL;
}

static bool is_unspecified(const struct in6_addr *address) {
        static const uint8_t zeros[4];

        return IN6_IS_ADDR_UNSPECIFIED(address) ||
               (IN6_IS_ADDR_V4MAPPED(address) &&
                memcmp(address->s6_addr + 12, zeros, sizeof zeros) == 0);
}

void hfd_address_refuse_special(const char *text, const char *field, struct hfd_causes *causes) {
        struct in6_addr address;
        char why[250];

        if (!hfd_address_parse(text, &address)) {
                hfd_cause_invalid_text(causes, field, text, "must be a valid IP address");
                return;
        }
        const char *range = find_special_range(&address);
        if (range) {
                hfd_cause_invalid_text(causes, field, text, range);
        } else if (is_unspecified(&address)) {
                (void)snprintf(why, sizeof why, "may not be unspecified (%.200s)", text);
                hfd_cause_invalid_text(causes, field, text, why);
        }
}
