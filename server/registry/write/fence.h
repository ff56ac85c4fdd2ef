/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Fencing: a deposed leader's write must never commit. Each write of a leader names its term. The
 * transaction compares this with the term record, a key that is stored for each Lease. It also
 * compares the epoch of the store, a key whose value changes when a backup is restored, once the
 * cacher has read it (server/cacher/requests/store_identity.h). A write that creates a Lease or
 * changes its holder or acquireTime also writes its term record; one that deletes it deletes the
 * record.
 *
 * None of these functions sends the response: the caller still owns the write. Thread: that of the
 * write (write.h). Nothing blocks.
 */
#include "server/registry/write/write.h"
#include "server/storage/term_record.h"

/* The most compares and reads that a fence adds to a transaction: revision and value of each term
 * record, and the epoch. */
#define HFD_WRITE_FENCE_COMPARES (2 * HFD_FENCE_LEASES + 1)
#define HFD_WRITE_FENCE_READS    (HFD_FENCE_LEASES + 1)

/* Creates w->fence from the request's fence. 0, -ENOMEM or HF_E_TOO_LARGE. */
int hfd_write_fence_init(struct hfd_write *w);
/*
 * Appends the compares of the fence to the transaction, and the keys to read if a compare fails.
 * epoch_key is a buffer that must live until the transaction was started. 0 or HF_E_TOO_LARGE.
 */
int hfd_write_fence_compare(struct hfd_write *w, char epoch_key[HFD_KEY_MAX],
                            struct hfd_compare *compares, size_t *n_compares, const char **reads,
                            size_t *n_reads);
/*
 * Called after a conflict. True: the term that the fence names is over, or the store was replaced.
 * A replacement is reported to the cacher.
 */
bool hfd_write_fence_is_stale(struct hfd_write *w, const struct hfd_store_reply *reply);

/* Whether two parsed Leases have the same holder and acquireTime. */
bool hfd_write_fence_same_term(const struct hf__json *a, const struct hf__json *b);
/*
 * Fills op with the change to the Lease's term record. If op->key stays NULL, the record does not
 * change. key is a buffer for the key. The caller drops *ret_value (may be NULL) after starting the
 * transaction, also after a failure. 0, -ENOMEM or HF_E_TOO_LARGE.
 */
int hfd_write_fence_term_op(struct hfd_write *w, char key[HFD_KEY_MAX], struct hfd_op *op,
                            struct hf__buf **ret_value);
