/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See joined_headers.h. The headers are grouped by name first, each group with its final length.
 * Then each byte is copied once.
 *
 * Invariant: the work is at most in proportion to the bytes times the number of different names,
 * which HFD_HEADERS_MAX limits. Joining a header in place would move all that follows it, once for
 * each repetition.
 */
#include "server/http/request/joined_headers.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "server/http/request/http_request.h"
#include "server/http/request/packed_header.h"

#define N_SEPARATOR (sizeof HFD_HTTP_VALUE_SEPARATOR - 1) /* bytes between two values */

struct headers {
        const char *entries[HFD_HEADERS_MAX];
        uint16_t next[HFD_HEADERS_MAX]; /* the next one of the same name; 0 = none */
        size_t n;
};

/* The headers of one name. */
struct group {
        struct hfd_packed_header lengths; /* of the joined header */
        uint16_t first, last;
};

static struct group *find_group(struct group *groups, size_t n, const struct headers *headers,
                                const char *name, uint32_t n_name) {
        for (size_t i = 0; i < n; i++)
                if (groups[i].lengths.n_name == n_name &&
                    memcmp(hfd_packed_header_name(headers->entries[groups[i].first]), name,
                           n_name) == 0)
                        return &groups[i];
        return NULL;
}

/* Returns the number of groups. */
static size_t group_headers(const char *packed, size_t n, struct headers *headers,
                            struct group *groups) {
        size_t n_groups = 0;

        headers->n = 0;
        for (size_t at = 0; at < n;) {
                const char *entry = packed + at;
                struct hfd_packed_header e = hfd_packed_header_read(entry);
                uint16_t index = (uint16_t)headers->n++;
                struct group *group = find_group(groups, n_groups, headers,
                                                 hfd_packed_header_name(entry), e.n_name);

                assert(index < HFD_HEADERS_MAX);
                headers->entries[index] = entry;
                headers->next[index] = 0;
                if (group) {
                        headers->next[group->last] = index;
                        group->last = index;
                        group->lengths.n_value += N_SEPARATOR + e.n_value;
                } else {
                        groups[n_groups++] =
                                (struct group){.lengths = e, .first = index, .last = index};
                }
                at += hfd_packed_header_size(e);
        }
        return n_groups;
}

/* N_SEPARATOR bytes. */
static const char *separator_of(const char *name, uint32_t n) {
        static const char prefix[] = "impersonate-";

        if (n == 6 && memcmp(name, "cookie", 6) == 0)
                return "; ";
        return n >= sizeof prefix - 1 && memcmp(name, prefix, sizeof prefix - 1) == 0
                       ? HFD_HTTP_VALUE_SEPARATOR
                       : ", ";
}

/* Returns the end of the entry at out. */
static char *write_group(const struct headers *headers, const struct group *group, char *out) {
        const char *first = headers->entries[group->first], *name = hfd_packed_header_name(first);
        struct hfd_packed_header e = hfd_packed_header_read(first);
        const char *separator = separator_of(name, e.n_name);
        char *end = hfd_packed_header_write(out, e, name, hfd_packed_header_value(first, e));

        memcpy(out, &group->lengths, sizeof group->lengths);
        for (uint16_t i = headers->next[group->first]; i != 0; i = headers->next[i]) {
                e = hfd_packed_header_read(headers->entries[i]);
                end--; /* the NUL */
                memcpy(end, separator, N_SEPARATOR);
                end += N_SEPARATOR;
                memcpy(end, hfd_packed_header_value(headers->entries[i], e), e.n_value);
                end += e.n_value;
                *end++ = '\0';
        }
        return end;
}

size_t hfd_join_headers(const char *packed, size_t n, char *out) {
        struct headers headers; /* filled in as far as it is read */
        struct group groups[HFD_HEADERS_MAX];
        size_t n_groups = group_headers(packed, n, &headers, groups);
        char *end = out;

        for (size_t i = 0; i < n_groups; i++)
                end = write_group(&headers, &groups[i], end);
        assert((size_t)(end - out) <= n);
        return (size_t)(end - out);
}
