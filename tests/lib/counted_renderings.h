/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The renderings of lists (server/registry/list/rendering.h), with a view of how many there are and
 * how much work they did. */
#include <stddef.h>
#include <stdint.h>

struct hfd_renderings;

/* How many renderings exist. */
size_t counted_renderings_n(struct hfd_renderings *renderings);
/* How many chunks of shared renderings the process has made so far. */
uint64_t counted_renderings_chunks(void);
