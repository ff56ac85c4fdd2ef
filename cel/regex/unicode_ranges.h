/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The characters of each class of Unicode (a general category or a script), for \p{...} in
 * patterns, and for the question which characters Go prints as they are. tools/unicode-classes
 * writes these tables. An entry is a run of characters of one class, up to the first character of
 * the next entry: the code of its first character, shifted left by 8 bits, and in the low 8 bits
 * the number of the class. unicode_names.h has the names of these numbers. Script 0 has none: it
 * stands for all characters that are in no named script. The entries ascend. Immutable.
 */
#include <stddef.h>
#include <stdint.h>

extern const uint32_t hf__cel_category_runs[];
extern const size_t hf__cel_n_category_runs;
extern const uint32_t hf__cel_script_runs[];
extern const size_t hf__cel_n_script_runs;
