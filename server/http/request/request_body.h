/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The body of a request while it arrives, in one piece, because the parsers of JSON and YAML read
 * it as a C string.
 *
 * A worker serves many connections, so each step for one of them must be short, also when a body
 * outgrows its memory. Therefore a large body is in a mapping of its own, which the kernel moves
 * without copying: with realloc, a body of 3 MiB held up its worker for 3 ms.
 *
 * Thread: owner only. Nothing here blocks.
 */
#include <stddef.h>

/* Zero-initialized = an empty body. */
struct hfd_request_body {
        char *data;   /* owned; NUL-terminated; NULL = empty */
        size_t n;     /* bytes without the NUL */
        size_t space; /* of data; HFD_REQUEST_BODY_MAPPED or more: a mapping, else from malloc */
};

/* A body whose memory has this many bytes or more is in a mapping of its own. */
#define HFD_REQUEST_BODY_MAPPED ((size_t)128 << 10)

/* Appends n bytes. 0, -ENOMEM, or HF_E_TOO_LARGE: the body would exceed max; then it stays as it
 * was. */
int hfd_request_body_add(struct hfd_request_body *body, const void *data, size_t n, size_t max);
/* Frees the memory. The body is empty then. */
void hfd_request_body_done(struct hfd_request_body *body);
