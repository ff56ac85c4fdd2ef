/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of IP addresses and CIDR blocks: ip(), cidr() and their methods.
 *
 * Invariant: an address of IPv4 has 4 bytes, never 16: a mapped one (::ffff:1.2.3.4) is refused, as
 * are zones.
 */
#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "cel/functions/address.h"
#include "cel/functions/tables.h"

const struct hf__cel_type hf__cel_ip_type = {.kind = HF__CEL_OPAQUE, .weight = 1, .name = "net.IP"};
const struct hf__cel_type hf__cel_cidr_type = {.kind = HF__CEL_OPAQUE,
                                               .weight = 1,
                                               .name = "net.CIDR"};

#define TEXT_MAX 64 /* bytes of the text of any address or block, with the NUL */

/* An address, or a block. */
struct network {
        struct hf__cel_opaque opaque;
        unsigned n_bytes;
        unsigned n_bits; /* of a block: the prefix's length */
        unsigned char bytes[16];
};

/* An address and a block are never compared: their types differ. n_bits is 0 in addresses. */
static bool networks_equal(const struct hf__cel_opaque *a, const struct hf__cel_opaque *b) {
        const struct network *x = (const struct network *)a;
        const struct network *y = (const struct network *)b;

        return x->n_bytes == y->n_bytes && x->n_bits == y->n_bits &&
               memcmp(x->bytes, y->bytes, x->n_bytes) == 0;
}

static const struct network *network_of(struct hf__cel_value value) {
        assert(value.kind == HF__CEL_OPAQUE);
        return (const struct network *)value.as.opaque;
}

#define WHY_MAX   (HF__CEL_ADDRESS_WHY_MAX + 500) /* bytes of a message, with the NUL */
#define SHOWN_MAX 160 /* bytes of a quoted text in a message, with the NUL */

/* Whether Kubernetes accepts the address: it refuses zones and IPv4 addresses in IPv6 form. quoted:
 * the text, for messages. */
static bool accept_address(const struct hf__cel_address *address, const char *quoted, char *why,
                           size_t max) {
        static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

        if (address->has_zone)
                (void)snprintf(why, max, "IP address %s with zone value is not allowed", quoted);
        else if (address->n_bytes == 16 && memcmp(address->bytes, mapped, sizeof mapped) == 0)
                (void)snprintf(why, max, "IPv4-mapped IPv6 address %s is not allowed", quoted);
        else
                return true;
        return false;
}

static void set_address(struct network *out, const struct hf__cel_type *type,
                        const struct hf__cel_address *address) {
        memset(out, 0, sizeof *out);
        out->opaque = (struct hf__cel_opaque){.type = type, .equal = networks_equal};
        out->n_bytes = address->n_bytes;
        memcpy(out->bytes, address->bytes, address->n_bytes);
}

/* Parses an IP address. False: the text is no address that Kubernetes accepts, and why has its
 * message. */
static bool parse_ip(struct hf__cel_value text, struct network *out, char why[WHY_MAX]) {
        char reason[HF__CEL_ADDRESS_WHY_MAX], quoted[SHOWN_MAX];
        struct hf__cel_address address;

        if (hf__cel_address_read(text.as.text, text.n, &address, reason)) {
                set_address(out, &hf__cel_ip_type, &address);
                hf__quote_bytes(text.as.text, text.n, quoted, sizeof quoted);
                return accept_address(&address, quoted, why, WHY_MAX);
        }
        hf__quote_bytes(text.as.text, text.n, quoted, sizeof quoted);
        (void)snprintf(why, WHY_MAX, "IP Address %s parse error during conversion from string: %s",
                       quoted, reason);
        return false;
}

#define CIDR_WRONG "network address parse error during conversion from string: "

/* The text is no block: the message says so twice, as that of Kubernetes. */
static bool fail_cidr(const char *quoted, const char *reason, const char *shown,
                      char why[WHY_MAX]) {
        (void)snprintf(why, WHY_MAX, CIDR_WRONG CIDR_WRONG "netip.ParsePrefix(%s): %s%s", quoted,
                       reason, shown);
        return false;
}

/* The length of a prefix. A sign and a leading zero are refused, as by Go. -1: the text is no
 * number, or one that int64_t cannot hold; INT_MAX: another number that int cannot hold. */
static int read_bits(const char *text, size_t n) {
        int64_t bits = 0;

        if (n == 0 || (n > 1 && text[0] == '0'))
                return -1;
        for (size_t i = 0; i < n; i++)
                if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(bits, 10, &bits) ||
                    __builtin_add_overflow(bits, text[i] - '0', &bits))
                        return -1;
        return bits > INT_MAX ? INT_MAX : (int)bits;
}

/* Parses a block. The bits after the prefix may be set: cidr("10.0.0.1/8") keeps them, and masked()
 * clears them. False: the text is no block that Kubernetes accepts, and why has its message. */
static bool parse_cidr(struct hf__cel_value text, struct network *out, char why[WHY_MAX]) {
        char reason[HF__CEL_ADDRESS_WHY_MAX], quoted[SHOWN_MAX], shown[SHOWN_MAX];
        const char *slash = memrchr(text.as.text, '/', text.n);
        struct hf__cel_address address;

        hf__quote_bytes(text.as.text, text.n, quoted, sizeof quoted);
        if (!slash)
                return fail_cidr(quoted, "no '/'", "", why);
        const size_t n_address = (size_t)(slash - text.as.text), n_bits = text.n - n_address - 1;
        if (!hf__cel_address_read(text.as.text, n_address, &address, reason))
                return fail_cidr(quoted, reason, "", why);
        if (address.has_zone)
                return fail_cidr(quoted, "IPv6 zones cannot be present in a prefix", "", why);
        int bits = read_bits(slash + 1, n_bits);
        if (bits < 0) {
                hf__quote_bytes(slash + 1, n_bits, shown, sizeof shown);
                return fail_cidr(quoted, "bad bits after slash: ", shown, why);
        }
        if (bits > 8 * (int)address.n_bytes)
                return fail_cidr(quoted, "prefix length out of range", "", why);
        set_address(out, &hf__cel_cidr_type, &address);
        out->n_bits = (unsigned)bits;
        if (accept_address(&address, quoted, reason, sizeof reason))
                return true;
        (void)snprintf(why, WHY_MAX, CIDR_WRONG "%s", reason);
        return false;
}

static struct hf__cel_value keep_network(struct hf__cel_run *run, const struct network *network) {
        struct network *copy = hf__cel_alloc(run, sizeof *copy);

        if (!copy)
                return hf__cel_failure(run);
        *copy = *network;
        return hf__cel_opaque_value(&copy->opaque);
}

/* read_ip and read_cidr read an address or a block from text. They return null or an error. */
static struct hf__cel_value read_ip(struct hf__cel_run *run, struct hf__cel_value text,
                                    struct network *out) {
        char why[WHY_MAX];

        return parse_ip(text, out, why) ? hf__cel_null() : hf__cel_errorf(run, "%s", why);
}

static struct hf__cel_value read_cidr(struct hf__cel_run *run, struct hf__cel_value text,
                                      struct network *out) {
        char why[WHY_MAX];

        return parse_cidr(text, out, why) ? hf__cel_null() : hf__cel_errorf(run, "%s", why);
}

static struct hf__cel_value call_ip(struct hf__cel_run *run, const struct hf__cel_value *args,
                                    unsigned n) {
        struct network network;
        struct hf__cel_value error = read_ip(run, args[0], &network);

        return hf__cel_is_error(error) ? error : keep_network(run, &network);
}

static struct hf__cel_value call_cidr(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        struct network network;
        struct hf__cel_value error = read_cidr(run, args[0], &network);

        return hf__cel_is_error(error) ? error : keep_network(run, &network);
}

static struct hf__cel_value is_ip(struct hf__cel_run *run, const struct hf__cel_value *args,
                                  unsigned n) {
        struct network network;
        char why[WHY_MAX];

        return hf__cel_bool(parse_ip(args[0], &network, why));
}

static struct hf__cel_value is_cidr(struct hf__cel_run *run, const struct hf__cel_value *args,
                                    unsigned n) {
        struct network network;
        char why[WHY_MAX];

        return hf__cel_bool(parse_cidr(args[0], &network, why));
}

static unsigned group_of(const struct network *network, unsigned i) {
        return (unsigned)network->bytes[2 * i] << 8 | network->bytes[2 * i + 1];
}

/* RFC 5952: the longest run of at least two zero groups is left out; of several that are equally
 * long, the first one. */
static size_t print_ipv6(const struct network *network, char *out) {
        unsigned best = 8;
        unsigned n_best = 1;
        size_t n = 0;

        for (unsigned i = 0; i < 8; i++) {
                unsigned length = 0;

                while (i + length < 8 && group_of(network, i + length) == 0)
                        length++;
                if (length > n_best) {
                        best = i;
                        n_best = length;
                }
        }
        for (unsigned i = 0; i < 8; i++) {
                if (i == best) {
                        n += (size_t)sprintf(out + n, "::");
                        i += n_best - 1;
                } else {
                        n += (size_t)sprintf(out + n, "%s%x", i > 0 && out[n - 1] != ':' ? ":" : "",
                                             group_of(network, i));
                }
        }
        return n;
}

static size_t print_ip(const struct network *network, char out[TEXT_MAX]) {
        const unsigned char *b = network->bytes;

        if (network->n_bytes == 16)
                return print_ipv6(network, out);
        return (size_t)sprintf(out, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
}

static struct hf__cel_value to_string(struct hf__cel_run *run, const struct hf__cel_value *args,
                                      unsigned n) {
        const struct network *network = network_of(args[0]);
        char text[TEXT_MAX];
        size_t length = print_ip(network, text);

        if (network->opaque.type == &hf__cel_cidr_type)
                length += (size_t)sprintf(text + length, "/%u", network->n_bits);
        return hf__cel_copy_string(run, text, length);
}

/* Canonical text is the one that Go prints, so it is made and compared. */
static struct hf__cel_value is_canonical(struct hf__cel_run *run, const struct hf__cel_value *args,
                                         unsigned n) {
        struct network network;
        struct hf__cel_value error = read_ip(run, args[0], &network);
        char text[TEXT_MAX];
        size_t length;

        if (hf__cel_is_error(error))
                return error;
        length = print_ip(&network, text);
        return hf__cel_bool(length == args[0].n && memcmp(text, args[0].as.text, length) == 0);
}

static struct hf__cel_value call_family(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        return hf__cel_int(network_of(args[0])->n_bytes == 16 ? 6 : 4);
}

/* Whether the last byte is `last`, and all others are zero. */
static bool is_zero_but(const struct network *network, unsigned char last) {
        for (unsigned i = 0; i + 1 < network->n_bytes; i++)
                if (network->bytes[i] != 0)
                        return false;
        return network->bytes[network->n_bytes - 1] == last;
}

static bool unspecified(const struct network *ip) { return is_zero_but(ip, 0); }

static bool loopback(const struct network *ip) {
        return ip->n_bytes == 4 ? ip->bytes[0] == 127 : is_zero_but(ip, 1);
}

/* The ranges in this and the following functions are those of Go's net/netip. */
static bool link_local_multicast(const struct network *ip) {
        if (ip->n_bytes == 4)
                return ip->bytes[0] == 224 && ip->bytes[1] == 0 && ip->bytes[2] == 0;
        return ip->bytes[0] == 0xff && (ip->bytes[1] & 0x0f) == 2;
}

static bool link_local_unicast(const struct network *ip) {
        if (ip->n_bytes == 4)
                return ip->bytes[0] == 169 && ip->bytes[1] == 254;
        return ip->bytes[0] == 0xfe && (ip->bytes[1] & 0xc0) == 0x80;
}

/* As in Go's net/netip, private addresses are global unicast, too. */
static bool global_unicast(const struct network *ip) {
        static const unsigned char broadcast[4] = {255, 255, 255, 255};
        bool multicast = ip->n_bytes == 4 ? ip->bytes[0] >> 4 == 14 : ip->bytes[0] == 0xff;

        return !(ip->n_bytes == 4 && memcmp(ip->bytes, broadcast, 4) == 0) && !multicast &&
               !unspecified(ip) && !loopback(ip) && !link_local_unicast(ip);
}

#define PROPERTY(name)                                                                             \
        static struct hf__cel_value is_##name(struct hf__cel_run *run,                             \
                                              const struct hf__cel_value *args, unsigned n) {      \
                return hf__cel_bool(name(network_of(args[0])));                                    \
        }

PROPERTY(unspecified)
PROPERTY(loopback)
PROPERTY(link_local_multicast)
PROPERTY(link_local_unicast)
PROPERTY(global_unicast)

/* Whether both begin with the same block->n_bits bits. An address of one family is in no block of
 * the other one. */
static bool has_prefix(const struct network *block, const struct network *other) {
        unsigned whole = block->n_bits / 8;
        unsigned rest = block->n_bits % 8;

        if (block->n_bytes != other->n_bytes || memcmp(block->bytes, other->bytes, whole) != 0)
                return false;
        return rest == 0 || (block->bytes[whole] ^ other->bytes[whole]) >> (8 - rest) == 0;
}

static struct hf__cel_value contains_ip(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        struct network parsed;
        struct hf__cel_value error;

        if (args[1].kind == HF__CEL_OPAQUE)
                return hf__cel_bool(has_prefix(network_of(args[0]), network_of(args[1])));
        /* A text is parsed anew at each call. An author who asks often writes ip() once, in a
         * variable. */
        error = read_ip(run, args[1], &parsed);
        return hf__cel_is_error(error) ? error
                                       : hf__cel_bool(has_prefix(network_of(args[0]), &parsed));
}

/* A block contains another one if its prefix is not longer, and the other one begins with the bits
 * of that prefix. */
static struct hf__cel_value contains_cidr(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        const struct network *block = network_of(args[0]);
        struct network parsed;
        struct hf__cel_value error = hf__cel_null();

        if (args[1].kind == HF__CEL_OPAQUE)
                parsed = *network_of(args[1]);
        else
                error = read_cidr(run, args[1], &parsed);
        if (hf__cel_is_error(error))
                return error;
        return hf__cel_bool(block->n_bits <= parsed.n_bits && has_prefix(block, &parsed));
}

/* The address with all its bits: cidr('10.0.0.1/8').ip() is 10.0.0.1. */
static struct hf__cel_value ip_of_cidr(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       unsigned n) {
        struct network network = *network_of(args[0]);

        network.opaque.type = &hf__cel_ip_type;
        network.n_bits = 0;
        return keep_network(run, &network);
}

static struct hf__cel_value call_masked(struct hf__cel_run *run, const struct hf__cel_value *args,
                                        unsigned n) {
        struct network network = *network_of(args[0]);

        for (unsigned i = network.n_bits; i < 8 * network.n_bytes; i++)
                network.bytes[i / 8] &= (unsigned char)~(0x80U >> i % 8);
        return keep_network(run, &network);
}

static struct hf__cel_value prefix_length(struct hf__cel_run *run, const struct hf__cel_value *args,
                                          unsigned n) {
        return hf__cel_int(network_of(args[0])->n_bits);
}

#define ONE   HF__CEL_COST_ONE
#define FIRST HF__CEL_COST_FIRST

const struct hf__cel_row hf__cel_networks[] = {
        {"ip", "(string) -> net.IP", call_ip, FIRST},
        {"ip", ".net.CIDR() -> net.IP", ip_of_cidr, ONE},
        {"isIP", "(string) -> bool", is_ip, FIRST},
        {"ip.isCanonical", "(string) -> bool", is_canonical, HF__CEL_COST_TWICE},
        {"family", ".net.IP() -> int", call_family, ONE},
        {"isUnspecified", ".net.IP() -> bool", is_unspecified, ONE},
        {"isLoopback", ".net.IP() -> bool", is_loopback, ONE},
        {"isLinkLocalMulticast", ".net.IP() -> bool", is_link_local_multicast, ONE},
        {"isLinkLocalUnicast", ".net.IP() -> bool", is_link_local_unicast, ONE},
        {"isGlobalUnicast", ".net.IP() -> bool", is_global_unicast, ONE},
        {"cidr", "(string) -> net.CIDR", call_cidr, FIRST},
        {"isCIDR", "(string) -> bool", is_cidr, FIRST},
        {"containsIP", ".net.CIDR(net.IP) -> bool", contains_ip, ONE},
        {"containsIP", ".net.CIDR(string) -> bool", contains_ip, ONE},
        {"containsCIDR", ".net.CIDR(net.CIDR) -> bool", contains_cidr, ONE},
        {"containsCIDR", ".net.CIDR(string) -> bool", contains_cidr, ONE},
        {"masked", ".net.CIDR() -> net.CIDR", call_masked, ONE},
        {"prefixLength", ".net.CIDR() -> int", prefix_length, ONE},
        {"string", "(net.IP) -> string", to_string, ONE},
        {"string", "(net.CIDR) -> string", to_string, ONE},
        {NULL, NULL, NULL, HF__CEL_COST_ONE},
};
