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

/* What is in the commands before a step must not matter. */
static void spoil_commands(void) { memset(&f.commands, 0x5a, sizeof f.commands); }

static void watched(enum hf__two_lease_side side, const struct hf__record *record) {
        spoil_commands();
        hf__two_lease_watched(&f.two, side, record, time_now(), &f.commands);
}

/* The response to the request of the last step. */
static void respond_later(int result, hf_nsec retry_after, const struct hf__record *record) {
        const struct hf__two_lease_command command = f.commands.list[0];

        spoil_commands();
        hf__two_lease_response(&f.two, command.side, command.op_id, result, retry_after, record,
                               time_now(), &f.commands);
}

static void respond(int result, const struct hf__record *record) {
        respond_later(result, 0, record);
}

static void expect_one(enum hf__two_lease_command_type type) {
        assert_int_equal(f.commands.n, 1);
        assert_int_equal(f.commands.list[0].type, type);
        assert_true(f.commands.list[0].side == OLD || f.commands.list[0].side == NEW);
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

/* Begins to acquire the pair: the old Lease is written. */
static struct hf__two_lease_command begin_acquire(hf_nsec deadline) {
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
        return f.commands.list[0];
}

/* The old Lease is written, so the new one is next. */
static struct hf__record end_old(const struct hf__two_lease_command *write) {
        struct hf__record mine = write->record;

        (void)snprintf(mine.rv, sizeof mine.rv, "%d", (int)(mine.rv_number = ++f.revision));
        hf__two_lease_response(&f.two, OLD, write->op_id, 0, 0, &mine, time_now(), &f.commands);
        expect_one(HF__TWO_LEASE_WRITE);
        assert_int_equal(f.commands.list[0].side, NEW);
        return mine;
}

/* Acquires the old Lease, so that the new one is written next. */
static struct hf__record acquire_old(hf_nsec deadline) {
        const struct hf__two_lease_command write = begin_acquire(deadline);

        return end_old(&write);
}

/* The acquire of the new Lease gets no response. If that Lease is known to have changed since the
 * pair was acquired, the server must refuse it, and nothing has to be expected any more. */
static void test_only_an_acquire_that_may_still_be_applied_is_in_doubt(void **state) {
        for (int has_changed = 0; has_changed < 2; has_changed++) {
                (void)set_up(NULL);
                const struct hf__two_lease_command write = begin_acquire(f.now + 5 * SEC);
                struct hf__record changed = record_of("", 0);
                if (has_changed)
                        watched(NEW, &changed);
                (void)end_old(&write);
                respond(HF_E_TIMEOUT, NULL);
                expect_one(HF__TWO_LEASE_RESPONSE);
                struct hf__record taken = record_of("qux", 1);
                watched(OLD, &taken);
                expect_one(HF__TWO_LEASE_EVENT);
                assert_int_equal(f.commands.list[0].record.unsettled, !has_changed);
        }
}

static void test_the_old_lease_is_given_back_only_before_the_deadline(void **state) {
        hf_nsec deadline = f.now + 5 * SEC;

        (void)acquire_old(deadline);
        f.now = deadline - 1;
        respond(HF_E_CONFLICT, NULL);
        expect_one(HF__TWO_LEASE_WRITE);
        assert_int_equal(f.commands.list[0].side, OLD);
        assert_string_equal(f.commands.list[0].record.holder, "");
        assert_int_equal(f.commands.list[0].record.duration_s, 1); /* the API refuses 0 */
        assert_int_equal(f.commands.list[0].record.acquire_us, f.now / 1000);
        assert_int_equal(f.commands.list[0].record.renew_us, f.now / 1000);

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

/* The pause that a server asks for is that of the whole operation. */
static void test_the_pause_after_a_refusal_is_passed_on(void **state) {
        struct hf__record released;

        (void)begin_acquire(f.now + 5 * SEC);
        respond_later(HF_E_TOO_MANY, 3 * SEC, NULL);
        expect_one(HF__TWO_LEASE_RESPONSE);
        assert_int_equal(f.commands.list[0].result, HF_E_TOO_MANY);
        assert_true(f.commands.list[0].retry_after == 3 * SEC);

        (void)set_up(NULL);
        (void)acquire_old(f.now + 5 * SEC);
        respond_later(HF_E_TIMEOUT, 4 * SEC, NULL);
        expect_one(HF__TWO_LEASE_RESPONSE);
        assert_true(f.commands.list[0].retry_after == 4 * SEC);

        (void)set_up(NULL);
        (void)acquire_old(f.now + 5 * SEC);
        respond_later(HF_E_TOO_MANY, 5 * SEC, NULL);
        expect_one(HF__TWO_LEASE_WRITE);
        released = f.commands.list[0].record;
        respond(0, &released);
        expect_one(HF__TWO_LEASE_RESPONSE);
        assert_int_equal(f.commands.list[0].result, HF_E_TOO_MANY);
        assert_true(f.commands.list[0].retry_after == 5 * SEC);
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

/* ---- which state of a Lease is older ---- */

static void test_an_event_of_an_older_revision_is_ignored(void **state) {
        static const struct {
                uint64_t known, event;
                bool known_exists, event_exists, is_reported;
        } cases[] = {
                {105, 104, true, true, false},  {105, 105, true, true, true},
                {105, 106, true, true, true},   {105, 105, false, true, false},
                {105, 106, false, true, true},  {105, 105, true, false, true},
                {105, 105, false, false, true}, {105, 104, false, true, false},
                {0, 105, true, true, true},     {105, 0, true, true, true},
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                (void)set_up(NULL);
                struct hf__record other = record_of("qux", 1), record = record_of("qux", 1);
                record.exists = cases[i].known_exists;
                record.rv_number = cases[i].known;
                watched(NEW, &other);
                watched(OLD, &record);
                expect_one(HF__TWO_LEASE_EVENT);
                record.exists = cases[i].event_exists;
                record.rv_number = cases[i].event;
                watched(OLD, &record);
                assert_int_equal(f.commands.n, cases[i].is_reported);
        }
}

/* ---- the pair ---- */

static struct hf__record pair_of(const struct hf__record *old_record,
                                 const struct hf__record *new_record) {
        (void)set_up(NULL);
        watched(OLD, old_record);
        watched(NEW, new_record);
        expect_one(HF__TWO_LEASE_EVENT);
        return f.commands.list[0].record;
}

static void test_a_pair_has_a_number_only_if_both_revisions_are_numbers(void **state) {
        struct hf__record a = record_of("qux", 1), b = record_of("qux", 1), opaque = a;
        const struct hf__record absent = {0};

        opaque.rv_number = 0;
        assert_int_equal(pair_of(&a, &b).rv_number, a.rv_number + b.rv_number);
        assert_int_equal(pair_of(&a, &opaque).rv_number, 0);
        assert_int_equal(pair_of(&opaque, &a).rv_number, 0);
        assert_int_equal(pair_of(&absent, &a).rv_number, a.rv_number);
        assert_int_equal(pair_of(&a, &absent).rv_number, a.rv_number);
}

static void test_a_pair_is_as_new_as_the_newer_lease(void **state) {
        struct hf__record a = record_of("qux", 1), b = record_of("qux", 1);

        a.renew_us = 5;
        b.renew_us = 7;
        assert_int_equal(pair_of(&a, &b).renew_us, 7);
        assert_int_equal(pair_of(&b, &a).renew_us, 7);
}

static void test_a_pair_is_assigned_if_either_lease_is(void **state) {
        struct hf__record a = record_of("qux", 1), b = record_of("qux", 1);

        assert_false(pair_of(&a, &b).preferred);
        a.preferred = true;
        assert_true(pair_of(&a, &b).preferred);
        assert_true(pair_of(&b, &a).preferred);
}

/* If both have one, the old Lease's successor counts, and the new one's annotation. */
static void test_a_pair_has_the_successor_of_either_lease(void **state) {
        struct hf__record a = record_of("qux", 1), b = record_of("qux", 1);

        assert_string_equal(pair_of(&a, &b).successor, "");
        strcpy(b.successor, "next");
        strcpy(b.hand_over_to, "wanted");
        assert_string_equal(pair_of(&a, &b).successor, "next");
        assert_string_equal(pair_of(&b, &a).successor, "next");
        assert_string_equal(pair_of(&a, &b).hand_over_to, "wanted");
        assert_string_equal(pair_of(&b, &a).hand_over_to, "wanted");
        strcpy(a.successor, "other");
        strcpy(a.hand_over_to, "else");
        assert_string_equal(pair_of(&a, &b).successor, "other");
        assert_string_equal(pair_of(&a, &b).hand_over_to, "wanted");
}

/* ---- a pair of which only the old Lease is held ---- */

/* The new Lease refuses after the deadline, so the old one is kept. */
static void half_hold(void) {
        hf_nsec deadline = f.now + SEC;

        (void)acquire_old(deadline);
        f.now = deadline;
        respond(HF_E_CONFLICT, NULL);
        expect_one(HF__TWO_LEASE_RESPONSE);
        assert_int_equal(f.two.stage, HF__TWO_LEASE_IDLE);
}

static void test_the_return_after_an_event_is_no_reply_to_the_elector(void **state) {
        struct hf__record other, released;

        half_hold();
        f.now += 15 * SEC;
        other = record_of("qux", 1);
        watched(NEW, &other);
        assert_int_equal(f.commands.n, 2);
        assert_int_equal(f.commands.list[0].type, HF__TWO_LEASE_EVENT);
        assert_int_equal(f.commands.list[1].type, HF__TWO_LEASE_WRITE);
        assert_string_equal(f.commands.list[1].record.holder, "");
        assert_true(f.commands.list[1].deadline == f.now + 5 * SEC);
        released = f.commands.list[1].record;
        hf__two_lease_response(&f.two, OLD, f.commands.list[1].op_id, 0, 0, &released, time_now(),
                               &f.commands);
        assert_int_equal(f.commands.n, 0);
        assert_int_equal(f.two.stage, HF__TWO_LEASE_IDLE);
}

static void read_both(hf_nsec deadline, hf_nsec until) {
        struct hf__two_lease_commands begun;

        hf__two_lease_read(&f.two, 9, deadline, time_now(), &begun);
        assert_int_equal(begun.n, 2);
        f.now = until;
        for (int side = OLD; side <= NEW; side++)
                hf__two_lease_response(&f.two, begun.list[side].side, begun.list[side].op_id, 0, 0,
                                       &f.two.part[side].record, time_now(), &f.commands);
}

static void test_a_read_gives_back_only_before_its_deadline(void **state) {
        half_hold();
        f.now += 15 * SEC;
        read_both(f.now + SEC, f.now + SEC);
        expect_one(HF__TWO_LEASE_RESPONSE);
        assert_int_equal(f.commands.list[0].op_id, 9);
        read_both(f.now + SEC, f.now + SEC - 1);
        expect_one(HF__TWO_LEASE_WRITE);
        assert_string_equal(f.commands.list[0].record.holder, "");
}

/* ---- what is written and stored ---- */

static void acquire(int64_t acquire_us) {
        struct hf__record free_old = record_of("", 0), free_new = record_of("", 0), mine;

        watched(OLD, &free_old);
        watched(NEW, &free_new);
        mine = f.commands.list[0].record;
        strcpy(mine.holder, "baz");
        mine.acquire_us = acquire_us;
        mine.cause = HF__CAUSE_CREATED;
        mine.unsettled = true; /* a mark of a state that was read; a write must not contain it */
        hf__two_lease_write(&f.two, 7, &mine, f.now + SEC, time_now(), &f.commands);
        expect_one(HF__TWO_LEASE_WRITE);
        assert_false(f.commands.list[0].record.unsettled);
        respond(HF_E_CONFLICT, NULL);
}

static void test_attempts_of_one_acquire_time_are_one(void **state) {
        acquire(1);
        acquire(1);
        acquire(1);
        assert_int_equal(f.two.n_own_acquires, 1);
        acquire(2);
        acquire(2);
        assert_int_equal(f.two.n_own_acquires, 2);
        assert_int_equal(f.two.own_acquires[0], 1);
        assert_int_equal(f.two.own_acquires[1], 2);
}

static void read_old(int result) {
        hf__two_lease_read(&f.two, 9, f.now + SEC, time_now(), &f.commands);
        respond(result, NULL);
}

/* Only a read that finds nothing says that a Lease does not exist. */
static void test_only_a_read_shows_that_a_lease_is_absent(void **state) {
        struct hf__record a = record_of("", 0), b = record_of("", 0), mine;

        mine = pair_of(&a, &b);
        read_old(HF_E_TIMEOUT);
        assert_true(f.two.part[OLD].record.exists);
        strcpy(mine.holder, "baz");
        mine.cause = HF__CAUSE_CREATED;
        hf__two_lease_write(&f.two, 7, &mine, f.now + SEC, time_now(), &f.commands);
        respond(HF_E_NOT_FOUND, NULL);
        expect_one(HF__TWO_LEASE_RESPONSE);
        assert_true(f.two.part[OLD].record.exists);
        read_old(HF_E_NOT_FOUND);
        assert_false(f.two.part[OLD].record.exists);
}

static void test_a_lock_begins_with_nothing_known(void **state) {
        memset(&f.two, 0xff, sizeof f.two);
        hf__two_lease_init(&f.two, "baz", 15 * SEC);
        assert_int_equal(f.two.stage, HF__TWO_LEASE_IDLE);
        assert_int_equal(f.two.n_own_acquires, 0);
        assert_false(f.two.part[OLD].known || f.two.part[NEW].known);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_no_event_before_both_leases_are_known, set_up),
                cmocka_unit_test_setup(test_the_old_lease_is_given_back_only_before_the_deadline,
                                       set_up),
                cmocka_unit_test_setup(
                        test_the_refusal_is_reported_after_the_old_lease_was_given_back, set_up),
                cmocka_unit_test_setup(test_the_pause_after_a_refusal_is_passed_on, set_up),
                cmocka_unit_test_setup(test_only_an_acquire_that_may_still_be_applied_is_in_doubt,
                                       set_up),
                cmocka_unit_test_setup(test_a_term_has_the_new_leases_revision, set_up),
                cmocka_unit_test_setup(test_an_event_of_an_older_revision_is_ignored, set_up),
                cmocka_unit_test_setup(test_a_pair_has_a_number_only_if_both_revisions_are_numbers,
                                       set_up),
                cmocka_unit_test_setup(test_a_pair_is_as_new_as_the_newer_lease, set_up),
                cmocka_unit_test_setup(test_a_pair_is_assigned_if_either_lease_is, set_up),
                cmocka_unit_test_setup(test_a_pair_has_the_successor_of_either_lease, set_up),
                cmocka_unit_test_setup(test_the_return_after_an_event_is_no_reply_to_the_elector,
                                       set_up),
                cmocka_unit_test_setup(test_a_read_gives_back_only_before_its_deadline, set_up),
                cmocka_unit_test_setup(test_attempts_of_one_acquire_time_are_one, set_up),
                cmocka_unit_test_setup(test_only_a_read_shows_that_a_lease_is_absent, set_up),
                cmocka_unit_test_setup(test_a_lock_begins_with_nothing_known, set_up),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
