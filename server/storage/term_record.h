/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The term record of a Lease, and the fence that compares it.
 *
 * A term record is a key of its own for each Lease (keys.h) with the value
 * `<holderIdentity>\n<acquireTime>`. Every transaction that creates a Lease or changes its
 * holderIdentity or acquireTime also writes the record, whichever client sent the request. Deleting
 * the Lease deletes the record. The term is the record's mod revision.
 *
 * A fenced transaction has two compares for each Lease that the fence names: the mod revision is
 * the term, and the value begins with `<identity>\n`. The second compare is needed after a backup
 * was restored: the store may then assign the same revision to another holder's term.
 *
 * Pure. Thread: any.
 */
#include <holdfast/fence.h>

#include "server/storage/keys.h"
#include "server/storage/store.h"

/*
 * The value of a term record, owned by the caller; NULL = out of memory. A newline in an argument
 * becomes a space, so that the value has exactly one. A missing or empty acquire_time is written as
 * "-", because HFD_VALUE_BEGINS requires a byte after the newline. Both arguments may be NULL.
 */
struct hf__buf *hfd_term_record_value(const char *holder, const char *acquire_time);

#define HFD_FENCE_LEASES 2 /* per fence, at most */

/* The compares of a fence and the memory that they borrow. The struct must live until the
 * transaction was started, and must not be copied, because compares points into key and value. */
struct hfd_fence_compares {
        size_t n_leases;
        char key[HFD_FENCE_LEASES][HFD_KEY_MAX];
        char value[HF_IDENTITY_MAX + 2]; /* the identity, a newline and the NUL */
        /* 2 * n_leases entries: for each key its revision, then its value. */
        struct hfd_compare compares[2 * HFD_FENCE_LEASES];
};
/* prefix is the storage prefix (keys.h). 0 or HF_E_TOO_LARGE. */
int hfd_fence_compares(struct hfd_fence_compares *out, const char *prefix,
                       const struct hf_fence *fence);
