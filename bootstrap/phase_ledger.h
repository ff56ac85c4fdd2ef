/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The requests for the ledger of a phase in a term. Thread: the phase's. Each blocks until the
 * response is there or the term's abort token fires, and returns 0, an hf_error or -errno with the
 * reason in `why`.
 */
#include "bootstrap/phase_run.h"

/* Reads the ledger. That there is none is a success. HF_E_INVALID: it is not a ledger, or is of a
 * newer format that does not say that the phase is complete. */
int hf__phase_ledger_read(struct hf__phase_run *run, struct hf_status *why);
/*
 * Each changes the ledger and writes it at the resourceVersion that was read. If the ledger has
 * changed since, that is no failure: what is known is forgotten, and is read again. Both report
 * what they have done.
 */
int hf__phase_ledger_record(struct hf__phase_run *run, const struct hf__plan *plan,
                            struct hf_status *why);
int hf__phase_ledger_complete(struct hf__phase_run *run, struct hf_status *why);
/* Whether the ledger was deleted, or was created again by another phase and does not know this one.
 * False also if it cannot be read. */
bool hf__phase_ledger_is_lost(const struct hf__phase_run *run);
