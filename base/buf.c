/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared blocks of bytes.
 *
 * A block must not be written to once other code has a pointer to it, because readers on other
 * threads hold no lock.
 */
#include "base/buf.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct hf__buf *hf__buf_new(size_t n) {
        if (n > SIZE_MAX - sizeof(struct hf__buf) - 1)
                return NULL;
        struct hf__buf *buf = malloc(sizeof *buf + n + 1);
        if (!buf)
                return NULL;
        buf->n = n;
        atomic_init(&buf->refs, 1);
        buf->data[n] = '\0';
        return buf;
}

struct hf__buf *hf__buf_copy(const void *data, size_t n) {
        assert(data || n == 0);
        struct hf__buf *buf = hf__buf_new(n);
        if (buf && n > 0)
                memcpy(buf->data, data, n);
        return buf;
}

struct hf__buf *hf__buf_ref(struct hf__buf *buf) {
        if (!buf)
                return NULL;
        /* Relaxed: the caller has a reference already, which keeps the block alive. */
        int previous = atomic_fetch_add_explicit(&buf->refs, 1, memory_order_relaxed);
        assert(previous > 0);
        (void)previous;
        return buf;
}

struct hf__buf *hf__buf_unref(struct hf__buf *buf) {
        if (!buf)
                return NULL;
        /* Acquire and release: all uses on other threads happen before the free. */
        int previous = atomic_fetch_sub_explicit(&buf->refs, 1, memory_order_acq_rel);
        assert(previous > 0);
        if (previous == 1)
                free(buf);
        return NULL;
}

/* Acquire: if another thread has dropped its reference, its uses of the block happen before the
 * return. */
bool hf__buf_is_shared(struct hf__buf *buf) {
        return atomic_load_explicit(&buf->refs, memory_order_acquire) > 1;
}
