/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A reference-counted block of bytes that never changes once it is published. What is stored,
 * served, watched and sent is one such block, shared by all that need it. Thread: any; the count is
 * atomic.
 */
#include <stdatomic.h>
#include <stddef.h>

struct hf__buf {
        size_t n;        /* bytes in data; data[n] is always a NUL that does not count */
        atomic_int refs; /* touched by ref and unref only */
        char data[];
};

struct hf__buf *hf__buf_new(size_t n); /* uninitialised but for the NUL; NULL = out of memory */
struct hf__buf *hf__buf_copy(const void *data, size_t n); /* NULL = out of memory */
struct hf__buf *hf__buf_ref(struct hf__buf *buf);         /* accepts NULL */
struct hf__buf *hf__buf_unref(struct hf__buf *buf);       /* accepts NULL, returns NULL */
