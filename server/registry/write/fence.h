/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Fencing. A leader's write names its term. The transaction compares the term record of the Lease,
 * which the store keeps beside it, and the epoch of the store, so that a deposed leader's write
 * never commits. A write of a Lease that changes its holder or acquireTime writes the term record.
 *
 * None of these functions replies: the write stays with the caller.
 */
#include "server/registry/write/write.h"
#include "server/storage/term_record.h"

/* What a fence adds to a transaction at most. */
#define HFD_WRITE_FENCE_COMPARES (2 * HFD_FENCE_LEASES + 1)
#define HFD_WRITE_FENCE_READS    (HFD_FENCE_LEASES + 1)

/* Makes w->fence of the request's fence. 0, -ENOMEM or HF_E_TOO_LARGE. */
int hfd_write_fence_make(struct hfd_write *w);
/*
 * Appends to the transaction what the fence compares, and what it reads when a compare fails.
 * epoch_key is memory for a key, which must live until the transaction was started. 0 or
 * HF_E_TOO_LARGE.
 */
int hfd_write_fence_compare(struct hfd_write *w, char epoch_key[HFD_KEY_MAX],
                            struct hfd_compare *compares, size_t *n_compares, const char **reads,
                            size_t *n_reads);
/*
 * After a transaction has failed: whether the term that the fence names is over. True also when
 * the store was replaced, which is reported to the cacher.
 */
bool hfd_write_fence_is_stale(struct hfd_write *w, const struct hfd_store_reply *reply);

/* Whether two parsed Leases have the same holder and acquireTime. */
bool hfd_write_fence_same_term(const struct hf__json *a, const struct hf__json *b);
/*
 * What the transaction does to the Lease's term record. op->key stays NULL: nothing. key is memory
 * for it. The caller drops *ret_value (may be NULL) after the transaction was started, also after a
 * failure. 0, -ENOMEM or HF_E_TOO_LARGE.
 */
int hfd_write_fence_term_op(struct hfd_write *w, char key[HFD_KEY_MAX], struct hfd_op *op,
                            struct hf__buf **ret_value);
