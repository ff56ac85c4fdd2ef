/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of characters as ranges of code points.
 *
 * Invariants: a finished set is sorted and has no overlaps, because look-ups bisect it. Between its
 * ranges is at least one character: ranges that touch have become one.
 */
#include "cel/regex/set.h"

#include <string.h>

#include "base/arena.h"
#include "cel/regex/case.h"
#include "cel/regex/unicode_folds.h"

#define LAST 0x10ffff /* the greatest code point */

/* Adding a range is a step of work. So is reading STEP_READS entries of a table one after the
 * other, or moving STEP_READS ranges in a sort. */
#define STEP_READS 8
#define FIND_WORK  2 /* steps of work for a bisection of the folds */

/* Appends a range. The memory doubles, so n ranges cost time in proportion to n; the arena keeps
 * the old memory until it is freed. False: out of memory. */
static bool push_range(struct hf__cel_set_maker *maker, struct hf__cel_set *set, uint32_t first,
                       uint32_t last) {
        if (set->n == set->space) {
                size_t space = set->space > 0 ? set->space * 2 : 8;
                struct hf__cel_range *ranges =
                        hf__arena_alloc(maker->arena, space * sizeof *ranges);

                if (!ranges)
                        return false;
                if (set->n > 0)
                        memcpy(ranges, set->ranges, set->n * sizeof *ranges);
                set->ranges = ranges;
                set->space = space;
        }
        set->ranges[set->n++] = (struct hf__cel_range){.first = first, .last = last};
        maker->work++;
        return true;
}

/* Adds the characters that differ only in case from those of a range, and are not in it. */
static bool push_folds(struct hf__cel_set_maker *maker, struct hf__cel_set *set, uint32_t first,
                       uint32_t last) {
        size_t start = hf__cel_find_fold(first);
        size_t i = start;

        for (; i < hf__cel_n_folds && hf__cel_folds[i].from <= last; i++)
                /* Follows the circle (case.c) until a character of the range comes. The walk
                 * that begins at that character adds the rest of the circle. */
                for (uint32_t c = hf__cel_folds[i].to; c < first || c > last;) {
                        if (!push_range(maker, set, c, c))
                                return false;
                        c = hf__cel_folds[hf__cel_find_fold(c)].to;
                        maker->work += FIND_WORK;
                }
        maker->work += FIND_WORK + (i - start) / STEP_READS;
        return true;
}

bool hf__cel_set_add(struct hf__cel_set_maker *maker, struct hf__cel_set *set, uint32_t first,
                     uint32_t last, bool fold) {
        return push_range(maker, set, first, last) &&
               (!fold || push_folds(maker, set, first, last));
}

bool hf__cel_set_add_set(struct hf__cel_set_maker *maker, struct hf__cel_set *set,
                         const struct hf__cel_set *other) {
        for (size_t i = 0; i < other->n; i++)
                if (!push_range(maker, set, other->ranges[i].first, other->ranges[i].last))
                        return false;
        return true;
}

/* Adds ranges. pairs: the first and the last character of each. */
static bool add_text(struct hf__cel_set_maker *maker, struct hf__cel_set *set, const char *pairs,
                     bool fold) {
        for (; *pairs; pairs += 2)
                if (!hf__cel_set_add(maker, set, (unsigned char)pairs[0], (unsigned char)pairs[1],
                                     fold))
                        return false;
        return true;
}

/* Adds the complement of a finished set. */
static bool add_complement(struct hf__cel_set_maker *maker, struct hf__cel_set *set,
                           const struct hf__cel_set *other) {
        uint32_t next = 0;

        for (size_t i = 0; i < other->n; i++) {
                if (other->ranges[i].first > next &&
                    !push_range(maker, set, next, other->ranges[i].first - 1))
                        return false;
                next = other->ranges[i].last + 1;
        }
        return next > LAST || push_range(maker, set, next, LAST);
}

/* Adds the ranges in `pairs` and, if `nul`, the NUL, which cannot be a part of `pairs`. negated:
 * adds all characters outside of them instead. False: out of memory. */
static bool add_class(struct hf__cel_set_maker *maker, struct hf__cel_set *set, const char *pairs,
                      bool nul, bool negated, bool fold) {
        struct hf__cel_set other = {0};
        struct hf__cel_set *class = negated ? &other : set;

        if ((nul && !push_range(maker, class, 0, 0)) || !add_text(maker, class, pairs, fold))
                return false;
        return !negated ||
               (hf__cel_set_finish(maker, &other, false) && add_complement(maker, set, &other));
}

bool hf__cel_set_add_perl(struct hf__cel_set_maker *maker, struct hf__cel_set *set, char name,
                          bool fold) {
        bool negated = name < 'a';

        switch (name | 0x20) {
        case 'd': return add_class(maker, set, "09", false, negated, fold);
        /* Without the vertical tab, which RE2 does not count. */
        case 's': return add_class(maker, set, "\t\n\f\r  ", false, negated, fold);
        default: return add_class(maker, set, "09AZ__az", false, negated, fold);
        }
}

bool hf__cel_set_add_posix(struct hf__cel_set_maker *maker, struct hf__cel_set *set,
                           const char *name, size_t n, bool negated, bool fold, bool *ret_known) {
        static const struct {
                const char *name;
                const char *pairs;
        } classes[] = {
                {"alnum", "09AZaz"},
                {"alpha", "AZaz"},
                {"ascii", "\001\177"},
                {"blank", "\t\t  "},
                {"cntrl", "\001\037\177\177"},
                {"digit", "09"},
                {"graph", "!~"},
                {"lower", "az"},
                {"print", " ~"},
                {"punct", "!/:@[`{~"},
                {"space", "\t\r  "},
                {"upper", "AZ"},
                {"word", "09AZ__az"},
                {"xdigit", "09AFaf"},
        };

        *ret_known = true;
        for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
                const char *pairs = classes[i].pairs;

                /* Both classes with the character 1 have the NUL, too. */
                if (strlen(classes[i].name) == n && memcmp(classes[i].name, name, n) == 0)
                        return add_class(maker, set, pairs, *pairs == 1, negated, fold);
        }
        *ret_known = false;
        return false;
}

/* Sorts by Shell's method. Most sets have few ranges that are nearly sorted, and glibc's qsort may
 * allocate memory that the arena does not count. With these gaps, which are Sedgewick's, the time
 * grows with n^(4/3) at most. With gaps that are halves of each other, a class that names two
 * characters in turn would take quadratic time. Returns how many ranges were moved. */
static uint64_t sort_ranges(struct hf__cel_range *ranges, size_t n) {
        static const size_t gaps[] = {65921, 16577, 4193, 1073, 281, 77, 23, 8, 1};
        uint64_t moves = 0;

        for (size_t g = 0; g < sizeof gaps / sizeof gaps[0]; g++)
                for (size_t gap = gaps[g], i = gap; i < n; i++) {
                        struct hf__cel_range moved = ranges[i];
                        size_t k = i;

                        for (; k >= gap && ranges[k - gap].first > moved.first; k -= gap) {
                                ranges[k] = ranges[k - gap];
                                moves++;
                        }
                        ranges[k] = moved;
                }
        return moves;
}

bool hf__cel_set_finish(struct hf__cel_set_maker *maker, struct hf__cel_set *set, bool negated) {
        size_t n = 0;

        maker->work += (set->n + sort_ranges(set->ranges, set->n)) / STEP_READS;
        for (size_t i = 0; i < set->n; i++) {
                struct hf__cel_range next = set->ranges[i];

                /* Ranges that touch become one as well, so that a look-up has fewer of them. */
                if (n > 0 && next.first <= set->ranges[n - 1].last + 1) {
                        if (next.last > set->ranges[n - 1].last)
                                set->ranges[n - 1].last = next.last;
                } else {
                        set->ranges[n++] = next;
                }
        }
        set->n = n;
        if (negated) {
                struct hf__cel_set other = {0};

                if (!add_complement(maker, &other, set))
                        return false;
                *set = other;
        }
        /* Most characters of texts are ASCII. A bit for each of them saves the bisection. */
        set->ascii[0] = set->ascii[1] = 0;
        for (size_t i = 0; i < set->n; i++)
                for (uint32_t c = set->ranges[i].first; c <= set->ranges[i].last && c < 128; c++)
                        set->ascii[c / 64] |= UINT64_C(1) << c % 64;
        return true;
}

bool hf__cel_set_has(const struct hf__cel_set *set, uint32_t c) {
        size_t low = 0;
        size_t high = set->n;

        if (c < 128)
                return (set->ascii[c / 64] >> c % 64 & 1) != 0;
        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (c > set->ranges[middle].last)
                        low = middle + 1;
                else if (c < set->ranges[middle].first)
                        high = middle;
                else
                        return true;
        }
        return false;
}
