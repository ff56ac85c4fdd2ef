/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects are created only in a namespace that exists and is not being deleted. The transaction of
 * a create compares the namespace too, so that it cannot be deleted between the check and the
 * commit.
 */
#include "server/registry/write/write.h"
#include "server/storage/store.h"

/*
 * Whether the namespace lets w create in it. False: w was answered, or the store is being asked and
 * the attempt is repeated; the caller must not touch w.
 */
bool hfd_write_namespace_open(struct hfd_write *w);
/*
 * What the transaction compares of the namespace. key is memory for its key, which must live until
 * the transaction was started. False: nothing is compared.
 */
bool hfd_write_namespace_compare(struct hfd_write *w, char key[HFD_KEY_MAX],
                                 struct hfd_compare *ret_compare);
/* Takes the namespace's state from what a failed transaction has read. False: out of memory. */
bool hfd_write_namespace_found(struct hfd_write *w, const struct hfd_kv *kvs, size_t n);
