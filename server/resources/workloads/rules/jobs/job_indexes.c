/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads texts of indexes; see job_indexes.h.
 *
 * Invariant: no function walks the indexes of an interval, only its two ends. A client may write
 * "0-2147483646".
 */
#include "server/resources/workloads/rules/jobs/job_indexes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"

struct part { /* of a text */
        const char *text;
        size_t n;
};

/* The part of the text from *at to the next character `end`; the last part reaches to `stop`. *at
 * moves behind that character, and is NULL after the last part. */
static struct part next_part(const char **at, const char *stop, char end) {
        struct part part = {*at, 0};

        while (part.text + part.n < stop && part.text[part.n] != end)
                part.n++;
        *at = part.text + part.n < stop ? part.text + part.n + 1 : NULL;
        return part;
}

/* Writes "WHAT: PART", the part in quotes. A long one is cut. */
static void explain_part(char why[HFD_JOB_INDEXES_WHY_MAX], const char *what, struct part part) {
        char quoted[220];

        hf__quote_bytes(part.text, part.n < 200 ? part.n : 200, quoted, sizeof quoted);
        (void)snprintf(why, HFD_JOB_INDEXES_WHY_MAX, "%s: %s", what, quoted);
}

/* A decimal number below `completions`, as Go reads it: with or without "+". False: why says what
 * is wrong. */
static bool read_index(struct part part, int64_t completions, int64_t *ret_index,
                       char why[HFD_JOB_INDEXES_WHY_MAX]) {
        size_t i = part.n > 0 && part.text[0] == '+';
        int64_t value = 0;

        if (i == part.n) {
                explain_part(why, "cannot convert string to integer for index", part);
                return false;
        }
        for (; i < part.n; i++) {
                int digit = part.text[i] - '0';
                if (digit < 0 || digit > 9 || value > (INT64_MAX - digit) / 10) {
                        explain_part(why, "cannot convert string to integer for index", part);
                        return false;
                }
                value = 10 * value + digit;
        }
        *ret_index = value;
        if (value < completions)
                return true;
        explain_part(why, "too large index", part);
        return false;
}

/* "3" or "3-7". */
static bool read_interval(struct part interval, int64_t completions, int64_t *ret_first,
                          int64_t *ret_last, char why[HFD_JOB_INDEXES_WHY_MAX]) {
        const char *at = interval.text, *stop = interval.text + interval.n;
        struct part first = next_part(&at, stop, '-'), last = first;
        bool is_range = at;

        if (is_range)
                last = next_part(&at, stop, '-');
        if (at) {
                char quoted[160];
                hf__quote_bytes(interval.text, interval.n < 140 ? interval.n : 140, quoted,
                                sizeof quoted);
                (void)snprintf(why, HFD_JOB_INDEXES_WHY_MAX,
                               "the fragment %s violates the requirement that an index interval "
                               "can have at most two parts separated by '-'",
                               quoted);
                return false;
        }
        if (!read_index(first, completions, ret_first, why))
                return false;
        if (!is_range) {
                *ret_last = *ret_first;
                return true;
        }
        if (!read_index(last, completions, ret_last, why))
                return false;
        if (*ret_first < *ret_last)
                return true;
        (void)snprintf(why, HFD_JOB_INDEXES_WHY_MAX,
                       "non-increasing order, previous: %" PRId64 ", current: %" PRId64, *ret_first,
                       *ret_last);
        return false;
}

bool hfd_job_indexes_count(const char *text, int64_t completions, int64_t *ret_n,
                           char why[HFD_JOB_INDEXES_WHY_MAX]) {
        const char *at = *text ? text : NULL, *stop = text + strlen(text);
        int64_t n = 0, previous = -1, first = 0, last = 0;

        *ret_n = 0;
        while (at) {
                if (!read_interval(next_part(&at, stop, ','), completions, &first, &last, why))
                        return false;
                if (previous >= first) {
                        (void)snprintf(why, HFD_JOB_INDEXES_WHY_MAX,
                                       "non-increasing order, previous: %" PRId64
                                       ", current: %" PRId64,
                                       previous, first);
                        return false;
                }
                n += last - first + 1;
                previous = last;
        }
        *ret_n = n;
        return true;
}

/* ---- two texts ---- */

struct cursor {                /* walks the valid intervals of a text */
        const char *at, *stop; /* at NULL: there is no further part */
        bool has_interval;
        int64_t first, last;
};

/* Moves to the next valid interval. */
static void advance(struct cursor *cursor, int64_t completions) {
        char why[HFD_JOB_INDEXES_WHY_MAX];

        cursor->has_interval = false;
        while (cursor->at && !cursor->has_interval)
                cursor->has_interval =
                        read_interval(next_part(&cursor->at, cursor->stop, ','), completions,
                                      &cursor->first, &cursor->last, why);
}

static struct cursor begin(const char *text, int64_t completions) {
        struct cursor cursor = {.at = *text ? text : NULL, .stop = text + strlen(text)};

        advance(&cursor, completions);
        return cursor;
}

/* If two intervals have no common index, the one that begins first ends before the other one and
 * before all that follow the other one. So the cursor of the first one moves. */
bool hfd_job_indexes_overlap(const char *a, const char *b, int64_t completions,
                             int64_t *ret_index) {
        struct cursor x = begin(a, completions), y = begin(b, completions);

        while (x.has_interval && y.has_interval) {
                if (x.first <= y.last && y.first <= x.last) {
                        *ret_index = x.first > y.first ? x.first : y.first;
                        return true;
                }
                advance(x.first <= y.first ? &x : &y, completions);
        }
        return false;
}
