/* SPDX-License-Identifier: Apache-2.0 */
/* The elector core, one behaviour at a time. Scenario IDs are those of the parity list of client-go and of our own. */
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

#include "leader/elector_core.h"

#define S  HF_NSEC_PER_SEC
#define MS HF_NSEC_PER_MSEC

struct rig {
        struct hf__core core;
        struct hf__core_actions actions;
        struct hf__core_event event;
        hf_nsec now;
        uint64_t revision;
        struct hf__record sent;  /* what the last write sent */
        struct hf__record lease; /* as it was last told */
};

/* ---- the rig ---- */

static void step(struct rig *rig, enum hf__core_event_type type) {
        rig->event.type = type;
        hf__core_step(&rig->core, &rig->event, (struct hf__core_time){.boot = rig->now, .real_us = rig->now / 1000}, &rig->actions);
        assert_true(rig->actions.n <= HF__CORE_MAX_ACTIONS);
        for (unsigned i = 0; i < rig->actions.n; i++)
                if (rig->actions.list[i].type == HF__ACT_WRITE)
                        rig->sent = rig->actions.list[i].record;
        memset(&rig->event, 0, sizeof(rig->event));
}

static void start(struct rig *rig) {
        struct hf__core_config config = {.identity = "baz", .seed = 1};

        memset(rig, 0, sizeof(*rig));
        rig->now = 1000 * S;
        rig->revision = 100;
        hf_leader_timing_defaults(&config.timing);
        hf__core_init(&rig->core, &config, (struct hf__core_time){.boot = rig->now, .real_us = rig->now / 1000});
        step(rig, HF__EV_TICK);
}

static const struct hf__core_action *did(const struct rig *rig, enum hf__core_action_type type) {
        for (unsigned i = 0; i < rig->actions.n; i++)
                if (rig->actions.list[i].type == type)
                        return &rig->actions.list[i];
        return NULL;
}

static void set_rv(struct rig *rig, struct hf__record *record) {
        record->rv_number = ++rig->revision;
        snprintf(record->rv, sizeof(record->rv), "%d", (int)record->rv_number);
}

static struct hf__record held_by(struct rig *rig, const char *holder, int64_t duration_s) {
        struct hf__record record = {.exists = true, .duration_s = duration_s, .acquire_us = 7, .renew_us = 8};

        snprintf(record.holder, sizeof(record.holder), "%s", holder);
        set_rv(rig, &record);
        return record;
}

static void answer_read(struct rig *rig, int result, const struct hf__record *record) {
        rig->event.op_id = rig->core.op_id;
        rig->event.result = result;
        if (record)
                rig->lease = rig->event.record = *record;
        step(rig, HF__EV_READ_DONE);
}

/* Success returns what was sent under a new revision. */
static void answer_write(struct rig *rig, int result) {
        rig->event.op_id = rig->core.op_id;
        rig->event.result = result;
        if (result == 0) {
                rig->sent.exists = true;
                set_rv(rig, &rig->sent);
                rig->lease = rig->event.record = rig->sent;
        }
        step(rig, HF__EV_WRITE_DONE);
}

static void watch(struct rig *rig, const struct hf__record *record) {
        rig->lease = rig->event.record = *record;
        step(rig, HF__EV_WATCHED);
}

/* Turns as the core asks for it, until the action comes or the time has passed. Who waits for a write has reads answered. */
static const struct hf__core_action *wait_for(struct rig *rig, enum hf__core_action_type type, hf_nsec at_most) {
        hf_nsec until = rig->now + at_most;

        while (rig->actions.wake_at <= until) {
                assert_true(rig->actions.wake_at > rig->now);
                rig->now = rig->actions.wake_at;
                step(rig, HF__EV_TICK);
                if (type == HF__ACT_WRITE && did(rig, HF__ACT_READ))
                        answer_read(rig, 0, &rig->lease);
                if (did(rig, type))
                        return did(rig, type);
        }
        rig->now = until;
        return NULL;
}

static void lead(struct rig *rig) {
        start(rig);
        answer_read(rig, HF_E_NOT_FOUND, NULL);
        assert_non_null(did(rig, HF__ACT_WRITE));
        answer_write(rig, 0);
        assert_non_null(did(rig, HF__ACT_TERM_START));
}

static void hand_over(struct rig *rig, const char *successor) {
        snprintf(rig->event.successor, sizeof(rig->event.successor), "%s", successor);
        step(rig, HF__EV_HAND_OVER);
}

/* ---- acquiring ---- */

static void test_creates_an_absent_lease(void **state) { /* CG01 */
        struct rig rig;

        start(&rig);
        assert_non_null(did(&rig, HF__ACT_READ));
        assert_non_null(did(&rig, HF__ACT_WATCH));
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_false(rig.sent.exists);
        assert_string_equal(rig.sent.holder, "baz");
        assert_int_equal(rig.sent.transitions, 0);
        assert_int_equal(rig.sent.duration_s, 15);
        rig.now += 30 * MS; /* the way of the write counts against the validity */
        answer_write(&rig, 0);
        assert_int_equal(did(&rig, HF__ACT_TERM_START)->term, rig.revision);
        assert_int_equal(did(&rig, HF__ACT_TERM_START)->valid_until, rig.now - 30 * MS + 10 * S);
        assert_int_equal(rig.core.state, HF_LEADING);
}

static void test_takes_an_empty_one_at_once(void **state) { /* CG02, CG04, CG06 */
        struct rig rig;
        struct hf__record record;

        start(&rig);
        record = held_by(&rig, "", 1);
        answer_read(&rig, 0, &record);
        assert_true(did(&rig, HF__ACT_WRITE) && rig.sent.exists);
        assert_string_equal(rig.sent.rv, record.rv);
        assert_int_equal(rig.sent.transitions, 1);
}

static void test_waits_the_recorded_duration_out(void **state) { /* CG03, CG05, CG07 */
        struct rig rig;
        struct hf__record record;
        hf_nsec seen;

        start(&rig);
        record = held_by(&rig, "bing", 3);
        answer_read(&rig, 0, &record);
        seen = rig.now;
        assert_null(did(&rig, HF__ACT_WRITE));
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 3 * S));
        assert_int_equal(rig.now, seen + 3 * S); /* to the dot, and without reading first */
        assert_int_equal(rig.sent.transitions, 1);
}

static void test_a_renewal_of_the_holder_starts_the_wait_again(void **state) { /* ET07 */
        struct rig rig;
        struct hf__record record;

        start(&rig);
        record = held_by(&rig, "bing", 3);
        answer_read(&rig, 0, &record);
        rig.now += 2 * S;
        record.renew_us++;
        set_rv(&rig, &record);
        watch(&rig, &record);
        assert_null(wait_for(&rig, HF__ACT_WRITE, 3 * S - 1));
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 1));
}

static void test_old_news_is_ignored(void **state) {
        struct rig rig;
        struct hf__record old, record;

        start(&rig);
        old = held_by(&rig, "", 1);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        watch(&rig, &old);
        assert_null(did(&rig, HF__ACT_WRITE));
}

static void test_a_release_wakes_the_standby(void **state) {
        struct rig rig;
        struct hf__record record;

        start(&rig);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        record = held_by(&rig, "", 1);
        watch(&rig, &record);
        assert_non_null(did(&rig, HF__ACT_WRITE));
}

static void test_a_named_successor_goes_first(void **state) {
        struct rig rig;
        struct hf__record record;

        start(&rig);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        record = held_by(&rig, "", 1);
        snprintf(record.successor, sizeof(record.successor), "other");
        watch(&rig, &record);
        assert_null(wait_for(&rig, HF__ACT_WRITE, 2 * S - 1));
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 1));

        start(&rig);
        record = held_by(&rig, "", 1);
        snprintf(record.successor, sizeof(record.successor), "baz");
        answer_read(&rig, 0, &record);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_string_equal(rig.sent.successor, "");
}

static void test_polls_without_a_watch(void **state) {
        struct rig rig;
        struct hf__record record;
        hf_nsec from;

        start(&rig);
        record = held_by(&rig, "bing", 60);
        answer_read(&rig, 0, &record);
        watch(&rig, &record);
        from = rig.now;
        step(&rig, HF__EV_WATCH_LOST);
        for (int i = 0; i < 5; i++) {
                assert_true(wait_for(&rig, HF__ACT_READ, 2400 * MS) || did(&rig, HF__ACT_WATCH));
                answer_read(&rig, 0, &record);
                assert_true(rig.now >= from + 2 * S && rig.now <= from + 2400 * MS);
                from = rig.now;
                if (rig.core.watching) /* it is opened again, and breaks again: no other read because of that */
                        step(&rig, HF__EV_WATCH_LOST);
                assert_null(did(&rig, HF__ACT_READ));
        }
}

static void test_a_twin_is_nobody_we_know(void **state) { /* A11: same identity, not our acquire time */
        struct rig rig;
        struct hf__record record;

        start(&rig);
        record = held_by(&rig, "baz", 15);
        answer_read(&rig, 0, &record);
        assert_null(did(&rig, HF__ACT_WRITE));
        assert_non_null(did(&rig, HF__ACT_REPORT));
        assert_non_null(did(&rig, HF__ACT_REPORT)->text);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 15 * S));

        lead(&rig); /* a twin that takes it from me: the holder's name does not even change */
        record = rig.lease;
        record.acquire_us += 5;
        set_rv(&rig, &record);
        watch(&rig, &record);
        assert_non_null(did(&rig, HF__ACT_TERM_ABORT));
        assert_non_null(did(&rig, HF__ACT_REPORT)->text);
        assert_true(rig.core.twin);
        step(&rig, HF__EV_JOINED);
        assert_null(did(&rig, HF__ACT_WRITE)); /* its record is waited out like anybody's */
        record.holder[0] = '\0';
        set_rv(&rig, &record);
        watch(&rig, &record);
        assert_false(rig.core.twin);
}

static void test_a_lost_acquire_is_acquired_anew(void **state) { /* ET09 */
        struct rig rig;
        struct hf__record first;

        start(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        answer_write(&rig, HF_E_TIMEOUT);
        assert_non_null(did(&rig, HF__ACT_READ));
        first = rig.sent;
        first.exists = true;
        set_rv(&rig, &first);
        answer_read(&rig, 0, &first);
        assert_null(did(&rig, HF__ACT_TERM_START)); /* a read starts no term */
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_true(rig.sent.acquire_us > first.acquire_us);
        assert_string_equal(rig.sent.rv, first.rv);
        answer_write(&rig, 0);
        assert_non_null(did(&rig, HF__ACT_TERM_START));
}

static void test_an_acquire_answered_too_late_starts_nothing(void **state) {
        struct rig rig;

        start(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        rig.now += 10 * S; /* the process was stopped with the answer in its mail */
        answer_write(&rig, 0);
        assert_null(did(&rig, HF__ACT_TERM_START));
        assert_int_equal(rig.core.state, HF_FOLLOWING);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 3 * S));
}

static void test_an_acquire_overwritten_before_its_answer_starts_nothing(void **state) {
        struct rig rig;
        struct hf__record mine, other;

        start(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        mine = rig.sent;
        mine.exists = true;
        set_rv(&rig, &mine);
        other = held_by(&rig, "bing", 15);
        watch(&rig, &other);
        rig.event.op_id = rig.core.op_id;
        rig.event.record = mine;
        step(&rig, HF__EV_WRITE_DONE);
        assert_null(did(&rig, HF__ACT_TERM_START));
}

/* ---- leading ---- */

static void test_renews_by_one_write_per_period(void **state) { /* CG08, CG18 */
        struct rig rig;
        hf_nsec sent = 0;

        lead(&rig);
        for (int i = 0; i < 3; i++) {
                assert_non_null(wait_for(&rig, HF__ACT_WRITE, 2 * S));
                if (i)
                        assert_int_equal(rig.now, sent + 2 * S); /* from send to send */
                sent = rig.now;
                rig.now += 40 * MS;
                answer_write(&rig, 0);
                assert_int_equal(did(&rig, HF__ACT_EXTEND)->valid_until, sent + 10 * S);
                assert_null(did(&rig, HF__ACT_READ));
        }
}

static void test_a_conflict_is_read_and_goes_on_when_still_mine(void **state) { /* CG19 */
        struct rig rig;
        struct hf__record record;

        lead(&rig);
        record = rig.sent;
        wait_for(&rig, HF__ACT_WRITE, 2 * S);
        answer_write(&rig, HF_E_CONFLICT);
        assert_non_null(did(&rig, HF__ACT_READ));
        set_rv(&rig, &record); /* labels */
        answer_read(&rig, 0, &record);
        assert_null(did(&rig, HF__ACT_EXTEND)); /* a read extends nothing */
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_string_equal(rig.sent.rv, record.rv);
        answer_write(&rig, 0);
        assert_non_null(did(&rig, HF__ACT_EXTEND));
}

static void test_a_lost_reply_is_neither_failure_nor_success(void **state) { /* A09 */
        struct rig rig;
        struct hf__record applied;
        hf_nsec valid_until;

        lead(&rig);
        wait_for(&rig, HF__ACT_WRITE, 2 * S);
        valid_until = rig.core.valid_until;
        applied = rig.sent;
        set_rv(&rig, &applied);
        assert_non_null(wait_for(&rig, HF__ACT_READ, 5 * S)); /* the core ends the operation itself */
        answer_read(&rig, 0, &applied);
        assert_int_equal(rig.core.valid_until, valid_until);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_string_equal(rig.sent.rv, applied.rv);
}

static void test_a_record_not_mine_ends_the_term_at_once(void **state) { /* CR02, A02, A03 */
        struct rig rig;
        struct hf__record record;

        for (int way = 0; way < 4; way++) {
                lead(&rig);
                record = rig.sent;
                if (way == 0)
                        snprintf(record.holder, sizeof(record.holder), "bing");
                else if (way == 1)
                        record.acquire_us++;
                else if (way == 2)
                        record.duration_s++;
                else
                        record.holder[0] = '\0';
                set_rv(&rig, &record);
                watch(&rig, &record);
                assert_int_equal(rig.actions.list[0].type, HF__ACT_GATE_SHUT);
                assert_int_equal(rig.actions.list[1].type, HF__ACT_TERM_ABORT);
                assert_int_equal(rig.core.state, HF_ABORTING);
        }
}

static void test_deletion_ends_the_term_and_the_next_is_higher(void **state) { /* A10 */
        struct rig rig;
        struct hf__record gone = {0};
        uint64_t term;

        lead(&rig);
        term = rig.core.term;
        set_rv(&rig, &gone);
        watch(&rig, &gone);
        assert_non_null(did(&rig, HF__ACT_TERM_ABORT));
        assert_null(did(&rig, HF__ACT_WRITE)); /* not before the work has joined */
        step(&rig, HF__EV_JOINED);
        if (!did(&rig, HF__ACT_WRITE))
                assert_non_null(wait_for(&rig, HF__ACT_WRITE, 3 * S));
        assert_false(rig.sent.exists);
        assert_int_equal(rig.sent.transitions, 1); /* the count outlives the Lease */
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_TERM_START)->term > term);
}

static void test_my_own_echo_and_older_news_say_nothing(void **state) {
        struct rig rig;
        struct hf__record old;

        lead(&rig);
        old = rig.sent;
        watch(&rig, &old);
        assert_int_equal(rig.core.state, HF_LEADING);
        snprintf(old.holder, sizeof(old.holder), "bing");
        old.rv_number--;
        watch(&rig, &old);
        assert_int_equal(rig.core.state, HF_LEADING);
}

static void test_opaque_revisions_are_settled_by_a_read(void **state) {
        struct rig rig;
        struct hf__record other;

        lead(&rig);
        other = rig.sent;
        other.rv_number = 0;
        snprintf(other.rv, sizeof(other.rv), "x1");
        other.holder[0] = '\0';
        watch(&rig, &other);
        assert_int_equal(rig.core.state, HF_LEADING);
        assert_non_null(did(&rig, HF__ACT_READ));
        answer_read(&rig, 0, &other);
        assert_non_null(did(&rig, HF__ACT_TERM_ABORT));
}

static void test_a_hung_store_ends_the_term_on_time(void **state) { /* A04, A18 */
        struct rig rig;
        hf_nsec sent;

        lead(&rig);
        sent = rig.now;
        assert_non_null(wait_for(&rig, HF__ACT_GATE_SHUT, 10 * S));
        assert_int_equal(rig.now, sent + 10 * S);
        assert_int_equal(rig.actions.list[0].type, HF__ACT_GATE_SHUT);
        assert_non_null(wait_for(&rig, HF__ACT_STUCK, 2500 * MS)); /* the work ignores its token */
        assert_int_equal(rig.core.state, HF_STUCK);
        step(&rig, HF__EV_JOINED);
        assert_int_equal(rig.core.state, HF_STUCK);
        step(&rig, HF__EV_STOP);
        assert_null(did(&rig, HF__ACT_WRITE));
}

static void test_refused_renewals_are_tried_more_often_towards_the_end(void **state) {
        struct rig rig;
        hf_nsec last = 0, until;
        int n = 0;

        lead(&rig);
        until = rig.core.valid_until;
        while (wait_for(&rig, HF__ACT_WRITE, 3 * S) && rig.core.state == HF_LEADING) {
                if (last && n != 3)
                        assert_true(rig.now - last <= 2 * S);
                last = rig.now;
                rig.event.retry_after = n == 2 ? 600 * S : 0; /* patience that nobody has */
                answer_write(&rig, n % 2 ? HF_E_FORBIDDEN : HF_E_TOO_MANY);
                n++;
        }
        assert_true(n >= 5);
        assert_true(until - last < S);
}

static void test_a_paused_leader_wakes_inert(void **state) { /* the expiry comes before the event, also a good one */
        struct rig rig;

        lead(&rig);
        wait_for(&rig, HF__ACT_WRITE, 2 * S);
        rig.now += 20 * S;
        answer_write(&rig, 0);
        assert_int_equal(rig.actions.list[0].type, HF__ACT_GATE_SHUT);
        assert_null(did(&rig, HF__ACT_EXTEND));
        assert_int_equal(rig.core.state, HF_ABORTING);
}

static void test_a_stale_term_ends_the_term(void **state) { /* A14 */
        struct rig rig;

        lead(&rig);
        step(&rig, HF__EV_STALE_TERM);
        assert_int_equal(rig.actions.list[0].type, HF__ACT_GATE_SHUT);
}

static void set_odd_rv(struct hf__record *record, const char *rv) {
        record->rv_number = 0;
        snprintf(record->rv, sizeof(record->rv), "%s", rv);
}

/* Where revisions are no numbers, the watch's news during an acquire may be older or newer than its answer: a read decides. */
static void test_without_numbers_an_acquire_overtaken_by_news_is_read_again(void **state) {
        struct rig rig;

        start(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        struct hf__record other = held_by(&rig, "other", 15);
        set_odd_rv(&other, "x1");
        watch(&rig, &other);
        rig.event.op_id = rig.core.op_id;
        rig.event.record = rig.sent;
        rig.event.record.exists = true;
        set_odd_rv(&rig.event.record, "x0");
        step(&rig, HF__EV_WRITE_DONE);
        assert_non_null(did(&rig, HF__ACT_READ)); /* at once, whether it leads until then or not */
        answer_read(&rig, 0, &other);
        assert_int_not_equal(rig.core.state, HF_LEADING);
}

static void test_backoff_grows_and_resets(void **state) { /* A19 */
        struct rig rig;
        hf_nsec ended, pause[3];

        lead(&rig);
        for (int i = 0; i < 3; i++) {
                step(&rig, HF__EV_STALE_TERM);
                ended = rig.now;
                step(&rig, HF__EV_JOINED);
                assert_non_null(wait_for(&rig, HF__ACT_WRITE, 30 * S));
                pause[i] = rig.now - ended;
                answer_write(&rig, 0);
        }
        assert_true(pause[0] >= 2 * S && pause[1] >= 4 * S && pause[2] >= 8 * S && pause[2] <= 18 * S);
        for (int i = 0; i < 8; i++) {
                wait_for(&rig, HF__ACT_WRITE, 2 * S);
                answer_write(&rig, 0);
        }
        step(&rig, HF__EV_STALE_TERM);
        step(&rig, HF__EV_JOINED);
        assert_non_null(did(&rig, HF__ACT_READ)); /* what was known of the Lease is in doubt */
        answer_read(&rig, 0, &rig.core.observed);
        assert_non_null(did(&rig, HF__ACT_WRITE));
}

static void test_backoff_of_long_periods_ends_at_the_lease_duration(void **state) {
        struct rig rig;
        hf_nsec day = 86400 * S;

        lead(&rig);
        rig.core.config.timing = (struct hf_leader_timing){.lease_duration = 100 * day,
                                                           .renew_deadline = 50 * day,
                                                           .retry_period = 10 * day,
                                                           .request_timeout = 5 * S,
                                                           .stop_grace = S,
                                                           .drain_deadline = S};
        for (int i = 0; i < 40; i++) {
                step(&rig, HF__EV_STALE_TERM);
                hf_nsec ended = rig.now;
                step(&rig, HF__EV_JOINED);
                assert_non_null(wait_for(&rig, HF__ACT_WRITE, 200 * day));
                assert_true(rig.now - ended >= (i < 3 ? 10 * day : 80 * day) && rig.now - ended <= 120 * day);
                answer_write(&rig, 0);
        }
}

/* ---- stopping ---- */

static void test_stop_drains_joins_shuts_releases(void **state) { /* PN01, CR01, CR10, CR16, CG12; the order of design 4 */
        struct rig rig;
        struct hf__record held;

        lead(&rig);
        held = rig.sent;
        step(&rig, HF__EV_STOP);
        assert_non_null(did(&rig, HF__ACT_TERM_DRAIN));
        assert_null(did(&rig, HF__ACT_GATE_SHUT));
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 2 * S)); /* renewed while it drains */
        assert_string_equal(rig.sent.holder, "baz");
        answer_write(&rig, 0);
        step(&rig, HF__EV_JOINED);
        assert_int_equal(rig.actions.list[0].type, HF__ACT_GATE_SHUT);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_string_equal(rig.sent.holder, "");
        assert_string_equal(rig.sent.successor, "");
        assert_int_equal(rig.sent.duration_s, 1);
        assert_int_equal(rig.sent.transitions, held.transitions);
        assert_int_equal(atoi(rig.sent.rv), rig.revision);
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);
        assert_non_null(did(&rig, HF__ACT_UNWATCH));
}

static void test_release_meets_a_conflict(void **state) { /* CG13, CG14, A01 */
        struct rig rig;
        struct hf__record record;

        lead(&rig);
        record = rig.sent;
        step(&rig, HF__EV_STOP);
        step(&rig, HF__EV_JOINED);
        answer_write(&rig, HF_E_CONFLICT);
        assert_non_null(did(&rig, HF__ACT_READ));
        set_rv(&rig, &record);
        answer_read(&rig, 0, &record); /* still mine: again, on the new revision */
        assert_string_equal(rig.sent.rv, record.rv);
        answer_write(&rig, HF_E_CONFLICT);
        if (!did(&rig, HF__ACT_READ))
                assert_non_null(wait_for(&rig, HF__ACT_READ, 5 * S));
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record); /* somebody else's: left alone */
        assert_null(did(&rig, HF__ACT_WRITE));
        assert_true(did(&rig, HF__ACT_STOPPED)->released);
}

static void test_stop_with_a_renewal_under_way(void **state) { /* CG15 */
        struct rig rig;

        lead(&rig);
        wait_for(&rig, HF__ACT_WRITE, 2 * S);
        step(&rig, HF__EV_STOP);
        step(&rig, HF__EV_JOINED);
        assert_null(did(&rig, HF__ACT_WRITE)); /* one operation at a time */
        answer_write(&rig, 0);
        assert_string_equal(rig.sent.holder, "");
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);
}

static void test_stop_with_a_read_under_way(void **state) { /* CG16 */
        struct rig rig;
        struct hf__record record;

        lead(&rig);
        record = rig.sent;
        wait_for(&rig, HF__ACT_WRITE, 2 * S);
        answer_write(&rig, HF_E_CONFLICT);
        step(&rig, HF__EV_STOP);
        step(&rig, HF__EV_JOINED);
        set_rv(&rig, &record);
        answer_read(&rig, 0, &record);
        assert_string_equal(rig.sent.holder, "");
        assert_string_equal(rig.sent.rv, record.rv);
}

static void test_release_is_bounded(void **state) {
        struct rig rig;
        hf_nsec from;

        lead(&rig);
        step(&rig, HF__EV_STOP);
        step(&rig, HF__EV_JOINED);
        from = rig.now;
        assert_non_null(wait_for(&rig, HF__ACT_STOPPED, 10 * S));
        assert_false(did(&rig, HF__ACT_STOPPED)->released);
        assert_true(rig.now <= from + 10 * S);
}

static void test_stop_of_a_follower(void **state) { /* CR03, A06, A07, A12 */
        struct rig rig;
        struct hf__record record;

        start(&rig);
        step(&rig, HF__EV_STOP); /* with a read under way: nothing to wait for */
        assert_true(did(&rig, HF__ACT_STOPPED)->released);

        start(&rig);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        step(&rig, HF__EV_STOP);
        assert_non_null(did(&rig, HF__ACT_STOPPED));
        assert_int_equal(rig.actions.wake_at, HF_NSEC_NEVER);
}

static void test_stop_with_an_acquire_under_way(void **state) { /* A06 */
        struct rig rig;
        struct hf__record record;

        start(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        step(&rig, HF__EV_STOP);
        assert_null(did(&rig, HF__ACT_STOPPED));
        answer_write(&rig, 0); /* it was taken: no term starts, it is given back */
        assert_null(did(&rig, HF__ACT_TERM_START));
        assert_string_equal(rig.sent.holder, "");
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);

        start(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        answer_write(&rig, HF_E_TIMEOUT);
        step(&rig, HF__EV_STOP); /* whether it was taken only a read can tell */
        assert_null(did(&rig, HF__ACT_STOPPED));
        record = rig.sent;
        record.exists = true;
        set_rv(&rig, &record);
        answer_read(&rig, 0, &record);
        assert_string_equal(rig.sent.holder, "");
}

/* The request hangs somewhere: nothing is to be seen of it, and it may be applied after the process is gone. */
static void test_a_stop_leaves_no_acquire_behind(void **state) { /* A06 */
        struct rig rig;
        struct hf__record record;

        start(&rig); /* an absent Lease: the acquire creates it */
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        answer_write(&rig, HF_E_TIMEOUT);
        step(&rig, HF__EV_STOP);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        assert_non_null(did(&rig, HF__ACT_WRITE)); /* a release is created in its place */
        assert_false(rig.sent.exists);
        assert_string_equal(rig.sent.holder, "");
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);

        start(&rig); /* an expired one: as it might be taken, it may be released */
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 16 * S));
        answer_write(&rig, HF_E_TIMEOUT);
        step(&rig, HF__EV_STOP);
        answer_read(&rig, 0, &record);
        assert_string_equal(rig.sent.holder, "");
        assert_string_equal(rig.sent.rv, record.rv);
        answer_write(&rig, HF_E_CONFLICT); /* it was applied in the meantime */
        assert_non_null(did(&rig, HF__ACT_READ));
        strcpy(record.holder, "baz");
        record.acquire_us = rig.core.last_acquire_us;
        set_rv(&rig, &record);
        answer_read(&rig, 0, &record);
        assert_string_equal(rig.sent.rv, record.rv);
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);

        start(&rig); /* one that is held again: left alone, and the acquire's condition is gone with it */
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        answer_write(&rig, HF_E_TIMEOUT);
        step(&rig, HF__EV_STOP);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        assert_null(did(&rig, HF__ACT_WRITE));
        assert_true(did(&rig, HF__ACT_STOPPED)->released);
}

/* A backup was restored: a revision that a standby knows may have been issued anew, for the Lease of somebody else. */
static void test_replaced_history_is_read_before_a_write(void **state) {
        struct hf__record record;
        struct rig rig;

        start(&rig);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        step(&rig, HF__EV_STALE_TERM);
        assert_int_equal(rig.core.state, HF_FOLLOWING);
        assert_non_null(did(&rig, HF__ACT_READ));
        rig.now += 60 * S; /* the lease duration is over long since */
        answer_read(&rig, HF_E_UNAVAILABLE, NULL);
        assert_null(did(&rig, HF__ACT_WRITE));
        assert_non_null(wait_for(&rig, HF__ACT_READ, 3 * S));
        record = held_by(&rig, "bong", 15);
        record.rv_number = 1;
        strcpy(record.rv, "1");
        answer_read(&rig, 0, &record); /* older by its revision, and true */
        assert_null(wait_for(&rig, HF__ACT_WRITE, 15 * S - 1));
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 1));
        assert_string_equal(rig.sent.rv, "1");
}

/* The acquire in doubt names a revision that was issued anew: to take its condition away clears the Lease of who renewed meanwhile. */
static void test_a_stop_waits_before_it_clears_a_lease_of_a_replaced_history(void **state) {
        struct hf__record record;
        struct rig rig;
        hf_nsec seen_at;

        start(&rig);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 15 * S));
        step(&rig, HF__EV_STALE_TERM);
        assert_non_null(did(&rig, HF__ACT_READ));
        record.renew_us++; /* the old revision, and another record */
        answer_read(&rig, 0, &record);
        seen_at = rig.now;
        assert_null(wait_for(&rig, HF__ACT_WRITE, 14 * S));
        step(&rig, HF__EV_STOP);
        assert_null(did(&rig, HF__ACT_WRITE));
        if (did(&rig, HF__ACT_READ))
                answer_read(&rig, 0, &record);
        assert_null(wait_for(&rig, HF__ACT_WRITE, seen_at + 15 * S - 1 - rig.now));
        assert_int_equal(rig.core.state, HF_RELEASING);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, S));
        assert_string_equal(rig.sent.holder, "");
        assert_string_equal(rig.sent.rv, record.rv);
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);
}

static void test_the_drain_deadline_aborts(void **state) { /* CR17 */
        struct rig rig;
        hf_nsec from;

        lead(&rig);
        step(&rig, HF__EV_STOP);
        from = rig.now;
        while (rig.core.state == HF_DRAINING) {
                wait_for(&rig, HF__ACT_WRITE, 2 * S);
                if (did(&rig, HF__ACT_WRITE))
                        answer_write(&rig, 0);
        }
        assert_int_equal(rig.now, from + 10 * S);
        assert_int_equal(rig.core.state, HF_ABORTING);
        step(&rig, HF__EV_JOINED);
        assert_int_equal(rig.core.state, HF_RELEASING);
}

static void test_hand_over(void **state) {
        struct rig rig;

        lead(&rig);
        watch(&rig, &rig.lease);
        hand_over(&rig, "other");
        assert_non_null(did(&rig, HF__ACT_TERM_DRAIN));
        step(&rig, HF__EV_JOINED);
        assert_string_equal(rig.sent.holder, "");
        assert_string_equal(rig.sent.successor, "other");
        answer_write(&rig, 0);
        assert_int_equal(rig.core.state, HF_FOLLOWING);
        assert_null(did(&rig, HF__ACT_STOPPED));
        assert_null(wait_for(&rig, HF__ACT_WRITE, 4 * S - 1)); /* the successor has the first word */
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 1));     /* and has not said it */
        answer_write(&rig, 0);
        assert_non_null(did(&rig, HF__ACT_TERM_START));
}

static void test_the_record_may_ask_for_a_hand_over(void **state) {
        struct rig rig;
        struct hf__record record;

        lead(&rig);
        record = rig.lease;
        strcpy(record.hand_over_to, "baz"); /* itself: nothing to do */
        set_rv(&rig, &record);
        watch(&rig, &record);
        assert_null(did(&rig, HF__ACT_TERM_DRAIN));
        strcpy(record.hand_over_to, "other");
        set_rv(&rig, &record);
        watch(&rig, &record);
        assert_non_null(did(&rig, HF__ACT_TERM_DRAIN));
        step(&rig, HF__EV_JOINED);
        assert_string_equal(rig.sent.holder, "");
        assert_string_equal(rig.sent.successor, "other");
        assert_string_equal(rig.sent.hand_over_to, ""); /* what was asked for is done */
        answer_write(&rig, 0);
        assert_int_equal(rig.core.state, HF_FOLLOWING);

        lead(&rig); /* without a watch the conflict of the next renewal tells */
        record = rig.lease;
        strcpy(record.hand_over_to, "other");
        set_rv(&rig, &record);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 2 * S));
        answer_write(&rig, HF_E_CONFLICT);
        answer_read(&rig, 0, &record);
        assert_non_null(did(&rig, HF__ACT_TERM_DRAIN));

        start(&rig); /* a follower is not asked, whoever holds it */
        record = held_by(&rig, "bing", 15);
        strcpy(record.hand_over_to, "baz");
        answer_read(&rig, 0, &record);
        assert_null(did(&rig, HF__ACT_WRITE));
}

static void test_a_late_answer_of_a_former_operation_is_ignored(void **state) {
        struct rig rig;
        uint32_t former;

        lead(&rig);
        wait_for(&rig, HF__ACT_WRITE, 2 * S);
        former = rig.core.op_id;
        assert_non_null(wait_for(&rig, HF__ACT_READ, 5 * S));
        rig.event.op_id = former;
        rig.event.record = rig.sent;
        set_rv(&rig, &rig.event.record);
        step(&rig, HF__EV_WRITE_DONE);
        assert_int_equal(rig.actions.n, 0);
}

static void test_stop_beats_everything_under_way(void **state) { /* every state meets a stop and ends */
        struct rig rig;

        lead(&rig);
        step(&rig, HF__EV_STALE_TERM);
        step(&rig, HF__EV_STOP);
        assert_int_equal(rig.core.state, HF_ABORTING);
        step(&rig, HF__EV_JOINED);
        assert_non_null(did(&rig, HF__ACT_READ));
        answer_read(&rig, 0, &rig.core.observed);
        assert_string_equal(rig.sent.holder, ""); /* the Lease is still mine */
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);

        lead(&rig);
        hand_over(&rig, "other");
        step(&rig, HF__EV_JOINED);
        step(&rig, HF__EV_STOP);
        answer_write(&rig, 0);
        assert_true(did(&rig, HF__ACT_STOPPED)->released);
}

/* ---- the history ---- */

static void assert_cause(const struct rig *rig, enum hf__cause cause, const char *previous, int64_t gap_us) {
        assert_non_null(did(rig, HF__ACT_WRITE));
        assert_int_equal(rig->sent.cause, cause);
        assert_string_equal(rig->sent.previous, previous);
        assert_int_equal(rig->sent.gap_us, gap_us);
}

static void test_an_acquire_says_what_it_follows_on(void **state) {
        struct rig rig;
        struct hf__record record, gone = {0};

        start(&rig);
        answer_read(&rig, HF_E_NOT_FOUND, NULL);
        assert_cause(&rig, HF__CAUSE_CREATED, "", 0);

        start(&rig);
        record = held_by(&rig, "bing", 3);
        record.renew_us = rig.now / 1000 - 250000;
        answer_read(&rig, 0, &record);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 3 * S));
        assert_cause(&rig, HF__CAUSE_EXPIRED, "bing", 3250000);

        start(&rig);
        record = held_by(&rig, "bing", 15);
        answer_read(&rig, 0, &record);
        record = held_by(&rig, "", 1);
        record.renew_us = rig.now / 1000;
        rig.now += 8 * MS;
        watch(&rig, &record);
        assert_cause(&rig, HF__CAUSE_RELEASED, "bing", 8000);

        start(&rig);
        record = held_by(&rig, "", 1);
        snprintf(record.successor, sizeof(record.successor), "baz");
        record.renew_us = rig.now / 1000 + 5000; /* its clock is ahead of ours: never less than nothing */
        answer_read(&rig, 0, &record);
        assert_cause(&rig, HF__CAUSE_HANDED_OVER, "", 0);

        start(&rig);
        record = held_by(&rig, "bing", 15);
        record.renew_us = rig.now / 1000;
        answer_read(&rig, 0, &record);
        rig.now += 2 * MS;
        set_rv(&rig, &gone);
        watch(&rig, &gone);
        assert_cause(&rig, HF__CAUSE_DELETED, "bing", 2000);
}

static void test_only_an_acquire_has_a_cause(void **state) {
        struct rig rig;

        lead(&rig);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 2 * S));
        assert_int_equal(rig.sent.cause, HF__CAUSE_NONE);
        answer_write(&rig, 0);
        step(&rig, HF__EV_STOP);
        step(&rig, HF__EV_JOINED);
        assert_non_null(did(&rig, HF__ACT_WRITE));
        assert_string_equal(rig.sent.holder, "");
        assert_int_equal(rig.sent.cause, HF__CAUSE_NONE);
        assert_string_equal(rig.sent.previous, "");
}

static void test_a_term_lost_and_taken_again_is_regained(void **state) { /* ET03 */
        struct rig rig;

        lead(&rig);
        assert_int_equal(rig.core.mine.cause, HF__CAUSE_CREATED);
        step(&rig, HF__EV_STALE_TERM);
        step(&rig, HF__EV_JOINED);
        assert_non_null(wait_for(&rig, HF__ACT_WRITE, 15 * S));
        assert_int_equal(rig.sent.cause, HF__CAUSE_REGAINED);
        assert_string_equal(rig.sent.previous, "baz");
}

/* ---- coordinated ---- */

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
        assert_null(wait_for(&rig, HF__ACT_WRITE, 3 * S)); /* no renewal: the coordinator waits for the end */
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
                cmocka_unit_test(test_an_acquire_says_what_it_follows_on),
                cmocka_unit_test(test_only_an_acquire_has_a_cause),
                cmocka_unit_test(test_a_term_lost_and_taken_again_is_regained),
                cmocka_unit_test(test_creates_an_absent_lease),
                cmocka_unit_test(test_takes_an_empty_one_at_once),
                cmocka_unit_test(test_waits_the_recorded_duration_out),
                cmocka_unit_test(test_a_renewal_of_the_holder_starts_the_wait_again),
                cmocka_unit_test(test_old_news_is_ignored),
                cmocka_unit_test(test_a_release_wakes_the_standby),
                cmocka_unit_test(test_a_named_successor_goes_first),
                cmocka_unit_test(test_polls_without_a_watch),
                cmocka_unit_test(test_a_twin_is_nobody_we_know),
                cmocka_unit_test(test_a_lost_acquire_is_acquired_anew),
                cmocka_unit_test(test_an_acquire_answered_too_late_starts_nothing),
                cmocka_unit_test(test_an_acquire_overwritten_before_its_answer_starts_nothing),
                cmocka_unit_test(test_renews_by_one_write_per_period),
                cmocka_unit_test(test_a_conflict_is_read_and_goes_on_when_still_mine),
                cmocka_unit_test(test_a_lost_reply_is_neither_failure_nor_success),
                cmocka_unit_test(test_a_record_not_mine_ends_the_term_at_once),
                cmocka_unit_test(test_deletion_ends_the_term_and_the_next_is_higher),
                cmocka_unit_test(test_my_own_echo_and_older_news_say_nothing),
                cmocka_unit_test(test_opaque_revisions_are_settled_by_a_read),
                cmocka_unit_test(test_a_hung_store_ends_the_term_on_time),
                cmocka_unit_test(test_refused_renewals_are_tried_more_often_towards_the_end),
                cmocka_unit_test(test_a_paused_leader_wakes_inert),
                cmocka_unit_test(test_a_stale_term_ends_the_term),
                cmocka_unit_test(test_without_numbers_an_acquire_overtaken_by_news_is_read_again),
                cmocka_unit_test(test_backoff_grows_and_resets),
                cmocka_unit_test(test_backoff_of_long_periods_ends_at_the_lease_duration),
                cmocka_unit_test(test_stop_drains_joins_shuts_releases),
                cmocka_unit_test(test_release_meets_a_conflict),
                cmocka_unit_test(test_stop_with_a_renewal_under_way),
                cmocka_unit_test(test_stop_with_a_read_under_way),
                cmocka_unit_test(test_release_is_bounded),
                cmocka_unit_test(test_stop_of_a_follower),
                cmocka_unit_test(test_stop_with_an_acquire_under_way),
                cmocka_unit_test(test_a_stop_leaves_no_acquire_behind),
                cmocka_unit_test(test_replaced_history_is_read_before_a_write),
                cmocka_unit_test(test_a_stop_waits_before_it_clears_a_lease_of_a_replaced_history),
                cmocka_unit_test(test_the_drain_deadline_aborts),
                cmocka_unit_test(test_hand_over),
                cmocka_unit_test(test_the_record_may_ask_for_a_hand_over),
                cmocka_unit_test(test_a_late_answer_of_a_former_operation_is_ignored),
                cmocka_unit_test(test_stop_beats_everything_under_way),
                cmocka_unit_test(test_coordinated_waits_to_be_named),
                cmocka_unit_test(test_coordinated_leads_when_named_and_renews),
                cmocka_unit_test(test_coordinated_makes_way_for_the_preferred),
                cmocka_unit_test(test_coordinated_ends_with_its_validity_while_draining),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
