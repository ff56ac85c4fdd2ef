/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Divides the seats of the server among the priority levels, as in Kubernetes: the nominal limits
 * by shares, and the current limits by what each level may lend and borrow, and by what it has
 * wanted lately. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A level as configured. */
struct hfd_level_shares {
        bool is_exempt;
        uint32_t shares;
        unsigned lendable_percent; /* at most 100 */
        int64_t borrowing_percent; /* -1 = no limit */
};

struct hfd_level_limits {
        bool is_exempt;
        unsigned nominal, lower, upper; /* seats */
        /* in: what the level has wanted lately (hfd_seat_demand) */
        uint64_t high_watermark;
        double smoothed;
        /* in and out */
        unsigned current;
        double target; /* out; for metrics */
};

/* Sets is_exempt, nominal, lower and upper. `sum` is that of the shares of all levels. */
void hfd_borrowing_nominal(const struct hfd_level_shares *level, uint64_t sum, unsigned seats,
                           struct hfd_level_limits *ret_limits);
/* The limit of a level that is new: half of what it may lend is lent. */
unsigned hfd_borrowing_first(const struct hfd_level_limits *limits);
/*
 * Sets the current limits of all levels. Returns the fair fraction: the part of its target that
 * each limited level gets, unless one of its bounds applies. 0 = there is none: the exempt levels
 * leave too few seats, or the upper limits of the limited levels together are less than all seats;
 * in the latter case the current limits of these levels stay.
 */
double hfd_borrowing_adjust(struct hfd_level_limits *levels, size_t n);
/* The most seats (width) that a request may take in a level with queues: 15 % of its nominal limit,
 * rounded up, or that limit divided by the queues of a hand, whichever is less; but at least 1. */
unsigned hfd_borrowing_max_width(unsigned nominal, unsigned n_hand);
