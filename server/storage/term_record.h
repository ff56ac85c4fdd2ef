/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The term record of a Lease, and the fence that compares it.
 *
 * A term record is a key of its own for each Lease (keys.h) with the value
 * `<holderIdentity>\n<acquireTime>`. Every transaction that creates a Lease or changes its
 * holderIdentity or acquireTime writes it, whichever client asks for it; deleting the Lease deletes
 * it. The term is the record's mod revision.
 *
 * A fenced transaction has two compares for each Lease that the fence names: the mod revision is
 * the term, and the value begins with `<identity>\n`. The second compare guards against a restored
 * backup, which may issue the same revision again to another holder.
 *
 * Pure. Thread: any.
 */
#include <holdfast/fence.h>

#include "server/storage/store.h"

/*
 * The value of a term record, owned by the caller; NULL = out of memory. A newline in an identity
 * becomes a space, so that the value has exactly one. A missing or empty acquire_time is written as
 * "-", because HFD_VALUE_BEGINS requires a byte after the newline. Both arguments may be NULL.
 */
struct hf__buf *hfd_term_record_value(const char *holder, const char *acquire_time);

#define HFD_FENCE_LEASES 2 /* per fence, at most */

/* The fence's compares and the memory that they borrow. Must live until the transaction was
 * started. Must not be copied. */
struct hfd_fence_compares {
        size_t n_leases;
        char key[HFD_FENCE_LEASES][1024];
        char value[HF_IDENTITY_MAX + 2];
        /* 2 * n_leases of them: revision and value of each key in turn. */
        struct hfd_compare compares[2 * HFD_FENCE_LEASES];
};
/* prefix is the storage prefix (keys.h). 0 or HF_E_TOO_LARGE. */
int hfd_fence_compares(struct hfd_fence_compares *out, const char *prefix,
                       const struct hf_fence *fence);
