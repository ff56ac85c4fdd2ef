/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The core of bootstrap: decides what to do next, from the ledger, the steps, the version and what
 * is known of one object. Pure: no clock, no I/O, no allocation. phase_run.c carries the actions
 * out. The unit test simulates instances that follow the plan, and lets them die at every point.
 *
 * Rules, with the outcome that is recorded (enum hf__outcome) in parentheses. A step's stamp is the
 * annotation HF__STAMP with the hash of the step's content (content.h).
 *
 *  - Newer versions win. A phase that a newer version completed is left alone, and so is a step
 *    whose record is from a newer version. If versions are equal but contents differ (instances
 *    with different directories of manifests), the last HF__SUPERSEDED_MAX superseded contents are
 *    not applied again. So a change is made once, however often leadership moves.
 *  - A step whose record has exactly its content is settled. If the object has changed since, a
 *    user wanted that.
 *  - A step without a record gets its object created. If the object exists already, there are two
 *    cases. If it has the step's stamp, bootstrap wrote it, and the record was lost by a crash,
 *    with a response, or with a deleted ledger (created). Otherwise it counts as a user's and stays
 *    as it is (found).
 *  - If the record has another content, the object is read. If it is gone, a user deleted it, and
 *    it stays deleted (deleted). If it has the step's stamp, bootstrap replaced it before a crash
 *    (updated). If it still equals what was last applied, it is replaced (updated). Otherwise a
 *    user made or edited it, and it stays as it is (kept).
 *  - A record is written after its object, so a crash between the two leaves an object whose record
 *    is missing or old. The next leader finds the stamp and learns by a dry run how this server
 *    stores the content. The record gets that result, not the object's current state, so that an
 *    edit made in between still counts as an edit.
 *  - Until some version has completed the phase, steps whose order does not matter may be done
 *    together: their objects are created at the same time, and then one write records all that were
 *    created. A crash before that write leaves all of them without a record.
 */
#include "bootstrap/ledger.h"
#include "bootstrap/steps.h"

enum hf__plan_action {
        HF__PLAN_FINISHED, /* nothing is left to do in the phase */
        HF__PLAN_CREATE,   /* create the step's object */
        HF__PLAN_READ,     /* read the step's object */
        HF__PLAN_REPLACE,  /* replace its content, at the resourceVersion that was read */
        HF__PLAN_DRY_RUN,  /* like HF__PLAN_REPLACE, but as a dry run */
        HF__PLAN_RECORD,   /* write a record with outcome and applied into the ledger */
        HF__PLAN_COMPLETE, /* mark the phase complete in the ledger */
};

/* The knowledge about the object of one step. After any failure it is HF__SEEN_NOTHING again. */
enum hf__seen_state {
        HF__SEEN_NOTHING,  /* not requested yet */
        HF__SEEN_EXISTS,   /* a create was refused, because the object exists */
        HF__SEEN_ABSENT,   /* a read did not find it */
        HF__SEEN_PRESENT,  /* a read found it; stamp and present are set */
        HF__SEEN_CREATED,  /* we created it; result is set */
        HF__SEEN_REPLACED, /* we replaced its content; result is set */
        HF__SEEN_DRY_RUN,  /* we replaced it in a dry run; result is set */
};
struct hf__seen {
        enum hf__seen_state state;
        hf__hash stamp, present; /* as in struct hf__content_seen */
        hf__hash result;         /* hash of the content in the server's response to our write */
};

struct hf__plan {
        enum hf__plan_action action;
        size_t step; /* the index of the step; for all actions but FINISHED and COMPLETE */
        /* both for HF__PLAN_RECORD */
        enum hf__outcome outcome;
        hf__hash applied;
};

/* Whether there is nothing left to do for the step. */
bool hf__plan_settled(const struct hf__ledger *ledger, const struct hf__step *step,
                      const char *version);
/*
 * Lists steps, by index, whose objects may be created at the same time. Call it if the plan wants
 * to create the object of `first`, which is always listed. If the order of first does not matter,
 * and no version has completed the phase, the steps after it follow, up to one whose order matters
 * or that has a record of another content. Settled ones are left out. At most max; returns their
 * number, at least 1. The ledger must not have a newer format.
 */
size_t hf__plan_together(const struct hf__ledger *ledger, const char *phase,
                         const struct hf__steps *steps, const char *version, size_t first,
                         size_t *ret_list, size_t max);
/* Counts the settled steps at the beginning of the list, up to the first that is not settled. */
size_t hf__plan_n_settled(const struct hf__ledger *ledger, const struct hf__steps *steps,
                          const char *version);
/* Decides the next action. `seen` is what is known of the object of the first unsettled step.
 * The ledger must not have a newer format. */
void hf__plan_next(const struct hf__ledger *ledger, const char *phase,
                   const struct hf__steps *steps, const char *version, const struct hf__seen *seen,
                   struct hf__plan *ret_plan);
