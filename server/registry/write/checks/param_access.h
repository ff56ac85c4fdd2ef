/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether the writer of an admission policy, or of a binding, may read its params. Thread: that of
 * the write (write.h). Nothing blocks. */
#include "server/registry/write/write.h"

struct hf__json;

/*
 * Expressions read params with the server's rights, so a policy that warns with their contents
 * would show them to its writer. w->object is valid; other kinds pass, and so does the
 * server itself. old NULL = a create. False: the response was sent, or another attempt was started.
 */
bool hfd_write_may_read_params(struct hfd_write *w, const struct hf__json *old);
