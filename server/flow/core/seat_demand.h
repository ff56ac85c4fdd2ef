/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Measures how many seats a priority level needs over time: average, deviation and highest value of
 * the last period, and a smoothed value that rises at once and falls slowly. Pure: the caller
 * passes the time. Thread: owner only.
 */
#include <stdint.h>

#include <holdfast/clock.h>

struct hfd_seat_demand {
        /* the running period */
        hf_nsec at; /* boot time up to which the sums below count; since then `seats` are needed */
        uint64_t seats, highest;
        double seconds, sum, sum_of_squares; /* integrals over the period until `at` */
        /* the last period */
        double average, deviation, smoothed;
        uint64_t high_watermark;
};

void hfd_seat_demand_init(struct hfd_seat_demand *demand, hf_nsec now);
/* The demand is `seats` from now on. */
void hfd_seat_demand_set(struct hfd_seat_demand *demand, uint64_t seats, hf_nsec now);
/* Ends the running period, computes its values, and begins the next one. If no time has passed in
 * the period, only high_watermark is computed, and the other values stay. */
void hfd_seat_demand_end_period(struct hfd_seat_demand *demand, hf_nsec now);
