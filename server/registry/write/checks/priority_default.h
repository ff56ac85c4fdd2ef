/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A write of a PriorityClass: whether it may be the default. Thread: that of the write (write.h).
 * Nothing blocks. */
#include "server/registry/write/write.h"

struct hf__json;

/*
 * Checks w->object, which is valid. old NULL = a create. As in Kubernetes, two writes at the same
 * time may both succeed. False: the response was sent, or another attempt was started.
 */
bool hfd_write_may_be_default(struct hfd_write *w, const struct hf__json *old);
