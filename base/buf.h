/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A reference-counted block of bytes. Only the code that created the block may write to it, and
 * only before other code gets a pointer to it. So one block can be stored, cached and sent to
 * several clients at the same time without a copy. Thread: any, because the reference count is
 * atomic.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct hf__buf {
        size_t n;        /* bytes in data; data[n] is always a NUL, which n does not count */
        atomic_int refs; /* used by buf.c only */
        char data[];
};

/* A block of n uninitialised bytes and the NUL, with one reference. NULL: out of memory. */
struct hf__buf *hf__buf_new(size_t n);
/* A copy of n bytes. NULL: out of memory. */
struct hf__buf *hf__buf_copy(const void *data, size_t n);
/* Adds a reference and returns buf. Accepts NULL. */
struct hf__buf *hf__buf_ref(struct hf__buf *buf);
/* Drops a reference. Dropping the last reference frees buf. Accepts NULL, returns NULL. */
struct hf__buf *hf__buf_unref(struct hf__buf *buf);
/* Whether there is a reference beside the caller's, for a cache that keeps a block only while
 * somebody else uses it. False is reliable only while no other thread can get a reference from the
 * caller's. */
bool hf__buf_is_shared(struct hf__buf *buf);
HF__CLEANUP_DEFINE(hf__buf_cleanup, struct hf__buf *, hf__buf_unref)
