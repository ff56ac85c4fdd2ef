/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Large writes. Parsing, patching and validating a large body or object takes many milliseconds. On
 * a thread that serves connections or delivers the store's replies, this delays other requests.
 * So the pool of threads (work_pool.h) does it. A small write is not passed to the pool, which
 * would cost it more than the work itself.
 */
#include "server/registry/write/write.h"

/* Whether the body, the current object and the object to store are together larger than
 * HFD_LARGE_BODY, and this thread is not one of the pool. */
bool hfd_write_must_defer(const struct hfd_write *w);
/*
 * Lets a thread of the pool call resume(w). The write ends with an error instead if the client has
 * left, the pool stops or memory runs out, and also if the pool has too many tasks, unless the
 * write has begun its first attempt or is part of a deletecollection. A write that was committed is
 * resumed all the same, if necessary on this thread. The caller must not touch the write
 * afterwards. Never blocks.
 */
void hfd_write_defer(struct hfd_write *w, void (*resume)(struct hfd_write *w));
