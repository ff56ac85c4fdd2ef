/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock types of Kubernetes configurations. client-go has removed all of them except "leases". A
 * configuration that still names another type gets an error that says what to do.
 *
 * Invariant: no type other than "leases" is ever accepted, because two processes with different
 * types would both lead.
 */
#include <string.h>

#include <holdfast/error.h>
#include <holdfast/leader.h>

int hf_leader_lock_type_check(const char *lock_type, struct hf_status *reterr_status) {
        static const char *const gone[] = {"endpoints", "configmaps", "endpointsleases",
                                           "configmapsleases"};

        if (!lock_type || strcmp(lock_type, "leases") == 0)
                return 0;
        for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
                if (strcmp(lock_type, gone[i]) == 0)
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "the lock type %s is gone: migrate to leases", lock_type);
        return hf_fail(reterr_status, HF_E_INVALID,
                       "invalid lock type \"%.100s\": only leases are supported", lock_type);
}
