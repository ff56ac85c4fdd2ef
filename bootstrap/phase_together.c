/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates the objects of several steps at the same time, so that a store on a disk makes one commit
 * of many writes, and records them in one write of the ledger.
 *
 * This file records only the objects that it has created. The plan handles an object that existed
 * already, and reads it: a user may have made it, or a leader that died before it wrote the record.
 *
 * Invariants: every request that was started is waited for; and what was created is recorded also
 * if another step failed or the term drains, unless the term is over.
 */
#include "bootstrap/phase_together.h"

#include <assert.h>
#include <string.h>

#include "bootstrap/phase_ledger.h"
#include "bootstrap/phase_object.h"
#include "bootstrap/report.h"

/* A leader that dies leaves up to this many objects without a record. */
#define TOGETHER_MAX 64

struct together {
        size_t steps[TOGETHER_MAX]; /* indices */
        struct hf__pending_request *pending[TOGETHER_MAX];
        size_t n; /* requests that were started: those of the first n steps */
        struct hf__created created[TOGETHER_MAX];
        size_t n_created;
        const struct hf__step *failed; /* the first step that failed */
        int error;                     /* that step's error; 0 = none has failed */
};

static void note_failure(struct together *together, const struct hf__step *step, int error,
                         const struct hf_status *from, struct hf_status *why) {
        if (together->error != 0)
                return;
        together->failed = step;
        together->error = error;
        *why = *from;
}

/* Starts the requests of the n steps, up to the first that cannot be started. */
static void start_requests(struct hf__phase_run *run, struct together *together, size_t n,
                           struct hf_status *why) {
        while (together->n < n && together->error == 0) {
                const struct hf__step *step = &run->phase->steps.list[together->steps[together->n]];
                struct hf_status from = {0};
                int r = hf__phase_object_start_create(run, step, &together->pending[together->n],
                                                      &from);
                if (r == 0)
                        together->n++;
                else
                        note_failure(together, step, r, &from, why);
        }
}

/* Waits for the response to the i-th request. */
static void end_request(struct hf__phase_run *run, struct together *together, size_t i,
                        struct hf_status *why) {
        const struct hf__step *step = &run->phase->steps.list[together->steps[i]];
        struct hf_status from = {0};

        int r = hf__phase_object_end_create(run, together->pending[i], &from);
        if (r != 0) {
                note_failure(together, step, r, &from, why);
        } else if (run->seen.state == HF__SEEN_CREATED) {
                assert(together->n_created < TOGETHER_MAX);
                struct hf__created *created = &together->created[together->n_created++];
                created->step = together->steps[i];
                memcpy(created->applied, run->seen.result, sizeof created->applied);
        } else {
                run->found_object = true;
        }
        hf__phase_run_forget_object(run);
}

int hf__phase_together(struct hf__phase_run *run, const struct hf__plan *plan,
                       struct hf_status *why) {
        const struct hf__steps *steps = &run->phase->steps;
        struct together together = {.n = 0};
        size_t n = hf__plan_together(&run->ledger, run->phase->name, steps, run->bootstrap->version,
                                     plan->step, together.steps, TOGETHER_MAX);

        assert(plan->action == HF__PLAN_CREATE && run->has_ledger);
        start_requests(run, &together, n, why);
        for (size_t i = 0; i < together.n; i++)
                end_request(run, &together, i, why);
        for (size_t i = 0; i < together.n_created; i++)
                hf__report_progress(run->phase, HF_BOOTSTRAP_APPLIED,
                                    steps->list[together.created[i].step].id, plan->step);
        run->step = NULL;
        if (together.n_created > 0 && !hf__phase_run_means_term_end(together.error)) {
                struct hf_status from = {0};
                int r = hf__phase_ledger_record_created(run, together.created, together.n_created,
                                                        &from);
                if (r != 0) {
                        *why = from;
                        return r;
                }
        }
        run->step = together.failed;
        return together.error;
}
