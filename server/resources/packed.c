/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs with zlib, at its fastest level. Packed bytes are a magic byte, the number of bytes before
 * the packing, and zlib's stream. They never leave the process, so they need no format for others.
 *
 * Invariant: what hfd_unpack gets was made by hfd_pack in this process, or is not packed.
 */
#define ZLIB_CONST /* the input is const */
#include "server/resources/packed.h"

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"

#define MAGIC  '\1'
#define HEADER (1 + sizeof(size_t))

bool hfd_is_packed(const struct hf__buf *bytes) {
        return bytes->n > HEADER && bytes->data[0] == MAGIC;
}

size_t hfd_unpacked_size(const struct hf__buf *bytes) {
        size_t n = bytes->n;

        if (hfd_is_packed(bytes))
                memcpy(&n, bytes->data + 1, sizeof n);
        return n;
}

/* Writes the zlib stream of bytes to out, and returns its length. 0: it has more than n_max bytes,
 * or memory ran out. */
static size_t deflate_into(const struct hf__buf *bytes, char *out, size_t n_max) {
        z_stream stream = {0};

        if (deflateInit(&stream, Z_BEST_SPEED) != Z_OK)
                return 0;
        stream.next_in = (const unsigned char *)bytes->data;
        stream.avail_in = (unsigned)bytes->n;
        stream.next_out = (unsigned char *)out;
        stream.avail_out = (unsigned)n_max;
        int r = deflate(&stream, Z_FINISH);
        size_t n = n_max - stream.avail_out;
        (void)deflateEnd(&stream);
        return r == Z_STREAM_END ? n : 0;
}

struct hf__buf *hfd_pack(const struct hf__buf *bytes) {
        size_t n_max = bytes->n / 2; /* a smaller saving is not worth the time of each read */

        /* INT_MAX: zlib counts bytes in an unsigned int. */
        if (bytes->n < HFD_PACK_MIN || bytes->n > INT_MAX)
                return NULL;
        struct hf__buf *room = hf__buf_new(HEADER + n_max);
        if (!room)
                return NULL;
        size_t n = deflate_into(bytes, room->data + HEADER, n_max);
        struct hf__buf *packed = n > 0 ? hf__buf_new(HEADER + n) : NULL;
        if (packed) {
                packed->data[0] = MAGIC;
                memcpy(packed->data + 1, &bytes->n, sizeof bytes->n);
                memcpy(packed->data + HEADER, room->data + HEADER, n);
        }
        hf__buf_unref(room);
        return packed;
}

struct hf__buf *hfd_unpack(const struct hf__buf *bytes) {
        z_stream stream = {0};

        if (!hfd_is_packed(bytes)) /* a reference changes only the count, not the bytes */
                return hf__buf_ref((struct hf__buf *)(uintptr_t)bytes);
        HF__CLEANUP(hf__buf_cleanup) struct hf__buf *plain = hf__buf_new(hfd_unpacked_size(bytes));
        if (!plain || inflateInit(&stream) != Z_OK)
                return NULL;
        stream.next_in = (const unsigned char *)bytes->data + HEADER;
        stream.avail_in = (unsigned)(bytes->n - HEADER);
        stream.next_out = (unsigned char *)plain->data;
        stream.avail_out = (unsigned)plain->n;
        int r = inflate(&stream, Z_FINISH);
        bool whole = r == Z_STREAM_END && stream.avail_out == 0;
        (void)inflateEnd(&stream);
        assert(whole || r == Z_MEM_ERROR);
        return whole ? HF__TAKE(plain) : NULL;
}
