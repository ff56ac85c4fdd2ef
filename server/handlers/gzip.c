/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compresses bodies with zlib, at its fastest level, which kube-apiserver uses as well.
 *
 * Invariant: the memory of a compressor is limited by WINDOW_BITS and MEMORY, because each large
 * list that is being sent has one. So the window is smaller than zlib's largest.
 */
#define ZLIB_CONST /* the input is const */
#include "server/handlers/gzip.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/strbuf.h"

#define WINDOW_BITS (14 + 16)          /* 16 KiB; + 16 = with gzip's header and trailer */
#define MEMORY      7                  /* zlib's memLevel: 2^(7 + 9) bytes for its tables */
#define OUT_MAX     ((size_t)16 << 10) /* bytes on the stack that zlib writes to */

struct hfd_gzip {
        z_stream stream;
        bool ended; /* the last piece has been added */
};

bool hfd_gzip_is_accepted(struct hfd_http_request *http_request) {
        const char *accepted = hfd_http_request_header(http_request, "accept-encoding");

        while (accepted && *accepted) {
                accepted += strspn(accepted, " \t,");
                size_t n = strcspn(accepted, ",");
                size_t n_word = n;
                while (n_word > 0 && strchr(" \t", accepted[n_word - 1]))
                        n_word--;
                if (n_word == 4 && memcmp(accepted, "gzip", 4) == 0)
                        return true;
                accepted += n;
        }
        return false;
}

int hfd_gzip_new(struct hfd_gzip **ret_gzip) {
        struct hfd_gzip *gzip = calloc(1, sizeof *gzip);

        if (!gzip)
                return -ENOMEM;
        if (deflateInit2(&gzip->stream, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS, MEMORY,
                         Z_DEFAULT_STRATEGY) != Z_OK) {
                free(gzip);
                return -ENOMEM;
        }
        *ret_gzip = gzip;
        return 0;
}

struct hfd_gzip *hfd_gzip_free(struct hfd_gzip *gzip) {
        if (!gzip)
                return NULL;
        (void)deflateEnd(&gzip->stream);
        free(gzip);
        return NULL;
}

int hfd_gzip_add(struct hfd_gzip *gzip, const void *data, size_t n, bool last,
                 struct hf__buf **ret_piece) {
        struct hf__strbuf out = {0};
        unsigned char space[OUT_MAX];
        int r = Z_OK;

        assert(!gzip->ended && n <= UINT_MAX);
        *ret_piece = NULL;
        gzip->stream.next_in = data;
        gzip->stream.avail_in = (unsigned)n;
        /* zlib has written all it can for now when it leaves room. Z_BUF_ERROR is no failure: it
         * says that nothing could be written. */
        do {
                gzip->stream.next_out = space;
                gzip->stream.avail_out = sizeof space;
                r = deflate(&gzip->stream, last ? Z_FINISH : Z_NO_FLUSH);
                hf__strbuf_add(&out, space, sizeof space - gzip->stream.avail_out);
        } while (r == Z_OK && gzip->stream.avail_out == 0);
        assert(r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR); /* the state is consistent */
        gzip->ended = last;
        if (out.n > 0)
                *ret_piece = hf__strbuf_to_buf(&out);
        r = out.error != 0 || (out.n > 0 && !*ret_piece) ? -ENOMEM : 0;
        hf__strbuf_done(&out);
        return r;
}

struct hf__buf *hfd_gzip_pack(const struct hf__buf *text) {
        struct hfd_gzip *gzip = NULL;
        struct hf__buf *packed = NULL;

        if (text->n <= UINT_MAX && hfd_gzip_new(&gzip) == 0)
                (void)hfd_gzip_add(gzip, text->data, text->n, true, &packed);
        hfd_gzip_free(gzip);
        return packed;
}

/* The length is known, so one call does it, into memory of exactly that size. */
struct hf__buf *hfd_gzip_unpack(const struct hf__buf *packed, size_t n) {
        HF__CLEANUP(hf__buf_cleanup) struct hf__buf *text = hf__buf_new(n);
        z_stream stream = {0};

        if (!text || inflateInit2(&stream, WINDOW_BITS) != Z_OK)
                return NULL;
        assert(packed->n <= UINT_MAX && n <= UINT_MAX);
        stream.next_in = (const unsigned char *)packed->data;
        stream.avail_in = (unsigned)packed->n;
        stream.next_out = (unsigned char *)text->data;
        stream.avail_out = (unsigned)n;
        int r = inflate(&stream, Z_FINISH);
        /* hfd_gzip_pack has made the bytes, so they are well-formed. */
        assert(r == Z_STREAM_END || r == Z_MEM_ERROR);
        (void)inflateEnd(&stream);
        return r == Z_STREAM_END ? HF__TAKE(text) : NULL;
}
