/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The elector's core with its time, its store and its answers in the test's hands. Included by
 * tests, behind cmocka.h.
 */
#include <stdio.h>
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

static inline void step(struct rig *rig, enum hf__core_event_type type) {
        rig->event.type = type;
        hf__core_step(&rig->core, &rig->event,
                      (struct hf__core_time){.boot = rig->now, .real_us = rig->now / 1000},
                      &rig->actions);
        assert_true(rig->actions.n <= HF__CORE_MAX_ACTIONS);
        for (unsigned i = 0; i < rig->actions.n; i++)
                if (rig->actions.list[i].type == HF__ACT_WRITE)
                        rig->sent = rig->actions.list[i].record;
        memset(&rig->event, 0, sizeof rig->event);
}

static inline void start(struct rig *rig) {
        struct hf__core_config config = {.identity = "baz", .seed = 1};

        memset(rig, 0, sizeof *rig);
        rig->now = 1000 * S;
        rig->revision = 100;
        hf_leader_timing_defaults(&config.timing);
        hf__core_init(&rig->core, &config,
                      (struct hf__core_time){.boot = rig->now, .real_us = rig->now / 1000});
        step(rig, HF__EV_TICK);
}

static inline const struct hf__core_action *did(const struct rig *rig,
                                                enum hf__core_action_type type) {
        for (unsigned i = 0; i < rig->actions.n; i++)
                if (rig->actions.list[i].type == type)
                        return &rig->actions.list[i];
        return NULL;
}

static inline void set_rv(struct rig *rig, struct hf__record *record) {
        record->rv_number = ++rig->revision;
        snprintf(record->rv, sizeof record->rv, "%d", (int)record->rv_number);
}

static inline struct hf__record held_by(struct rig *rig, const char *holder, int64_t duration_s) {
        struct hf__record record = {.exists = true,
                                    .duration_s = duration_s,
                                    .acquire_us = 7,
                                    .renew_us = 8};

        snprintf(record.holder, sizeof record.holder, "%s", holder);
        set_rv(rig, &record);
        return record;
}

static inline void answer_read(struct rig *rig, int result, const struct hf__record *record) {
        rig->event.op_id = rig->core.op_id;
        rig->event.result = result;
        if (record)
                rig->lease = rig->event.record = *record;
        step(rig, HF__EV_READ_DONE);
}

/* Success returns what was sent under a new revision. */
static inline void answer_write(struct rig *rig, int result) {
        rig->event.op_id = rig->core.op_id;
        rig->event.result = result;
        if (result == 0) {
                rig->sent.exists = true;
                set_rv(rig, &rig->sent);
                rig->lease = rig->event.record = rig->sent;
        }
        step(rig, HF__EV_WRITE_DONE);
}

static inline void watch(struct rig *rig, const struct hf__record *record) {
        rig->lease = rig->event.record = *record;
        step(rig, HF__EV_WATCHED);
}

/* Turns as the core asks for it, until the action comes or the time has passed. Who waits for a
 * write has reads answered. */
static inline const struct hf__core_action *
wait_for(struct rig *rig, enum hf__core_action_type type, hf_nsec at_most) {
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

static inline void lead(struct rig *rig) {
        start(rig);
        answer_read(rig, HF_E_NOT_FOUND, NULL);
        assert_non_null(did(rig, HF__ACT_WRITE));
        answer_write(rig, 0);
        assert_non_null(did(rig, HF__ACT_TERM_START));
}

static inline void hand_over(struct rig *rig, const char *successor) {
        snprintf(rig->event.successor, sizeof rig->event.successor, "%s", successor);
        step(rig, HF__EV_HAND_OVER);
}
