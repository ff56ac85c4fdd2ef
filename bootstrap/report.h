/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reports the state of phases: their info, the log, metrics, health checks, Events and on_progress.
 * Thread: any, unless a function's comment names another. No lock is held during a log call or
 * on_progress.
 */
#include "bootstrap/phase.h"

#define HF__UNCHANGED ((size_t)-1)

/* Creates the metrics of all phases and adds the health check `bootstrap`. 0, HF_E_EXISTS or
 * -errno. */
int hf__report_init(struct hf_bootstrap *bootstrap);
/* Adds the health check of a phase that readiness depends on. 0, HF_E_EXISTS or -errno. */
int hf__report_add_readiness(struct hf__phase *phase);
/* Removes the health checks that were added. */
void hf__report_done(struct hf_bootstrap *bootstrap);

/* The ledger shows that some version has completed the phase. */
void hf__report_complete(struct hf__phase *phase);
/* The ledger shows that nothing is left to do in the phase. */
void hf__report_settled(struct hf__phase *phase);
/* The phase has reached a point. step: the id of the step, may be NULL; n_settled: HF__UNCHANGED
 * keeps the previous number. Thread: the owner of the phase_run. Blocks while on_progress runs. */
void hf__report_progress(struct hf__phase *phase, enum hf_bootstrap_point point, const char *step,
                         size_t n_settled);
/*
 * Reports a failed attempt, the n_failures-th in a row. Logs the 1st, 2nd, 4th ... failure and
 * writes an Event for it. Thread: the phase's. Blocks for the Event's requests, for a few seconds
 * at most, and while on_progress runs.
 */
void hf__report_failure(struct hf__phase *phase, struct hf_term *term, const char *step,
                        unsigned n_failures, const struct hf_status *why);
/* Clears `running` and `failing`, because the phase's controller pauses or returns. */
void hf__report_idle(struct hf__phase *phase);
