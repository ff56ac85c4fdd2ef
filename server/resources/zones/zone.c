/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a file of a time zone (TZif, RFC 8536). It has two parts, each of which is a header and
 * tables. The first part has moments of 4 bytes and is skipped; the second one has moments of 8
 * bytes. The rule for the time after the last moment is a line at the end. A file of version 1,
 * which has only the first part, counts as malformed.
 *
 * Invariants: a read is within the file, and an index within its table: both are checked once,
 * here, and look-ups rely on it. The moments are sorted.
 */
#include "server/resources/zones/zone.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/cleanup.h"
#include "server/resources/zones/zone_rule.h"

#define HEADER     44          /* bytes */
#define TYPE_BYTES 6           /* of a type of time in a file */
#define TYPES_MAX  256         /* an index into the types is one byte */
#define OFFSET_MAX (26 * 3600) /* seconds; RFC 8536 says 25:59:59 */

/* A type of time, such as CEST. */
struct type {
        int offset; /* seconds east of UTC */
        bool summer;
};

struct hfd_zone {
        struct type types[TYPES_MAX];
        unsigned n_types;
        unsigned first; /* the type before the first moment */
        bool has_rule;
        struct hfd_zone_rule rule;
        size_t n;
        int64_t *moments; /* of the n changes, in seconds since 1970; ascending */
        uint8_t *to;      /* the type after each change */
};

/* One of the two parts of a file: its header and the sizes of its tables. */
struct part {
        const uint8_t *data; /* the tables, after the header */
        size_t n_flags_utc;
        size_t n_flags_standard;
        size_t n_leaps;
        size_t n_moments;
        size_t n_types;
        size_t n_names;
        size_t bytes; /* of all tables */
};

static uint32_t get_u32(const uint8_t *p) {
        return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t get_i64(const uint8_t *p) {
        return (int64_t)((uint64_t)get_u32(p) << 32 | get_u32(p + 4));
}

/* Reads a header, and checks that the tables are within the n bytes. width: bytes of a moment.
 * False: malformed. */
static bool read_part(const uint8_t *data, size_t n, size_t width, struct part *ret_part) {
        if (n < HEADER || memcmp(data, "TZif", 4) != 0)
                return false;
        *ret_part = (struct part){.data = data + HEADER,
                                  .n_flags_utc = get_u32(data + 20),
                                  .n_flags_standard = get_u32(data + 24),
                                  .n_leaps = get_u32(data + 28),
                                  .n_moments = get_u32(data + 32),
                                  .n_types = get_u32(data + 36),
                                  .n_names = get_u32(data + 40)};
        if (ret_part->n_flags_utc > n || ret_part->n_flags_standard > n || ret_part->n_leaps > n ||
            ret_part->n_moments > n || ret_part->n_types > n || ret_part->n_names > n)
                return false;
        ret_part->bytes = ret_part->n_moments * (width + 1) + ret_part->n_types * TYPE_BYTES +
                          ret_part->n_names + ret_part->n_leaps * (width + 4) +
                          ret_part->n_flags_standard + ret_part->n_flags_utc;
        return ret_part->bytes <= n - HEADER;
}

/* Reads the tables of the second part, whose moments have 8 bytes. False: malformed. */
static bool read_tables(struct hfd_zone *zone, const struct part *part) {
        const uint8_t *to = part->data + part->n_moments * 8;
        const uint8_t *types = to + part->n_moments;

        for (size_t i = 0; i < part->n_types; i++) {
                const uint8_t *type = types + i * TYPE_BYTES;

                zone->types[i].offset = (int32_t)get_u32(type);
                zone->types[i].summer = type[4] != 0;
                if (zone->types[i].offset < -OFFSET_MAX || zone->types[i].offset > OFFSET_MAX)
                        return false;
        }
        for (size_t i = 0; i < part->n_moments; i++) {
                zone->moments[i] = get_i64(part->data + i * 8);
                zone->to[i] = to[i];
                if (to[i] >= part->n_types || (i > 0 && zone->moments[i] <= zone->moments[i - 1]))
                        return false;
        }
        return true;
}

/* Reads the rule for the time after the last change: a line at the end of the file. If it is empty
 * or the file ends before it, the type of the last change stays. False: malformed. */
static bool read_rule(struct hfd_zone *zone, const char *text, size_t n) {
        const char *end;

        if (n < 2 || *text != '\n')
                return n == 0;
        end = memchr(text + 1, '\n', n - 1);
        if (!end)
                return false;
        zone->has_rule = end > text + 1;
        return !zone->has_rule ||
               hfd_zone_rule_parse(text + 1, (size_t)(end - text - 1), &zone->rule);
}

/* The type before the first change: type 0, if no change leads to it; otherwise the first type that
 * is not summer time, or type 0 if all are. */
static unsigned first_type(const struct hfd_zone *zone) {
        bool used = false;

        for (size_t i = 0; i < zone->n; i++)
                used = used || zone->to[i] == 0;
        for (unsigned i = 0; used && i < zone->n_types; i++)
                if (!zone->types[i].summer)
                        return i;
        return 0;
}

HF__CLEANUP_DEFINE(zone_cleanup, struct hfd_zone *, hfd_zone_free)

int hfd_zone_new(const void *data, size_t n, struct hfd_zone **ret_zone) {
        const uint8_t *bytes = data;
        struct part part;
        size_t skip;

        assert(bytes && ret_zone);
        /* The first part is for programs that know only 32-bit times. It is skipped. */
        if (n > HFD_ZONE_BYTES_MAX || !read_part(bytes, n, 4, &part) || bytes[4] < '2')
                return HF_E_INVALID;
        skip = HEADER + part.bytes;
        if (!read_part(bytes + skip, n - skip, 8, &part) || part.n_types == 0 ||
            part.n_types > TYPES_MAX)
                return HF_E_INVALID;
        skip += HEADER + part.bytes;
        HF__CLEANUP(zone_cleanup) struct hfd_zone *zone = calloc(1, sizeof *zone);
        if (!zone)
                return -ENOMEM;
        zone->n = part.n_moments;
        zone->n_types = (unsigned)part.n_types;
        /* One more, because calloc may return NULL for a zone without changes. */
        zone->moments = calloc(zone->n + 1, sizeof *zone->moments);
        zone->to = calloc(zone->n + 1, sizeof *zone->to);
        if (!zone->moments || !zone->to)
                return -ENOMEM;
        if (!read_tables(zone, &part) || !read_rule(zone, (const char *)bytes + skip, n - skip))
                return HF_E_INVALID;
        zone->first = first_type(zone);
        *ret_zone = HF__TAKE(zone);
        return 0;
}

void hfd_zone_free(struct hfd_zone *zone) {
        if (!zone)
                return;
        free(zone->moments);
        free(zone->to);
        free(zone);
}

int hfd_zone_offset(const struct hfd_zone *zone, int64_t seconds) {
        size_t low = 0;
        size_t high = zone->n;

        assert(zone->n == 0 || (zone->moments && zone->to));
        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (zone->moments[middle] <= seconds)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == zone->n && zone->has_rule)
                return hfd_zone_rule_offset(&zone->rule, seconds);
        return zone->types[low == 0 ? zone->first : zone->to[low - 1]].offset;
}
