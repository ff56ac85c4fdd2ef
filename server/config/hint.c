/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes distances between names, to suggest the name of a misspelt flag or command (hint.h).
 *
 * Invariant: names longer than MAX_NAME are not compared, so the table has a fixed size.
 */
#include "server/config/hint.h"

#include <string.h>

#define MAX_DISTANCE 2
#define MAX_NAME     64 /* bytes; a longer name is never suggested */

static bool same_letter(char a, char b) { return a == b || (a == '_' && b == '-'); }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* The number of changes from a to b: replace, remove or insert a letter, or swap two neighbours.
 * Row i of the table has the distances between the first i letters of a and each beginning of b. */
static size_t edit_distance(const char *a, size_t n_a, const char *b, size_t n_b) {
        size_t rows[3][MAX_NAME + 1];
        size_t *before = rows[0], *last = rows[1], *row = rows[2];

        for (size_t j = 0; j <= n_b; j++)
                last[j] = j;
        memset(rows[0], 0, sizeof rows[0]);
        for (size_t i = 1; i <= n_a; i++) {
                row[0] = i;
                for (size_t j = 1; j <= n_b; j++) {
                        size_t replace = last[j - 1] + !same_letter(a[i - 1], b[j - 1]);

                        row[j] = smaller(replace, smaller(last[j], row[j - 1]) + 1);
                        if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
                            same_letter(a[i - 2], b[j - 1]))
                                row[j] = smaller(row[j], before[j - 2] + 1);
                }
                size_t *oldest = before;
                before = last;
                last = row;
                row = oldest;
        }
        return last[n_b];
}

/* The number of changes from given to known. MAX_DISTANCE + 1: the names are not near. */
static size_t near_distance(const char *given, size_t n, const char *known) {
        size_t n_known = strlen(known);

        if (n > MAX_NAME || n_known > MAX_NAME)
                return MAX_DISTANCE + 1;
        size_t changes = edit_distance(given, n, known, n_known);
        return changes <= MAX_DISTANCE && 2 * changes <= n_known ? changes : MAX_DISTANCE + 1;
}

void hfd_hint_offer(const char *given, size_t n, const char *known, const char **best) {
        size_t changes = near_distance(given, n, known);

        if (changes <= MAX_DISTANCE && (!*best || changes < near_distance(given, n, *best)))
                *best = known;
}
