/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Keeps the parts of an object that a write must not change. Which parts these are depends on the
 * subresource. Thread: that of the write (write.h). Nothing blocks. */
#include "server/registry/write/write.h"

struct hf__json;

/* Copies the parts that this write must not change from old, the stored version, to w->object. 0 or
 * -ENOMEM. */
int hfd_write_merge_parts(struct hfd_write *w, const struct hf__json *old);
