/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The characters of each class of Unicode, as tables that tools/unicode-classes writes: runs of
 * characters of one class. A run has the first character, shifted by 8, and the number of its
 * class. unicode_names.h has the names of these numbers. Immutable.
 */
#include <stddef.h>
#include <stdint.h>

extern const uint32_t hf__cel_category_runs[];
extern const size_t hf__cel_n_category_runs;
extern const uint32_t hf__cel_script_runs[];
extern const size_t hf__cel_n_script_runs;
