/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The requests for the object of the current step. Thread: the owner of the phase_run. Each blocks
 * until the response has arrived or the term's abort token fires. It updates run->seen and returns
 * 0, or returns an hf_error or -errno; `why` has the reason, if more is known than the code says. A
 * response that the plan handles (the object exists, or is absent) counts as success.
 */
#include "bootstrap/phase_run.h"
#include "client/pending_request.h"

int hf__phase_object_create(struct hf__phase_run *run, struct hf_status *why);
/* The halves of hf__phase_object_create, for any step. start does not block, and does not touch
 * run->seen; end waits for the response and frees the pending request. */
int hf__phase_object_start_create(struct hf__phase_run *run, const struct hf__step *step,
                                  struct hf__pending_request **ret_pending, struct hf_status *why);
int hf__phase_object_end_create(struct hf__phase_run *run, struct hf__pending_request *pending,
                                struct hf_status *why);
int hf__phase_object_read(struct hf__phase_run *run, struct hf_status *why);
/* Replaces the content at the resourceVersion that was read, which run->present contains.
 * HF_E_CONFLICT: the object has changed since. */
int hf__phase_object_replace(struct hf__phase_run *run, bool dry_run, struct hf_status *why);
