/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Characters that differ only in case. Pure. Thread: any. */
#include <stddef.h>
#include <stdint.h>

/* The place in hf__cel_folds (unicode_folds.h) of the first character at or after c that has
 * another case; hf__cel_n_folds: none has. Takes logarithmic time. */
size_t hf__cel_find_fold(uint32_t c);
