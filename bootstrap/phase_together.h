/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The steps of a phase that are done at the same time. Thread: one of its own that the phase's
 * thread waits for, or the phase's own if none can be started. */
#include "bootstrap/phase_run.h"

/*
 * Carries out the plan's action, which is to create an object, together with the same action of
 * later steps, and records all objects that were created, unless the term is over. Blocks until all
 * responses have arrived or the term's abort token fires. 0: the plan goes on, also with objects
 * that existed already. Otherwise the error of the first step that failed, which run->step names,
 * or of the ledger.
 */
int hf__phase_together(struct hf__phase_run *run, const struct hf__plan *plan,
                       struct hf_status *why);
