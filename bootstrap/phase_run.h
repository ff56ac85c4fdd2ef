/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A phase in one term of the leader. Its parts, phase_run.c (the loop), phase_ledger.c (requests
 * for the ledger) and phase_object.c (requests for the step's object), share this state. It belongs
 * to the phase's thread of the term.
 */
#include "bootstrap/phase.h"
#include "bootstrap/plan.h"

#define HF__FIELD_MANAGER "fieldManager=holdfast-bootstrap"

struct hf__phase_run {
        struct hf__phase *phase;        /* borrowed */
        struct hf_bootstrap *bootstrap; /* borrowed */
        struct hf_term *term;           /* borrowed */

        bool restores; /* the phase was complete in this term, and then its ledger was deleted */
        bool doubts;   /* something was not as it was read: from now on only consistent reads */

        /* what is known; forgotten after a failure */
        bool has_ledger;
        struct hf__ledger ledger;
        struct hf__json *ledger_object; /* owned; as it was read; NULL = there is none */
        struct hf__seen seen;           /* of the step's object */
        char *present;                  /* owned; the object as read, for HF__SEEN_PRESENT */
        size_t n_present;

        const struct hf__step *step; /* being worked on; NULL = the ledger */
        bool begun;                  /* the phase has had something to do */
        unsigned n_failures;         /* in a row */
        hf_nsec failing_since;       /* boot time */
        hf_nsec pause;               /* before the next try */
};

/* The run function of the phase's controller; ctx is the struct hf__phase. Blocks until the term
 * drains. 0, or why it ended. */
int hf__phase_run(struct hf_term *term, void *ctx);

/* Forget what is known of the step's object, or all that is known. */
void hf__phase_run_forget_object(struct hf__phase_run *run);
void hf__phase_run_forget(struct hf__phase_run *run);
