/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The requests for the ledger (ledger.h) that a phase sends in a term. Thread: the owner of the
 * phase_run. All but hf__phase_ledger_start_record block until the response has arrived or the
 * term's abort token fires. All but the last return 0, an hf_error or -errno. `why` has the reason,
 * if more is known than the code says. After an error the caller must call hf__phase_run_forget,
 * because run->ledger may have a change that the server has not stored.
 */
#include "bootstrap/phase_run.h"
#include "client/pending_request.h"

/* Reads the ledger; run must not have one. A missing ledger counts as an empty one. HF_E_INVALID:
 * the object is not a ledger, or has a newer format and does not show the phase as complete. */
int hf__phase_ledger_read(struct hf__phase_run *run, struct hf_status *why);
/*
 * The next four functions change the ledger, write it at the resourceVersion that was last read or
 * written (or create it), and report the progress that was made. A record is written in two halves:
 * start sends the request and blocks only while on_progress runs; end waits for the response and
 * frees pending. Between the two, nothing else may use the ledger's object or change run->step.
 */
int hf__phase_ledger_start_record(struct hf__phase_run *run, const struct hf__plan *plan,
                                  struct hf__pending_request **ret_pending, struct hf_status *why);
int hf__phase_ledger_end_record(struct hf__phase_run *run, const struct hf__plan *plan,
                                struct hf__pending_request *pending, struct hf_status *why);
/* A step whose object was created, as one of several. */
struct hf__created {
        size_t step;      /* its index */
        hf__hash applied; /* hash of the content in the server's response */
};
/* Records the steps in one write, which also marks the phase complete if they were the last.
 * Reports what was recorded; the caller has reported what was applied. */
int hf__phase_ledger_record_created(struct hf__phase_run *run, const struct hf__created *created,
                                    size_t n, struct hf_status *why);
/* Marks the phase complete. */
int hf__phase_ledger_complete(struct hf__phase_run *run, struct hf_status *why);
/* Whether the ledger was deleted, or does not show this phase as complete, for example because
 * another phase has created it again. Returns false if the ledger cannot be read or has a newer
 * format. */
bool hf__phase_ledger_is_lost(const struct hf__phase_run *run);
