/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Large writes. Parsing, patching and validating a large body or object takes many milliseconds. On
 * a thread that serves connections or delivers the store's replies, all others would wait for it.
 * So the pool of threads (work_pool.h) does it. A small write never comes here: the pool would cost
 * it more than the work itself.
 */
#include "server/registry/write/write.h"

/* Whether body and stored object together are larger than HFD_LARGE_BODY, and this thread is not
 * one of the pool. */
bool hfd_write_must_defer(const struct hfd_write *w);
/*
 * Lets a thread of the pool call resume(w). If the client has left, or the pool stops or has too
 * many tasks, the write ends with an error instead, unless it was committed. The caller must not
 * touch the write afterwards. Never blocks.
 */
void hfd_write_defer(struct hfd_write *w, void (*resume)(struct hfd_write *w));
