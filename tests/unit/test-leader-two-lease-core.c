/* SPDX-License-Identifier: Apache-2.0 */
/* Single steps of the two-Lease lock's decisions (leader/two_lease_core.h), at their limits. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "leader/two_lease_core.h"
#include "time_units.h"

#define OLD HF__TWO_LEASE_OLD
#define NEW HF__TWO_LEASE_NEW

static struct fixture {
        struct hf__two_lease two;
        struct hf__two_lease_commands commands; /* of the last step */
        hf_nsec now;
        uint64_t revision;
} f;

static struct hf__core_time time_now(void) {
        return (struct hf__core_time){.boot = f.now, .real_us = f.now / 1000};
}

static int set_up(void **state) {
        memset(&f, 0, sizeof f);
        f.now = 1000 * SEC;
        f.revision = 100;
        hf__two_lease_init(&f.two, "baz", 15 * SEC);
        return 0;
}

static struct hf__record record_of(const char *holder, int64_t acquire_us) {
        struct hf__record record = {.exists = true, .acquire_us = acquire_us, .duration_s = 15};

        (void)snprintf(record.holder, sizeof record.holder, "%s", holder);
        record.rv_number = ++f.revision;
        (void)snprintf(record.rv, sizeof record.rv, "%d", (int)record.rv_number);
        return record;
}

static void watched(enum hf__two_lease_side side, const struct hf__record *record) {
        hf__two_lease_watched(&f.two, side, record, time_now(), &f.commands);
}

/* The response to the request of the last step. */
static void respond(int result, const struct hf__record *record) {
        const struct hf__two_lease_command command = f.commands.list[0];

        hf__two_lease_response(&f.two, command.side, command.op_id, result, 0, record, time_now(),
                               &f.commands);
}

static void expect_one(enum hf__two_lease_command_type type) {
        assert_int_equal(f.commands.n, 1);
        assert_int_equal(f.commands.list[0].type, type);
}

/* What is known of one Lease alone says nothing about the pair. */
static void test_no_event_before_both_leases_are_known(void **state) {
        struct hf__record old_record = record_of("qux", 1), new_record = record_of("qux", 1);

        for (int side = OLD; side <= NEW; side++) {
                (void)set_up(NULL);
                watched(side, side == OLD ? &old_record : &new_record);
                assert_int_equal(f.commands.n, 0);
        }
        watched(OLD, &old_record);
        expect_one(HF__TWO_LEASE_EVENT);
        assert_string_equal(f.commands.list[0].record.holder, "qux");
}

/* Acquires the old Lease, so that the new one is written next. */
static struct hf__record acquire_old(hf_nsec deadline) {
        struct hf__record old_record = record_of("", 0), new_record = record_of("", 0), mine;

        watched(OLD, &old_record);
        watched(NEW, &new_record);
        expect_one(HF__TWO_LEASE_EVENT);
        mine = f.commands.list[0].record;
        strcpy(mine.holder, "baz");
        mine.acquire_us = f.now / 1000;
        mine.cause = HF__CAUSE_CREATED; /* it begins a term */
        hf__two_lease_write(&f.two, 7, &mine, deadline, time_now(), &f.commands);
        expect_one(HF__TWO_LEASE_WRITE);
        assert_int_equal(f.commands.list[0].side, OLD);
        mine = f.commands.list[0].record;
        (void)snprintf(mine.rv, sizeof mine.rv, "%d", (int)(mine.rv_number = ++f.revision));
        respond(0, &mine);
        expect_one(HF__TWO_LEASE_WRITE);
        assert_int_equal(f.commands.list[0].side, NEW);
        return mine;
}

static void test_the_old_lease_is_given_back_only_before_the_deadline(void **state) {
        hf_nsec deadline = f.now + 5 * SEC;

        (void)acquire_old(deadline);
        f.now = deadline - 1;
        respond(HF_E_CONFLICT, NULL);
        expect_one(HF__TWO_LEASE_WRITE);
        assert_int_equal(f.commands.list[0].side, OLD);
        assert_string_equal(f.commands.list[0].record.holder, "");

        (void)set_up(NULL);
        (void)acquire_old(deadline);
        f.now = deadline;
        respond(HF_E_CONFLICT, NULL);
        expect_one(HF__TWO_LEASE_RESPONSE);
        assert_int_equal(f.commands.list[0].op_id, 7);
        assert_int_equal(f.commands.list[0].result, HF_E_TIMEOUT);
}

static void test_the_refusal_is_reported_after_the_old_lease_was_given_back(void **state) {
        struct hf__record released;

        (void)acquire_old(f.now + 5 * SEC);
        respond(HF_E_FORBIDDEN, NULL);
        expect_one(HF__TWO_LEASE_WRITE);
        released = f.commands.list[0].record;
        respond(0, &released);
        expect_one(HF__TWO_LEASE_RESPONSE);
        assert_int_equal(f.commands.list[0].result, HF_E_FORBIDDEN);
        assert_int_equal(f.two.stage, HF__TWO_LEASE_IDLE);
}

static void test_a_term_has_the_new_leases_revision(void **state) {
        struct hf__record mine;

        (void)acquire_old(f.now + 5 * SEC);
        mine = f.commands.list[0].record;
        (void)snprintf(mine.rv, sizeof mine.rv, "%d", (int)(mine.rv_number = ++f.revision));
        respond(0, &mine);
        expect_one(HF__TWO_LEASE_RESPONSE);
        assert_int_equal(f.commands.list[0].result, 0);
        assert_int_equal(f.commands.list[0].record.term, mine.rv_number);
        assert_string_equal(f.two.acquired_at, mine.rv);
        assert_int_equal(f.two.old_term, mine.rv_number - 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_no_event_before_both_leases_are_known, set_up),
                cmocka_unit_test_setup(test_the_old_lease_is_given_back_only_before_the_deadline,
                                       set_up),
                cmocka_unit_test_setup(
                        test_the_refusal_is_reported_after_the_old_lease_was_given_back, set_up),
                cmocka_unit_test_setup(test_a_term_has_the_new_leases_revision, set_up),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
