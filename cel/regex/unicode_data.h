/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The classes of characters of Unicode, as tables that tools/unicode-classes writes. Immutable. */
#include <stddef.h>
#include <stdint.h>

/* Runs of characters of one class: the first character, shifted by 8, and the class. */
extern const uint32_t hf__cel_category_runs[];
extern const size_t hf__cel_n_category_runs;
extern const uint32_t hf__cel_script_runs[];
extern const size_t hf__cel_n_script_runs;

/* Characters that differ only in case: each is followed by the next one, the last by the first. */
extern const struct hf__cel_fold_pair {
        uint32_t from;
        uint32_t to;
} hf__cel_folds[];
extern const size_t hf__cel_n_folds;

extern const struct hf__cel_category_name {
        const char *name;
        uint32_t classes; /* bit i: class i belongs to it */
} hf__cel_categories[];
extern const size_t hf__cel_n_categories;

extern const struct hf__cel_script_name {
        const char *name;
        uint32_t number;
} hf__cel_scripts[];
extern const size_t hf__cel_n_scripts;
