/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The core's transitions between its states: the beginning and the end of a term, the release, the
 * stop. The model is in core.h. Pure; private to the core (core*.c).
 */
#include "leader/core.h"

static inline const struct hf_leader_timing *hf__core_timing(const struct hf__core *core) {
        return &core->config.timing;
}
/* Whether this process leads a valid term: the Lease is renewed, except as rule 12 says. */
static inline bool hf__core_has_valid_term(const struct hf__core *core) {
        return core->state == HF_LEADING || core->state == HF_DRAINING;
}
static inline hf_nsec hf__earlier(hf_nsec a, hf_nsec b) { return a < b ? a : b; }
static inline hf_nsec hf__later(hf_nsec a, hf_nsec b) { return a > b ? a : b; }
/* Returns the duration, lengthened by a random part of up to 20 %. */
hf_nsec hf__core_jittered(struct hf__core *core, hf_nsec duration);

/* Appends an action and returns it. Sets its type and zeroes its other members, except record: that
 * one is large and stays uninitialised. HF__ACT_GATE_SHUT is inserted in front of the others. */
struct hf__core_action *hf__core_push_action(struct hf__core_actions *actions,
                                             enum hf__core_action_type type);

/* How long the state may last: DRAINING, ABORTING or RELEASING; HF_NSEC_NEVER for the others. */
hf_nsec hf__core_state_limit(const struct hf__core *core);

/* FOLLOWING -> LEADING. record: the server's response to the acquire, which was sent at
 * op_sent_at. */
void hf__core_start_term(struct hf__core *core, hf_nsec now, const struct hf__record *record,
                         struct hf__core_actions *actions);
/* LEADING, DRAINING -> ABORTING. why: a static string. */
void hf__core_abort_term(struct hf__core *core, hf_nsec now, const char *why,
                         struct hf__core_actions *actions);
/* Aborts the term because the Lease was lost. exists: another process changed the record; else the
 * Lease was deleted. */
void hf__core_lose_lease(struct hf__core *core, hf_nsec now, bool exists,
                         struct hf__core_actions *actions);
/* LEADING -> DRAINING. why: a static string. */
void hf__core_drain_term(struct hf__core *core, hf_nsec now, const char *why,
                         struct hf__core_actions *actions);
/* Stores what is known of the last term's writes; doubt_at as in struct hf__core_event. Only ever
 * shortens the wait for them. */
void hf__core_term_settled(struct hf__core *core, hf_nsec doubt_at);
/* The controllers have returned: DRAINING, ABORTING -> RELEASING or FOLLOWING. */
void hf__core_term_joined(struct hf__core *core, hf_nsec now);
/* FOLLOWING, DRAINING, ABORTING -> RELEASING. No controller of a term may run any more. */
void hf__core_enter_releasing(struct hf__core *core, hf_nsec now);
/* The release is done, or is given up: RELEASING -> STOPPED or FOLLOWING. */
void hf__core_end_release(struct hf__core *core, hf_nsec now, struct hf__core_actions *actions);
/* FOLLOWING, RELEASING -> STOPPED. released: it is certain that this process does not hold the
 * Lease. (A coordinator, or another process with our identity, may have written our name there.) */
void hf__core_stop(struct hf__core *core, bool released, struct hf__core_actions *actions);
