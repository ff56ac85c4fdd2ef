/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides the seats among the levels.
 *
 * Invariants: a limited level has at least `lower` seats and at most `upper`; if it wanted more
 * than `lower`, it has what it wanted, up to its nominal limit, unless exempt levels use so much
 * that this is impossible. The exception is an adjustment that finds no fraction and leaves the
 * current limits as they are: they may belong to older shares.
 */
#include "server/flow/core/borrowing.h"

#include <assert.h>

/* A level that wants nothing counts as wanting this much, so that a proportion exists. */
#define TARGET_MIN 0.001

void hfd_borrowing_nominal(const struct hfd_level_shares *level, uint64_t sum, unsigned seats,
                           struct hfd_level_limits *ret_limits) {
        /* As in Kubernetes, a share is rounded up, so that a level with shares has a seat; the
         * percentages are rounded to the nearest seat. */
        uint64_t nominal = sum ? ((uint64_t)seats * level->shares + sum - 1) / sum : 0,
                 lendable = (nominal * level->lendable_percent + 50) / 100, borrowing = seats;

        assert(level->lendable_percent <= 100); /* else `lower` would be negative */
        if (level->borrowing_percent >= 0)
                borrowing = (nominal * (uint64_t)level->borrowing_percent + 50) / 100;
        ret_limits->is_exempt = level->is_exempt;
        ret_limits->nominal = (unsigned)nominal;
        ret_limits->lower = (unsigned)(nominal - lendable);
        /* The cap makes `upper` fit its type. No server has that many seats. */
        uint64_t upper = nominal + borrowing;
        ret_limits->upper = (unsigned)(upper < UINT32_MAX / 2 ? upper : UINT32_MAX / 2);
}

unsigned hfd_borrowing_first(const struct hfd_level_limits *limits) {
        return limits->nominal - (limits->nominal - limits->lower) / 2;
}

/* The seats that a level gets before the levels share the rest. */
static unsigned assured_seats(const struct hfd_level_limits *level) {
        uint64_t wanted = level->high_watermark;

        if (!level->is_exempt && wanted > level->nominal)
                wanted = level->nominal;
        if (wanted > UINT32_MAX / 2)
                wanted = UINT32_MAX / 2;
        return wanted > level->lower ? (unsigned)wanted : level->lower;
}

static double bounded_seats(const struct hfd_level_limits *level, double fraction) {
        double seats = fraction * (level->target > TARGET_MIN ? level->target : TARGET_MIN);

        if (seats < assured_seats(level))
                return assured_seats(level);
        return seats < level->upper ? seats : level->upper;
}

static double sum_at(const struct hfd_level_limits *levels, size_t n, double fraction) {
        double sum = 0;

        for (size_t i = 0; i < n; i++)
                if (!levels[i].is_exempt)
                        sum += bounded_seats(&levels[i], fraction);
        return sum;
}

/* The fraction at which the limited levels have `wanted` seats together. The sum does not fall as
 * the fraction rises, so halving an interval finds it. The bounds of the loops only guarantee that
 * they end: with 1e15 every level has its upper limit, and after 200 halvings the interval is too
 * narrow to matter. */
static double find_fraction(const struct hfd_level_limits *levels, size_t n, double wanted) {
        double low = 0, high = 1;

        while (sum_at(levels, n, high) < wanted && high < 1e15)
                high *= 2;
        for (int i = 0; i < 200 && low < high; i++) {
                double middle = low + (high - low) / 2;
                if (sum_at(levels, n, middle) < wanted)
                        low = middle;
                else
                        high = middle;
        }
        return high;
}

/* The exempt levels leave the limited ones at most their assured seats: what each is assured above
 * its lower limit shrinks in the same proportion. left, lower and sum are for all limited levels:
 * the seats left to them, their lower limits, their assured seats. */
static void shrink_level(struct hfd_level_limits *level, int64_t left, int64_t lower, int64_t sum) {
        double part =
                left > lower && sum > lower ? (double)(left - lower) / (double)(sum - lower) : 0;

        level->current = level->lower +
                         (unsigned)((double)(assured_seats(level) - level->lower) * part + 0.5);
}

double hfd_borrowing_adjust(struct hfd_level_limits *levels, size_t n) {
        int64_t total = 0, left = 0, lower = 0, sum = 0, upper = 0;
        double fraction = 0;

        for (size_t i = 0; i < n; i++) {
                struct hfd_level_limits *level = &levels[i];
                total += level->nominal;
                level->target = assured_seats(level) > level->smoothed ? assured_seats(level)
                                                                       : level->smoothed;
                if (level->is_exempt) {
                        level->current = assured_seats(level);
                        left -= assured_seats(level);
                        continue;
                }
                lower += level->lower;
                sum += assured_seats(level);
                upper += level->upper;
        }
        left += total;
        /* The exempt levels leave enough, so the limited ones share. They share `total`, the
         * nominal limits of all levels, although exempt levels may use some of these seats. */
        bool shares = left > sum && sum <= total && upper >= total;
        /* If not even the upper limits of all limited levels use up the seats, no fraction does. As
         * in Kubernetes, their current limits stay as they are then. */
        if (shares)
                fraction = find_fraction(levels, n, (double)total);
        for (size_t i = 0; i < n; i++) {
                if (levels[i].is_exempt)
                        continue;
                if (shares)
                        levels[i].current = (unsigned)(bounded_seats(&levels[i], fraction) + 0.5);
                else if (left <= sum)
                        shrink_level(&levels[i], left, lower, sum);
        }
        return fraction;
}

unsigned hfd_borrowing_max_width(unsigned nominal, unsigned n_hand) {
        unsigned part = (unsigned)(((uint64_t)nominal * 15 + 99) / 100),
                 each = n_hand ? nominal / n_hand : nominal;

        if (each < part)
                part = each;
        return part > 1 ? part : 1;
}
