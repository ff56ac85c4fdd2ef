/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The reconcile loop for a part of a term. Private to libholdfast; not part of the public API. */
#include <holdfast/reconciler.h>

/*
 * As hf_reconciler_run, but it drains and returns 0 also when `until` fires, which must be the
 * term's drain or a child of it. The next run in the term gets the keys of all objects again, so a
 * controller whose sources have changed can run with the new ones. Blocks until the workers have
 * drained. Thread: the one that runs the term's controller (<holdfast/reconciler.h>).
 */
int hf__reconciler_run_until(const struct hf_reconciler *reconciler, struct hf_term *term,
                             struct hf_cancel *until);
