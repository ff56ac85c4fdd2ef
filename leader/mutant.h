/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Deliberate faults of the election, by which the simulator (tests/sim) proves that it would see
 * them.
 *
 * Each stands in the code at the place where the mistake would be made, as a condition
 * HF__MUTANT(name). In the library it is the constant false and leaves nothing in the object code;
 * only the program sim-mutants, which compiles the pure part (elector_core.c, core_lease.c) once
 * more for itself, defines HF__WITH_MUTANTS. No flag, variable or configuration of the product
 * reaches them; a test looks for the symbol in what is installed.
 */
#define HF__MUTANTS(X)                                                                             \
        X(skip_join, "contend again without waiting for the work")                                 \
        X(release_before_join, "release while the work still drains")                              \
        X(release_with_gate_open, "leave the gate open when the work has joined")                  \
        X(release_blindly, "release by name alone, whoever's record is there")                     \
        X(release_when_stuck, "release although the work never joined")                            \
        X(gate_by_flag, "validity never ends by itself")                                           \
        X(count_from_reply, "count validity from the reply instead of the sending")                \
        X(extend_by_watch, "take a watched record of one's own for a renewal")                     \
        X(lost_reply_is_success, "take a lost reply for a renewal")                                \
        X(lost_reply_is_failure, "take a lost reply for a write that was not applied")             \
        X(skip_compare, "write without naming the revision expected")                              \
        X(ignore_foreign_holder, "go on leading under somebody else's record")                     \
        X(ignore_stale_term, "go on leading after the fence has refused a write")                  \
        X(keep_old_history, "go on with what was known before the store's history was replaced")   \
        X(take_early, "take the Lease before the recorded duration is over")                       \
        X(trust_timestamps, "compare another machine's timestamps with one's own clock")           \
        X(keep_acquire_time, "write one acquire time for all terms")                               \
        X(count_terms, "number the terms by a count of one's own")                                 \
        X(no_hold_back, "take a Lease that was handed to somebody else")                           \
        X(no_backoff, "contend again at once after a short term")                                  \
        X(lead_while_stopping, "start a term although a stop was asked for")

enum hf__mutant {
        HF__MUTANT_NONE,
#define X(name, text) HF__MUTANT_##name,
        HF__MUTANTS(X)
#undef X
                _HF__MUTANT_MAX
};

#ifdef HF__WITH_MUTANTS
extern int hf__mutant; /* one at a time */
#define HF__MUTANT(name) (hf__mutant == HF__MUTANT_##name)
#else
#define HF__MUTANT(name) ((void)HF__MUTANT_##name, false)
#endif
