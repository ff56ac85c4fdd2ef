/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The controller identity-lease, which runs on every instance. It maintains a Lease that shows that
 * the instance is alive and which URL it serves.
 */
#include <holdfast/leader.h>

struct hfd_controller_context;

#define HFD_IDENTITY_LEASE "identity-lease"

/* The controller's run function. context: its struct hfd_controller_context. Blocks until the term
 * drains or aborts, or the process begins to stop, and then until the attempt under way and the
 * delete have ended. Each of their requests takes 3 s at most. 0, or -errno: the controller could
 * not begin. Thread: the controller's. */
int hfd_identity_lease_run(struct hf_term *term, void *context);

/*
 * Blocks until the controller has ended, for half a second at most. A controller that ends deletes
 * its Lease. The Lease may remain until it expires if the half second has passed, if the delete has
 * failed, if the store applies a write of unknown outcome after the delete, or if the term was
 * aborted. Returns at once if the controller never ran or the process is not stopping. Thread: any.
 */
void hfd_identity_lease_wait_deleted(struct hfd_controller_context *context);
