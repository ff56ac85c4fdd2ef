/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Characters that differ only in case, as a table that tools/unicode-classes writes. Immutable. */
#include <stddef.h>
#include <stdint.h>

/* The characters that differ from each other only in case form a circle: `to` is the one after
 * `from`, and the last leads to the first. The entries ascend by `from`. */
extern const struct hf__cel_fold_pair {
        uint32_t from;
        uint32_t to;
} hf__cel_folds[];
extern const size_t hf__cel_n_folds;
