/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For a cache of blocks (buf.h) that keeps a block only while somebody else uses it. Thread: any.
 */
#include <stdbool.h>

struct hf__buf;

/* Whether there is a reference beside the caller's. False is reliable only while no other thread
 * can get a reference from the caller's. */
bool hf__buf_is_shared(struct hf__buf *buf);
