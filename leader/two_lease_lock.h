/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The lock port with two Leases that are held as one, for a migration from an old Lease to a new
 * one. two_lease_core.h has the rules, and lock_port.h says on which threads the functions run. */
#include <holdfast/leader.h>

#include "leader/lock_port.h"

/* The old Lease is config->migrate_from, the new one config->name. lease_duration: the elector's,
 * with the default filled in. Lifetimes as in hf__lease_lock_new. 0 or -errno. */
int hf__two_lease_lock_new(const struct hf_host *host, const struct hf_elector_config *config,
                           hf_nsec lease_duration, struct hf__lock **ret_lock);
