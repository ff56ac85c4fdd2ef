/* SPDX-License-Identifier: Apache-2.0 */
/* The timing of an election: defaults, relations and bounds. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <holdfast/error.h>
#include <holdfast/leader.h>

#define S  HF_NSEC_PER_SEC
#define MS HF_NSEC_PER_MSEC

static struct hf_leader_timing timing(hf_nsec lease, hf_nsec renew, hf_nsec retry) {
        struct hf_leader_timing t = {.lease_duration = lease,
                                     .renew_deadline = renew,
                                     .retry_period = retry};

        hf_leader_timing_defaults(&t);
        return t;
}

static void expect_refused(struct hf_leader_timing t, const char *message) {
        struct hf_status status = {0};

        assert_int_equal(hf_leader_timing_check(&t, &status), HF_E_INVALID);
        assert_string_equal(status.message, message);
        assert_int_equal(hf_leader_timing_check(&t, NULL), HF_E_INVALID);
}

/* Scenarios of docs/parity.md: CR04, ET10. */
static void test_defaults_follow_from_the_three_durations(void **state) {
        struct hf_leader_timing t = timing(0, 0, 0);

        assert_int_equal(t.lease_duration, 15 * S);
        assert_int_equal(t.renew_deadline, 10 * S);
        assert_int_equal(t.retry_period, 2 * S);
        assert_int_equal(t.request_timeout, 5 * S);
        assert_int_equal(t.stop_grace, 2500 * MS);
        assert_int_equal(t.drain_deadline, 10 * S);
        assert_int_equal(hf_leader_timing_check(&t, NULL), 0);
        t = timing(60 * S, 40 * S, 5 * S);
        assert_int_equal(t.stop_grace, 3 * S);
        t = timing(6 * S, 3 * S, 1 * S);
        assert_int_equal(hf_leader_timing_check(&t, NULL), 0);
        t = timing(1 * S, 600 * MS, 150 * MS); /* the shortest Lease; tests/bench/short_terms.py */
        assert_int_equal(hf_leader_timing_check(&t, NULL), 0);
}

/*
 * docs/parity.md, CG17, CG52, CG53, CG54, CG55, CG56, CG57, CG58, A05, A17: client-go accepts
 * 10/9/2 and then leads for 11 s with a lease of 10 s.
 */
static void test_broken_relations_are_named(void **state) {
        struct hf_leader_timing t;

        expect_refused(timing(10 * S, 9 * S, 2 * S),
                       "lease duration 10s must exceed renew deadline 9s + "
                       "stop grace 500ms + skew margin 500ms");
        expect_refused(timing(15 * S, 10 * S, 5 * S),
                       "renew deadline 10s must exceed retry period 5s x 1.2 + request timeout 5s");
        expect_refused(timing(10 * S, 10 * S, 2 * S),
                       "lease duration 10s must exceed renew deadline 10s");
        expect_refused(timing(10 * S, 11 * S, 2 * S),
                       "lease duration 10s must exceed renew deadline 11s");
        expect_refused(timing(15500 * MS, 10 * S, 2 * S),
                       "lease duration 15.5s must be whole seconds");
        expect_refused(timing(15 * S, 10 * S, -S), "retry period must be greater than 0");
        expect_refused(timing(-15 * S, 10 * S, 2 * S), "lease duration must be greater than 0");
        expect_refused(timing(15 * S, -10 * S, 2 * S), "renew deadline must be greater than 0");
        t = timing(15 * S, 10 * S, 2 * S);
        t.renew_deadline = 0; /* a default is filled in before the check */
        expect_refused(t, "renew deadline must be greater than 0");
        t = timing(15 * S, 10 * S, 2 * S);
        t.lease_duration = 0;
        expect_refused(t, "lease duration must be greater than 0");
        t = timing(15 * S, 10 * S, 2 * S);
        t.stop_grace = 4250 * MS; /* the sum is exactly 15 s */
        expect_refused(t, "lease duration 15s must exceed renew deadline 10s + stop grace 4.25s + "
                          "skew "
                          "margin 750ms");
        t.stop_grace -= 1;
        assert_int_equal(hf_leader_timing_check(&t, NULL), 0);
        t.lease_duration = HF_NSEC_NEVER;
        assert_int_equal(hf_leader_timing_check(&t, NULL), HF_E_INVALID);
        t.lease_duration = (INT64_C(1) << 31) * S;
        expect_refused(t, "lease duration 596523h14m8s is too long");
        t.lease_duration -= S;
        assert_int_equal(hf_leader_timing_check(&t, NULL), 0);
}

static void test_the_worst_case_of_a_take_over_is_computed(void **state) {
        struct hf_leader_timing t = timing(15 * S, 10 * S, 2 * S);

        assert_int_equal(hf_leader_timing_worst_takeover(&t),
                         6 * 5 * S + 7875 * MS + 5 * S + 15750 * MS);
        /* Long retry periods count instead of half a lease, and of the request timeout. */
        t = timing(30 * S, 25 * S, 16 * S);
        t.request_timeout = 2 * S;
        assert_int_equal(hf_leader_timing_check(&t, NULL), 0);
        assert_int_equal(hf_leader_timing_worst_takeover(&t),
                         6 * 2 * S + 20160 * MS + 8400 * MS + 31500 * MS);
        /* Every timing that is accepted has a bound that fits. */
        t = timing(INT32_MAX * S, 2000000000 * S, 1 * S);
        t.request_timeout = 1900000000 * S;
        t.stop_grace = 1 * S;
        assert_int_equal(hf_leader_timing_check(&t, NULL), 0);
        assert_true(hf_leader_timing_worst_takeover(&t) > 100LL * 365 * 86400 * S);
}

static void refused_lock(const char *type, const char *message) {
        struct hf_status status = {0};

        assert_int_equal(hf_leader_lock_type_check(type, &status), HF_E_INVALID);
        assert_string_equal(status.message, message);
}

/*
 * CR08, CR09: "leases" is the default. For the lock types of the past the message says what to use.
 */
static void test_only_the_lock_type_leases_is_accepted(void **state) {
        assert_int_equal(hf_leader_lock_type_check(NULL, NULL), 0);
        assert_int_equal(hf_leader_lock_type_check("leases", NULL), 0);
        refused_lock("endpoints", "the lock type endpoints is gone: migrate to leases");
        refused_lock("configmaps", "the lock type configmaps is gone: migrate to leases");
        refused_lock("endpointsleases", "the lock type endpointsleases is gone: migrate to leases");
        refused_lock("configmapsleases",
                     "the lock type configmapsleases is gone: migrate to leases");
        refused_lock("", "invalid lock type \"\": only leases are supported");
        refused_lock("lease", "invalid lock type \"lease\": only leases are supported");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_defaults_follow_from_the_three_durations),
                cmocka_unit_test(test_broken_relations_are_named),
                cmocka_unit_test(test_the_worst_case_of_a_take_over_is_computed),
                cmocka_unit_test(test_only_the_lock_type_leases_is_accepted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
