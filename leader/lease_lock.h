/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The lock port with one coordination.k8s.io/v1 Lease. lock_port.h says on which threads the
 * functions of the lock run. */
#include <holdfast/leader.h>

#include "leader/lock_port.h"

struct hf__lease_watches;

/* Uses ns, name, labels and client of config. config is borrowed for the call, its client until the
 * lock has been freed and every response has arrived. watches (may be NULL) is for watching the
 * Lease together with others; it is borrowed until the lock has been freed. process (may be NULL)
 * describes this process in the Lease (holder_lock.h); borrowed likewise. 0 or -errno. */
int hf__lease_lock_new(const struct hf_host *host, const struct hf_elector_config *config,
                       struct hf__lease_watches *watches, const char *process,
                       struct hf__lock **ret_lock);
