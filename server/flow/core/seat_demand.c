/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how many seats the requests of a priority level need: the highest number in a period,
 * and average and standard deviation over time, from which a smoothed value follows.
 *
 * Invariant: the formulas and numbers are those of Kubernetes, so that levels borrow as they do
 * there.
 */
#include "server/flow/core/seat_demand.h"

/* The part of the smoothed value that remains after a period; with periods of 10 s the value halves
 * in 5 minutes. */
#define SMOOTHING 0.977

void hfd_seat_demand_init(struct hfd_seat_demand *demand, hf_nsec now) {
        *demand = (struct hfd_seat_demand){.at = now};
}

/* Adds the time since the last change, in which the number of seats was constant, to the sums. */
static void integrate_demand(struct hfd_seat_demand *demand, hf_nsec now) {
        if (now <= demand->at)
                return;
        double seconds = (double)(now - demand->at) / (double)HF_NSEC_PER_SEC,
               seats = (double)demand->seats;

        demand->at = now;
        demand->seconds += seconds;
        demand->sum += seats * seconds;
        demand->sum_of_squares += seats * seats * seconds;
}

void hfd_seat_demand_set(struct hfd_seat_demand *demand, uint64_t seats, hf_nsec now) {
        integrate_demand(demand, now);
        demand->seats = seats;
        if (seats > demand->highest)
                demand->highest = seats;
}

/* The square root by Newton's method. sqrt() may be a call into libm, which would then be one more
 * library in the memory of each instance, for this one number every 10 s. 0 for a negative x: a
 * variance of 0 may be rounded below 0. */
static double square_root(double x) {
        double y = x > 1 ? x : 1;

        for (int i = 0; x > 0 && i < 100; i++)
                y = (y + x / y) / 2;
        return x > 0 ? y : 0;
}

void hfd_seat_demand_end_period(struct hfd_seat_demand *demand, hf_nsec now) {
        integrate_demand(demand, now);
        demand->high_watermark = demand->highest;
        if (demand->seconds > 0) {
                demand->average = demand->sum / demand->seconds;
                demand->deviation = square_root(demand->sum_of_squares / demand->seconds -
                                                demand->average * demand->average);
                double envelope = demand->average + demand->deviation,
                       slow = SMOOTHING * demand->smoothed + (1 - SMOOTHING) * envelope;
                demand->smoothed = envelope > slow ? envelope : slow;
        }
        demand->seconds = demand->sum = demand->sum_of_squares = 0;
        demand->highest = demand->seats;
}
