/* SPDX-License-Identifier: Apache-2.0 */
/* See core_fixture.h. Each function that feeds an event makes exactly one step of the core. */
#include "core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core_texts.h"

static struct hf__core_time time_of(const struct core_fixture *f) {
        return (struct hf__core_time){.boot = f->now, .real_us = f->now / 1000};
}

/* Asserts that the core keeps the whole record of a write. A write that has to wait is later made
 * again from the kept record. */
static void assert_is_kept(const struct hf__core *core, const struct hf__record *record) {
        struct hf__record kept;

        hf__core_op_record(core, &kept);
        assert_true(hf__record_same_fields(&kept, record));
        assert_string_equal(kept.rv, record->rv);
        assert_string_equal(kept.previous, record->previous);
        assert_string_equal(kept.hand_over_to, record->hand_over_to);
        assert_int_equal(kept.cause, record->cause);
        assert_int_equal(kept.gap_us, record->gap_us);
}

void core_fixture_step(struct core_fixture *f, enum hf__core_event_type type) {
        f->event.type = type;
        hf__core_step(&f->core, &f->event, time_of(f), &f->actions);
        assert_true(f->actions.n <= HF__CORE_MAX_ACTIONS);
        for (unsigned i = 0; i < f->actions.n; i++)
                if (f->actions.list[i].type == HF__ACT_WRITE) {
                        f->sent = f->actions.list[i].record;
                        assert_is_kept(&f->core, &f->sent);
                }
        memset(&f->event, 0, sizeof f->event);
}

void core_fixture_start(struct core_fixture *f) {
        struct hf__core_config config = {.identity = "baz", .seed = 1, .texts = core_texts()};

        memset(f, 0, sizeof *f);
        f->now = 1000 * SEC;
        f->revision = 100;
        hf_leader_timing_defaults(&config.timing);
        hf__core_init(&f->core, &config, time_of(f));
        core_fixture_step(f, HF__EV_TICK);
}

void core_fixture_lead(struct core_fixture *f) {
        core_fixture_start(f);
        core_fixture_read_done(f, HF_E_NOT_FOUND, NULL);
        assert_non_null(core_fixture_find_action(f, HF__ACT_WRITE));
        core_fixture_write_done(f, 0);
        assert_non_null(core_fixture_find_action(f, HF__ACT_TERM_START));
}

const struct hf__core_action *core_fixture_find_action(const struct core_fixture *f,
                                                       enum hf__core_action_type type) {
        for (unsigned i = 0; i < f->actions.n; i++)
                if (f->actions.list[i].type == type)
                        return &f->actions.list[i];
        return NULL;
}

void core_fixture_set_revision(struct core_fixture *f, struct hf__record *record) {
        record->rv_number = ++f->revision;
        (void)snprintf(record->rv, sizeof record->rv, "%d", (int)record->rv_number);
}

struct hf__record core_fixture_held_by(struct core_fixture *f, const char *holder,
                                       int64_t duration_s) {
        struct hf__record record = {.exists = true,
                                    .duration_s = duration_s,
                                    .acquire_us = 7,
                                    .renew_us = 8};

        (void)snprintf(record.holder, sizeof record.holder, "%s", holder);
        core_fixture_set_revision(f, &record);
        return record;
}

void core_fixture_read_done(struct core_fixture *f, int result, const struct hf__record *record) {
        f->event.op_id = f->core.op_id;
        f->event.result = result;
        if (record)
                f->lease = f->event.record = *record;
        core_fixture_step(f, HF__EV_READ_DONE);
}

void core_fixture_reads_the_known(struct core_fixture *f) {
        struct hf__record known;

        hf__core_observed(&f->core, &known);
        core_fixture_read_done(f, 0, &known);
}

void core_fixture_write_done(struct core_fixture *f, int result) {
        f->event.op_id = f->core.op_id;
        f->event.result = result;
        if (result == 0) {
                f->sent.exists = true;
                core_fixture_set_revision(f, &f->sent);
                f->lease = f->event.record = f->sent;
        }
        core_fixture_step(f, HF__EV_WRITE_DONE);
}

struct hf__record core_fixture_start_behind(struct core_fixture *f, const char *holder,
                                            int64_t duration_s) {
        core_fixture_start(f);
        struct hf__record record = core_fixture_held_by(f, holder, duration_s);
        core_fixture_read_done(f, 0, &record);
        return record;
}

void core_fixture_watched(struct core_fixture *f, const struct hf__record *record) {
        f->lease = f->event.record = *record;
        core_fixture_step(f, HF__EV_WATCHED);
}

void core_fixture_hand_over(struct core_fixture *f, const char *successor) {
        (void)snprintf(f->event.successor, sizeof f->event.successor, "%s", successor);
        core_fixture_step(f, HF__EV_HAND_OVER);
}

const struct hf__core_action *
core_fixture_wait_for(struct core_fixture *f, enum hf__core_action_type type, hf_nsec at_most) {
        hf_nsec until = f->now + at_most;

        while (f->actions.wake_at <= until) {
                assert_true(f->actions.wake_at > f->now);
                f->now = f->actions.wake_at;
                core_fixture_step(f, HF__EV_TICK);
                /* The core reads an expiring Lease once more before it acquires it. */
                if (type == HF__ACT_WRITE && core_fixture_find_action(f, HF__ACT_READ))
                        core_fixture_read_done(f, 0, &f->lease);
                if (core_fixture_find_action(f, type))
                        return core_fixture_find_action(f, type);
        }
        f->now = until;
        return NULL;
}
