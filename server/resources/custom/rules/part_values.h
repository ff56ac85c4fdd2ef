/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The values of one part of an object, as expressions see them. The value of a part contains the
 * values of all parts below it. So if several parts have rules, and one is within the other, the
 * inner one takes its values from the outer one, unless their declarations (values/declared.h)
 * differ. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>

#include "cel/values/value.h"

struct hf__json;
struct hfd_declared;

/* Begins as {0}. The values are in memory of the run (rule_run.h). */
struct hfd_part_values {
        const struct hfd_declared *declared; /* how the values were made; NULL: there are none */
        bool has_self, has_old;
        struct hf__cel_value self, old;
};

/*
 * The values of a part below. name: of the member, or NULL for an element. at and old_at: the
 * positions of the part and of its old form in their containers; old_at SIZE_MAX: it has no old
 * form. The result lacks a value if `above` lacks it, or if the value of `above` does not contain
 * the part. Takes logarithmic time.
 */
struct hfd_part_values hfd_part_values_below(const struct hfd_part_values *above, const char *name,
                                             size_t at, size_t old_at);
