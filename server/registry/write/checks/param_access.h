/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether the writer of an admission policy, or of a binding, may read its params. Thread: that of
 * the write (write.h). Nothing blocks. */
#include "server/registry/write/write.h"

struct hf__json;

/*
 * The expressions of a policy read its params with the rights of the server. Without this check, a
 * user could write a policy that shows params which the user may not read, for example in a
 * warning.
 *
 * w->object has been validated. old: the object before the write; NULL = a create. Writes of other
 * kinds, of a subresource, and of the server itself are always allowed. False: the response was
 * sent, or another attempt was started, so the caller must not touch w any more.
 */
bool hfd_write_may_read_params(struct hfd_write *w, const struct hf__json *old);
