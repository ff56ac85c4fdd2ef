/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks a create, or an update, against the quotas of its namespace. The transaction of a write
 * that a quota counts also compares the quota's version, and writes its new status.used. So two
 * instances that write at the same time cannot exceed a limit, and a write that fails is not
 * charged. Updates count if they raise what a pod, a claim or a service uses.
 *
 * In a namespace without a quota this costs one look into the cache. In others a write is still one
 * request to the store, unless it conflicts with another write, or a quota refuses it.
 *
 * Thread: that of the write (write.h). Nothing blocks: a write that waits for its turn
 * (quota_turn.h) goes on later, on another thread.
 */
#include "server/registry/write/write.h"
#include "server/storage/store.h"

/*
 * The most quotas that one write may change: a transaction has HFD_TXN_MAX compares, and the write
 * may need the others for itself. A write that more quotas count is refused.
 */
#define HFD_WRITE_QUOTAS_MAX 8

/*
 * Called when the object is complete. True: the caller commits. False: the response was sent, or
 * the write goes on later, and commit(w) is called if the quotas accept it; the caller must not
 * touch w.
 */
bool hfd_write_quota_admit(struct hfd_write *w, void (*commit)(struct hfd_write *w));
/*
 * Appends the quotas to the transaction: compares, writes, and keys to read if a compare fails.
 * These keys and values live until the transaction has ended.
 */
void hfd_write_quota_compare(const struct hfd_write *w, struct hfd_compare *compares,
                             size_t *n_compares, struct hfd_op *ops, size_t *n_ops,
                             const char **reads, size_t *n_reads);
/* The transaction has committed: records the new versions of the quotas. */
void hfd_write_quota_committed(struct hfd_write *w, uint64_t revision);
/* Takes over the quotas that a failed transaction has read. Returns NULL on success. Otherwise
 * returns the key-value from which no object can be made, because memory ran out, or the value is
 * invalid or cannot be decrypted. */
const struct hfd_kv *hfd_write_quota_update(struct hfd_write *w, const struct hfd_kv *kvs,
                                            size_t n);
