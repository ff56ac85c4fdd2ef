/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The core of bootstrap: what is to be done next, from the ledger, the steps, the version and what
 * is known of one object. Pure: no clock, I/O, memory. The shell (phase_run.c) does what it says,
 * one thing at a time, and the unit test kills it at every point.
 *
 * Rules:
 *  - Order is by version. A phase that a newer version completed is left alone, and so is a step
 * whose record is of a newer version. Between equal versions with different contents (other
 * directories) a content that was superseded never comes back: each change is made once, however
 * leadership moves.
 *  - A step with a record of its very content is settled: whatever became of the object since is
 * somebody's will.
 *  - Without a record the object is created. If it is there already it is either this program's own
 * write, of before a crash or a lost reply, which its stamp tells; or somebody's, and stays as it
 * is (found).
 *  - With a record of another content the object is read. Gone: somebody deleted it, and it stays
 * so (deleted). As the last applied content left it: it is replaced (updated). Else somebody edited
 * it, and it stays so (kept).
 *  - A record is written after the object, so a crash between the two leaves the object without its
 * record. The next leader finds the stamp, and learns by a dry run what the content alone would
 * look like on this server: that, and not what is there now, goes into the record, so that an edit
 * made in between is still seen as one.
 */
#include "bootstrap/manifest.h"

enum hf__plan_do {
        HF__PLAN_FINISHED, /* nothing is left to do in the phase */
        HF__PLAN_CREATE,   /* the step's object */
        HF__PLAN_READ,     /* the step's object */
        HF__PLAN_REPLACE,  /* its content, at the revision that was read */
        HF__PLAN_TRY,      /* the same as a dry run */
        HF__PLAN_RECORD,   /* outcome and applied, in the ledger */
        HF__PLAN_COMPLETE, /* the phase, in the ledger */
};

/* What is known of the object of one step; HF__SEEN_NOTHING again whenever a call fails. */
enum hf__seen_state {
        HF__SEEN_NOTHING,
        HF__SEEN_EXISTS,   /* a create was refused: it is there */
        HF__SEEN_ABSENT,   /* a read found none */
        HF__SEEN_PRESENT,  /* a read found it: stamp, present */
        HF__SEEN_CREATED,  /* result */
        HF__SEEN_REPLACED, /* result */
        HF__SEEN_TRIED,    /* result */
};
struct hf__seen {
        enum hf__seen_state state;
        hf__hash stamp, present; /* as in content.h */
        hf__hash result; /* the content hash of what a write of ours, or its dry run, made of it */
};

struct hf__plan {
        enum hf__plan_do what;
        size_t step;              /* of CREATE .. RECORD */
        enum hf__outcome outcome; /* of RECORD */
        hf__hash applied;         /* of RECORD */
};

/* Is there nothing left to do for the step? */
bool hf__plan_settled(const struct hf__ledger *ledger, const struct hf__step *step,
                      const char *version);
/* seen is of the step that the last plan named. ledger is of the format of this program. */
void hf__plan_next(const struct hf__ledger *ledger, const char *phase,
                   const struct hf__steps *steps, const char *version, const struct hf__seen *seen,
                   struct hf__plan *ret_plan);
