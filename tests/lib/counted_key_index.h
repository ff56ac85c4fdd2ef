/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The index of keys (client/key_index.h), which counts its comparisons. */
#include <stdint.h>

/* The number of comparisons that this thread has made so far. */
uint64_t counted_key_index_comparisons(void);
