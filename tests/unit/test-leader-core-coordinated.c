/* SPDX-License-Identifier: Apache-2.0 */
/* The elector's core with a coordinator that names the holder. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "core_fixture.h"

static void start_coordinated(struct core_fixture *f) {
        core_fixture_start(f);
        f->core.config.coordinated = true;
}

/* CG09: The elector neither creates the Lease nor takes a free or expired one. */
static void test_a_coordinated_elector_waits_to_be_named(void **state) {
        struct core_fixture f;
        struct hf__record record;

        start_coordinated(&f);
        core_fixture_read_done(&f, HF_E_NOT_FOUND, NULL);
        assert_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 0));
        static const char *const holders[] = {"", "bing", "baz"};
        for (int i = 0; i < 3; i++) {
                record = core_fixture_held_by(&f, holders[i], 3);
                if (i == 2)
                        /* The Lease names it, but another candidate is preferred. */
                        record.preferred = true;
                core_fixture_watched(&f, &record);
                for (int k = 0; k < 20; k++) { /* far beyond the recorded duration */
                        assert_null(core_fixture_find_action(&f, HF__ACT_WRITE));
                        f.now += SEC;
                        core_fixture_step(&f, HF__EV_TICK);
                        if (core_fixture_find_action(&f, HF__ACT_READ))
                                core_fixture_read_done(&f, 0, &f.lease);
                }
        }
        assert_int_equal(f.core.n_terms, 0);
        /* Named, but not renewed for long: an expired Lease must not be renewed. */
        f.now += 100 * SEC;
        record = core_fixture_held_by(&f, "baz", 3);
        record.renew_us = 9;
        core_fixture_watched(&f, &record);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
}

static void lead_coordinated(struct core_fixture *f) {
        struct hf__record record;

        start_coordinated(f);
        record = core_fixture_held_by(f, "baz", 5);
        record.transitions = 3;
        record.acquire_us = 0; /* as a coordinator leaves it */
        core_fixture_read_done(f, 0, &record);
        assert_non_null(core_fixture_find_action(f, HF__ACT_WRITE));
        assert_true(f->sent.exists && f->sent.acquire_us != 0);
        assert_int_equal(f->sent.transitions, 3);
        assert_int_equal(f->sent.cause, HF__CAUSE_CHOSEN);
        core_fixture_write_done(f, 0);
        assert_int_equal(core_fixture_find_action(f, HF__ACT_TERM_START)->term, f->revision);
}

static void lead_until_another_is_preferred(struct core_fixture *f) {
        lead_coordinated(f);
        struct hf__record record = f->lease;
        record.preferred = true;
        core_fixture_set_revision(f, &record);
        core_fixture_watched(f, &record);
}

/* Scenario of docs/parity.md: CG10. */
static void test_a_coordinated_elector_leads_when_named_and_renews(void **state) {
        struct core_fixture f;

        lead_coordinated(&f);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 3 * SEC));
        assert_int_equal(f.sent.transitions, 3);
        assert_int_equal(f.sent.acquire_us, f.lease.acquire_us);
        core_fixture_write_done(&f, 0);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_EXTEND));
}

static void test_a_coordinated_leader_releases_when_another_is_preferred(void **state) {
        struct core_fixture f;
        struct hf__record record;

        lead_until_another_is_preferred(&f);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_TERM_DRAIN));
        assert_null(
                core_fixture_wait_for(&f, HF__ACT_WRITE,
                                      3 * SEC)); /* no renewal: the coordinator waits for the end */
        core_fixture_step(&f, HF__EV_JOINED);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_string_equal(f.sent.holder, "");
        core_fixture_write_done(&f, 0);
        assert_int_equal(f.core.state, HF_FOLLOWING);
        assert_null(core_fixture_wait_for(&f, HF__ACT_WRITE, 0));
        record = core_fixture_held_by(&f, "bing", 5);
        core_fixture_watched(&f, &record);
        /* It leads again when it is named again. */
        f.now += 20 * SEC;
        record = core_fixture_held_by(&f, "baz", 5);
        core_fixture_watched(&f, &record);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
}

/* Only this process can lead under its name. If it did not, the Lease would have no leader. */
static void test_a_coordinated_elector_leads_at_once_when_named_again(void **state) {
        struct core_fixture f;
        struct hf__record record;

        lead_until_another_is_preferred(&f);
        core_fixture_step(&f, HF__EV_JOINED);
        core_fixture_write_done(&f, 0);
        record = core_fixture_held_by(&f, "baz", 5); /* the preferred holder is gone meanwhile */
        core_fixture_watched(&f, &record);
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_string_equal(f.sent.holder, "baz");
}

static void test_a_coordinated_drain_ends_with_the_validity(void **state) {
        struct core_fixture f;

        lead_until_another_is_preferred(&f);
        assert_non_null(core_fixture_wait_for(&f, HF__ACT_TERM_ABORT, 10 * SEC));
        core_fixture_step(&f, HF__EV_JOINED);
        /* The release: the Lease still belongs to this process. */
        assert_non_null(core_fixture_find_action(&f, HF__ACT_WRITE));
        assert_string_equal(f.sent.holder, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_coordinated_elector_waits_to_be_named),
                cmocka_unit_test(test_a_coordinated_elector_leads_when_named_and_renews),
                cmocka_unit_test(test_a_coordinated_leader_releases_when_another_is_preferred),
                cmocka_unit_test(test_a_coordinated_elector_leads_at_once_when_named_again),
                cmocka_unit_test(test_a_coordinated_drain_ends_with_the_validity),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
