/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The requests for the object of the present step. Thread: the phase's. Each blocks until the
 * response is there or the term's abort token fires. It sets what is known (run->seen) and returns
 * 0, or returns an hf_error or -errno with the reason in `why`. A refusal that the plan must know
 * (exists, absent) is a success.
 */
#include "bootstrap/phase_run.h"

int hf__phase_object_create(struct hf__phase_run *run, struct hf_status *why);
int hf__phase_object_read(struct hf__phase_run *run, struct hf_status *why);
/* Replaces the content at the resourceVersion that was read. If the object has changed since, what
 * is known of it is forgotten. */
int hf__phase_object_replace(struct hf__phase_run *run, bool dry_run, struct hf_status *why);
