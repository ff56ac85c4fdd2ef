/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds characters that differ only in case.
 *
 * Invariant: the characters that differ from each other only in case form a circle: each leads to
 * the next one, and the last to the first. So a caller that follows the circle visits all of them
 * and ends where it began. The relation is Unicode's simple case folding (unicode_folds.c).
 */
#include "cel/regex/case.h"

#include "cel/regex/unicode_folds.h"

size_t hf__cel_find_fold(uint32_t c) {
        size_t low = 0;
        size_t high = hf__cel_n_folds;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (hf__cel_folds[middle].from < c)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}
