/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The names of the classes of Unicode, as tables that tools/unicode-classes writes. The numbers of
 * the classes are those of unicode_ranges.h. Immutable.
 */
#include <stddef.h>
#include <stdint.h>

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
