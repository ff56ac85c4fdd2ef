/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The hook of a phase, which waits until the ledger says that the phase is complete. Thread: the
 * hook's. */
#include "bootstrap/phase.h"

/* The start function of the phase's hook; ctx is the struct hf__phase. Blocks until the phase is
 * complete or its hook_patience is over (0 in both cases), or until the hooks shut down
 * (HF_E_CANCELED). -EINVAL: there is no client. Or another -errno. */
int hf__ledger_wait(struct hf_hook_context *context, void *ctx, struct hf_status *reterr_status);
