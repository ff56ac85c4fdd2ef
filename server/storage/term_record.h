/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The term record of a Lease, and the fence that compares it (P2).
 *
 * Value: `<holderIdentity>\n<acquireTime>`; the term is the record's mod revision. It is written in
 * the transaction that creates a Lease or changes its holderIdentity or acquireTime, whoever does
 * it, and deleted with the Lease. A fenced transaction adds two compares for each of the Leases
 * that the fence names: mod revision = term, value begins with `<identity>\n`; so a revision that a
 * restored backup reissued matches nothing. Pure.
 */
#include <holdfast/fence.h>

#include "server/storage/store.h"

/*
 * NULL = out of memory. Newlines in a foreign identity are replaced, so that a value has exactly
 * one. An absent or empty acquire_time (a foreign Lease without one) is written as "-", so that
 * something stands behind the newline.
 */
struct hf__buf *hfd_term_record_value(const char *holder, const char *acquire_time);

#define HFD_FENCE_LEASES 2 /* that one fence names at most */

/* Memory for the fence's compares; alive until the transaction was started. */
struct hfd_fence_compares {
        size_t n_leases;
        char key[HFD_FENCE_LEASES][1024];
        char value[HF_IDENTITY_MAX + 2];
        struct hfd_compare compares[2 * HFD_FENCE_LEASES]; /* 2 x n_leases of them: revision and
                                                              value of each key in turn */
};
/* 0 or HF_E_TOO_LARGE. prefix is the storage prefix (keys.h). */
int hfd_fence_compares(struct hfd_fence_compares *out, const char *prefix,
                       const struct hf_fence *fence);
