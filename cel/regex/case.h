/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Characters that differ only in case. Pure. Thread: any. */
#include <stdbool.h>
#include <stdint.h>

/* The character that differs only in case from the first one at or after `from`, which becomes it.
 * false: there is none up to `last`. */
bool hf__cel_next_fold(uint32_t *from, uint32_t last, uint32_t *ret_other);
