/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The values that expressions see of one part of an object: those of a part above contain them, so
 * that each value is made once, however many parts that enclose each other have rules. Thread:
 * owner only.
 */
#include <stdbool.h>
#include <stddef.h>

#include "cel/values/value.h"

struct hf__json;
struct hfd_declared;

/* Begins as {0}. The values are in memory of the run (rule_run.h). */
struct hfd_part_values {
        const struct hfd_declared *declared; /* how the values were made; NULL: none was */
        bool has_self, has_old;
        struct hf__cel_value self, old;
};

/*
 * The values of a part below. name: of the member, or NULL for an element. at and old_at: the
 * positions of the part and of its old form in their containers; old_at SIZE_MAX: it has no old
 * form. A value is missing if that of `above` is, or if it does not contain one. Takes logarithmic
 * time.
 */
struct hfd_part_values hfd_part_values_below(const struct hfd_part_values *above, const char *name,
                                             size_t at, size_t old_at);
