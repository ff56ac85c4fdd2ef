/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The core's operations on the Lease: which one is due, what it sends, and what its outcome means.
 * The model is in core.h. Pure; private to the core (core*.c).
 */
#include "leader/core.h"

/*
 * Starts the operation that is due, if any. Returns the boot time at which the next one will be
 * due, or HF_NSEC_NEVER if that depends on an event or on the operation under way.
 */
hf_nsec hf__core_start_due_op(struct hf__core *core, struct hf__core_time now,
                              struct hf__core_actions *actions);
/* Handles HF__EV_READ_DONE and HF__EV_WRITE_DONE. A reply to an operation that was given up is
 * ignored. */
void hf__core_op_done(struct hf__core *core, const struct hf__core_event *event,
                      struct hf__core_time now, struct hf__core_actions *actions);
/* Gives up the operation under way if its deadline has passed. */
void hf__core_op_expire(struct hf__core *core, struct hf__core_time now);
/* Forgets the operation under way, which was not sent. The core requests it again if it is still
 * due. */
void hf__core_op_withdraw(struct hf__core *core, struct hf__core_time now);
