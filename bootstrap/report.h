/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reports the state of phases: their info, the log, metrics, health checks, Events and on_progress.
 * Thread: any, except where a function says otherwise. Nothing here holds a lock while it logs or
 * calls the user.
 */
#include "bootstrap/phase.h"

#define HF__UNCHANGED ((size_t)-1)

/* Makes the metrics of all phases, and the health check `bootstrap`. 0, HF_E_EXISTS or -errno. */
int hf__report_init(struct hf_bootstrap *bootstrap);
/* Makes the health check of a phase that is part of being ready. 0, HF_E_EXISTS or -errno. */
int hf__report_add_readiness(struct hf__phase *phase);
/* Removes the health checks that were made. */
void hf__report_done(struct hf_bootstrap *bootstrap);

/* The ledger says that the phase is complete, or does not say so. */
void hf__report_complete(struct hf__phase *phase, bool complete);
/* The phase has reached a point. step: the id of the step, may be NULL; n_settled: HF__UNCHANGED =
 * as before. Thread: the phase's. Blocks while on_progress runs. */
void hf__report_progress(struct hf__phase *phase, enum hf_bootstrap_point point, const char *step,
                         size_t n_settled);
/*
 * A try has failed, for the n_failures-th time in a row. Logs the 1st, 2nd, 4th ... and writes an
 * Event for it. Thread: the phase's. Blocks for the Event's requests, for a few seconds at most,
 * and while on_progress runs.
 */
void hf__report_failure(struct hf__phase *phase, struct hf_term *term, const char *step,
                        unsigned n_failures, const struct hf_status *why);
/* The phase's controller pauses or returns: this process neither runs the phase nor fails at it. */
void hf__report_idle(struct hf__phase *phase);
