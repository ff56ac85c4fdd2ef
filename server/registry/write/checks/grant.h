/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Rights that a write needs in addition to the right to make the request. Thread: that of the write
 * (write.h). Nothing blocks. */
#include "server/registry/write/write.h"

struct hf__json;

/*
 * Whether the user may grant the rights in the role or binding w->object. w->object is valid; other
 * kinds pass. old NULL = a create. False: the response was sent, or another attempt was started.
 */
bool hfd_write_may_grant(struct hfd_write *w, const struct hf__json *old);
/*
 * Whether the user may create the object that an apply or an update is about to create: the request
 * was authorized as a patch or an update only. False: the response was sent.
 */
bool hfd_write_may_create(struct hfd_write *w);
