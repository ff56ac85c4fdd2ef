/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The elector's core (leader/core.h) under full control of the test: the test advances the
 * time, feeds events, and looks at the actions that the core requests. There is no thread and no
 * clock. The participant's identity is "baz".
 */
#include <stdint.h>

#include "leader/core.h"
#include "time_units.h"

struct core_fixture {
        struct hf__core core;
        struct hf__core_actions actions; /* of the last step */
        struct hf__core_event event;     /* the input of the next step, which clears it */
        hf_nsec now;
        uint64_t revision;       /* the newest one of the Lease */
        struct hf__record sent;  /* the record of the last write */
        struct hf__record lease; /* the newest record that the core was given */
};

/* Begins at 1000 s with revision 100 and makes the first step. */
void core_fixture_start(struct core_fixture *f);
/* Starts, finds no Lease, creates it, and leads. */
void core_fixture_lead(struct core_fixture *f);
/* Starts, and reads a Lease with this holder ("" = it is free). Returns the record. */
struct hf__record core_fixture_start_behind(struct core_fixture *f, const char *holder,
                                            int64_t duration_s);
void core_fixture_step(struct core_fixture *f, enum hf__core_event_type type);
/* The action of this type that the last step requested, or NULL. */
const struct hf__core_action *core_fixture_find_action(const struct core_fixture *f,
                                                       enum hf__core_action_type type);

/* Gives the record the next revision. */
void core_fixture_set_revision(struct core_fixture *f, struct hf__record *record);
/* A record with this holder and the next revision. */
struct hf__record core_fixture_held_by(struct core_fixture *f, const char *holder,
                                       int64_t duration_s);

/* Feeds the result of the outstanding read. record: the Lease that was read, or NULL. */
void core_fixture_read_done(struct core_fixture *f, int result, const struct hf__record *record);
/* Feeds the outstanding read with the Lease that the core knows. */
void core_fixture_reads_the_known(struct core_fixture *f);
/*
 * Feeds the result of the outstanding write. With result 0 the written record gets the next
 * revision.
 */
void core_fixture_write_done(struct core_fixture *f, int result);
void core_fixture_watched(struct core_fixture *f, const struct hf__record *record);
void core_fixture_hand_over(struct core_fixture *f, const char *successor);

/*
 * Advances the time, with a step whenever the core wants to wake, until it requests this action.
 * The actions of the step before do not count. While it waits for a write, reads return `lease`.
 * Returns NULL if the core does not request the action within at_most; then all of that time has
 * passed.
 */
const struct hf__core_action *
core_fixture_wait_for(struct core_fixture *f, enum hf__core_action_type type, hf_nsec at_most);
