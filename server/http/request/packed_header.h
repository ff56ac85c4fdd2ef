/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Headers of a request or a response, packed into one block of memory: one entry after the other.
 * An entry consists of the two lengths, the name, a NUL, the value and a NUL. With the lengths a
 * search skips an entry without reading its text. Entries are not aligned, so the lengths are
 * copied.
 *
 * Pure. The owner of the block knows its length. Inline, because each request needs several.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The start of an entry. Lengths in bytes, without the NULs. */
struct hfd_packed_header {
        uint32_t n_name, n_value;
};

/* The size of the whole entry. */
static inline size_t hfd_packed_header_size(struct hfd_packed_header header) {
        return sizeof header + header.n_name + 1 + header.n_value + 1;
}

/* The lengths of the entry at `at`. */
static inline struct hfd_packed_header hfd_packed_header_read(const char *at) {
        struct hfd_packed_header header;

        memcpy(&header, at, sizeof header);
        return header;
}

static inline const char *hfd_packed_header_name(const char *at) {
        return at + sizeof(struct hfd_packed_header);
}

/* header: the lengths of the entry at `at`. */
static inline const char *hfd_packed_header_value(const char *at, struct hfd_packed_header header) {
        return hfd_packed_header_name(at) + header.n_name + 1;
}

/* Writes an entry at `at`, where it has room, and returns its end. name and value have the given
 * lengths and need no NUL. */
static inline char *hfd_packed_header_write(char *at, struct hfd_packed_header header,
                                            const char *name, const char *value) {
        memcpy(at, &header, sizeof header);
        at += sizeof header;
        memcpy(at, name, header.n_name);
        at += header.n_name;
        *at++ = '\0';
        memcpy(at, value, header.n_value);
        at += header.n_value;
        *at++ = '\0';
        return at;
}
