/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The tree of objects (server/cacher/history/object_tree.h), which counts its comparisons. */
#include <stdint.h>

/* The number of comparisons that this thread has made so far. */
uint64_t counted_object_tree_comparisons(void);
