/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Rules that Leases and LeaseCandidates share. Pure. Thread: any. */

struct hfd_causes;

#define HFD_OLDEST_EMULATION_VERSION "OldestEmulationVersion"

/*
 * Adds a cause unless the strategy of a coordinated election is Kubernetes' own, or the name of
 * another one in the form domain/name. strategy is not empty.
 */
void hfd_lease_spec_validate_strategy(const char *strategy, struct hfd_causes *causes);
