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

bool hf__cel_next_fold(uint32_t *from, uint32_t last, uint32_t *ret_other) {
        /* The lower bound: the caller wants the first character at or after *from that has another
         * case. */
        size_t low = 0;
        size_t high = hf__cel_n_folds;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (hf__cel_folds[middle].from < *from)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == hf__cel_n_folds || hf__cel_folds[low].from > last)
                return false;
        *from = hf__cel_folds[low].from;
        *ret_other = hf__cel_folds[low].to;
        return true;
}
