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
 * True: the namespace accepts new objects. False: w was answered, or the store is being asked and
 * then the attempt is repeated; the caller must not touch w.
 */
bool hfd_write_namespace_accepts_create(struct hfd_write *w);
/*
 * Fills in how the transaction compares the namespace. key is a buffer that must live until the
 * transaction was started. False: the namespace is not compared.
 */
bool hfd_write_namespace_compare(struct hfd_write *w, char key[HFD_KEY_MAX],
                                 struct hfd_compare *ret_compare);
/* Updates the namespace's state from the keys that a failed transaction read. False: no memory. */
bool hfd_write_namespace_update(struct hfd_write *w, const struct hfd_kv *kvs, size_t n);
