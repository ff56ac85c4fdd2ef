/* SPDX-License-Identifier: Apache-2.0 */
/* The elector's core where a coordinator names the holder. */
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

#include "tests/lib/core_rig.h"

static void start_coordinated(struct rig *rig) {
        start(rig);
        rig->core.config.coordinated = true;
}

/* CG09; nor is one created, or taken because it is free or expired. */
static void test_coordinated_waits_to_be_named(void **state) {
        struct rig rig;
        struct hf__record record;

        start_coordinated(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        assert_null(wait_for(&rig, HF__ACT_WRITE, 0));
        for (int i = 0; i < 3; i++) {
                record = held_by(&rig, i == 0 ? "" : i == 1 ? "bing" : "baz", 3);
                if (i == 2)
                        record.preferred = true; /* named, but on the way out */
                watch(&rig, &record);
                for (int k = 0; k < 20; k++) { /* far beyond the recorded duration */
                        assert_null(did(&rig, HF__ACT_WRITE));
                        rig.now += S;
                        step(&rig, HF__EV_TICK);
                        if (did(&rig, HF__ACT_READ))
                                answer_read(&rig, 0, &rig.lease);
                }
        }
        assert_int_equal(rig.core.n_terms, 0);
        /* Named for long: what nobody has renewed since is expired, and not mine to revive. */
        rig.now += 100 * S;
        record = held_by(&rig, "baz", 3);
        record.renew_us = 9;
        watch(&rig, &record);
        assert_non_null(did(&rig, HF__ACT_WRITE));
}

static void lead_coordinated(struct rig *rig) {
        struct hf__record record;

        start_coordinated(rig);
        record = held_by(rig, "baz", 5);
        record.transitions = 3;
        record.acquire_us = 0; /* as a coordinator leaves it */
        answer_read(rig, 0, &record);
        assert_non_null(did(rig, HF__ACT_WRITE));
        assert_true(rig->sent.exists && rig->sent.acquire_us != 0);
        assert_int_equal(rig->sent.transitions, 3);
        assert_int_equal(rig->sent.cause, HF__CAUSE_CHOSEN);
        answer_write(rig, 0);
        assert_int_equal(did(rig, HF__ACT_TERM_START)->term, rig->revision);
}

/* CG10 */
static void test_coordinated_leads_when_named_and_renews(void **state) {
        struct rig rig;

        lead_coordinated(&rig);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 3 * S));
        assert_int_equal(rig.sent.transitions, 3);
        assert_int_equal(rig.sent.acquire_us, rig.lease.acquire_us);
        answer_write(&rig, 0);
        assert_non_null(did(&rig, HF__ACT_EXTEND));
}

static void test_coordinated_makes_way_for_the_preferred(void **state) {
        struct rig rig;
        struct hf__record record;

        lead_coordinated(&rig);
        record = rig.lease;
        record.preferred = true;
        set_rv(&rig, &record);
        watch(&rig, &record);
        assert_non_null(did(&rig, HF__ACT_TERM_DRAIN));
        assert_null(wait_for(&rig, HF__ACT_WRITE,
                             3 * S)); /* no renewal: the coordinator waits for the end */
        step(&rig, HF__EV_JOINED);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_string_equal(rig.sent.holder, "");
        answer_write(&rig, 0);
        assert_int_equal(rig.core.state, HF_FOLLOWING);
        assert_null(wait_for(&rig, HF__ACT_WRITE, 0));
        record = held_by(&rig, "bing", 5);
        watch(&rig, &record);
        /* And comes back when it is named again. */
        rig.now += 20 * S;
        record = held_by(&rig, "baz", 5);
        watch(&rig, &record);
        assert_non_null(did(&rig, HF__ACT_WRITE));
}

/* Nobody else can take what bears my name: to hold back from it would leave the Lease without a
 * leader. */
static void test_coordinated_comes_back_at_once_when_named_again(void **state) {
        struct rig rig;
        struct hf__record record;

        lead_coordinated(&rig);
        record = rig.lease;
        record.preferred = true;
        set_rv(&rig, &record);
        watch(&rig, &record);
        step(&rig, HF__EV_JOINED);
        answer_write(&rig, 0);
        record = held_by(&rig, "baz", 5); /* the preferred one is gone meanwhile */
        watch(&rig, &record);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_string_equal(rig.sent.holder, "baz");
}

static void test_coordinated_ends_with_its_validity_while_draining(void **state) {
        struct rig rig;
        struct hf__record record;

        lead_coordinated(&rig);
        record = rig.lease;
        record.preferred = true;
        set_rv(&rig, &record);
        watch(&rig, &record);
        assert_non_null(wait_for(&rig, HF__ACT_TERM_ABORT, 10 * S));
        step(&rig, HF__EV_JOINED);
        assert_non_null(did(&rig, HF__ACT_WRITE)); /* the release: it is still mine */
        assert_string_equal(rig.sent.holder, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_coordinated_waits_to_be_named),
                cmocka_unit_test(test_coordinated_leads_when_named_and_renews),
                cmocka_unit_test(test_coordinated_makes_way_for_the_preferred),
                cmocka_unit_test(test_coordinated_comes_back_at_once_when_named_again),
                cmocka_unit_test(test_coordinated_ends_with_its_validity_while_draining),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
