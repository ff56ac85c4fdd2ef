/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A phase in one term of the leader. Its parts, phase_run.c (the loop), phase_ledger.c (requests
 * for the ledger), phase_object.c (requests for the step's object) and phase_together.c (steps that
 * are done at the same time), share this state. It belongs to the phase's thread of the term, or to
 * a thread that the phase's thread has started and waits for.
 */
#include "bootstrap/phase.h"
#include "bootstrap/plan.h"

#define HF__FIELD_MANAGER "fieldManager=holdfast-bootstrap"

struct hf__phase_run {
        struct hf__phase *phase;        /* borrowed */
        struct hf_bootstrap *bootstrap; /* borrowed */
        struct hf_term *term;           /* borrowed */

        /* the phase was complete in this term, and then its ledger was deleted */
        bool is_restoring;
        /* the last read may have been outdated: hf__phase_ledger_read now reads consistently */
        bool needs_consistent_read;
        /* an object existed already, so the next ones may too: from now on steps are done one after
         * another */
        bool found_object;

        /* the known state; discarded after a failure */
        bool has_ledger;
        struct hf__ledger ledger;
        struct hf__json *ledger_object; /* owned; as last read or written; NULL = not stored yet */
        struct hf__seen seen;           /* what is known of the step's object */
        char *present;                  /* owned; the object as read, for HF__SEEN_PRESENT */
        size_t n_present;

        const struct hf__step *step; /* the current step; NULL = the ledger */
        bool has_begun;              /* the phase had something to do, so on_progress was called */
        unsigned n_failures;         /* consecutive failures */
        hf_nsec failing_since;       /* boot time of the first of them */
        hf_nsec pause;               /* before the next attempt */
};

/* The run function of the phase's controller; ctx is the struct hf__phase. Blocks until the term
 * drains, or until a request fails because the term is over. Returns 0, or the error that ended the
 * run; HF_E_CANCELED: the term drained before the phase was complete. */
int hf__phase_run(struct hf_term *term, void *ctx);

/* Whether the error means that the term is over for this process: then another attempt is useless.
 * Pure. */
bool hf__phase_run_means_term_end(int error);
/* Discard the known state of the step's object, or all known state. */
void hf__phase_run_forget_object(struct hf__phase_run *run);
void hf__phase_run_forget(struct hf__phase_run *run);
