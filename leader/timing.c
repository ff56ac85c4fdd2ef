/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timing of an election, checked as a whole. Two rules follow from how leaders and standbys
 * behave:
 *
 *  - The lease duration, which a standby waits for, must cover three things: the time for which the
 *    leader acts after it sent its last successful renewal (renew_deadline), the time that its
 *    controllers may then need to return (stop_grace), and a margin of lease_duration / 20, because
 *    the two machines' clocks may run at different speeds.
 *  - Within the renew deadline one renewal may hang for a whole request timeout, and there must be
 *    time for another.
 */
#include <assert.h>

#include <holdfast/error.h>
#include <holdfast/leader.h>

#include "base/time_format.h"

/* Limit of each time, in seconds: leaseDurationSeconds has 32 bits, and a sum of four such times
 * does not overflow. */
#define LONGEST (INT64_C(1) << 31)

static hf_nsec skew_margin(const struct hf_leader_timing *timing) {
        return timing->lease_duration / 20;
}
static hf_nsec jittered_retry(hf_nsec retry_period) { return retry_period + retry_period / 5; }

void hf_leader_timing_defaults(struct hf_leader_timing *timing) {
        if (timing->lease_duration == 0)
                timing->lease_duration = 15 * HF_NSEC_PER_SEC;
        if (timing->renew_deadline == 0)
                timing->renew_deadline = 10 * HF_NSEC_PER_SEC;
        if (timing->retry_period == 0)
                timing->retry_period = 2 * HF_NSEC_PER_SEC;
        if (timing->request_timeout == 0)
                timing->request_timeout = timing->renew_deadline / 2;
        if (timing->stop_grace == 0) {
                timing->stop_grace = (timing->lease_duration - timing->renew_deadline) / 2;
                if (timing->stop_grace > 3 * HF_NSEC_PER_SEC)
                        timing->stop_grace = 3 * HF_NSEC_PER_SEC;
        }
        if (timing->drain_deadline == 0)
                timing->drain_deadline = 10 * HF_NSEC_PER_SEC;
}

static int check_range(const char *name, hf_nsec value, struct hf_status *reterr_status) {
        char text[32];

        if (value <= 0)
                return hf_fail(reterr_status, HF_E_INVALID, "%s must be greater than 0", name);
        if (value / HF_NSEC_PER_SEC >= LONGEST) {
                hf__duration_format(value, text);
                return hf_fail(reterr_status, HF_E_INVALID, "%s %s is too long", name, text);
        }
        return 0;
}

static int check_ranges(const struct hf_leader_timing *timing, struct hf_status *reterr_status) {
        const struct {
                const char *name;
                hf_nsec value;
        } fields[] = {
                {"lease duration", timing->lease_duration},
                {"renew deadline", timing->renew_deadline},
                {"retry period", timing->retry_period},
                {"request timeout", timing->request_timeout},
                {"drain deadline", timing->drain_deadline},
        };
        char lease[32], renew[32];

        for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
                int r = check_range(fields[i].name, fields[i].value, reterr_status);
                if (r != 0)
                        return r;
        }
        hf__duration_format(timing->lease_duration, lease);
        hf__duration_format(timing->renew_deadline, renew);
        /* Checked before the stop grace: its default would be zero or negative, and an error about
         * that would hide the cause. */
        if (timing->lease_duration <= timing->renew_deadline)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "lease duration %s must exceed renew deadline %s", lease, renew);
        if (timing->lease_duration % HF_NSEC_PER_SEC != 0)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "lease duration %s must be whole seconds", lease);
        return check_range("stop grace", timing->stop_grace, reterr_status);
}

int hf_leader_timing_check(const struct hf_leader_timing *timing, struct hf_status *reterr_status) {
        char a[32], b[32], c[32], d[32];
        int r;

        r = check_ranges(timing, reterr_status);
        if (r != 0)
                return r;
        hf__duration_format(timing->lease_duration, a);
        hf__duration_format(timing->renew_deadline, b);
        if (timing->lease_duration <=
            timing->renew_deadline + timing->stop_grace + skew_margin(timing)) {
                hf__duration_format(timing->stop_grace, c);
                hf__duration_format(skew_margin(timing), d);
                return hf_fail(reterr_status, HF_E_INVALID,
                               "lease duration %s must exceed renew deadline %s + stop grace %s + "
                               "skew margin %s",
                               a, b, c, d);
        }
        if (timing->renew_deadline <=
            jittered_retry(timing->retry_period) + timing->request_timeout) {
                hf__duration_format(timing->retry_period, c);
                hf__duration_format(timing->request_timeout, d);
                return hf_fail(reterr_status, HF_E_INVALID,
                               "renew deadline %s must exceed retry period %s x 1.2 + request "
                               "timeout %s",
                               b, c, d);
        }
        return 0;
}

/* The time that a duration may take on the other machines' clocks. */
static hf_nsec slowed_duration(hf_nsec duration) { return duration + duration / 20; }

static hf_nsec longer_duration(hf_nsec a, hf_nsec b) { return a > b ? a : b; }

/* Durations of decades are accepted, and a sum of several would not fit. */
static hf_nsec at_most_years(hf_nsec duration) {
        return duration < HF_NSEC_NEVER / 16 ? duration : HF_NSEC_NEVER / 16;
}

/*
 * T is the request timeout. In the worst case:
 *
 *  1. The leader dies after it has sent a renewal, which is applied T later.
 *  2. A reply or event from just before then reaches the standby another T later. Then its watch is
 *     silent, so that it reads the Lease after half a lease duration; without a watch, after a
 *     retry period with jitter.
 *  3. Before the reply to that read has come, the Lease expires by what the standby knew before the
 *     read. So it sends an acquire, at most T after the read, or half a retry period after it if
 *     that is longer. The acquire conflicts after T, and the read that follows shows the renewal
 *     after another T.
 *  4. From then on the standby waits for the lease duration. Its acquire is applied T later, but
 *     another standby's was applied just before. The reply to that one takes T, too.
 */
hf_nsec hf_leader_timing_worst_takeover(const struct hf_leader_timing *timing) {
        hf_nsec timeout = at_most_years(timing->request_timeout),
                lease = at_most_years(timing->lease_duration),
                retry = at_most_years(timing->retry_period);
        hf_nsec silence = longer_duration(lease / 2, jittered_retry(retry));
        hf_nsec early = longer_duration(timeout, slowed_duration(retry / 2));

        assert(timing->lease_duration > timing->renew_deadline);
        return 6 * timeout + slowed_duration(silence) + early + slowed_duration(lease);
}
