/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The leader-only controller identity-lease-collector: deletes the identity Leases of instances
 * that ended without deleting theirs, for example in a crash.
 */
#include <holdfast/leader.h>

#define HFD_LEASE_COLLECTOR "identity-lease-collector"

/* The controller's run function. context: its struct hfd_controller_context. Blocks until the term
 * ends. Thread: the controller's. */
int hfd_lease_collector_run(struct hf_term *term, void *context);
