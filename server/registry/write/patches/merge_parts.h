/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a write of a path may change. Thread: that of the write (write.h). Nothing blocks. */
#include "server/registry/write/write.h"

struct hf__json;

/* Copies from old, the stored version, to w->object what a write of this path must not change. 0 or
 * -ENOMEM. */
int hfd_write_merge_parts(struct hfd_write *w, const struct hf__json *old);
